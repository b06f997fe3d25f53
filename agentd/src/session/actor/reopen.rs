//! A session as it was found: what a crash cut off gets its honest end, and nothing is run again by itself.

use jiff::Timestamp;
use protocol::{
    Actor as Who, ApprovalState, EventBody, NoticeLevel, QuestionState, Resolution, RpcError, SessionStatus, Turn,
    TurnState,
};
use protocol::{DecidedBy, Decision, Scope};

use super::super::scribe::{Fact, Rows};
use super::super::storage;
use super::Actor;

const CAUSE: &str = "agentd was stopped while this was open";

impl Actor {
    /// Ends the turns that an earlier life of the daemon left open. Each started turn gets exactly one end.
    ///
    /// # Errors
    /// `storage_error`: then the session stays closed, and is tried again when somebody asks for it.
    pub(crate) async fn recover(&mut self) -> Result<(), RpcError> {
        let turns = self.env.store.turns(self.session.id).await.map_err(|error| storage(&error))?;
        let mut facts = self.withdrawn(CAUSE).await?;
        let mut calls = Vec::new();
        for turn in turns.iter().filter(|turn| !turn.state.is_final()) {
            calls.extend(self.env.store.calls(turn.id).await.map_err(|error| storage(&error))?);
        }
        for (index, turn) in turns.iter().filter(|turn| !turn.state.is_final()).enumerate() {
            if index == 0 {
                facts.extend(self.close_open_calls(turn.id, &calls).await?);
            }
            facts.extend(cut_off(turn));
        }
        if !facts.is_empty() {
            self.scribe.write(facts, Rows::default()).await?;
            self.session.status = SessionStatus::Idle;
        }
        if let Some(last) = turns.last() {
            self.last_ended = self.env.store.turn(last.id).await.map_err(|error| storage(&error))?;
        }
        Ok(())
    }

    /// `bypass` does not survive a restart: a person sets it again or nobody does.
    ///
    /// # Errors
    /// `storage_error`.
    pub(crate) async fn fell_back_from_bypass(&mut self) -> Result<(), RpcError> {
        self.write_session(self.session.clone(), Who::Daemon).await?;
        let text = "the mode is `ask` again: `bypass` ends with the daemon".to_owned();
        let notice = EventBody::Notice { level: NoticeLevel::Warning, text };
        self.scribe.write(vec![Fact::new(notice, Who::Daemon)], Rows::default()).await?;
        Ok(())
    }

    /// What the journal says is asked and will not be answered any more, taken back.
    pub(super) async fn withdrawn(&self, cause: &str) -> Result<Vec<Fact>, RpcError> {
        let (store, session) = (&self.env.store, Some(self.session.id));
        let approvals =
            store.approvals(session, Some(ApprovalState::Pending)).await.map_err(|error| storage(&error))?;
        let questions =
            store.questions(session, Some(QuestionState::Pending)).await.map_err(|error| storage(&error))?;
        let resolution = Resolution {
            decision: Decision::CancelTurn,
            scope: Scope::Once,
            rule: None,
            message: None,
            by: DecidedBy::Policy { policy: cause.into() },
            at: Timestamp::now(),
        };
        let approvals = approvals.into_iter().map(|mut approval| {
            approval.state = ApprovalState::Cancelled;
            approval.resolution = Some(resolution.clone());
            (approval.turn_id, EventBody::ApprovalResolved { approval })
        });
        let questions = questions.into_iter().map(|mut question| {
            question.state = QuestionState::Cancelled;
            (question.turn_id, EventBody::QuestionResolved { question })
        });
        let who = Who::Policy { policy: cause.into() };
        Ok(approvals.chain(questions).map(|(turn, body)| Fact::new(body, who.clone()).in_turn(turn)).collect())
    }
}

fn cut_off(turn: &Turn) -> impl Iterator<Item = Fact> {
    let text = "agentd was stopped in the middle of this turn; nothing of it was run again".to_owned();
    let bodies = [
        EventBody::Notice { level: NoticeLevel::Warning, text },
        EventBody::TurnEnded { state: TurnState::Interrupted, usage: turn.usage, error: None },
        EventBody::SessionStatus { status: SessionStatus::Idle },
    ];
    let id = turn.id;
    bodies.into_iter().map(move |body| Fact::new(body, Who::Daemon).in_turn(id))
}
