//! The table of methods: name, parameters, result and what each does, once.
//!
//! The server registers from it, the client calls through it and the OpenRPC document is printed from it, so the three
//! cannot disagree. Parameters may be named or positional, as JSON-RPC 2.0 allows.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::api::{self, Empty};

/// One method of the daemon.
pub trait Method {
    /// The name on the wire.
    const NAME: &'static str;
    type Params: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
    type Result: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
}

/// A method as the OpenRPC document describes it.
#[derive(Debug)]
pub struct MethodEntry {
    pub name: &'static str,
    pub about: &'static str,
    pub params: fn(&mut SchemaGenerator) -> Schema,
    pub result: fn(&mut SchemaGenerator) -> Schema,
    /// For a subscription: the name of its notifications and of the method that ends it.
    pub subscription: Option<(&'static str, &'static str)>,
}

/// The subscription of a table row, if it has one.
const fn first(pairs: &[(&'static str, &'static str)]) -> Option<(&'static str, &'static str)> {
    match pairs {
        [pair, ..] => Some(*pair),
        [] => None,
    }
}

macro_rules! methods {
    ($($name:ident $wire:literal ($params:ty) -> $result:ty $([$event:literal, $end:literal])?, $about:literal;)*) => {
        $(
            #[doc = $about]
            #[derive(Debug)]
            pub struct $name;
            impl Method for $name {
                const NAME: &'static str = $wire;
                type Params = $params;
                type Result = $result;
            }
        )*

        /// Every method, in the order of the document.
        pub const METHODS: &[MethodEntry] = &[$(MethodEntry {
            name: $wire,
            about: $about,
            params: |schemas| schemas.subschema_for::<$params>(),
            result: |schemas| schemas.subschema_for::<$result>(),
            subscription: first(&[$(($event, $end))?]),
        },)*];
    };
}

methods! {
    Initialize "initialize" (api::Initialize) -> api::Initialized,
        "Agrees on a protocol version and tells what both sides can do. Optional.";
    Discover "rpc.discover" (Empty) -> serde_json::Value, "Returns this contract as an OpenRPC document.";
    Ping "ping" (Empty) -> Empty, "Answers at once.";
    DaemonStatus "daemon/status" (Empty) -> api::DaemonStatus, "Tells who the daemon is and how it fares.";
    DaemonVerify "daemon/verify" (api::DaemonVerify) -> api::DaemonVerified,
        "Checks the database: the file, each session's chain of hashes, and the index over it.";
    DaemonShutdown "daemon/shutdown" (api::DaemonShutdown) -> Empty,
        "Stops the daemon: turns are interrupted, everything is on disk before it goes.";
    DaemonSubscribe "daemon/subscribe" (api::DaemonSubscribe) -> api::SubscriptionId ["daemon/event", "daemon/unsubscribe"],
        "Follows all sessions: status changes, approvals and questions.";
    SessionNew "session/new" (api::SessionNew) -> api::SessionShown, "Creates a session.";
    SessionList "session/list" (api::SessionList) -> api::SessionListed, "Lists sessions, the newest first.";
    SessionGet "session/get" (api::SessionGet) -> api::SessionShown, "Shows one session.";
    SessionUpdate "session/update" (api::SessionUpdate) -> api::SessionShown,
        "Changes title, model, mode or what happens while nobody is attached.";
    SessionHistory "session/history" (api::SessionHistory) -> api::SessionHistoryPage,
        "Reads durable events in order, byte for byte as they were first sent.";
    SessionDelete "session/delete" (api::SessionDelete) -> Empty, "Deletes a session that is not running, and its history.";
    SessionSubscribe "session/subscribe" (api::SessionSubscribe) -> api::SubscriptionId ["session/event", "session/unsubscribe"],
        "Follows one session from a cursor, from what it is now, or from what comes next.";
    TurnStart "turn/start" (api::TurnStart) -> api::TurnStarted,
        "Hands in a message. Answers once it is durable, not when the turn ends.";
    TurnInterrupt "turn/interrupt" (api::TurnInterrupt) -> api::TurnInterrupted,
        "Stops the running turn. Answers when nothing of it runs any more.";
    TurnResume "turn/resume" (api::TurnResume) -> api::TurnResumed,
        "Lets a turn that was cut off go on, or ends it.";
    TurnWait "turn/wait" (api::TurnWait) -> api::TurnWaited, "Waits until a turn ends, a session is idle or an approval is needed.";
    QueueList "queue/list" (api::QueueList) -> api::QueueListed, "Lists the messages that wait for their turn.";
    QueueUpdate "queue/update" (api::QueueUpdate) -> api::QueueUpdated, "Changes a message that waits.";
    QueueDelete "queue/delete" (api::QueueDelete) -> api::QueueDeleted, "Takes a message that waits back.";
    ApprovalList "approval/list" (api::ApprovalList) -> api::ApprovalListed, "Lists requests for consent.";
    ApprovalGet "approval/get" (api::ApprovalGet) -> api::ApprovalShown, "Shows one request for consent, whole.";
    ApprovalRespond "approval/respond" (api::ApprovalRespond) -> api::ApprovalSettled,
        "Decides a request for consent. The first valid answer wins.";
    ApprovalHistory "approval/history" (api::ApprovalHistory) -> api::ApprovalHistoryPage,
        "Shows what was decided about calls, by whom or by what, newest first.";
    QuestionList "question/list" (api::QuestionList) -> api::QuestionListed, "Lists questions of models to people.";
    QuestionRespond "question/respond" (api::QuestionRespond) -> api::QuestionSettled,
        "Answers a set of questions. The first valid answer wins.";
    ModelList "model/list" (Empty) -> api::ModelListed, "Lists the models that can be named.";
    ToolList "tool/list" (api::ToolList) -> api::ToolListed, "Lists the tools that a model is offered.";
    ConfigExplain "config/explain" (api::ConfigExplain) -> api::ConfigExplained,
        "Shows each setting, where its value comes from, and what was ignored and why.";
}
