//! Consent and questions: resources that any attached client may answer, not requests to one client.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{ApprovalId, CallId, QuestionId, SessionId, TurnId};

/// One tool call that waits for a person's consent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    pub id: ApprovalId,
    /// A few characters that name it among all that are pending, for typing.
    pub short_id: String,
    pub session_id: SessionId,
    pub turn_id: TurnId,
    pub tool_use_id: CallId,
    pub tool: String,
    /// The model's own words for why it wants this.
    pub title: String,
    /// The whole command with its directory, the whole diff, or the URL; never cut.
    pub detail: String,
    /// What a person should know before saying yes, in plain words.
    pub risks: Vec<String>,
    pub options: Vec<ApprovalOption>,
    pub state: ApprovalState,
    /// Rises when what is asked changes; an answer that names an older one is refused.
    pub revision: u32,
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub expires_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<Resolution>,
}

/// An answer that would be accepted. `rule` is exactly what would be remembered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalOption {
    pub decision: Decision,
    pub scope: Scope,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

/// What a person decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Allow,
    Deny,
    CancelTurn,
}

/// How far a decision reaches.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    #[default]
    Once,
    Session,
    Project,
    User,
}

/// Where a request for consent stands. Only `pending` can still change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    Pending,
    Allowed,
    Denied,
    Expired,
    Cancelled,
    Superseded,
}

/// The winning answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Resolution {
    pub decision: Decision,
    pub scope: Scope,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// What the person added; it goes to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    pub by: DecidedBy,
    #[schemars(with = "String")]
    pub at: Timestamp,
}

/// Who or what decided.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum DecidedBy {
    Client {
        client: String,
        pid: i32,
        uid: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tty: Option<String>,
    },
    Rule {
        rule: String,
    },
    Policy {
        policy: String,
    },
}

/// On what ground a call ran, or did not.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum Ground {
    /// Somebody was asked, and this is where it stands who answered what.
    Approval { approval_id: ApprovalId },
    /// A rule of the settings, or one that a person granted for the session.
    Rule { rule: String },
    /// What holds where no rule speaks: the session's mode.
    Policy { policy: String },
}

/// One entry of the ledger: that a call may run, or may not, and who or what said so.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionRecord {
    #[schemars(with = "String")]
    pub at: Timestamp,
    pub session_id: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    pub tool_use_id: CallId,
    pub outcome: ApprovalState,
    /// One line for people.
    pub summary: String,
    /// Where nobody was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ground: Option<Ground>,
    /// Where somebody was asked: all that was shown, and the answer with who gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
}

/// One to four questions of a model to a person.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionRequest {
    pub id: QuestionId,
    pub short_id: String,
    pub session_id: SessionId,
    pub turn_id: TurnId,
    pub tool_use_id: CallId,
    pub title: String,
    pub questions: Vec<Question>,
    pub state: QuestionState,
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    /// One for each question, once answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answer>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<DecidedBy>,
}

/// Where a set of questions stands. Only `pending` can still change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuestionState {
    Pending,
    Answered,
    Expired,
    Cancelled,
}

/// One question with two to four options; free text is always possible too.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    pub question: String,
    /// At most 12 characters.
    #[schemars(length(max = 12))]
    pub header: String,
    #[schemars(length(min = 2, max = 4))]
    pub options: Vec<Choice>,
    #[serde(default)]
    pub multi_select: bool,
}

/// One option of a question.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    pub label: String,
    #[serde(default)]
    pub description: String,
}

/// The answer to one question: labels chosen, words written, or both.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Answer {
    pub selected: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}
