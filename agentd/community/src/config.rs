//! What a provider is made of: values that the settings hand in, none of them read from the world here.
//!
//! A key is held as a secret from the moment it comes in; nothing in this crate prints or stores one.

use std::collections::BTreeMap;
use std::time::Duration;

use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The wire format that a provider speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// Anthropic's Messages API.
    Anthropic,
    /// Chat completions, as OpenAI and everything compatible with it speak them.
    Openai,
    /// No network: the built-in model that follows rules or plays a script.
    Offline,
}

impl Api {
    /// The name in settings and on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Openai => "openai",
            Self::Offline => "offline",
        }
    }
}

/// One `providers` entry of the settings. With a preset's name it overrides the parts it names; with any other name it
/// must say `api` and `base_url`.
#[derive(Clone, Default, Debug)]
pub struct ProviderConfig {
    pub name: String,
    pub api: Option<Api>,
    /// With `/v1` for the OpenAI form, the bare origin for Anthropic; a slash at the end does not matter.
    pub base_url: Option<String>,
    pub key: Option<SecretString>,
    pub headers: BTreeMap<String, SecretString>,
    /// By the provider's own name for the model. Those not named here can be called too, with the default limits.
    pub models: BTreeMap<String, ModelConfig>,
    pub timeouts: Option<Timeouts>,
}

/// What is known of one model.
#[derive(Clone, PartialEq, Default, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ModelConfig {
    /// Tokens; 128,000 if absent.
    pub context_window: Option<u64>,
    /// Tokens.
    pub max_output: Option<u64>,
    pub price: Option<Price>,
    pub quirks: Quirks,
}

/// US dollars for a million tokens.
#[derive(Clone, Copy, PartialEq, Default, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// As `input` if absent.
    #[serde(default)]
    pub cache_read: Option<f64>,
    /// As `input` if absent.
    #[serde(default)]
    pub cache_write: Option<f64>,
}

/// Where a server leaves the common form. A model's own quirks stand above its provider's.
#[derive(Clone, PartialEq, Default, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Quirks {
    /// The server wants its `reasoning_content` back on messages with tool calls.
    pub echo_reasoning: Option<bool>,
    /// The field for the longest answer; `max_tokens` if absent.
    pub max_tokens_field: Option<String>,
    /// False where `stream_options` is refused.
    pub stream_options: Option<bool>,
    /// The server takes only call ids of nine letters and digits.
    pub short_call_ids: Option<bool>,
    /// Fields put into every request as they are, such as `temperature` or `reasoning_effort`.
    pub body: Map<String, Value>,
}

impl Quirks {
    /// These, and what they leave open from `below`.
    pub(crate) fn over(&self, below: &Self) -> Self {
        let mut body = below.body.clone();
        body.extend(self.body.clone());
        Self {
            echo_reasoning: self.echo_reasoning.or(below.echo_reasoning),
            max_tokens_field: self.max_tokens_field.clone().or_else(|| below.max_tokens_field.clone()),
            stream_options: self.stream_options.or(below.stream_options),
            short_call_ids: self.short_call_ids.or(below.short_call_ids),
            body,
        }
    }
}

/// How long to wait for what. There is no limit on a whole answer: a long one is not a broken one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    pub connect: Duration,
    /// From the request to the first piece of the answer, and between pieces while only keep-alives come.
    pub first_byte: Duration,
    /// Without a single byte, once the answer has begun.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), first_byte: Duration::from_secs(120), idle: Duration::from_secs(60) }
    }
}

/// Everything one model needs to be called.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    /// `provider/model`.
    pub(crate) name: String,
    /// The provider's own name for it.
    pub(crate) model: String,
    pub(crate) limits: foundation::ModelLimits,
    pub(crate) price: Option<Price>,
    pub(crate) quirks: Quirks,
}
