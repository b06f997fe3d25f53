//! A disk that takes nothing for a while, because it is full or somebody locks the database: nothing new starts, nothing
//! is ended, and all goes on from where it is once it takes something again.

use agent::{AgentEvent, Halt};
use protocol::{Actor as Who, ErrorKind, EventBody, NoticeLevel, RpcError, Seq};
use tokio::time::Instant;

use super::super::command::TurnSays;
use super::super::scribe::{Fact, Rows};
use super::{Actor, Phase, WRITE_AGAIN};

/// Why something that happened is not in the journal.
#[derive(Debug)]
pub(super) enum Unkept {
    /// It will be, once the disk takes it.
    NotYet,
    Halt(Halt),
}

impl Actor {
    /// # Errors
    /// `disk_full` while room is short.
    pub(super) fn check_room(&self) -> Result<(), RpcError> {
        if !self.env.store.is_short_of_room() {
            return Ok(());
        }
        let fact =
            format!("{}: no space is left on its disk; the message was not taken", self.env.store.path().display());
        Err(RpcError::new(
            ErrorKind::DiskFull,
            fact,
            "free some space, then send it again; agentd sees it within seconds",
        ))
    }

    /// Says how things stand, and takes up what had to wait.
    pub(super) async fn room_changed(&mut self, is_short: bool) {
        let Phase::Running(running) = &self.phase else { return };
        let (level, text) = match is_short {
            true => {
                (NoticeLevel::Warning, "the disk is full: what runs may end, and the turn goes on once there is room")
            }
            false => (NoticeLevel::Info, "there is room on the disk again: the turn goes on"),
        };
        let notice = EventBody::Notice { level, text: text.into() };
        let fact = Fact::new(notice, Who::Daemon).in_turn(running.turn.id);
        if let Err(error) = self.scribe.write(vec![fact], Rows::default()).await {
            tracing::warn!(session = %self.session.id, %error, "nobody could be told about the room on the disk");
        }
        if !is_short {
            self.hear_again().await;
        }
    }

    /// Lets something that the loop has said wait for the disk.
    pub(super) fn put_off(&mut self, says: TurnSays) {
        if let Phase::Running(running) = &mut self.phase {
            running.put_off.push(says);
            running.keep_again.get_or_insert_with(|| Instant::now() + WRITE_AGAIN);
        }
    }

    /// As [`Scribe::write`](super::super::scribe::Scribe::write); what tools have changed is told again when it fails.
    pub(super) async fn write_with_bench(&mut self, facts: Vec<Fact>, rows: Rows) -> Result<Seq, RpcError> {
        let changes = rows.workbench.clone();
        let written = self.scribe.write(facts, rows).await;
        if written.is_err() {
            self.workbench.put_back(changes);
        }
        written
    }

    /// When what has waited is tried again. A full disk is waited for instead.
    pub(super) fn keeps_again(&self) -> Option<Instant> {
        self.running().and_then(|running| running.keep_again).filter(|_| !self.env.store.is_short_of_room())
    }

    /// Tries again to keep what has waited, in the order in which it happened.
    pub(super) async fn hear_again(&mut self) {
        let Phase::Running(running) = &mut self.phase else { return };
        running.keep_again = None;
        for says in std::mem::take(&mut running.put_off) {
            self.hear(says).await;
        }
    }

    /// Whether what runs was told to stop.
    pub(super) fn is_cancelled(&self) -> bool {
        self.running().is_some_and(|running| running.cancel.is_cancelled())
    }
}

/// Whether what kept a write from the disk passes by itself: somebody else's lock, or a full disk.
pub(super) fn passes(error: &RpcError) -> bool {
    error.kind == ErrorKind::DiskFull || error.data.more.get("cause").is_some_and(|cause| cause == "busy")
}

/// Whether an event is the start of something.
pub(super) fn starts(event: &AgentEvent) -> bool {
    matches!(event, AgentEvent::ToolStarted { .. })
}
