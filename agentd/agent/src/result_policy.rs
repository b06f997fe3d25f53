//! (being built)
use foundation::{ResultPolicy, ToolError, ToolOutcome};

/// What the model gets of an outcome.
#[must_use]
pub fn model_text(_policy: ResultPolicy, _outcome: &ToolOutcome) -> String {
    String::new()
}

/// An error as the model reads it.
#[must_use]
pub fn model_error_text(_error: &ToolError) -> String {
    String::new()
}
