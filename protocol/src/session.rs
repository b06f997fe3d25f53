//! Sessions and turns as clients see them.

use std::path::PathBuf;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ErrorData;
use crate::ids::{Seq, SessionId, TurnId};
use crate::message::{Part, Usage};

/// One conversation and its standing settings.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    pub id: SessionId,
    pub title: String,
    /// Absolute path of the workspace.
    pub cwd: PathBuf,
    /// `provider/model`.
    pub model: String,
    pub mode: Mode,
    pub status: SessionStatus,
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    #[schemars(with = "String")]
    pub updated_at: Timestamp,
    /// The newest durable event.
    pub last_seq: Seq,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<SessionId>,
    pub archived: bool,
    pub usage: Usage,
    /// Tokens that the model can hold.
    pub context_window: u64,
    /// Tokens that it held at its last answer.
    pub context_used: u64,
    /// Clients that watch this session now and may answer for it.
    pub attached: u32,
    pub no_client_policy: NoClientPolicy,
    #[serde(default)]
    pub resume_policy: ResumePolicy,
}

/// What a session does at this moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    Idle,
    Running,
    WaitingApproval,
    WaitingAnswer,
    Interrupted,
    Error,
}

/// How much runs without asking a person.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    Plan,
    #[default]
    Ask,
    AcceptEdits,
    Auto,
    Bypass,
}

impl Mode {
    /// As it is written on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Ask => "ask",
            Self::AcceptEdits => "accept-edits",
            Self::Auto => "auto",
            Self::Bypass => "bypass",
        }
    }
}

/// What happens to a request for consent while nobody is attached who could answer. Never "allow".
///
/// On the wire: `park`, `deny` or `deny_after:<seconds>`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum NoClientPolicy {
    #[default]
    Park,
    Deny,
    DenyAfter {
        seconds: u64,
    },
}

/// What happens to a turn that was cut off, once the daemon runs again.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResumePolicy {
    /// It waits for a person's yes.
    #[default]
    Ask,
    /// It goes on by itself, unless it is too old, was cut off too often, or has a call of unknown outcome.
    Auto,
    /// It ends.
    Never,
}

/// What to do with a message while a turn is running.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// Refuse it with `session_busy`.
    #[default]
    Start,
    /// Run it after the turn.
    Queue,
    /// Hand it to the running turn at its next tool border; run it after the turn if none comes.
    Steer,
}

/// One user message and all that follows until the session is idle again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    pub id: TurnId,
    pub session_id: SessionId,
    pub state: TurnState,
    pub input: Vec<Part>,
    #[schemars(with = "String")]
    pub started_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub ended_at: Option<Timestamp>,
    pub usage: Usage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TurnError>,
    /// How it waits for its turn; only in a turn that was handed in while another ran.
    #[serde(default, skip_serializing_if = "is_start")]
    pub delivery: Delivery,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// How often it has gone on after it was cut off.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resumes: u32,
}

fn is_start(delivery: &Delivery) -> bool {
    *delivery == Delivery::Start
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Where a turn stands. Only `queued`, `running` and `recoverable` can still change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnState {
    Queued,
    Running,
    Completed,
    Interrupted,
    Failed,
    Limit,
    Recoverable,
}

impl TurnState {
    /// True when nothing more can happen to the turn.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Interrupted | Self::Failed | Self::Limit)
    }
}

/// Why a turn did not complete.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TurnError {
    pub message: String,
    #[serde(flatten)]
    pub data: ErrorData,
}

/// One entry of a session's task list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Todo {
    pub id: String,
    pub content: String,
    pub status: TodoStatus,
}

/// Where a task stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    Pending,
    InProgress,
    Completed,
    Cancelled,
}

impl From<NoClientPolicy> for String {
    fn from(policy: NoClientPolicy) -> Self {
        match policy {
            NoClientPolicy::Park => "park".into(),
            NoClientPolicy::Deny => "deny".into(),
            NoClientPolicy::DenyAfter { seconds } => format!("deny_after:{seconds}"),
        }
    }
}

impl TryFrom<String> for NoClientPolicy {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "park" => Ok(Self::Park),
            "deny" => Ok(Self::Deny),
            other => other
                .strip_prefix("deny_after:")
                .and_then(|seconds| seconds.parse().ok())
                .map(|seconds| Self::DenyAfter { seconds })
                .ok_or_else(|| format!("`{other}` is not `park`, `deny` or `deny_after:<seconds>`")),
        }
    }
}

impl Serialize for NoClientPolicy {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        String::from(*self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for NoClientPolicy {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for NoClientPolicy {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "NoClientPolicy".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "pattern": "^(park|deny|deny_after:[0-9]+)$"})
    }
}
