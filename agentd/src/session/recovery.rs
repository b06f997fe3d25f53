//! What to do with a turn that a crash cut off. Pure: journal rows in, messages out.
//!
//! Nothing is run again here and nothing is guessed: a call that may have had effects is said to be unknown, in words
//! for the person and for the model.

use foundation::ErrorCode;
use protocol::{CallId, Message, Part};

use crate::store::{CallRow, CallState};

/// The message that answers the calls which the crash left open, or `None` when none is open.
pub(crate) fn close_open_calls(transcript: &[Message], calls: &[CallRow]) -> Option<Message> {
    let last = transcript.last()?;
    let results: Vec<Part> = last
        .tool_uses()
        .map(|(id, name, _)| result_of(id, name, calls.iter().find(|row| row.call_id == *id)))
        .collect();
    (!results.is_empty()).then(|| Message::tool_results(results).synthetic("unknown_outcome"))
}

fn result_of(id: &CallId, name: &str, row: Option<&CallRow>) -> Part {
    let finished = row.and_then(|row| row.result.as_deref()).and_then(|json| serde_json::from_str(json).ok());
    if let Some(part) = finished {
        return part;
    }
    let (code, content) = match row {
        None => (
            ErrorCode::Cancelled,
            format!("{name} was not run: agentd was stopped before it started. Call it again if it is still wanted."),
        ),
        Some(row) if row.class == 'R' => (
            ErrorCode::Cancelled,
            format!("{name} was cut off when agentd was stopped. It only reads, so calling it again is safe."),
        ),
        Some(row) => (
            ErrorCode::UnknownOutcome,
            format!(
                "{name} was running when agentd was stopped{}, and what was left of it has been ended. It may have \
                 taken effect fully, partly or not at all: check before repeating it.",
                row.started_at.map(|at| format!(" (started {at})")).unwrap_or_default()
            ),
        ),
    };
    debug_assert!(row.is_none_or(|row| row.state == CallState::Started));
    Part::ToolResult { tool_use_id: id.clone(), content, is_error: true, code: Some(code.as_str().into()) }
}
