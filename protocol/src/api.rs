//! Parameters and results of every method, in the order of the table in `method.rs`.

use std::path::PathBuf;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::approval::{Answer, Approval, ApprovalState, Decision, QuestionRequest, QuestionState, Scope};
use crate::ids::{ApprovalId, ClientId, Cursor, InstanceId, QuestionId, Seq, SessionId, TurnId};
use crate::message::Part;
use crate::session::{Mode, NoClientPolicy, Session, SessionStatus, Turn, TurnState};

/// Declares a struct of parameters: camelCase, and every optional field may be left out.
macro_rules! params {
    ($($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident: $ty:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase")]
        pub struct $name { $($(#[$fdoc])* pub $field: $ty,)* }
    )*};
}

/// No parameters, or nothing to say.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Empty {}

/// Names a running subscription. A string on the wire.
pub type SubscriptionId = String;

params! {
    Initialize {
        #[serde(default)]
        protocol: VersionRange,
        client: ClientInfo,
        #[serde(default)]
        capabilities: ClientCapabilities,
    }
    /// Versions are `major.minor`; a minor only adds.
    VersionRange {
        min: String,
        max: String,
    }
    ClientInfo {
        name: String,
        #[serde(default)]
        version: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tty: Option<String>,
    }
    Initialized {
        /// The version that both sides speak.
        protocol: String,
        daemon: DaemonInfo,
        client_id: ClientId,
        capabilities: DaemonCapabilities,
        limits: Limits,
    }
    DaemonInfo {
        version: String,
        instance_id: InstanceId,
        pid: u32,
        #[schemars(with = "String")]
        started_at: Timestamp,
        /// Names the database; a cursor of another epoch is refused.
        store_epoch: String,
        draining: bool,
    }
    DaemonCapabilities {
        methods: Vec<String>,
        events: Vec<String>,
    }
    Limits {
        max_frame_bytes: u64,
        max_batch: u32,
        max_in_flight: u32,
        max_subscriptions: u32,
    }
    DaemonStatus {
        version: String,
        pid: u32,
        instance_id: InstanceId,
        #[schemars(with = "String")]
        started_at: Timestamp,
        store_epoch: String,
        draining: bool,
        sessions: SessionCounts,
        clients: u32,
        approvals_pending: u32,
        memory_bytes: u64,
        /// CPU time of the daemon so far, user and system, in milliseconds.
        cpu_ms: u64,
        /// Snapshots serialised so far, for all subscribers together.
        snapshots_serialised: u64,
        socket: PathBuf,
        database: PathBuf,
    }
    SessionCounts {
        total: u32,
        in_memory: u32,
        running: u32,
    }
    DaemonShutdown {
        /// How long running turns may take to end, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        drain_ms: Option<u64>,
    }
    DaemonSubscribe {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        types: Option<Vec<String>>,
    }
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
    ModelListed {
        models: Vec<ModelInfo>,
    }
    ModelInfo {
        /// `provider/model`.
        name: String,
        /// The wire format: `anthropic`, `openai`, `offline`.
        api: String,
        context_window: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_output: Option<u64>,
        /// Whether it can be called now: its key is there, or it needs none.
        ready: bool,
        /// True for the one that a new session gets.
        default: bool,
    }
    ToolList {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<SessionId>,
    }
    ToolListed {
        tools: Vec<ToolInfo>,
    }
    ToolInfo {
        name: String,
        description: String,
        /// `R` reads only, `H` changes a file, `G` fetches from the web, `X` may do anything.
        class: String,
        /// JSON Schema of its parameters.
        parameters: Value,
    }
    ConfigExplain {
        /// One key, such as `limits.maxSteps`; all if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// Explains the settings that a session in this directory would get.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<PathBuf>,
    }
    ConfigExplained {
        values: Vec<ConfigValue>,
        /// Files that were looked for, and what became of each.
        files: Vec<ConfigFile>,
    }
    ConfigValue {
        key: String,
        value: Value,
        /// `default`, `user`, `project`, `local`, `environment`.
        layer: String,
        /// What was ignored, and why.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ignored: Vec<String>,
    }
    ConfigFile {
        path: PathBuf,
        layer: String,
        /// `loaded`, `absent`, or what is wrong with it, with line and column.
        state: String,
    }
}

impl Default for VersionRange {
    fn default() -> Self {
        Self { min: "1.0".into(), max: "1.0".into() }
    }
}

/// What the client wants to do.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientCapabilities {
    pub approvals: ApprovalRole,
    /// The shortest pause between two snapshots, in milliseconds; 33 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_min_ms: Option<u64>,
}

/// Whether a client may answer requests for consent.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalRole {
    #[default]
    Answer,
    Observe,
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

/// What to do with a message while a turn is running.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// Refuse it with `session_busy`.
    #[default]
    Start,
    /// Run it after the turn.
    Queue,
    /// Hand it to the running turn at its next tool border.
    Steer,
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
