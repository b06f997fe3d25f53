//! The daemon's environment, read once by `main`, and the model that it asks for.
//!
//! No other place of the settings reads a variable, and no file of a workspace (`.env`, `.envrc`) is ever read into it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

use super::layers::Layer;

/// Presets that are used by themselves when their key is in the environment, the first one wins.
const BY_THEMSELVES: [&str; 2] = ["anthropic", "openai"];
/// What answers when there is no key: everything but the thinking is real.
const OFFLINE: &str = "offline/rules";

/// Variables by name. Shows only the names, since some of the values are keys.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The value of a variable; one that is empty counts as not set.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The first of these variables that is set.
    pub(crate) fn first_set<'a>(&self, names: &'a [String]) -> Option<&'a str> {
        names.iter().map(String::as_str).find(|name| self.get(name).is_some())
    }

    /// All variables in the form in which processes get them. Not all of them are for every process.
    pub fn os(&self) -> impl Iterator<Item = (OsString, OsString)> {
        self.0.iter().map(|(name, value)| (name.into(), value.into()))
    }
}

impl From<BTreeMap<String, String>> for Environment {
    fn from(variables: BTreeMap<String, String>) -> Self {
        Self(variables)
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.0.keys()).finish()
    }
}

/// What the settings need to know about a preset provider.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PresetVariables {
    /// The part of a model's name before the `/`.
    pub name: String,
    /// Such as `ANTHROPIC_API_KEY`, the preferred one first; empty when the provider needs no key.
    pub key: Vec<String>,
    /// Such as `ANTHROPIC_BASE_URL`, the preferred one first.
    pub base_url: Vec<String>,
    /// The model to use when only the provider is known, as `provider/model`.
    pub default_model: Option<String>,
}

/// The model of a session when no settings file names one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DefaultModel {
    /// `provider/model`.
    pub(crate) name: String,
    pub(crate) layer: Layer,
}

impl Default for DefaultModel {
    fn default() -> Self {
        Self { name: OFFLINE.into(), layer: Layer::Default }
    }
}

/// The default model of the preset whose key is in the environment, else the offline model.
pub(crate) fn default_model(env: &Environment, presets: &[PresetVariables]) -> DefaultModel {
    let by_key = BY_THEMSELVES.iter().find_map(|name| {
        let preset = presets.iter().find(|preset| preset.name == *name)?;
        env.first_set(&preset.key)?;
        preset.default_model.clone()
    });
    by_key.map_or_else(DefaultModel::default, |name| DefaultModel { name, layer: Layer::Environment })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preset(name: &str) -> PresetVariables {
        let upper = name.to_uppercase();
        PresetVariables {
            name: name.into(),
            key: vec![format!("{upper}_API_KEY"), format!("{upper}_KEY")],
            base_url: vec![format!("{upper}_BASE_URL")],
            default_model: Some(format!("{name}/best")),
        }
    }

    #[track_caller]
    fn check(vars: &[(&str, &str)], model: &str) {
        let vars: BTreeMap<_, _> = vars.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let env = Environment::from(vars);
        let presets = [preset("groq"), preset("openai"), preset("anthropic")];
        assert_eq!(default_model(&env, &presets).name, model);
    }

    #[test]
    fn a_key_in_the_environment_chooses_the_model_and_no_key_the_offline_one() {
        check(&[], "offline/rules");
        check(&[("OPENAI_API_KEY", "k")], "openai/best");
        check(&[("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")], "anthropic/best");
        check(&[("OPENAI_KEY", "k")], "openai/best");
        check(&[("OPENAI_API_KEY", "")], "offline/rules");
        check(&[("OPENAI_BASE_URL", "http://127.0.0.1")], "offline/rules");
        check(&[("GROQ_API_KEY", "k")], "offline/rules");
    }

    #[test]
    fn an_environment_in_a_log_shows_no_value() {
        let env = Environment::from(BTreeMap::from([("OPENAI_API_KEY".into(), "sk-secret".into())]));
        assert_eq!(format!("{env:?}"), r#"{"OPENAI_API_KEY"}"#);
    }
}
