//! How the program ends: exit codes for scripts, and what went wrong for people.
//!
//! The numbers are a contract (see the protocol's section on agentctl); a new one is added, none is ever re-used.

use std::io;
use std::process::ExitCode;

use protocol::error::ErrorKind;
use protocol::session::TurnState;
use protocol::{ErrorData, TurnError};

use crate::output;
use crate::untrusted::Untrusted;

/// What a script reads from `$?`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    Done,
    /// The turn failed, or a command did.
    Failed,
    Usage,
    /// An approval was needed, and policy denied it.
    Denied,
    /// Steps, budget or time of the turn ran out.
    Limit,
    Interrupted,
    Provider,
    /// Nobody listens, and no daemon could be started.
    Unreachable,
    /// The two sides share no version, or the daemon cannot do this.
    Version,
    /// The client's own time-out; the turn goes on.
    TimedOut,
}

/// Each of them, in words, as the help shows them.
const WORDS: [(Exit, &str); 10] = [
    (Exit::Done, "done"),
    (Exit::Failed, "the turn or the command failed"),
    (Exit::Usage, "wrong usage"),
    (Exit::Denied, "an approval was needed and the policy denied it"),
    (Exit::Limit, "steps or budget ran out"),
    (Exit::Interrupted, "interrupted"),
    (Exit::Provider, "the model's provider failed"),
    (Exit::Unreachable, "no daemon could be reached or started"),
    (Exit::Version, "the daemon speaks another version"),
    (Exit::TimedOut, "--timeout was over, and the turn goes on"),
];

/// The exit codes, one a line.
pub(crate) fn legend() -> String {
    let lines = WORDS.iter().map(|(exit, words)| format!("\n  {:>3}  {words}", exit.code()));
    format!("Exit codes:{}", lines.collect::<String>())
}

impl Exit {
    /// The number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Denied => 3,
            Self::Limit => 4,
            Self::Interrupted => 5,
            Self::Provider => 6,
            Self::Unreachable => 7,
            Self::Version => 9,
            Self::TimedOut => 124,
        }
    }

    /// How a turn's end looks to a script.
    pub(crate) fn of_turn(state: TurnState, error: Option<&TurnError>) -> Self {
        match state {
            TurnState::Completed => Self::Done,
            TurnState::Interrupted | TurnState::Recoverable => Self::Interrupted,
            TurnState::Limit => Self::Limit,
            TurnState::Failed => error.map_or(Self::Failed, |error| Self::of_kind(&error.data.kind)),
            TurnState::Queued | TurnState::Running => Self::Failed,
        }
    }

    /// How an error of the daemon looks to a script.
    fn of_kind(kind: &str) -> Self {
        let is = |other: ErrorKind| kind == other.as_str();
        if is(ErrorKind::ProviderError) {
            Self::Provider
        } else if is(ErrorKind::BudgetExceeded) {
            Self::Limit
        } else if is(ErrorKind::UnsupportedVersion)
            || is(ErrorKind::CapabilityRequired)
            || is(ErrorKind::MethodNotFound)
        {
            Self::Version
        } else if is(ErrorKind::InvalidParams) {
            Self::Usage
        } else if is(ErrorKind::WaitTimeout) {
            Self::TimedOut
        } else {
            Self::Failed
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a command did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The daemon answered with an error object.
    #[error("{message}")]
    Rpc { code: i32, message: String, data: Option<Box<ErrorData>> },
    /// Nobody listens, or the connection broke.
    #[error("{message}")]
    Unreachable { message: String, hint: String },
    /// The two sides do not understand each other.
    #[error("{message}")]
    Version { message: String, hint: String },
    /// Stdout cannot take what we print.
    #[error("cannot write to stdout: {0}")]
    Output(io::Error),
    /// A person would not wait for the end.
    #[error("left; the turn may still be stopping")]
    Left,
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    Other(String),
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    pub(crate) fn other(message: impl Into<String>) -> Self {
        Self::Other(message.into())
    }

    /// The daemon's stable name for what is wrong.
    pub(crate) fn kind(&self) -> Option<&str> {
        match self {
            Self::Rpc { data: Some(data), .. } => Some(&data.kind),
            _ => None,
        }
    }

    pub(crate) fn is(&self, kind: ErrorKind) -> bool {
        self.kind() == Some(kind.as_str())
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Rpc { code, data, .. } => {
                let by_code = ErrorKind::ALL.iter().find(|kind| kind.code() == *code).map(|kind| kind.as_str());
                data.as_ref().map(|data| data.kind.as_str()).or(by_code).map_or(Exit::Failed, Exit::of_kind)
            }
            Self::Unreachable { .. } => Exit::Unreachable,
            Self::Version { .. } => Exit::Version,
            // Whoever read us has seen enough.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
            Self::Output(_) | Self::Other(_) => Exit::Failed,
            Self::Left => Exit::Interrupted,
            Self::Usage(_) => Exit::Usage,
        }
    }

    /// One line for people: what happened, and the next step.
    pub(crate) fn sentence(&self) -> String {
        let text = match self {
            Self::Rpc { message, data: Some(data), .. } if !data.hint.is_empty() => {
                format!("{message} (hint: {})", in_commands(&data.hint))
            }
            Self::Unreachable { message, hint } | Self::Version { message, hint } => {
                format!("{message} (hint: {hint})")
            }
            other => other.to_string(),
        };
        Untrusted::new(&text).escaped()
    }

    /// Says it on stderr, unless there is nobody to tell, and gives the exit code.
    pub(crate) fn report(self) -> Exit {
        let exit = self.exit();
        if exit != Exit::Done {
            output::note(&format!("agentctl: {}", self.sentence()));
        }
        exit
    }
}

/// What the daemon's hints name, and what a person types for it.
const COMMANDS: [(&str, &str); 9] = [
    ("turn/start", "`agentctl send`"),
    ("turn/wait", "`agentctl wait`"),
    ("turn/interrupt", "`agentctl interrupt`"),
    ("session/subscribe", "`agentctl attach`"),
    ("session/history", "`agentctl history`"),
    ("session/list", "`agentctl ls`"),
    ("approval/list", "`agentctl approvals`"),
    ("question/list", "`agentctl approvals`"),
    ("config/explain", "`agentctl config`"),
];

/// A hint of the daemon in this program's words: it knows methods, people know commands.
pub(crate) fn in_commands(hint: &str) -> String {
    COMMANDS.iter().fold(hint.to_owned(), |text, (method, command)| text.replace(method, command))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Map;

    #[test]
    fn hints_name_commands_and_no_methods() {
        for (method, command) in COMMANDS {
            assert_eq!(in_commands(&format!("see {method}, then go on")), format!("see {command}, then go on"));
        }
        assert_eq!(in_commands("set OPENAI_API_KEY"), "set OPENAI_API_KEY");
    }

    fn rpc(kind: ErrorKind) -> Failure {
        let data = ErrorData {
            kind: kind.as_str().into(),
            retryable: false,
            retry_after_ms: None,
            hint: "do this".into(),
            more: Map::new(),
        };
        Failure::Rpc { code: kind.code(), message: "it broke".into(), data: Some(Box::new(data)) }
    }

    #[track_caller]
    fn check_turn(state: TurnState, kind: Option<ErrorKind>, code: u8) {
        let error = kind.map(|kind| {
            let Failure::Rpc { data: Some(data), message, .. } = rpc(kind) else { panic!() };
            TurnError { message, data: *data }
        });
        assert_eq!(Exit::of_turn(state, error.as_ref()).code(), code);
    }

    #[test]
    fn the_end_of_a_turn_decides_the_exit_code() {
        check_turn(TurnState::Completed, None, 0);
        check_turn(TurnState::Failed, None, 1);
        check_turn(TurnState::Failed, Some(ErrorKind::Internal), 1);
        check_turn(TurnState::Failed, Some(ErrorKind::ProviderError), 6);
        check_turn(TurnState::Failed, Some(ErrorKind::BudgetExceeded), 4);
        check_turn(TurnState::Limit, None, 4);
        check_turn(TurnState::Interrupted, None, 5);
        check_turn(TurnState::Recoverable, None, 5);
    }

    #[track_caller]
    fn check(failure: &Failure, code: u8, sentence: &str) {
        assert_eq!((failure.exit().code(), failure.sentence().as_str()), (code, sentence));
    }

    #[test]
    fn errors_say_the_next_step_and_have_their_code() {
        check(&rpc(ErrorKind::NotFound), 1, "it broke (hint: do this)");
        check(&rpc(ErrorKind::UnsupportedVersion), 9, "it broke (hint: do this)");
        check(&rpc(ErrorKind::WaitTimeout), 124, "it broke (hint: do this)");
        check(&rpc(ErrorKind::InvalidParams), 2, "it broke (hint: do this)");
        check(&Failure::usage("no such thing"), 2, "no such thing");
        check(
            &Failure::Unreachable { message: "nobody there".into(), hint: "start it".into() },
            7,
            "nobody there (hint: start it)",
        );
        check(&Failure::Rpc { code: -32601, message: "no \u{1b}[2J".into(), data: None }, 9, "no <U+001B>[2J");
        let pipe = Failure::Output(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(pipe.exit(), Exit::Done, "a reader that has seen enough is no error");
        let full = Failure::Output(io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(full.exit(), Exit::Failed);
    }
}
