//! What a client knows of a session from its events. Pure: events in, state out.
//!
//! Replaying events it has already seen changes nothing, so a reconnect needs no special case.

use protocol::approval::{Approval, QuestionRequest};
use protocol::event::{Event, EventBody};
use protocol::ids::{Cursor, TurnId};
use protocol::message::{Role, Usage};
use protocol::session::{Session, SessionStatus};

/// The state of one followed session.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) session: Session,
    /// The turn that runs now.
    pub(crate) turn: Option<TurnId>,
    /// The turn that was cut off and waits for a yes.
    pub(crate) cut_off: Option<TurnId>,
    /// Waiting for consent, oldest first.
    pub(crate) approvals: Vec<Approval>,
    /// Waiting for answers, oldest first.
    pub(crate) questions: Vec<QuestionRequest>,
    /// Where to go on after what was seen.
    pub(crate) cursor: Option<Cursor>,
    /// Of the newest answer; tells how full the context is.
    pub(crate) last_usage: Option<Usage>,
}

impl View {
    pub(crate) fn new(session: Session) -> Self {
        Self {
            session,
            turn: None,
            cut_off: None,
            approvals: Vec::new(),
            questions: Vec::new(),
            cursor: None,
            last_usage: None,
        }
    }

    /// Takes one event in.
    pub(crate) fn apply(&mut self, event: &Event) {
        if let Some(cursor) = &event.cursor {
            self.cursor = Some(cursor.clone());
        }
        match &event.body {
            EventBody::SessionCreated { session } | EventBody::SessionUpdated { session } => {
                self.session = session.clone();
            }
            EventBody::SessionStatus { status } => self.set_status(*status),
            EventBody::TurnStarted { turn } | EventBody::TurnResumed { turn } => {
                self.turn = Some(turn.id);
                self.cut_off = None;
            }
            EventBody::TurnRecoverable { turn } => {
                self.turn = None;
                self.cut_off = Some(turn.id);
            }
            EventBody::TurnEnded { .. } => {
                self.turn = None;
                self.cut_off = None;
                self.approvals.retain(|approval| Some(approval.turn_id) != event.turn_id);
                self.questions.retain(|question| Some(question.turn_id) != event.turn_id);
            }
            EventBody::Message { message } if message.role == Role::Assistant => {
                self.last_usage = message.usage.or(self.last_usage);
            }
            EventBody::ApprovalRequested { approval } => self.ask(approval),
            EventBody::ApprovalResolved { approval } => self.approvals.retain(|other| other.id != approval.id),
            EventBody::QuestionRequested { question } => self.question(question),
            EventBody::QuestionResolved { question } => self.questions.retain(|other| other.id != question.id),
            EventBody::TurnQueued { .. }
            | EventBody::QueueChanged { .. }
            | EventBody::Message { .. }
            | EventBody::ToolStarted { .. }
            | EventBody::ToolFinished { .. }
            | EventBody::TodosUpdated { .. }
            | EventBody::Notice { .. }
            | EventBody::Snapshot { .. }
            | EventBody::ToolOutput { .. }
            | EventBody::SessionAttached { .. }
            | EventBody::StreamSynced { .. }
            | EventBody::DaemonDraining { .. }
            | EventBody::Other { .. } => {}
        }
    }

    /// A request for consent that came by event or by listing; a newer revision replaces the older.
    pub(crate) fn ask(&mut self, approval: &Approval) {
        match self.approvals.iter_mut().find(|other| other.id == approval.id) {
            Some(known) => *known = approval.clone(),
            None => self.approvals.push(approval.clone()),
        }
    }

    /// A set of questions that came by event or by listing.
    pub(crate) fn question(&mut self, question: &QuestionRequest) {
        if !self.questions.iter().any(|other| other.id == question.id) {
            self.questions.push(question.clone());
        }
    }

    /// True while a turn runs or waits for a person.
    pub(crate) fn is_busy(&self) -> bool {
        self.turn.is_some()
            || matches!(
                self.session.status,
                SessionStatus::Running | SessionStatus::WaitingApproval | SessionStatus::WaitingAnswer
            )
    }

    /// How full the model's context is, in percent.
    pub(crate) fn context_percent(&self) -> Option<u64> {
        let window = self.session.context_window;
        let used = self.last_usage.map_or(self.session.context_used, |usage| usage.context_tokens());
        (window > 0 && used > 0).then(|| (used.saturating_mul(100) / window).max(1))
    }

    fn set_status(&mut self, status: SessionStatus) {
        self.session.status = status;
        if matches!(status, SessionStatus::Idle | SessionStatus::Interrupted | SessionStatus::Error) {
            self.turn = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fake;

    #[test]
    fn a_request_waits_until_it_is_resolved_or_its_turn_ends() {
        let mut view = View::new(fake::session("01940000-0000-7000-8000-00000000aaaa", "/a", 1));
        let approval = fake::approval("k3");
        let asked = fake::event(
            json!({"type": "approval.requested", "data": {"approval": approval}, "cursor": "e.7", "seq": 7}),
        );
        view.apply(&asked);
        view.apply(&asked);
        assert_eq!(view.approvals.len(), 1, "seen twice, asked once");
        assert_eq!(view.cursor, Some(Cursor("e.7".into())));
        view.apply(&fake::event(json!({"type": "approval.resolved", "data": {"approval": approval}})));
        assert!(view.approvals.is_empty());
        view.apply(&asked);
        view.apply(&fake::event(json!({
            "type": "turn.ended", "data": {"state": "interrupted", "usage": {}}, "turnId": approval.turn_id,
        })));
        assert!(view.approvals.is_empty() && !view.is_busy());
    }

    #[test]
    fn the_context_is_as_full_as_the_newest_answer_says() {
        let mut view = View::new(fake::session("01940000-0000-7000-8000-00000000aaaa", "/a", 1));
        assert_eq!(view.context_percent(), None);
        view.apply(&fake::event(json!({"type": "message", "data": {"message": {
            "id": fake::MESSAGE, "role": "assistant", "content": [], "usage": {"inputTokens": 400, "outputTokens": 100},
        }}})));
        assert_eq!(view.context_percent(), Some(50));
    }
}
