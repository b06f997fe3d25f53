//! The providers that need no more than a key: one data file.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::config::{Api, ModelConfig, Quirks};

/// One well-known provider.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Preset {
    pub name: String,
    pub api: Api,
    pub base_url: String,
    /// Environment variables that may hold the key, best first.
    pub key_env: Vec<String>,
    /// Environment variables that may hold another base URL, best first.
    pub base_url_env: Vec<String>,
    /// Needs no key.
    #[serde(default)]
    pub local: bool,
    #[serde(default)]
    pub default_model: Option<String>,
    #[serde(default)]
    pub quirks: Quirks,
    pub models: BTreeMap<String, ModelConfig>,
}

/// All presets, in the order in which the first one with a key becomes the default.
#[must_use]
pub fn presets() -> Vec<Preset> {
    // The file is part of the program and a test reads it, so that there is no error to report here.
    serde_json::from_str(include_str!("../../presets.json")).unwrap_or_default()
}
