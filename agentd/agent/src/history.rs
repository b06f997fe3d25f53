//! What providers demand of a transcript: every call answered exactly once, directly behind the answer that made it.
//!
//! The loop keeps to it by construction. A history from elsewhere (a crash, an import, an older version) is repaired.

use std::collections::HashSet;

use foundation::{CallId, ErrorCode, Message, Part, Role};

/// Whether every call has exactly one result in the message behind it, and no id is used twice.
///
/// # Errors
/// Names the first call or result that is not as it must be.
pub fn check(messages: &[Message]) -> Result<(), String> {
    let mut used = HashSet::new();
    let mut open: Vec<&CallId> = Vec::new();
    for message in messages {
        if message.role == Role::Tool {
            for result in &message.content {
                let id = result_id(result).ok_or_else(|| format!("message {} holds more than results", message.id))?;
                let place = open.iter().position(|call| *call == id);
                open.remove(place.ok_or_else(|| format!("the result of `{id}` answers no open call"))?);
            }
        } else if message.content.iter().any(|part| result_id(part).is_some()) {
            return Err(format!("message {} holds a result and is not a tool message", message.id));
        }
        if let Some(id) = open.first() {
            return Err(format!("the call `{id}` has no result directly behind it"));
        }
        for (id, ..) in message.tool_uses() {
            if !used.insert(id) {
                return Err(format!("the id `{id}` is used by two calls"));
            }
            open.push(id);
        }
    }
    open.first().map_or(Ok(()), |id| Err(format!("the call `{id}` has no result")))
}

/// The same history as [`check`] wants it, and one sentence for each thing that was changed.
///
/// A call without a result gets one that says so; a result without a call, or a second one, is left out; results that
/// stand elsewhere are moved behind their call; a second call with the same id gets a new one, and so does its result.
#[must_use]
pub fn repair(messages: Vec<Message>) -> (Vec<Message>, Vec<String>) {
    if check(&messages).is_ok() {
        return (messages, Vec::new());
    }
    let mut repair = Repair::default();
    let mut segment = Vec::new();
    for message in messages {
        if message.role == Role::Assistant {
            repair.segment(std::mem::take(&mut segment));
        }
        segment.push(message);
    }
    repair.segment(segment);
    (repair.history, repair.notes)
}

#[derive(Default)]
struct Repair {
    history: Vec<Message>,
    notes: Vec<String>,
    used: HashSet<CallId>,
}

impl Repair {
    /// Takes over an answer with all that follows it up to the next answer.
    fn segment(&mut self, mut segment: Vec<Message>) {
        let is_behind = segment.get(1).is_none_or(|message| message.role == Role::Tool);
        let mut tool_message = None;
        let mut tool_messages = 0;
        let mut results = Vec::new();
        segment.retain_mut(|message| {
            let (own, others) =
                std::mem::take(&mut message.content).into_iter().partition(|part| result_id(part).is_some());
            results.extend::<Vec<Part>>(own);
            message.content = others;
            if message.role != Role::Tool {
                return true;
            }
            tool_messages += 1;
            tool_message.get_or_insert_with(|| message.clone());
            false
        });
        let mut segment = segment.into_iter();
        if let Some(mut first) = segment.next() {
            let answered = self.answer(&mut first, &mut results);
            self.history.push(first);
            if !answered.is_empty() {
                if tool_messages > 1 || !is_behind {
                    self.notes.push("results of one answer were put together, directly behind it".into());
                }
                let message =
                    tool_message.unwrap_or_else(|| Message::tool_results(Vec::new()).synthetic("interrupted"));
                self.history.push(Message { content: answered, ..message });
            }
        }
        let left = results.iter().filter_map(result_id);
        self.notes.extend(left.map(|id| format!("a result of `{id}` that answers no call was left out")));
        self.history.extend(segment);
    }

    /// One result for each call of `message`, taken from `results` where it is there.
    fn answer(&mut self, message: &mut Message, results: &mut Vec<Part>) -> Vec<Part> {
        let mut answered = Vec::new();
        for part in &mut message.content {
            let Part::ToolUse { id, name, .. } = part else { continue };
            let found = results.iter().position(|result| result_id(result) == Some(id));
            let mut result = match found {
                Some(place) => results.remove(place),
                None => {
                    self.notes.push(format!("the call `{id}` of `{name}` had no result and got one that says so"));
                    missing(id, name)
                }
            };
            if !self.used.insert(id.clone()) {
                self.notes.push(format!("a second call with the id `{id}` got a new id"));
                *id = CallId::new();
                self.used.insert(id.clone());
            }
            if let Part::ToolResult { tool_use_id, .. } = &mut result {
                tool_use_id.clone_from(id);
            }
            answered.push(result);
        }
        answered
    }
}

/// Gives a new id to each call of a new answer whose id is empty or was used before, and notes all of them as used.
pub(crate) fn rename_used(answer: &mut Message, used: &mut HashSet<CallId>) {
    for part in &mut answer.content {
        if let Part::ToolUse { id, .. } = part
            && (id.0.is_empty() || !used.insert(id.clone()))
        {
            *id = CallId::new();
            used.insert(id.clone());
        }
    }
}

fn result_id(part: &Part) -> Option<&CallId> {
    match part {
        Part::ToolResult { tool_use_id, .. } => Some(tool_use_id),
        Part::Text { .. } | Part::Image { .. } | Part::Thinking { .. } | Part::ToolUse { .. } | Part::Other(_) => None,
    }
}

fn missing(id: &CallId, name: &str) -> Part {
    Part::ToolResult {
        tool_use_id: id.clone(),
        content: format!(
            "no result of this call of `{name}` was kept: it is not known whether it ran\ncode: {}\nLook at what it \
             would have changed before you call it again.",
            ErrorCode::UnknownOutcome
        ),
        is_error: true,
        code: Some(ErrorCode::UnknownOutcome.as_str().into()),
    }
}

#[cfg(test)]
mod tests;
