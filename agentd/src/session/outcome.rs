//! How the end of a run stands in the journal. Pure.

use agent::{Halt, RunEnd, RunOutcome};
use foundation::{ModelError, ModelErrorKind};
use protocol::{ErrorKind, RpcError, TurnError, TurnState};
use tokio::task::JoinError;

/// The final state of a turn, and why it did not complete.
///
/// A run that was told to stop is interrupted, whatever else became of it.
pub(crate) fn ended(outcome: Result<RunOutcome, JoinError>, was_cancelled: bool) -> (TurnState, Option<TurnError>) {
    let end = match outcome {
        Ok(_) if was_cancelled => RunEnd::Interrupted,
        // Ended with the daemon, after somebody had stopped it.
        Err(error) if was_cancelled && error.is_cancelled() => RunEnd::Interrupted,
        Ok(outcome) => outcome.end,
        Err(error) => RunEnd::Failed(crashed(&error)),
    };
    match end {
        RunEnd::Completed => (TurnState::Completed, None),
        RunEnd::Interrupted => (TurnState::Interrupted, None),
        RunEnd::Limit => (TurnState::Limit, None),
        RunEnd::Failed(error) => (TurnState::Failed, Some(provider_error(&error))),
        RunEnd::Halted(Halt(why)) => {
            let hint = "see the log of agentd for the cause, then send the message again";
            let error = RpcError::new(ErrorKind::StorageError, why, hint);
            (TurnState::Failed, Some(TurnError { message: error.message, data: *error.data }))
        }
    }
}

fn provider_error(error: &ModelError) -> TurnError {
    let mut rpc = RpcError::new(ErrorKind::ProviderError, error.message.clone(), error.hint.clone())
        .with("cause", error.kind.as_str());
    rpc.data.retryable = error.kind.is_retryable();
    rpc.data.retry_after_ms = error.retry_after.and_then(|after| u64::try_from(after.as_millis()).ok());
    TurnError { message: rpc.message, data: *rpc.data }
}

fn crashed(error: &JoinError) -> ModelError {
    tracing::error!(%error, "a turn's task ended badly");
    ModelError::new(
        ModelErrorKind::Server,
        "agentd itself made a mistake in this turn and ended it",
        "send the message again; please report it with the lines of the log",
    )
}
