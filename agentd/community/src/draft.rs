//! An answer as it grows: appended to in place, lent as a whole, never copied.
//!
//! A part is made when its first piece arrives and stays where it is, so each snapshot holds the one before it.

use foundation::{Message, ModelRequest, Part, StopReason, Usage};
use serde_json::{Map, Value};

use crate::call_ids::CallIds;
use crate::config::{Price, Profile};

/// A growing answer.
#[derive(Debug)]
pub(crate) struct Draft {
    message: Message,
    ids: CallIds,
    price: Option<Price>,
}

/// A place in the answer's content.
pub(crate) type Place = usize;

impl Draft {
    pub(crate) fn new(profile: &Profile, request: &ModelRequest<'_>) -> Self {
        Self { message: Message::draft(profile.name.clone()), ids: CallIds::of(request.messages), price: profile.price }
    }

    pub(crate) fn message(&self) -> &Message {
        &self.message
    }

    fn push(&mut self, part: Part) -> Place {
        self.message.content.push(part);
        self.message.content.len() - 1
    }

    pub(crate) fn open_text(&mut self) -> Place {
        self.push(Part::Text { text: String::new() })
    }

    pub(crate) fn open_thinking(&mut self) -> Place {
        self.push(Part::Thinking { text: String::new(), signature: None, redacted: None })
    }

    /// A block of reasoning that only the provider can read.
    pub(crate) fn add_redacted(&mut self, data: String) {
        self.push(Part::Thinking { text: String::new(), signature: None, redacted: Some(data) });
    }

    /// `input` stands if no arguments follow.
    pub(crate) fn open_call(&mut self, provider_id: Option<&str>, name: &str, input: Map<String, Value>) -> Place {
        let id = self.ids.take(provider_id);
        let raw_input = Some(String::new());
        self.push(Part::ToolUse { id, name: name.into(), input: Value::Object(input), raw_input })
    }

    /// More of a part: of its text, or of a call's arguments.
    pub(crate) fn append(&mut self, place: Place, piece: &str) {
        if let Some(Part::Text { text } | Part::Thinking { text, .. } | Part::ToolUse { raw_input: Some(text), .. }) =
            self.message.content.get_mut(place)
        {
            text.push_str(piece);
        }
    }

    /// The provider's proof of a thinking part; it may come in pieces.
    pub(crate) fn sign(&mut self, place: Place, piece: &str) {
        if let Some(Part::Thinking { signature, .. }) = self.message.content.get_mut(place) {
            signature.get_or_insert_default().push_str(piece);
        }
    }

    pub(crate) fn usage(&mut self) -> &mut Usage {
        self.message.usage.get_or_insert_default()
    }

    /// Makes the answer whole. What the calls say counts for more than the reason that the provider gave.
    pub(crate) fn finish(&mut self, stop: StopReason) {
        let calls = self.message.tool_uses().next().is_some();
        let stop = match stop {
            StopReason::End | StopReason::ToolUse if calls => StopReason::ToolUse,
            StopReason::ToolUse => StopReason::End,
            other => other,
        };
        let last = self.message.content.len().saturating_sub(1);
        for (place, part) in self.message.content.iter_mut().enumerate() {
            settle(part, stop == StopReason::Length && place == last);
        }
        if let (Some(price), Some(usage)) = (self.price, &mut self.message.usage) {
            usage.cost_usd = Some(cost(price, usage));
        }
        self.message.stop_reason = Some(stop);
        self.message.streaming = false;
    }
}

/// Reads a call's arguments once they are whole. Blank ones mean none, unless the answer was cut off just there.
fn settle(part: &mut Part, cut: bool) {
    let Part::ToolUse { input, raw_input, .. } = part else { return };
    let Some(raw) = raw_input else { return };
    if raw.trim().is_empty() {
        if !cut {
            *raw_input = None;
        }
    } else if let Ok(value) = serde_json::from_str(raw) {
        *input = value;
        *raw_input = None;
    }
}

#[expect(clippy::cast_precision_loss, reason = "token counts stay far below 2^52")]
fn cost(price: Price, usage: &Usage) -> f64 {
    let million = 1_000_000.0;
    (usage.input_tokens as f64 * price.input
        + usage.output_tokens as f64 * price.output
        + usage.cache_read_tokens as f64 * price.cache_read.unwrap_or(price.input)
        + usage.cache_write_tokens as f64 * price.cache_write.unwrap_or(price.input))
        / million
}
