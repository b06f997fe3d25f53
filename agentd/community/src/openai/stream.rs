//! The chunks of a chat completions stream, read into the growing answer.
//!
//! `[DONE]` is the end marker; so is a finish reason with the end of the stream after it, because many servers send
//! nothing more. Calls count for more than the finish reason.

use foundation::{ModelError, ModelErrorKind, StopReason, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::calls::{CallDelta, Calls};
use super::markup;
use crate::answer::{Decoder, Heard};
use crate::draft::{Draft, Place};
use crate::failure::{Refusal, read_event};

/// Where a stream of chunks stands.
#[derive(Debug)]
pub(crate) struct Chunks {
    provider: String,
    /// The names of the tools that were offered.
    tools: Vec<&'static str>,
    /// The text or thinking part that is being written.
    open: Option<(Kind, Place)>,
    calls: Calls,
    refused: bool,
    finish: Option<StopReason>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Text,
    Thinking,
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default)]
    object: Option<String>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
    /// Some servers count here.
    #[serde(default)]
    usage: Option<Value>,
}

#[derive(Deserialize, Default)]
struct Delta {
    #[serde(default)]
    content: Option<Value>,
    #[serde(default)]
    reasoning_content: Option<String>,
    /// The same under another name; servers that send both send the same text twice.
    #[serde(default)]
    reasoning: Option<Value>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<CallDelta>>,
}

impl Chunks {
    pub(crate) fn new(provider: String, tools: Vec<&'static str>) -> Self {
        Self { provider, tools, open: None, calls: Calls::default(), refused: false, finish: None }
    }

    fn write(&mut self, kind: Kind, piece: &str, draft: &mut Draft) -> bool {
        if piece.is_empty() {
            return false;
        }
        let place = match self.open {
            Some((open, place)) if open == kind => place,
            _ if kind == Kind::Text => draft.open_text(),
            _ => draft.open_thinking(),
        };
        self.open = Some((kind, place));
        draft.append(place, piece);
        true
    }

    /// A message's content: text, or on some servers a list of text and thinking pieces.
    fn write_content(&mut self, content: &Value, draft: &mut Draft) -> bool {
        match content {
            Value::String(text) => self.write(Kind::Text, text, draft),
            Value::Array(pieces) => {
                let mut grown = false;
                for piece in pieces {
                    grown |= match piece.get("thinking") {
                        Some(thoughts) => self.write(Kind::Thinking, &text_of(thoughts), draft),
                        None => self.write(Kind::Text, &text_of(piece), draft),
                    };
                }
                grown
            }
            _ => false,
        }
    }

    fn read(&mut self, delta: Delta, draft: &mut Draft) -> bool {
        let Delta { content, reasoning_content, reasoning, refusal, tool_calls } = delta;
        let thoughts = reasoning_content.or_else(|| reasoning?.as_str().map(Into::into)).unwrap_or_default();
        let mut grown = self.write(Kind::Thinking, &thoughts, draft);
        grown |= self.write_content(&content.unwrap_or_default(), draft);
        if let Some(refusal) = refusal.filter(|text| !text.is_empty()) {
            self.refused = true;
            grown |= self.write(Kind::Text, &refusal, draft);
        }
        for call in tool_calls.unwrap_or_default() {
            self.calls.add(call, draft);
            grown = true;
        }
        grown
    }

    fn finish(&mut self, reason: &str) -> Result<(), ModelError> {
        let failed = |kind, hint| {
            Err(ModelError::new(kind, format!("{}: the answer ended with `{reason}`", self.provider), hint))
        };
        self.finish = Some(match reason {
            "length" | "max_tokens" => StopReason::Length,
            "tool_calls" | "function_call" => StopReason::ToolUse,
            "content_filter" | "safety" => StopReason::Filter,
            "error" => return failed(ModelErrorKind::Server, "try again"),
            "insufficient_system_resource" => return failed(ModelErrorKind::Overloaded, "try again in a while"),
            _ => StopReason::End,
        });
        Ok(())
    }
}

impl Decoder for Chunks {
    fn hear(&mut self, data: &str, draft: &mut Draft) -> Result<Heard, ModelError> {
        if data.trim() == "[DONE]" {
            self.finish.get_or_insert(StopReason::End);
            return Ok(Heard::End);
        }
        if data.trim().is_empty() {
            return Ok(Heard::Nothing);
        }
        let chunk: Chunk = read_event(&self.provider, data)?;
        if chunk.error.is_some() || chunk.object.as_deref() == Some("error") {
            let body = chunk.error.unwrap_or_else(|| serde_json::from_str(data).unwrap_or_default());
            return Err(Refusal { provider: &self.provider, ..Refusal::default() }.explain(&body));
        }
        let mut grown = false;
        for choice in chunk.choices.unwrap_or_default() {
            if choice.index.unwrap_or(0) != 0 {
                continue;
            }
            grown |= self.read(choice.delta.unwrap_or_default(), draft);
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.finish(&reason)?;
            }
            count(choice.usage.as_ref(), draft);
        }
        count(chunk.usage.as_ref(), draft);
        Ok(if grown { Heard::More } else { Heard::Nothing })
    }

    fn is_whole(&self) -> bool {
        self.finish.is_some()
    }

    fn complete(&mut self, draft: &mut Draft) {
        if self.stop() != StopReason::End || draft.message().tool_uses().next().is_some() {
            return;
        }
        for call in markup::calls(&draft.message().text(), &self.tools) {
            draft.open_call(None, &call.name, call.arguments);
        }
    }

    fn stop(&self) -> StopReason {
        if self.refused { StopReason::Filter } else { self.finish.unwrap_or(StopReason::End) }
    }
}

/// The text of a piece, or of a list of pieces.
fn text_of(piece: &Value) -> String {
    match piece {
        Value::String(text) => text.clone(),
        Value::Array(pieces) => pieces.iter().map(text_of).collect(),
        Value::Object(fields) => fields.get("text").map(text_of).unwrap_or_default(),
        _ => String::new(),
    }
}

/// Counts are totals; the last ones stand. What came from a cache is part of the prompt's count, so it is taken off.
fn count(counts: Option<&Value>, draft: &mut Draft) {
    let Some(counts) = counts.filter(|counts| counts.is_object()) else { return };
    let number = |paths: &[&str]| paths.iter().find_map(|path| counts.pointer(path)?.as_u64()).unwrap_or(0);
    let prompt = number(&["/prompt_tokens"]);
    let cached =
        number(&["/prompt_tokens_details/cached_tokens", "/prompt_cache_hit_tokens", "/cached_tokens"]).min(prompt);
    *draft.usage() = Usage {
        input_tokens: prompt - cached,
        output_tokens: number(&["/completion_tokens"]),
        cache_read_tokens: cached,
        cache_write_tokens: 0,
        reasoning_tokens: number(&["/completion_tokens_details/reasoning_tokens"]),
        cost_usd: counts.get("cost").and_then(Value::as_f64),
    };
}
