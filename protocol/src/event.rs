//! What happens in a session, as its subscribers see it.
//!
//! A durable event is serialised once: those bytes are stored, and those bytes are sent, now and at every replay.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval::{Approval, Ground, QuestionRequest};
use crate::ids::{CallId, Cursor, Seq, SessionId, TurnId};
use crate::message::{Message, Usage};
use crate::session::{Session, SessionStatus, Todo, Turn, TurnError, TurnState};

/// One event of one session.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    #[serde(flatten)]
    pub body: EventBody,
    pub session_id: SessionId,
    /// Durable events only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
    /// Durable events only: where to go on after this event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
    #[schemars(with = "String")]
    pub ts: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Actor>,
}

/// `type` and `data` of an event.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "data", rename_all_fields = "camelCase")]
pub enum EventBody {
    #[serde(rename = "session.created")]
    SessionCreated { session: Session },
    #[serde(rename = "session.updated")]
    SessionUpdated { session: Session },
    #[serde(rename = "session.status")]
    SessionStatus { status: SessionStatus },
    #[serde(rename = "turn.queued")]
    TurnQueued { turn: Turn },
    #[serde(rename = "turn.started")]
    TurnStarted { turn: Turn },
    /// A turn was cut off and waits for a yes to go on.
    #[serde(rename = "turn.recoverable")]
    TurnRecoverable { turn: Turn },
    #[serde(rename = "turn.resumed")]
    TurnResumed { turn: Turn },
    #[serde(rename = "turn.ended")]
    TurnEnded {
        state: TurnState,
        usage: Usage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<TurnError>,
    },
    /// A message that waits was changed, taken back, or taken in by the turn that ran.
    #[serde(rename = "queue.changed")]
    QueueChanged { change: QueueChange, turn: Turn },
    #[serde(rename = "message")]
    Message { message: Message },
    #[serde(rename = "tool.started")]
    ToolStarted {
        tool_use_id: CallId,
        name: String,
        title: String,
        input: Value,
        /// Why it may run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        allowed_by: Option<Ground>,
    },
    #[serde(rename = "tool.finished")]
    ToolFinished {
        tool_use_id: CallId,
        is_error: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        duration_ms: u64,
        /// One line for people.
        summary: String,
        /// The diff of a changed file, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
        /// Why it did not run, where it was not allowed to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        denied_by: Option<Ground>,
    },
    #[serde(rename = "approval.requested")]
    ApprovalRequested { approval: Approval },
    #[serde(rename = "approval.resolved")]
    ApprovalResolved { approval: Approval },
    #[serde(rename = "question.requested")]
    QuestionRequested { question: QuestionRequest },
    #[serde(rename = "question.resolved")]
    QuestionResolved { question: QuestionRequest },
    #[serde(rename = "todos.updated")]
    TodosUpdated { todos: Vec<Todo> },
    #[serde(rename = "notice")]
    Notice { level: NoticeLevel, text: String },

    /// Ephemeral: the assistant message as it is so far, whole.
    #[serde(rename = "snapshot")]
    Snapshot { message: Message, rev: u64 },
    /// Ephemeral: the last 64 KiB of a running tool's output so far.
    #[serde(rename = "tool.output")]
    ToolOutput { tool_use_id: CallId, text: String, total_bytes: u64, rev: u64 },

    /// Ephemeral, to who follows the daemon: how many clients watch the session and may answer for it.
    #[serde(rename = "session.attached")]
    SessionAttached { attached: u32 },

    /// Stream control: all events up to `seq` have been sent; what follows is live.
    #[serde(rename = "stream.synced")]
    StreamSynced { seq: Seq },
    /// Stream control: the daemon is going down; reconnect after the delay.
    #[serde(rename = "daemon.draining")]
    DaemonDraining { retry_after_ms: u64 },

    /// An event of a newer daemon, kept as it came.
    #[serde(untagged)]
    Other {
        #[serde(rename = "type")]
        kind: String,
        #[serde(default)]
        data: Value,
    },
}

/// Every event type of this version, durable ones first.
pub const TYPES: &[&str] = &[
    "session.created",
    "session.updated",
    "session.status",
    "turn.queued",
    "turn.started",
    "turn.recoverable",
    "turn.resumed",
    "turn.ended",
    "queue.changed",
    "message",
    "tool.started",
    "tool.finished",
    "approval.requested",
    "approval.resolved",
    "question.requested",
    "question.resolved",
    "todos.updated",
    "notice",
    "snapshot",
    "tool.output",
    "session.attached",
    "stream.synced",
    "daemon.draining",
];

/// What became of a message that waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueueChange {
    Updated,
    Deleted,
    /// The running turn took it in; it is no turn of its own any more.
    Steered,
}

/// How much a notice matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoticeLevel {
    Info,
    Warning,
    Error,
}

/// Who caused an event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Actor {
    Client {
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid: Option<i32>,
    },
    Model {
        name: String,
    },
    Rule {
        rule: String,
    },
    Policy {
        policy: String,
    },
    Hook {
        name: String,
    },
    Daemon,
}

impl EventBody {
    /// The event's `type`.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::SessionCreated { .. } => "session.created",
            Self::SessionUpdated { .. } => "session.updated",
            Self::SessionStatus { .. } => "session.status",
            Self::TurnQueued { .. } => "turn.queued",
            Self::TurnStarted { .. } => "turn.started",
            Self::TurnRecoverable { .. } => "turn.recoverable",
            Self::TurnResumed { .. } => "turn.resumed",
            Self::TurnEnded { .. } => "turn.ended",
            Self::QueueChanged { .. } => "queue.changed",
            Self::Message { .. } => "message",
            Self::ToolStarted { .. } => "tool.started",
            Self::ToolFinished { .. } => "tool.finished",
            Self::ApprovalRequested { .. } => "approval.requested",
            Self::ApprovalResolved { .. } => "approval.resolved",
            Self::QuestionRequested { .. } => "question.requested",
            Self::QuestionResolved { .. } => "question.resolved",
            Self::TodosUpdated { .. } => "todos.updated",
            Self::Notice { .. } => "notice",
            Self::Snapshot { .. } => "snapshot",
            Self::ToolOutput { .. } => "tool.output",
            Self::SessionAttached { .. } => "session.attached",
            Self::StreamSynced { .. } => "stream.synced",
            Self::DaemonDraining { .. } => "daemon.draining",
            Self::Other { kind, .. } => kind,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(data: &serde_json::Value) -> Event {
        let event: Event = serde_json::from_value(data.clone()).unwrap();
        assert_eq!(&serde_json::to_value(&event).unwrap(), data);
        event
    }

    #[test]
    fn events_survive_the_wire_known_or_not() {
        let session = SessionId::new();
        let known = check(&json!({
            "type": "tool.started",
            "data": {"toolUseId": "call_1", "name": "bash", "title": "list files", "input": {"command": "ls"}},
            "sessionId": session, "seq": 7, "cursor": "e.7", "ts": "2026-12-01T03:00:00Z",
            "actor": {"kind": "model", "name": "offline/rules"},
        }));
        assert_eq!(known.body.kind(), "tool.started");
        let unknown = check(&json!({
            "type": "moon.rose", "data": {"phase": 3}, "sessionId": session, "ts": "2026-12-01T03:00:00Z",
        }));
        assert_eq!(unknown.body.kind(), "moon.rose");
    }

    #[test]
    fn a_part_of_a_newer_version_is_kept_as_it_came() {
        let part = json!({"type": "hologram", "beams": [1, 2]});
        let message: Message = serde_json::from_value(json!({
            "id": crate::MessageId::new(), "role": "user", "content": [part, {"type": "text", "text": "hi"}],
        }))
        .unwrap();
        assert_eq!(serde_json::to_value(&message.content[0]).unwrap(), part);
        assert_eq!(message.text(), "hi");
    }
}
