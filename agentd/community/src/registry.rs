//! From `provider/model` to a model that can be called.
//!
//! Presets say what is known of the usual providers; the settings' entries override them or add others. Reads neither
//! environment nor files: keys and addresses are passed in.

mod preset;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use foundation::{Model, ModelLimits};
use protocol::api::ModelInfo;

use crate::anthropic::{self, Anthropic};
use crate::config::{Api, ModelConfig, Profile, ProviderConfig, Quirks};
use crate::http::{Endpoint, Http};
use crate::offline::Offline;
use crate::openai::{self, Openai};
pub use preset::{Preset, presets};

/// What a model that nothing is known of is taken to hold.
const DEFAULT_CONTEXT_WINDOW: u64 = 128_000;

/// The model that needs nothing.
const OFFLINE: &str = "offline/rules";

/// Why a model cannot be had.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message} (hint: {hint})")]
pub struct ProviderError {
    pub kind: ProviderErrorKind,
    pub message: String,
    /// The next step.
    pub hint: String,
}

/// The kinds that need different next steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProviderErrorKind {
    /// No provider of this name, or a name that is not `provider/model`.
    Unknown,
    /// The provider is known, its key is missing.
    NotReady,
    /// The settings of this provider are wrong.
    Invalid,
}

/// All providers that can be named.
#[derive(Debug)]
pub struct Providers {
    providers: BTreeMap<String, Provider>,
    default_model: String,
}

#[derive(Debug)]
struct Provider {
    config: ProviderConfig,
    quirks: Quirks,
    needs_key: bool,
    key_env: Vec<String>,
    default_model: Option<String>,
    /// One pool of connections, made with the first model.
    http: Mutex<Option<Arc<Http>>>,
}

impl Providers {
    /// Presets overridden and completed by `entries`. `default_model` is the one from the settings; without it, it is
    /// that of the first preset whose key was passed in, else the offline model.
    #[must_use]
    pub fn new(entries: Vec<ProviderConfig>, default_model: Option<String>) -> Self {
        let mut providers = BTreeMap::new();
        let mut order = Vec::new();
        for preset in presets() {
            order.push(preset.name.clone());
            providers.insert(preset.name.clone(), Provider::from(preset));
        }
        for entry in entries {
            if !providers.contains_key(&entry.name) {
                order.push(entry.name.clone());
            }
            providers.entry(entry.name.clone()).or_insert_with(|| Provider::named(&entry.name)).merge(entry);
        }
        let keyed = order.iter().filter_map(|name| {
            let provider = &providers[name];
            let model = provider.default_model.as_ref().filter(|_| provider.config.key.is_some())?;
            Some(format!("{name}/{model}"))
        });
        let default_model = default_model.or_else(|| keyed.into_iter().next()).unwrap_or_else(|| OFFLINE.into());
        Self { providers, default_model }
    }

    /// The model that a new session gets, as `provider/model`.
    #[must_use]
    pub fn default_model(&self) -> &str {
        &self.default_model
    }

    /// The model of that name. A model that the provider is not known to have is allowed, with default limits.
    ///
    /// # Errors
    /// Names the nearest providers, or the key that is missing, or the setting that is wrong.
    pub fn model(&self, name: &str) -> Result<Arc<dyn Model>, ProviderError> {
        let (provider, model) = name
            .split_once('/')
            .filter(|(_, model)| !model.is_empty())
            .ok_or_else(|| self.unknown(name, format!("model `{name}` is not of the form provider/model")))?;
        let Some(provider) = self.providers.get(provider) else {
            return Err(self.unknown(provider, format!("there is no provider `{provider}`")));
        };
        provider.model(model)
    }

    fn unknown(&self, name: &str, message: String) -> ProviderError {
        let wanted = name.split('/').next().unwrap_or(name);
        let mut near: Vec<_> =
            self.providers.keys().map(|known| (strsim::damerau_levenshtein(wanted, known), known.as_str())).collect();
        near.sort_unstable();
        let of_models = self.providers.iter().filter(|(_, provider)| provider.config.models.contains_key(name));
        let mut names: Vec<_> = of_models.map(|(provider, _)| format!("{provider}/{name}")).collect();
        if names.is_empty() {
            names.extend(near.iter().take(3).map(|(_, name)| (*name).to_owned()));
        }
        let hint = format!("nearest: {}", names.join(", "));
        ProviderError { kind: ProviderErrorKind::Unknown, message, hint }
    }

    /// Every model that is known by name and the default one, and whether it can be called now.
    #[must_use]
    pub fn list(&self) -> Vec<ModelInfo> {
        let known = self.providers.iter().flat_map(|(name, provider)| {
            provider.config.models.keys().map(move |model| (name.as_str(), model.as_str()))
        });
        let names: BTreeSet<_> = known.chain(self.default_model.split_once('/')).collect();
        names.into_iter().filter_map(|(name, model)| Some(self.info(self.providers.get(name)?, model))).collect()
    }

    fn info(&self, provider: &Provider, model: &str) -> ModelInfo {
        let name = format!("{}/{model}", provider.config.name);
        let limits = provider.limits(model);
        ModelInfo {
            default: name == self.default_model,
            name,
            api: provider.config.api.map(Api::as_str).unwrap_or_default().into(),
            context_window: limits.context_window,
            max_output: limits.max_output,
            ready: provider.is_ready(),
        }
    }
}

impl Provider {
    fn named(name: &str) -> Self {
        Self {
            config: ProviderConfig { name: name.into(), ..ProviderConfig::default() },
            quirks: Quirks::default(),
            needs_key: false,
            key_env: Vec::new(),
            default_model: None,
            http: Mutex::default(),
        }
    }

    fn from(preset: Preset) -> Self {
        let config = ProviderConfig {
            name: preset.name,
            api: Some(preset.api),
            base_url: Some(preset.base_url),
            models: preset.models,
            ..ProviderConfig::default()
        };
        Self {
            config,
            quirks: preset.quirks,
            needs_key: !preset.local,
            key_env: preset.key_env,
            default_model: preset.default_model,
            http: Mutex::default(),
        }
    }

    fn merge(&mut self, entry: ProviderConfig) {
        let config = &mut self.config;
        // Another address is another server, which may want no key.
        self.needs_key &= entry.base_url.is_none();
        config.api = entry.api.or(config.api);
        config.base_url = entry.base_url.or(config.base_url.take());
        config.key = entry.key.or(config.key.take());
        config.timeouts = entry.timeouts.or(config.timeouts);
        config.headers.extend(entry.headers);
        config.models.extend(entry.models);
    }

    /// A header may hold the key in another form.
    fn is_ready(&self) -> bool {
        self.config.key.is_some() || !self.config.headers.is_empty() || !self.needs_key
    }

    fn limits(&self, model: &str) -> ModelLimits {
        let known = self.config.models.get(model);
        ModelLimits {
            context_window: known.and_then(|known| known.context_window).unwrap_or(DEFAULT_CONTEXT_WINDOW),
            max_output: known.and_then(|known| known.max_output),
        }
    }

    fn model(&self, model: &str) -> Result<Arc<dyn Model>, ProviderError> {
        let name = &self.config.name;
        if !self.is_ready() {
            let message = format!("provider `{name}` has no key");
            let hint = format!("set {}, or `providers.{name}.apiKey` in the settings", self.key_env.join(" or "));
            return Err(ProviderError { kind: ProviderErrorKind::NotReady, message, hint });
        }
        let Some(api) = self.config.api else {
            return Err(self.invalid("it has no `api`", "say `api`: anthropic, openai or offline"));
        };
        let known = self.config.models.get(model);
        let profile = Profile {
            name: format!("{name}/{model}"),
            model: model.into(),
            limits: self.limits(model),
            price: known.and_then(|known| known.price),
            quirks: known.map(|ModelConfig { quirks, .. }| quirks).unwrap_or(&Quirks::default()).over(&self.quirks),
        };
        Ok(match api {
            Api::Anthropic => Arc::new(Anthropic { profile, http: self.http(api)? }),
            Api::Openai => Arc::new(Openai { profile, http: self.http(api)? }),
            Api::Offline => Arc::new(Offline::new(profile).map_err(|(fact, hint)| self.invalid(&fact, hint))?),
        })
    }

    fn http(&self, api: Api) -> Result<Arc<Http>, ProviderError> {
        let mut pool = self.http.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(http) = &*pool {
            return Ok(Arc::clone(http));
        }
        let config = &self.config;
        let Some(base_url) = config.base_url.as_deref().filter(|url| !url.is_empty()) else {
            return Err(self.invalid("it has no `baseUrl`", "say where its API is"));
        };
        let (url, mut headers) = match api {
            Api::Anthropic => (anthropic::url(base_url), anthropic::headers(config.key.clone())),
            Api::Openai | Api::Offline => (openai::url(base_url), openai::headers(config.key.as_ref())),
        };
        headers.extend(config.headers.clone());
        let timeouts = config.timeouts.unwrap_or_default();
        let endpoint = Endpoint { provider: config.name.clone(), url, headers, timeouts };
        let http = Http::new(endpoint).map_err(|fact| self.invalid(&fact, "correct it in the settings"))?;
        Ok(Arc::clone(pool.insert(Arc::new(http))))
    }

    fn invalid(&self, fact: &str, hint: &str) -> ProviderError {
        let message = format!("provider `{}`: {fact}", self.config.name);
        ProviderError { kind: ProviderErrorKind::Invalid, message, hint: hint.into() }
    }
}

#[cfg(test)]
mod tests;
