//! Error numbers and the stable `kind` behind each.
//!
//! Clients match on `data.kind`; the number is for JSON-RPC's sake. `data.hint` tells the next step.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

macro_rules! kinds {
    ($($name:ident = $code:literal $text:literal $(retry $retry:literal)?;)*) => {
        /// Every kind of error that agentd answers with.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum ErrorKind { $($name,)* }

        impl ErrorKind {
            /// All of them, for documents and tests.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The number on the wire.
            #[must_use]
            pub fn code(self) -> i32 {
                match self { $(Self::$name => $code,)* }
            }

            /// The stable name on the wire.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Whether the same request can succeed later without a change.
            #[must_use]
            pub fn retryable(self) -> bool {
                match self { $(Self::$name => { let retry = false; $(let retry = retry || $retry;)? retry })* }
            }
        }
    };
}

kinds! {
    ParseError = -32700 "parse_error";
    InvalidRequest = -32600 "invalid_request";
    MethodNotFound = -32601 "method_not_found";
    InvalidParams = -32602 "invalid_params";
    Internal = -32603 "internal_error";
    RequestCancelled = -32800 "request_cancelled";
    Unauthorized = -32000 "unauthorized";
    Overloaded = -32001 "overloaded" retry true;
    NotFound = -32002 "not_found";
    UnsupportedVersion = -32004 "unsupported_version";
    CapabilityRequired = -32005 "capability_required";
    FrameTooLarge = -32006 "frame_too_large";
    SessionBusy = -32010 "session_busy" retry true;
    PreconditionFailed = -32011 "precondition_failed";
    InvalidState = -32013 "invalid_state";
    CursorExpired = -32020 "cursor_expired";
    CursorForeign = -32021 "cursor_foreign";
    ApprovalResolved = -32030 "approval_resolved";
    ApprovalExpired = -32031 "approval_expired";
    ScopeForbidden = -32032 "scope_forbidden";
    BudgetExceeded = -32040 "budget_exceeded";
    ProviderError = -32050 "provider_error" retry true;
    SandboxUnavailable = -32052 "sandbox_unavailable";
    Draining = -32060 "draining" retry true;
    StorageError = -32061 "storage_error" retry true;
    DiskFull = -32063 "disk_full" retry true;
    WaitTimeout = -32062 "wait_timeout" retry true;
    IdempotencyConflict = -32070 "idempotency_conflict";
}

/// `data` of every error.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorData {
    /// The stable contract.
    pub kind: String,
    pub retryable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The next step, in words.
    pub hint: String,
    /// What this kind adds, such as `activeTurnId` of `session_busy`.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// An error on its way to a client: what happened to what, and the next step.
#[derive(Clone, PartialEq, Debug)]
pub struct RpcError {
    pub kind: ErrorKind,
    pub message: String,
    /// Boxed, because every result of every handler has room for an error.
    pub data: Box<ErrorData>,
}

impl RpcError {
    /// `message` names the thing and the fact, `hint` the next step.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        let data = Box::new(ErrorData {
            kind: kind.as_str().into(),
            retryable: kind.retryable(),
            retry_after_ms: None,
            hint: hint.into(),
            more: Map::new(),
        });
        Self { kind, message: message.into(), data }
    }

    /// Adds a field to `data`.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.data.more.insert(key.into(), value.into());
        self
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (hint: {})", self.message, self.data.hint)
    }
}

impl std::error::Error for RpcError {}
