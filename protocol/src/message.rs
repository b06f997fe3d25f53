//! The one message union: the same in memory, in the journal and on the wire.
//!
//! Holds data and decides nothing. What only a provider needs (signatures, opaque blocks) travels along untouched.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{CallId, MessageId};

/// Who speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    System,
    User,
    Assistant,
    Tool,
}

/// One message of a transcript.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    pub id: MessageId,
    pub role: Role,
    pub content: Vec<Part>,
    /// `provider/model` that wrote it; assistant messages only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it cost; assistant messages only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Why the model stopped; assistant messages only, absent while it grows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// True in a snapshot of a message that is still growing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub streaming: bool,
    /// Set when the daemon made this message, and not a person or a model: `interrupted`, `unknown_outcome`,
    /// `summary`, `reminder`, `context` and others to come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synthetic: Option<String>,
}

/// One piece of a message's content.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Part {
    Text {
        text: String,
    },
    /// `data` is base64.
    Image {
        media_type: String,
        data: String,
    },
    /// The model's reasoning. `signature` is the provider's proof and must go back unchanged; `redacted` holds a block
    /// whose text the provider keeps to itself.
    Thinking {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        redacted: Option<String>,
    },
    ToolUse {
        id: CallId,
        name: String,
        /// `{}` until the call's arguments are whole.
        input: Value,
        /// The arguments as text: while they grow, and for good when they turned out not to be JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw_input: Option<String>,
    },
    ToolResult {
        tool_use_id: CallId,
        content: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
    /// A part from a newer version of agentd, kept as it came.
    #[serde(untagged)]
    Other(Value),
}

/// Why a model's answer ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    End,
    Length,
    ToolUse,
    Filter,
    Interrupted,
    Error,
}

/// Tokens of one answer, or the sum over a turn or a session.
#[derive(Clone, Copy, Default, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Tokens read and not served from a cache.
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
    /// Part of `output_tokens`.
    pub reasoning_tokens: u64,
    /// US dollars; absent when the price is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// Adds another answer's figures to a sum. A cost that is not known leaves the sum's cost as it is.
    pub fn add(&mut self, other: &Self) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_read_tokens += other.cache_read_tokens;
        self.cache_write_tokens += other.cache_write_tokens;
        self.reasoning_tokens += other.reasoning_tokens;
        if let Some(cost) = other.cost_usd {
            self.cost_usd = Some(self.cost_usd.unwrap_or(0.0) + cost);
        }
    }

    /// All tokens that the model had before it when it answered.
    #[must_use]
    pub fn context_tokens(&self) -> u64 {
        self.input_tokens + self.cache_read_tokens + self.cache_write_tokens + self.output_tokens
    }
}

impl Message {
    fn plain(role: Role, content: Vec<Part>) -> Self {
        Self {
            id: MessageId::new(),
            role,
            content,
            model: None,
            usage: None,
            stop_reason: None,
            streaming: false,
            synthetic: None,
        }
    }

    /// What a person said.
    #[must_use]
    pub fn user(content: Vec<Part>) -> Self {
        Self::plain(Role::User, content)
    }

    /// What a person said, in words alone.
    #[must_use]
    pub fn user_text(text: impl Into<String>) -> Self {
        Self::user(vec![Part::Text { text: text.into() }])
    }

    /// An answer that has not begun yet, for a provider to grow.
    #[must_use]
    pub fn draft(model: impl Into<String>) -> Self {
        Self { model: Some(model.into()), streaming: true, ..Self::plain(Role::Assistant, Vec::new()) }
    }

    /// The results of one answer's calls, in the order of the calls.
    #[must_use]
    pub fn tool_results(results: Vec<Part>) -> Self {
        Self::plain(Role::Tool, results)
    }

    /// The same message, marked as made by the daemon.
    #[must_use]
    pub fn synthetic(mut self, why: &str) -> Self {
        self.synthetic = Some(why.into());
        self
    }

    /// All text parts, one after the other.
    #[must_use]
    pub fn text(&self) -> String {
        self.content.iter().filter_map(Part::as_text).collect()
    }

    /// The calls it asks for, in order.
    pub fn tool_uses(&self) -> impl Iterator<Item = (&CallId, &str, &Value)> {
        self.content.iter().filter_map(|part| match part {
            Part::ToolUse { id, name, input, .. } => Some((id, name.as_str(), input)),
            _ => None,
        })
    }
}

impl Part {
    /// The text of a text part.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            _ => None,
        }
    }
}
