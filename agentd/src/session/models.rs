//! From settings to models: the providers that are in force, rebuilt when the user's settings change.
//!
//! The one place where a key is read, and it goes from there straight to its provider.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use community::{ModelConfig, Providers};
use foundation::Model;
use protocol::api::ModelInfo;
use protocol::{ErrorKind, RpcError};
use tokio::sync::watch;

use crate::settings::model::Api;
use crate::settings::{Loaded, PresetVariables, ProviderConfig, Settings, SettingsSource};

/// The models that can be named now.
#[derive(Debug)]
pub(crate) struct Models {
    source: Arc<SettingsSource>,
    user: watch::Receiver<Arc<Loaded>>,
    built: Mutex<Option<(Arc<Loaded>, Arc<Providers>)>>,
}

impl Models {
    pub(crate) fn new(source: Arc<SettingsSource>, user: watch::Receiver<Arc<Loaded>>) -> Self {
        Self { source, user, built: Mutex::default() }
    }

    /// # Errors
    /// `not_found` for a name that no provider has, `provider_error` for one whose key or settings are missing.
    pub(crate) fn get(&self, name: &str) -> Result<Arc<dyn Model>, RpcError> {
        let provider = name.split('/').next().unwrap_or_default();
        if self.user.borrow().settings.providers.get(provider).is_some_and(|it| it.api == Some(Api::OpenAiResponses)) {
            return Err(RpcError::new(
                ErrorKind::ProviderError,
                format!("provider `{provider}` speaks openai-responses, which this version does not"),
                "set its `api` to \"openai\" if it also speaks chat completions",
            ));
        }
        self.providers().model(name).map_err(|error| {
            let kind = match error.kind {
                community::ProviderErrorKind::Unknown => ErrorKind::NotFound,
                community::ProviderErrorKind::NotReady | community::ProviderErrorKind::Invalid => {
                    ErrorKind::ProviderError
                }
            };
            RpcError::new(kind, error.message, error.hint)
        })
    }

    pub(crate) fn user_settings(&self) -> Settings {
        self.user.borrow().settings.clone()
    }

    pub(crate) fn list(&self) -> Vec<ModelInfo> {
        self.providers().list()
    }

    fn providers(&self) -> Arc<Providers> {
        let loaded = Arc::clone(&self.user.borrow());
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, providers)) = &*built
            && Arc::ptr_eq(of, &loaded)
        {
            return Arc::clone(providers);
        }
        let configs = self.source.providers(&loaded.settings);
        let entries = configs.into_iter().map(|config| self.entry(config)).collect();
        let providers = Arc::new(Providers::new(entries, Some(loaded.settings.model.clone())));
        *built = Some((loaded, Arc::clone(&providers)));
        providers
    }

    fn entry(&self, config: ProviderConfig) -> community::ProviderConfig {
        // A key that cannot be read is no key: the provider says which one is missing when it is called.
        let key = config.key.resolve(self.source.environment()).unwrap_or_else(|error| {
            tracing::warn!(provider = config.name, error, "no key");
            None
        });
        let timeouts = config.timeouts;
        community::ProviderConfig {
            name: config.name,
            api: config.api.and_then(api),
            base_url: config.base_url,
            key,
            headers: config.headers.into_iter().map(|(name, value)| (name, value.into())).collect(),
            models: config.models.iter().map(|(name, entry)| (name.clone(), model(entry))).collect(),
            timeouts: Some(community::Timeouts {
                connect: timeouts.connect,
                first_byte: timeouts.first_byte,
                idle: timeouts.idle,
            }),
        }
    }
}

/// Which variables the presets look at, for the settings to say where a value comes from.
pub(crate) fn preset_variables() -> Vec<PresetVariables> {
    community::presets()
        .into_iter()
        .map(|preset| PresetVariables {
            key: preset.key_env,
            base_url: preset.base_url_env,
            default_model: preset.default_model.map(|model| format!("{}/{model}", preset.name)),
            name: preset.name,
        })
        .collect()
}

fn api(api: Api) -> Option<community::Api> {
    match api {
        Api::Anthropic => Some(community::Api::Anthropic),
        Api::OpenAi => Some(community::Api::Openai),
        Api::Offline => Some(community::Api::Offline),
        Api::OpenAiResponses => None,
    }
}

/// Both sides read the same form; what one does not know, the other has already refused.
fn model(entry: &crate::settings::model::ModelEntry) -> ModelConfig {
    serde_json::to_value(entry)
        .ok()
        .and_then(|value| {
            let given: BTreeMap<String, serde_json::Value> = serde_json::from_value(value).ok()?;
            let given = given.into_iter().filter(|(_, value)| !value.is_null());
            serde_json::from_value(serde_json::Value::Object(given.collect())).ok()
        })
        .unwrap_or_default()
}
