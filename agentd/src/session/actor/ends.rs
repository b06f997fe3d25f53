//! How turns end: noted, written into the journal once and for all, told to whoever waits.

use agent::{RunEnd, RunOutcome};
use jiff::Timestamp;
use protocol::api::TurnInterrupted;
use protocol::{Actor as Who, EventBody, RpcError, Session, SessionStatus, Turn, TurnState};
use tokio::task::JoinError;
use tokio::time::Instant;

use super::super::scribe::{Fact, Rows};
use super::super::{outcome, recovery, storage};
use super::{Actor, Phase, WRITE_AGAIN};

impl Actor {
    /// Notes how the turn's task ended, whatever became of it, and puts that into the journal.
    pub(super) async fn turn_ended(&mut self, outcome: Result<RunOutcome, JoinError>) {
        let Phase::Running(running) = &mut self.phase else { return };
        let was_cancelled = running.cancel.is_cancelled();
        // What could not be stored, and what was ended with the daemon, can go on; what a person stopped cannot.
        running.is_cut_off = !was_cancelled
            && match &outcome {
                Ok(outcome) => matches!(outcome.end, RunEnd::Halted(_)),
                Err(error) => error.is_cancelled(),
            };
        if !running.is_cut_off {
            (running.turn.state, running.turn.error) = outcome::ended(outcome, was_cancelled);
            running.turn.ended_at = Some(Timestamp::now());
        }
        running.held.clear();
        self.feed.message_dropped();
        // What the turn still asked is in the journal: its end takes it back there, or it stays asked.
        self.waiting.approvals.drop_all();
        self.waiting.questions.drop_all();
        self.finish_turn().await;
    }

    /// Writes what became of a turn of which nothing runs any more, then tells everybody who waits. What cannot be
    /// written is tried again: a turn that started has exactly one end, and nobody is told of one that is not in the
    /// journal.
    pub(super) async fn finish_turn(&mut self) {
        let Phase::Running(running) = &mut self.phase else { return };
        if running.parking.is_some() && !running.open_calls.is_empty() {
            // Something of it may still be at work: the next start looks at what became of it.
            tracing::warn!(session = %self.session.id, turn = %running.turn.id, "a turn is left to the next start");
            self.phase = Phase::Closed;
            return;
        }
        let is_first = running.end_again.replace(Instant::now() + WRITE_AGAIN).is_none();
        let (turn, is_cut_off, is_parked) = (running.turn.clone(), running.is_cut_off, running.parking.is_some());
        let interrupters = std::mem::take(&mut running.interrupters);
        let written = if is_cut_off {
            self.cut_off(turn.clone()).await
        } else {
            self.end_cut_off(turn.clone(), turn.state).await.map(drop)
        };
        if let Err(error) = written {
            if is_first {
                tracing::error!(session = %self.session.id, turn = %turn.id, %error, "the end of a turn cannot be stored yet");
            }
            if let Phase::Running(running) = &mut self.phase {
                running.interrupters = interrupters;
            }
            return;
        }
        let seq = self.scribe.last_seq();
        let state = if is_cut_off { TurnState::Recoverable } else { turn.state };
        for interrupter in interrupters {
            let answer = TurnInterrupted { turn_id: Some(turn.id), state: Some(state), seq };
            drop(interrupter.send(Ok(answer)));
        }
        if is_parked {
            // What waits begins in another life.
            self.phase = Phase::Closed;
        } else {
            self.next_queued().await;
        }
    }

    /// # Errors
    /// `storage_error`.
    pub(super) async fn write_end(&mut self, turn: &Turn) -> Result<u64, RpcError> {
        let (facts, session) = self.end_facts(turn).await?;
        let seq = self.scribe.write(facts, Rows::default()).await?;
        self.session = session;
        Ok(seq)
    }

    /// What stands in the journal of a turn's end, and the session after it.
    pub(super) async fn end_facts(&self, turn: &Turn) -> Result<(Vec<Fact>, Session), RpcError> {
        let mut facts = self.withdrawn("the turn ended").await?;
        let last = self.env.store.last_message(self.session.id).await.map_err(|error| storage(&error))?;
        if last.is_some_and(|last| last.tool_uses().next().is_some()) {
            // A loop that was cut off leaves calls without a result: each gets an honest one.
            let closing = recovery::close(self.found(turn).await?.calls);
            facts.extend(closing.map(|message| Fact::new(EventBody::Message { message }, Who::Daemon)));
        }
        let session = Session { status: SessionStatus::Idle, updated_at: Timestamp::now(), ..self.session.clone() };
        let bodies = [
            EventBody::TurnEnded { state: turn.state, usage: turn.usage, error: turn.error.clone() },
            EventBody::SessionStatus { status: SessionStatus::Idle },
            EventBody::SessionUpdated { session: session.clone() },
        ];
        facts.extend(bodies.map(|body| Fact::new(body, Who::Daemon)));
        Ok((facts.into_iter().map(|fact| fact.in_turn(turn.id)).collect(), session))
    }

    /// A turn's end is in the journal: nothing of it is held any more.
    pub(super) fn has_ended(&mut self, turn: Turn) {
        self.waiting.approvals.drop_all();
        self.waiting.questions.drop_all();
        self.phase = Phase::Idle;
        self.last_ended = Some(turn);
        self.wake_waiters();
    }
}

/// A turn as it is once it has ended so.
pub(super) fn over(turn: Turn, state: TurnState) -> Turn {
    Turn { state, ended_at: Some(Timestamp::now()), ..turn }
}
