//! Defaults, user, project, project-local: one on top of the other, as far as each may.
//!
//! Pure: takes what the files hold, gives the settings and, for each key, where its value comes from and what was
//! ignored. No file of a repository is trusted here; it can only tighten.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::api::ConfigValue;
use serde_json::Value;

use super::file::{Contents, Entry, pointer};
use super::keys::{KEYS, Key, Scope};
use super::model::Settings;

/// Where a value comes from, the weakest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Layer {
    Default,
    Environment,
    User,
    Project,
    Local,
}

impl Layer {
    /// As `config/explain` says it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Environment => "environment",
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
        }
    }
}

/// One file that could be read.
#[derive(Clone, Debug)]
pub(crate) struct LayerFile {
    pub(crate) layer: Layer,
    pub(crate) path: PathBuf,
    pub(crate) contents: Arc<Contents>,
}

/// The settings while layers are being put on.
pub(crate) struct Merge {
    tree: Value,
    origins: BTreeMap<&'static str, Origin>,
}

#[derive(Clone, Debug)]
struct Origin {
    layer: Layer,
    ignored: Vec<String>,
}

impl Merge {
    /// Only the defaults, with the model that the environment asks for.
    pub(crate) fn new(model: &str, layer: Layer) -> Self {
        let defaults = Settings { model: model.into(), ..Settings::default() };
        let origin = |key: &Key| Origin {
            layer: if key.name == "model" { layer } else { Layer::Default },
            ignored: key.without_effect().into_iter().collect(),
        };
        let origins = KEYS.iter().map(|key| (key.name, origin(key))).collect();
        // The type has no map with other keys than strings and no number that JSON lacks: this cannot fail.
        Self { tree: serde_json::to_value(defaults).unwrap_or_default(), origins }
    }

    /// Puts one file on top, as far as it may; gives the number of its values that were ignored.
    pub(crate) fn add(&mut self, file: &LayerFile) -> usize {
        let mut ignored = 0;
        for entry in &file.contents.entries {
            let refusal = if file.layer == Layer::User { None } else { self.refusal(entry) };
            match refusal {
                None => self.apply(entry, file.layer),
                Some(reason) => {
                    ignored += 1;
                    self.ignore(entry, &file.path, &reason);
                }
            }
        }
        ignored
    }

    /// Why a file in a repository may not say this.
    fn refusal(&self, entry: &Entry) -> Option<String> {
        match KEYS.iter().find(|key| key.name == entry.key)?.scope {
            Scope::User => Some("only user settings may set it".into()),
            Scope::TrustedProject => Some("this repository is not trusted".into()),
            Scope::Tighten(direction) => {
                let current = self.tree.pointer(&pointer(entry.key)).unwrap_or(&Value::Null);
                let allowed = direction.holds(current, &entry.value);
                (!allowed).then(|| format!("a repository may {}", direction.describe()))
            }
        }
    }

    fn ignore(&mut self, entry: &Entry, path: &Path, reason: &str) {
        if let Some(origin) = self.origins.get_mut(entry.key) {
            origin.ignored.push(format!("{} line {}: {reason}", path.display(), entry.at.line));
        }
    }

    fn apply(&mut self, entry: &Entry, layer: Layer) {
        let Some(slot) = self.tree.pointer_mut(&pointer(entry.key)) else { return };
        match (slot, &entry.value) {
            (Value::Array(list), Value::Array(more)) if entry.key.starts_with("permissions.") => {
                let mut seen: HashSet<Value> = list.iter().cloned().collect();
                list.extend(more.iter().filter(|item| seen.insert((*item).clone())).cloned());
            }
            (slot, value) => merge(slot, value),
        }
        if let Some(origin) = self.origins.get_mut(entry.key) {
            origin.layer = layer;
        }
    }

    /// The result, and how each key came to its value. With `closed`, the reason why everything asks, no permission of
    /// any layer counts.
    pub(crate) fn finish(mut self, closed: Option<&str>) -> (Settings, Vec<ConfigValue>) {
        let whole = serde_json::from_value::<Settings>(self.tree.clone());
        // Each value was checked alone; should two of them not go together after all, nothing is permitted.
        let broken = whole.as_ref().err().map(ToString::to_string);
        let mut settings = whole.unwrap_or_default();
        if let Some(reason) = closed.or(broken.as_deref()) {
            settings.close();
            self.note_what_closing_took(&settings, reason);
        }
        self.tree = serde_json::to_value(&settings).unwrap_or_default();
        let values = KEYS.iter().map(|key| self.explain(key.name)).collect();
        (settings, values)
    }

    fn note_what_closing_took(&mut self, settings: &Settings, reason: &str) {
        let after = serde_json::to_value(settings).unwrap_or_default();
        for (key, origin) in &mut self.origins {
            if self.tree.pointer(&pointer(key)) != after.pointer(&pointer(key)) {
                origin.layer = Layer::Default;
                origin.ignored.push(format!("everything asks: {reason}"));
            }
        }
    }

    fn explain(&self, key: &'static str) -> ConfigValue {
        let mut value = self.tree.pointer(&pointer(key)).cloned().unwrap_or_default();
        if key == "providers" {
            hide_headers(&mut value);
        }
        let origin = self.origins.get(key);
        ConfigValue {
            key: key.into(),
            value,
            layer: origin.map_or(Layer::Default, |origin| origin.layer).name().into(),
            ignored: origin.map(|origin| origin.ignored.clone()).unwrap_or_default(),
        }
    }
}

/// Objects member by member; anything else is replaced.
fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (name, value) in over {
                merge(base.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over.clone(),
    }
}

/// A header often is a key; who asks for the settings need not see it.
fn hide_headers(providers: &mut Value) {
    for provider in providers.as_object_mut().into_iter().flat_map(serde_json::Map::values_mut) {
        for header in provider["headers"].as_object_mut().into_iter().flat_map(serde_json::Map::values_mut) {
            *header = "(hidden)".into();
        }
    }
}
