//! What people say about a turn that was cut off: go on, or let it be.

use foundation::failpoint;
use protocol::api::{ResumeAction, TurnResumed};
use protocol::{Actor as Who, ErrorKind, EventBody, RpcError, Seq, SessionStatus, Turn, TurnId, TurnState};

use super::super::scribe::Fact;
use super::super::storage;
use super::ends::over;
use super::{Actor, Phase};
use crate::rpc::Caller;

impl Actor {
    /// # Errors
    /// `invalid_state` for a turn that does not wait for this, `not_found`, what building its agent refuses,
    /// `disk_full`, `storage_error`.
    pub(super) async fn resume(
        &mut self,
        turn: TurnId,
        action: ResumeAction,
        by: &Caller,
    ) -> Result<TurnResumed, RpcError> {
        let is_cut_off = matches!(&self.phase, Phase::Interrupted(Some(waits)) if waits.id == turn);
        let is_held = matches!(self.phase, Phase::Interrupted(None)) && self.queue.holds(turn);
        let answer = |state, seq| TurnResumed { turn_id: turn, state, seq };
        match action {
            ResumeAction::Continue if is_cut_off => {
                self.go_on(by.actor()).await.map(|seq| answer(TurnState::Running, seq))
            }
            ResumeAction::Discard if is_cut_off => {
                self.discard(TurnState::Interrupted).await.map(|seq| answer(TurnState::Interrupted, seq))
            }
            ResumeAction::Continue if is_held => {
                self.release_queue().await;
                let state = if self.queue.holds(turn) { TurnState::Queued } else { TurnState::Running };
                Ok(answer(state, self.scribe.last_seq()))
            }
            ResumeAction::Discard if is_held => {
                self.delete_queued(turn, by).await.map(|deleted| answer(TurnState::Interrupted, deleted.seq))
            }
            ResumeAction::Continue | ResumeAction::Discard => Err(self.not_cut_off(turn).await),
        }
    }

    /// Lets the turn that was cut off run on.
    pub(super) async fn go_on(&mut self, who: Who) -> Result<Seq, RpcError> {
        self.check_room()?;
        let Phase::Interrupted(Some(turn)) = &self.phase else { return Ok(self.scribe.last_seq()) };
        let turn = Turn { state: TurnState::Running, resumes: turn.resumes + 1, ..(**turn).clone() };
        let link = self.link(turn.id)?;
        let agent = self.agent(&link, turn.max_steps).await?;
        let found = self.found(&turn).await?;
        failpoint::hit("resume.before");
        let so_far = super::super::recovery::resumption(&found.calls, found.steps);
        let bodies = [
            EventBody::TurnResumed { turn: turn.clone() },
            EventBody::SessionStatus { status: SessionStatus::Running },
        ];
        // A file may have changed while the turn waited: then more is settled now.
        let (settled, rows) = self.settled(&turn, &found);
        let mut facts: Vec<_> = bodies.map(|body| Fact::new(body, who.clone()).in_turn(turn.id)).into();
        facts.extend(settled);
        let seq = self.write_with_bench(facts, rows).await?;
        self.session.status = SessionStatus::Running;
        self.spawn(agent, turn, link, Some(so_far));
        failpoint::hit("resume.after");
        self.asked().await;
        Ok(seq)
    }

    /// Ends the turn that was cut off, and lets the messages that wait have their turn.
    pub(super) async fn discard(&mut self, state: TurnState) -> Result<Seq, RpcError> {
        let Phase::Interrupted(Some(turn)) = &self.phase else { return Ok(self.scribe.last_seq()) };
        let turn = (**turn).clone();
        let seq = self.end_cut_off(turn, state).await?;
        self.next_queued().await;
        Ok(seq)
    }

    /// Writes the end of a turn that was cut off.
    pub(super) async fn end_cut_off(&mut self, turn: Turn, state: TurnState) -> Result<Seq, RpcError> {
        let turn = over(turn, state);
        let seq = self.write_end(&turn).await?;
        self.has_ended(turn);
        Ok(seq)
    }

    async fn not_cut_off(&self, turn: TurnId) -> RpcError {
        match self.env.store.turn(turn).await {
            Ok(Some(found)) if found.session_id == self.session.id => RpcError::new(
                ErrorKind::InvalidState,
                format!("turn {turn} was not cut off: it is {}", super::super::name_of(found.state)),
                "nothing to do: only a turn that is `recoverable` waits for this",
            ),
            Ok(_) => super::super::no_turn(turn, self.session.id),
            Err(error) => storage(&error),
        }
    }
}
