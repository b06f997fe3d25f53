//! The settings file as types, and every default.
//!
//! A key that is not here does not exist; where a key may be set is said in `keys.rs`. Numbers carry their unit in
//! their name. Knows nothing about files or layers.

use std::collections::BTreeMap;

use protocol::session::{Mode, NoClientPolicy, ResumePolicy};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// Declares sections of the file: camelCase, every key may be left out, an unknown one is an error.
macro_rules! sections {
    ($($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident: $ty:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", default, deny_unknown_fields)]
        pub struct $name { $($(#[$fdoc])* pub $field: $ty,)* }
    )*};
}

sections! {
    /// All settings of one session, or of the daemon when no session is meant.
    Settings {
        /// `provider/model`.
        #[serde(deserialize_with = "model_name")]
        model: String,
        providers: BTreeMap<String, Provider>,
        mode: Mode,
        permissions: Permissions,
        sandbox: Sandbox,
        env: Env,
        no_client: NoClientPolicy,
        approvals: Approvals,
        resume: Resume,
        limits: Limits,
        budget: Budget,
        compaction: Compaction,
        context: Context,
        todos: Todos,
        web: Web,
        hooks: Map<String, Value>,
        mcp_servers: Map<String, Value>,
        notify: Notify,
        /// True while a settings file has an error and no good version of it is known: then nothing runs without a
        /// person's yes, whatever the other fields say.
        #[serde(skip)]
        fail_closed: bool,
    }
    /// Overrides parts of the preset of the same name, or describes a provider of its own.
    Provider {
        api: Option<Api>,
        #[serde(deserialize_with = "base_url")]
        base_url: Option<String>,
        api_key: Option<ApiKey>,
        headers: BTreeMap<String, String>,
        models: BTreeMap<String, ModelEntry>,
        timeouts: Timeouts,
        retries: Retries,
    }
    ModelEntry {
        /// Tokens.
        #[serde(deserialize_with = "some_positive")]
        context_window: Option<u64>,
        /// Tokens.
        #[serde(deserialize_with = "some_positive")]
        max_output: Option<u64>,
        price: Option<Price>,
        quirks: Map<String, Value>,
    }
    /// US dollars for a million tokens.
    Price {
        #[serde(deserialize_with = "rate")]
        input: f64,
        #[serde(deserialize_with = "rate")]
        output: f64,
        /// As `input` if absent.
        #[serde(deserialize_with = "dollars")]
        cache_read: Option<f64>,
        /// As `input` if absent.
        #[serde(deserialize_with = "dollars")]
        cache_write: Option<f64>,
    }
    Timeouts {
        #[serde(deserialize_with = "positive")]
        connect_secs: u64,
        #[serde(deserialize_with = "positive")]
        first_byte_secs: u64,
        #[serde(deserialize_with = "positive")]
        idle_secs: u64,
    }
    Retries {
        max: u32,
    }
    /// Rules of the form `tool(pattern)`; deny goes before ask, ask before allow, whatever the layer.
    Permissions {
        allow: Vec<String>,
        ask: Vec<String>,
        deny: Vec<String>,
        additional_directories: Vec<String>,
    }
    Sandbox {
        enabled: bool,
        network: Network,
        /// Hosts that sandboxed commands may reach although the network is off.
        allow_hosts: Vec<String>,
    }
    /// What tool processes get beside the built-in list.
    Env {
        /// Names of variables of the daemon's environment.
        pass: Vec<String>,
        set: BTreeMap<String, String>,
    }
    /// What happens to a turn that was running when the daemon died.
    Resume {
        policy: ResumePolicy,
        max_age_secs: u64,
    }
    Limits {
        /// Model calls in one turn.
        #[serde(deserialize_with = "positive")]
        max_steps: u64,
        /// Tools of one answer that run at the same time.
        #[serde(deserialize_with = "positive")]
        parallel_tools: u64,
        #[serde(deserialize_with = "positive")]
        bash_timeout_secs: u64,
        #[serde(deserialize_with = "positive")]
        sessions_in_memory: u64,
    }
    /// Requests for consent.
    Approvals {
        /// How long one stays open; `null` is for ever.
        expire_after_secs: Option<u64>,
    }
    /// US dollars; `null` is no limit.
    Budget {
        #[serde(deserialize_with = "dollars")]
        turn_usd: Option<f64>,
        #[serde(deserialize_with = "dollars")]
        session_usd: Option<f64>,
        #[serde(deserialize_with = "dollars")]
        day_usd: Option<f64>,
    }
    /// Shares of the context window.
    Compaction {
        auto: bool,
        #[serde(deserialize_with = "share")]
        at: f64,
        #[serde(deserialize_with = "share")]
        target: f64,
    }
    Context {
        file_max_bytes: u64,
    }
    Todos {
        #[serde(deserialize_with = "positive")]
        remind_after_steps: u64,
    }
    Web {
        /// Hosts that may be fetched from though they are not on the open internet.
        allow_hosts: Vec<String>,
    }
    Notify {
        /// Program and arguments; empty for none.
        command: Vec<String>,
    }
}

/// The wire format of a provider.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    Anthropic,
    #[serde(rename = "openai")]
    OpenAi,
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    Offline,
}

/// Where a provider's key is. The key itself never stands in a settings file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum ApiKey {
    /// Name of a variable in the daemon's environment.
    Env(String),
    /// A file that only the user can read; absolute, or below `~/`.
    File(String),
    /// Program and arguments; its first line of output is the key.
    Command(Vec<String>),
}

/// Whether sandboxed commands reach the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    Off,
    On,
}

/// Implements `Default` where it is not the empty value of each field. The defaults of the file stand here and nowhere
/// else.
macro_rules! defaults {
    ($($name:ident { $($field:ident: $value:expr),* $(,)? })*) => {$(
        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $value),* }
            }
        }
    )*};
}

defaults! {
    Settings {
        model: "offline/rules".into(),
        providers: BTreeMap::new(),
        mode: Mode::Ask,
        permissions: Permissions::default(),
        sandbox: Sandbox::default(),
        env: Env::default(),
        no_client: NoClientPolicy::Park,
        approvals: Approvals::default(),
        resume: Resume::default(),
        limits: Limits::default(),
        budget: Budget::default(),
        compaction: Compaction::default(),
        context: Context::default(),
        todos: Todos::default(),
        web: Web::default(),
        hooks: Map::new(),
        mcp_servers: Map::new(),
        notify: Notify::default(),
        fail_closed: false,
    }
    Provider {
        api: None,
        base_url: None,
        api_key: None,
        headers: BTreeMap::new(),
        models: BTreeMap::new(),
        timeouts: Timeouts::default(),
        retries: Retries::default(),
    }
    ModelEntry { context_window: None, max_output: None, price: None, quirks: Map::new() }
    Price { input: 0.0, output: 0.0, cache_read: None, cache_write: None }
    Timeouts { connect_secs: 10, first_byte_secs: 120, idle_secs: 60 }
    Retries { max: 4 }
    Permissions { allow: vec![], ask: vec![], deny: vec![], additional_directories: vec![] }
    Sandbox { enabled: true, network: Network::Off, allow_hosts: vec![] }
    Env { pass: vec![], set: BTreeMap::new() }
    Approvals { expire_after_secs: None }
    Resume { policy: ResumePolicy::Ask, max_age_secs: 900 }
    Limits { max_steps: 100, parallel_tools: 8, bash_timeout_secs: 120, sessions_in_memory: 64 }
    Budget { turn_usd: None, session_usd: None, day_usd: None }
    Compaction { auto: true, at: 0.85, target: 0.55 }
    Context { file_max_bytes: 65_536 }
    Todos { remind_after_steps: 10 }
    Web { allow_hosts: vec![] }
    Notify { command: vec![] }
}

impl Settings {
    /// Takes away everything that lets something run without asking. What forbids stays.
    pub(crate) fn close(&mut self) {
        self.fail_closed = true;
        self.permissions.allow.clear();
        self.permissions.additional_directories.clear();
        self.sandbox = Sandbox::default();
        if self.mode != Mode::Plan {
            self.mode = Mode::Ask;
        }
    }
}

/// Reads a value of `T` and refuses it, with the sentence, unless `good` holds.
fn checked<'de, D, T>(input: D, good: impl Fn(&T) -> bool, sentence: &str) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let value = T::deserialize(input)?;
    if good(&value) { Ok(value) } else { Err(serde::de::Error::custom(sentence)) }
}

fn positive<'de, D: Deserializer<'de>>(input: D) -> Result<u64, D::Error> {
    checked(input, |value| *value > 0, "must be at least 1")
}

fn some_positive<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u64>, D::Error> {
    checked(input, |value| *value != Some(0), "must be at least 1")
}

fn share<'de, D: Deserializer<'de>>(input: D) -> Result<f64, D::Error> {
    checked(input, |value| *value > 0.0 && *value <= 1.0, "must be more than 0 and at most 1")
}

fn rate<'de, D: Deserializer<'de>>(input: D) -> Result<f64, D::Error> {
    checked(input, |usd| *usd >= 0.0, "must not be negative")
}

fn dollars<'de, D: Deserializer<'de>>(input: D) -> Result<Option<f64>, D::Error> {
    checked(input, |value: &Option<f64>| value.is_none_or(|usd| usd >= 0.0), "must not be negative")
}

fn model_name<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    let good = |name: &String| name.split_once('/').is_some_and(|(left, right)| !left.is_empty() && !right.is_empty());
    checked(input, good, "must be `provider/model`, such as `anthropic/claude-sonnet-5`")
}

fn base_url<'de, D: Deserializer<'de>>(input: D) -> Result<Option<String>, D::Error> {
    let good = |url: &Option<String>| url.as_deref().is_none_or(is_base_url);
    checked(input, good, "must be an http:// or https:// address without a name or password in it")
}

/// True for `http(s)://host…` without credentials: those would end up in logs.
pub(crate) fn is_base_url(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        !host.is_empty() && !host.contains('@') && !url.contains(|c: char| c.is_whitespace() || c.is_control())
    })
}
