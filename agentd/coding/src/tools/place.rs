//! What every file tool works with, and how its blocking work leaves the async world.
//!
//! The work looks at the token itself and ends within a second of it. A write that has begun is finished first: its
//! thread cannot be ended, so whoever runs a tool that writes must wait for its end, or the write lands after it.

use std::sync::Arc;

use foundation::{ErrorCode, ToolError};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::file_state::FileState;
use crate::paths::{Target, Workspace};

/// The session's folder and what the session has seen of it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) files: Arc<FileState>,
}

impl Place {
    /// Runs blocking work on a thread of its own.
    pub(crate) async fn blocking<T, F>(&self, cancel: &CancellationToken, work: F) -> Result<T, ToolError>
    where
        T: Send + 'static,
        F: FnOnce(&Self, &CancellationToken) -> Result<T, ToolError> + Send + 'static,
    {
        check_running(cancel)?;
        let (place, cancel) = (self.clone(), cancel.clone());
        let done = tokio::task::spawn_blocking(move || work(&place, &cancel)).await;
        done.unwrap_or_else(|error| {
            let summary = format!("the tool broke off: {error}");
            Err(ToolError::new(ErrorCode::Internal, summary, "This is a defect of agentd. Try another way."))
        })
    }

    /// Where a path leads, and how results speak of it.
    pub(crate) fn find(&self, path: &str) -> Result<(Target, String), ToolError> {
        let target = self.workspace.resolve(path)?;
        let shown = self.workspace.show(&target.absolute);
        Ok((target, shown))
    }
}

/// The typed input of a call.
pub(crate) fn parse<T: DeserializeOwned>(input: &Value) -> Result<T, ToolError> {
    T::deserialize(input).map_err(|error| {
        ToolError::new(
            ErrorCode::InvalidInput,
            format!("the input does not fit: {error}"),
            "Send the call again with it.",
        )
    })
}

/// # Errors
/// `Cancelled` once the token is.
pub(crate) fn check_running(cancel: &CancellationToken) -> Result<(), ToolError> {
    if cancel.is_cancelled() {
        return Err(ToolError::new(
            ErrorCode::Cancelled,
            "cancelled before it was done; nothing was changed",
            "Wait for what the person says.",
        ));
    }
    Ok(())
}
