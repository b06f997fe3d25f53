//! What is known of a run that was cut off: where it goes on.

use std::collections::HashMap;

use foundation::{CallId, Message, Part};

/// How far a run had come.
#[derive(Clone, Default, Debug)]
pub struct Resumption {
    /// Answers that the run has already.
    pub steps: u32,
    /// The `tool_result` of each call that is over.
    pub settled: HashMap<CallId, Part>,
    /// Calls that had begun, that nothing came of, and that may begin again; for each what the model is told about it, if anything.
    pub again: HashMap<CallId, String>,
}

impl Resumption {
    /// Whether a transcript ends with an answer whose calls are still to be answered.
    pub(crate) fn takes_up(&self, transcript: &[Message]) -> bool {
        self.steps > 0 && transcript.last().is_some_and(|last| last.tool_uses().next().is_some())
    }

    /// Puts in front of a result what has to be known about it.
    pub(crate) fn noted(&self, mut result: Part) -> Part {
        if let Part::ToolResult { tool_use_id, content, .. } = &mut result
            && let Some(note) = self.again.get(tool_use_id).filter(|note| !note.is_empty())
        {
            *content = format!("({note})\n{content}");
        }
        result
    }
}
