//! A full disk: nothing new starts, nothing is ended, and all goes on from where it is once there is room.

use agent::{AgentEvent, Halt};
use protocol::{Actor as Who, ErrorKind, EventBody, NoticeLevel, RpcError};

use super::super::scribe::{Fact, Rows};
use super::{Actor, Phase};

/// Why something that happened is not in the journal.
#[derive(Debug)]
pub(super) enum Unkept {
    /// It will be, once there is room.
    NoRoom,
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
            self.keep_unkept().await;
        }
    }

    /// Tries again to keep what has waited for room, in the order in which it happened.
    pub(super) async fn keep_unkept(&mut self) {
        let Phase::Running(running) = &mut self.phase else { return };
        for (event, reply) in std::mem::take(&mut running.unkept) {
            self.happened(event, reply).await;
        }
    }

    /// Whether what runs was told to stop.
    pub(super) fn is_cancelled(&self) -> bool {
        self.running().is_some_and(|running| running.cancel.is_cancelled())
    }
}

/// Whether an event is the start of something.
pub(super) fn starts(event: &AgentEvent) -> bool {
    matches!(event, AgentEvent::ToolStarted { .. })
}
