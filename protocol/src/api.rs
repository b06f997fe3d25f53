//! Parameters and results of every method, in the order of the table in `method.rs`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::approval::{
    Answer, Approval, ApprovalState, Decision, DecisionRecord, QuestionRequest, QuestionState, Scope,
};
use crate::ids::{ApprovalId, Cursor, QuestionId, Seq, SessionId, TurnId};
use crate::message::Part;
pub use crate::session::Delivery;
use crate::session::{Mode, NoClientPolicy, ResumePolicy, Session, SessionStatus, Turn, TurnState};

/// Declares a struct of parameters: camelCase, and every optional field may be left out.
macro_rules! params {
    ($($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident: $ty:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase")]
        pub struct $name { $($(#[$fdoc])* pub $field: $ty,)* }
    )*};
}

mod catalogue;
mod daemon;

pub use catalogue::*;
pub use daemon::*;

/// No parameters, or nothing to say.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Empty {}

/// Names a running subscription. A string on the wire.
pub type SubscriptionId = String;

params! {
    SessionNew {
        /// A UUID of the client's choosing, so that a retry does not create a second session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<SessionId>,
        /// Absolute path of the workspace.
        cwd: PathBuf,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<Mode>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        no_client_policy: Option<NoClientPolicy>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resume_policy: Option<ResumePolicy>,
    }
    SessionShown {
        session: Session,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seq: Option<Seq>,
    }
    SessionList {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<PathBuf>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        archived: Option<bool>,
        /// Words to find in the title.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
        /// At most 1,000; 100 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
    }
    SessionListed {
        sessions: Vec<Session>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_cursor: Option<String>,
    }
    SessionGet {
        session_id: SessionId,
    }
    SessionUpdate {
        session_id: SessionId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<Mode>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        no_client_policy: Option<NoClientPolicy>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resume_policy: Option<ResumePolicy>,
    }
    SessionHistory {
        session_id: SessionId,
        /// Only events before this one: the page that ends just before it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<Seq>,
        /// Only events after this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Seq>,
        /// At most 10,000; 1,000 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
    }
    SessionDelete {
        session_id: SessionId,
    }
    SessionSubscribe {
        session_id: SessionId,
        #[serde(default)]
        from: From,
        /// Only events of these types; stream control always comes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        types: Option<Vec<String>>,
    }
    TurnStart {
        session_id: SessionId,
        input: Input,
        /// The same id with the same payload gets the same receipt, so that a retry sends nothing twice.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_message_id: Option<String>,
        #[serde(default)]
        delivery: Delivery,
        /// The turn that the sender believes to run; with another one, nothing is taken.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expected_turn_id: Option<TurnId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_steps: Option<u32>,
    }
    TurnStarted {
        turn_id: TurnId,
        state: TurnState,
        seq: Seq,
    }
    TurnInterrupt {
        session_id: SessionId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn_id: Option<TurnId>,
    }
    TurnInterrupted {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn_id: Option<TurnId>,
        /// How the turn ended; absent when there was nothing to interrupt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<TurnState>,
        seq: Seq,
    }
    TurnResume {
        turn_id: TurnId,
        action: ResumeAction,
    }
    TurnResumed {
        turn_id: TurnId,
        state: TurnState,
        seq: Seq,
    }
    TurnWait {
        session_id: SessionId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn_id: Option<TurnId>,
        #[serde(default)]
        until: Until,
        /// Milliseconds; for ever if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
    }
    TurnWaited {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<Turn>,
        status: SessionStatus,
        seq: Seq,
    }
    QueueList {
        session_id: SessionId,
    }
    QueueListed {
        /// In the order in which they will run.
        turns: Vec<Turn>,
    }
    QueueUpdate {
        turn_id: TurnId,
        input: Input,
    }
    QueueUpdated {
        turn: Turn,
        seq: Seq,
    }
    QueueDelete {
        turn_id: TurnId,
    }
    QueueDeleted {
        seq: Seq,
    }
    ApprovalList {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<SessionId>,
        /// Only those that stand there; pending ones if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<ApprovalState>,
    }
    ApprovalListed {
        approvals: Vec<Approval>,
    }
    ApprovalGet {
        approval_id: ApprovalId,
    }
    ApprovalShown {
        approval: Approval,
    }
    ApprovalRespond {
        approval_id: ApprovalId,
        /// What the answer is about; an older one is refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revision: Option<u32>,
        decision: Decision,
        #[serde(default)]
        scope: Scope,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        /// Goes to the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    }
    ApprovalSettled {
        approval: Approval,
        seq: Seq,
    }
    ApprovalHistory {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<SessionId>,
        /// `nextCursor` of the page before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
        /// At most this many, and no more than 500; 50 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
    }
    ApprovalHistoryPage {
        /// Newest first.
        decisions: Vec<DecisionRecord>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_cursor: Option<String>,
    }
    QuestionList {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<SessionId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<QuestionState>,
    }
    QuestionListed {
        questions: Vec<QuestionRequest>,
    }
    QuestionRespond {
        question_id: QuestionId,
        /// One for each question, in order.
        answers: Vec<Answer>,
    }
    QuestionSettled {
        question: QuestionRequest,
        seq: Seq,
    }
}

/// One page of durable events, as the bytes that were first sent.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionHistoryPage {
    #[schemars(with = "Vec<crate::event::Event>")]
    pub events: Vec<Box<RawValue>>,
    /// Where the next page begins: its `after`, or its `before` when paging backwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_seq: Option<Seq>,
}

/// Where a subscription begins.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum From {
    /// Only what comes next.
    #[default]
    Live,
    /// What the session is now, what is growing and what is pending; then what comes next.
    Snapshot,
    /// Every durable event strictly after the cursor; then what comes next.
    Cursor { cursor: Cursor },
}

/// A message to the model: words, or parts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Input {
    Text(String),
    Parts(Vec<Part>),
}

/// What becomes of a turn that was cut off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResumeAction {
    Continue,
    /// It ends as `interrupted`; each open call gets its honest result.
    Discard,
}

/// What `turn/wait` waits for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    #[default]
    Ended,
    Idle,
    Approval,
}

impl Input {
    /// The message's content.
    #[must_use]
    pub fn into_parts(self) -> Vec<Part> {
        match self {
            Self::Text(text) => vec![Part::Text { text }],
            Self::Parts(parts) => parts,
        }
    }
}
