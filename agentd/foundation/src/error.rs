//! What can go wrong with a model or a tool: a kind for programs, words and a next step for readers.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

/// A model call that did not give a whole answer.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{message} (hint: {hint})")]
pub struct ModelError {
    pub kind: ModelErrorKind,
    /// Names the provider, the fact, and the provider's request id where it gave one. Never holds a key.
    pub message: String,
    /// The next step.
    pub hint: String,
    /// The provider's own wish.
    pub retry_after: Option<Duration>,
}

/// The kinds that need different next steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ModelErrorKind {
    /// The key is missing, wrong or not allowed to use the model.
    Auth,
    /// Out of credit.
    Quota,
    RateLimit,
    Overloaded,
    ContextTooLarge,
    /// The provider's filter refused.
    Filter,
    BadRequest,
    /// No connection, a broken one, a time-out.
    Network,
    Server,
    /// The stream ended without its end marker.
    Incomplete,
    /// The stream holds what its format does not allow.
    Protocol,
}

impl ModelErrorKind {
    /// Whether the same request can succeed later.
    #[must_use]
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::RateLimit | Self::Overloaded | Self::Network | Self::Server | Self::Incomplete)
    }

    /// The name used in events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Quota => "quota",
            Self::RateLimit => "rate_limit",
            Self::Overloaded => "overloaded",
            Self::ContextTooLarge => "context_too_large",
            Self::Filter => "filter",
            Self::BadRequest => "bad_request",
            Self::Network => "network",
            Self::Server => "server",
            Self::Incomplete => "incomplete_stream",
            Self::Protocol => "protocol",
        }
    }
}

impl ModelError {
    /// `message` names the thing and the fact, `hint` the next step.
    #[must_use]
    pub fn new(kind: ModelErrorKind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: hint.into(), retry_after: None }
    }
}

/// A tool call that did not do what was asked. The text is the model's next prompt.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{summary}\n{hint}")]
pub struct ToolError {
    pub code: ErrorCode,
    /// What happened to what.
    pub summary: String,
    /// What to do next.
    pub hint: String,
    /// What else the model needs for that: lines that match, names that are near.
    pub details: Option<Value>,
}

impl ToolError {
    /// `summary` names the thing and the fact, `hint` the next step.
    #[must_use]
    pub fn new(code: ErrorCode, summary: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code, summary: summary.into(), hint: hint.into(), details: None }
    }
}

/// The stable names of what goes wrong with tools.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorCode {
    UnknownTool,
    InvalidInput,
    InvalidPath,
    NotFound,
    NotAFile,
    NotADirectory,
    AlreadyExists,
    Binary,
    TooLarge,
    NotRead,
    Stale,
    NoMatch,
    Ambiguous,
    PatchInvalid,
    PatchMismatch,
    RangeInvalid,
    PatternInvalid,
    PermissionDenied,
    OutsideWorkspace,
    Denied,
    Cancelled,
    TimedOut,
    /// The command ran and said no: exit code or signal.
    CommandFailed,
    /// It is not known whether it ran.
    UnknownOutcome,
    IoError,
    Internal,
}

impl ErrorCode {
    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnknownTool => "UNKNOWN_TOOL",
            Self::InvalidInput => "INVALID_INPUT",
            Self::InvalidPath => "INVALID_PATH",
            Self::NotFound => "NOT_FOUND",
            Self::NotAFile => "NOT_A_FILE",
            Self::NotADirectory => "NOT_A_DIRECTORY",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::Binary => "BINARY",
            Self::TooLarge => "TOO_LARGE",
            Self::NotRead => "NOT_READ",
            Self::Stale => "STALE",
            Self::NoMatch => "NO_MATCH",
            Self::Ambiguous => "AMBIGUOUS",
            Self::PatchInvalid => "PATCH_INVALID",
            Self::PatchMismatch => "PATCH_MISMATCH",
            Self::RangeInvalid => "RANGE_INVALID",
            Self::PatternInvalid => "PATTERN_INVALID",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::OutsideWorkspace => "OUTSIDE_WORKSPACE",
            Self::Denied => "DENIED",
            Self::Cancelled => "CANCELLED",
            Self::TimedOut => "TIMED_OUT",
            Self::CommandFailed => "COMMAND_FAILED",
            Self::UnknownOutcome => "UNKNOWN_OUTCOME",
            Self::IoError => "IO_ERROR",
            Self::Internal => "INTERNAL",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
