//! What a crash left of a turn, and what may become of it. Pure: journal rows in, results and a way on out.
//!
//! Nothing is run here and nothing is guessed: a call that may have had effects is said to be unknown, in words for the
//! person and for the model. Only a call that is known to have changed nothing may begin again.

use std::collections::HashMap;

use agent::Resumption;
use coding::OnDisk;
use foundation::ErrorCode;
use protocol::{CallId, Message, Part, Role, StopReason, TurnState};

use crate::store::{CallRow, CallState};

/// How often a call that only reads is started at most. One that is cut off every time may be the cause.
const READ_ATTEMPTS: u32 = 3;
/// The same for one that gets something from the web.
const GET_ATTEMPTS: u32 = 2;
/// How much of a cut-off call's output its result repeats, in bytes.
const OUTPUT_BYTES: usize = 4 << 10;

/// A call of a cut-off answer, as far as the journal knows.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Found {
    /// Its result is in the journal.
    Over(Part),
    /// It had begun; this is what can be said of it now.
    Settled { part: Part, summary: String },
    /// It had begun and changed nothing: it may begin again. What the model is told about that.
    Again(String),
    /// It never began.
    NotBegun,
}

/// Sorts the calls of a cut-off answer. `output` is what was kept of what they printed.
pub(crate) fn sort(
    answer: &Message,
    rows: &[CallRow],
    on_disk: impl Fn(&CallRow) -> OnDisk,
    output: &HashMap<String, String>,
) -> Vec<(CallId, String, Found)> {
    let found = |id: &CallId, name: &str| match rows.iter().find(|row| row.call_id == *id) {
        None => Found::NotBegun,
        Some(row) => match row.result.as_deref().and_then(|json| serde_json::from_str(json).ok()) {
            Some(part) => Found::Over(part),
            None => begun(row, name, &on_disk, output.get(&id.0).map_or("", String::as_str)),
        },
    };
    answer.tool_uses().map(|(id, name, _)| (id.clone(), name.to_owned(), found(id, name))).collect()
}

fn begun(row: &CallRow, name: &str, on_disk: &impl Fn(&CallRow) -> OnDisk, output: &str) -> Found {
    debug_assert_eq!(row.state, CallState::Started);
    let may_repeat = match row.class {
        'R' => row.attempt < READ_ATTEMPTS,
        'G' => row.attempt < GET_ATTEMPTS,
        'H' => {
            return match on_disk(row) {
                OnDisk::NotApplied => Found::Again(
                    "agentd was interrupted before this took effect; this is what came of it when it was begun again"
                        .into(),
                ),
                OnDisk::Applied => applied(&row.call_id, name),
                OnDisk::Unknown(why) => unknown(row, name, &why),
            };
        }
        _ => return unknown(row, name, &kept(output)),
    };
    if may_repeat {
        return Found::Again(
            "agentd was interrupted while this ran; this is what came of it when it was run again".into(),
        );
    }
    let text = format!("{name} was cut off {} times when agentd was interrupted, and is not run again", row.attempt);
    settled(&row.call_id, text, "It changes nothing, so look for another way.", Some(ErrorCode::Cancelled))
}

fn applied(id: &CallId, name: &str) -> Found {
    let text =
        format!("{name}: done. agentd was interrupted right after it; the files hold what the call was to leave");
    settled(id, text, "", None)
}

fn unknown(row: &CallRow, name: &str, what_is_known: &str) -> Found {
    let since =
        row.started_at.map(|at| format!(" (started {})", at.strftime("%Y-%m-%d %H:%M:%S UTC"))).unwrap_or_default();
    let text =
        format!("agentd was interrupted while {name} was running{since}, and what was found of it has been ended");
    let advice = format!(
        "It may have taken effect fully, partly or not at all: check before repeating it. It was not run again.{}{what_is_known}",
        if what_is_known.is_empty() { "" } else { "\n" }
    );
    settled(&row.call_id, text, &advice, Some(ErrorCode::UnknownOutcome))
}

fn kept(output: &str) -> String {
    if output.is_empty() {
        return String::new();
    }
    let mut from = output.len().saturating_sub(OUTPUT_BYTES);
    while !output.is_char_boundary(from) {
        from += 1;
    }
    format!("The last of its output that was kept:\n{}", &output[from..])
}

fn settled(id: &CallId, summary: String, advice: &str, code: Option<ErrorCode>) -> Found {
    let content = match code {
        Some(code) => format!("{summary}\ncode: {code}\n{advice}"),
        None => summary.clone(),
    };
    let part = Part::ToolResult {
        tool_use_id: id.clone(),
        content,
        is_error: code.is_some(),
        code: code.map(|code| code.as_str().into()),
    };
    Found::Settled { part, summary }
}

/// How the loop goes on from here.
pub(crate) fn resumption(found: &[(CallId, String, Found)], steps: u32) -> Resumption {
    let mut so_far = Resumption { steps, ..Resumption::default() };
    for (id, _, found) in found {
        match found {
            Found::Over(part) | Found::Settled { part, .. } => drop(so_far.settled.insert(id.clone(), part.clone())),
            Found::Again(note) => drop(so_far.again.insert(id.clone(), note.clone())),
            Found::NotBegun => {}
        }
    }
    so_far
}

/// The message that answers the calls of a turn which does not go on, or `None` when there are none.
pub(crate) fn close(found: Vec<(CallId, String, Found)>) -> Option<Message> {
    let results: Vec<Part> = found
        .into_iter()
        .map(|(id, name, found)| {
            let text = match found {
                Found::Over(part) | Found::Settled { part, .. } => return part,
                Found::Again(_) => format!("{name} was cut off when agentd was interrupted, and changed nothing."),
                Found::NotBegun => format!("{name} was not run: agentd was interrupted before it started."),
            };
            let content = format!("{text}\ncode: {}\nCall it again if it is still wanted.", ErrorCode::Cancelled);
            Part::ToolResult {
                tool_use_id: id,
                content,
                is_error: true,
                code: Some(ErrorCode::Cancelled.as_str().into()),
            }
        })
        .collect();
    let is_unknown = |part: &Part| matches!(part, Part::ToolResult { code: Some(code), .. } if code == ErrorCode::UnknownOutcome.as_str());
    let why = if results.iter().any(is_unknown) { "unknown_outcome" } else { "interrupted" };
    (!results.is_empty()).then(|| Message::tool_results(results).synthetic(why))
}

/// How a turn ended whose last message is whole and whose end was not written, or `None` when it had not ended.
pub(crate) fn ended_by(last: Option<&Message>) -> Option<TurnState> {
    let last = last.filter(|last| last.role == Role::Assistant && last.tool_uses().next().is_none())?;
    Some(match (last.synthetic.as_deref(), last.stop_reason) {
        (Some("limit"), _) => TurnState::Limit,
        (_, Some(StopReason::End | StopReason::Length | StopReason::ToolUse) | None) => TurnState::Completed,
        (_, Some(StopReason::Interrupted | StopReason::Filter | StopReason::Error)) => TurnState::Interrupted,
    })
}

#[cfg(test)]
mod tests;
