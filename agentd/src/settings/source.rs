//! Answers "which settings does a session in this directory get, and why".
//!
//! Owns the last good version of every file it has read: a file that breaks later keeps its old meaning, and one that
//! was broken from the start closes everything. Blocks on the file system; call it where that is allowed.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use protocol::api::{ConfigExplained, ConfigFile, ConfigValue};
use protocol::socket::Homes;
use serde_json::Value;

use super::environment::{DefaultModel, Environment, PresetVariables, default_model};
use super::file::{self, Contents, Problem};
use super::keys;
use super::layers::{Layer, LayerFile, Merge};
use super::model::Settings;
use super::providers::{ProviderConfig, providers};

/// Files whose last good version is kept; beyond it some are forgotten, which makes them ask, never permit.
const MAX_REMEMBERED: usize = 512;
/// Problems of one file that are told; a file can have thousands.
const MAX_TOLD: usize = 5;

/// Where settings come from.
#[derive(Debug)]
pub struct SettingsSource {
    config: PathBuf,
    home: Option<PathBuf>,
    env: Environment,
    presets: Vec<PresetVariables>,
    model: DefaultModel,
    last_good: Mutex<HashMap<PathBuf, Arc<Contents>>>,
}

/// The settings for one directory, or the user's own when no directory is meant.
#[derive(Clone, PartialEq, Debug)]
pub struct Loaded {
    pub settings: Settings,
    /// Each key with its value and where that comes from.
    pub values: Vec<ConfigValue>,
    /// The files that were looked for, and what became of each.
    pub files: Vec<ConfigFile>,
    /// What a person should be told: broken files, unknown and ignored keys.
    pub notices: Vec<String>,
}

/// What one file contributes.
struct Taken {
    contents: Arc<Contents>,
    state: String,
    notices: Vec<String>,
    /// The reason why nothing is permitted while the file is like this.
    closed: Option<String>,
}

impl SettingsSource {
    /// `home_dir` is the border above which no project root is looked for. `variables` is the daemon's environment.
    #[must_use]
    pub fn new(homes: Homes, home_dir: Option<PathBuf>, variables: BTreeMap<String, String>) -> Self {
        Self {
            config: homes.config,
            home: home_dir,
            env: Environment::from(variables),
            presets: vec![],
            model: DefaultModel::default(),
            last_good: Mutex::default(),
        }
    }

    /// Knows these providers beside those that the settings name, and lets a key in the environment choose the model.
    #[must_use]
    pub fn with_presets(self, presets: Vec<PresetVariables>) -> Self {
        Self { model: default_model(&self.env, &presets), presets, ..self }
    }

    /// What the daemon was started with, for reading keys.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.env
    }

    /// All providers that the settings name, then every preset whose key or address is in the environment.
    #[must_use]
    pub fn providers(&self, settings: &Settings) -> Vec<ProviderConfig> {
        providers(settings, &self.env, &self.presets)
    }

    /// The user's settings file.
    #[must_use]
    pub fn user_file(&self) -> PathBuf {
        self.config.join("settings.json")
    }

    /// Reads the user's file, and with a `cwd` those of its project, and puts them together. Never fails: what is
    /// wrong stands in the result.
    #[must_use]
    pub fn load(&self, cwd: Option<&Path>) -> Loaded {
        let mut paths = vec![(Layer::User, self.user_file())];
        if let Some(cwd) = cwd {
            let folder = project_root(cwd, self.home.as_deref()).join(".agentd");
            paths.push((Layer::Project, folder.join("settings.json")));
            paths.push((Layer::Local, folder.join("settings.local.json")));
        }
        let mut merge = Merge::new(&self.model.name, self.model.layer);
        let (mut files, mut notices, mut closed) = (vec![], vec![], None);
        for (layer, path) in paths {
            let taken = self.take(layer, &path);
            notices.extend(taken.notices.iter().map(|notice| format!("{}: {notice}", path.display())));
            closed = closed.or_else(|| taken.closed.map(|reason| format!("{}: {reason}", path.display())));
            notices.extend(idle(&taken.contents).map(|what| format!("{}: {what}", path.display())));
            let ignored = merge.add(&LayerFile { layer, path: path.clone(), contents: taken.contents });
            if ignored > 0 {
                let hint = "see what and why with `agentctl config explain`";
                notices.push(format!("{}: {ignored} values are ignored; {hint}", path.display()));
            }
            files.push(ConfigFile { path, layer: layer.name().into(), state: taken.state });
        }
        let (settings, values) = merge.finish(closed.as_deref());
        Loaded { settings, values, files, notices }
    }

    /// One key, one section or one value inside a key, such as `providers.local.baseUrl`; everything without a `key`.
    ///
    /// # Errors
    /// A sentence that names the nearest known key.
    pub fn explain(&self, key: Option<&str>, cwd: Option<&Path>) -> Result<ConfigExplained, String> {
        let Loaded { values, files, .. } = self.load(cwd);
        let Some(key) = key else { return Ok(ConfigExplained { values, files }) };
        let is_below = |name: &str| name.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'));
        let exact: Vec<_> = values.iter().filter(|value| value.key == key || is_below(&value.key)).cloned().collect();
        if !exact.is_empty() {
            return Ok(ConfigExplained { values: exact, files });
        }
        let inside = values.iter().find_map(|outer| {
            let rest = key.strip_prefix(outer.key.as_str())?.strip_prefix('.')?;
            Some((outer, drill(&outer.value, rest)))
        });
        match inside {
            Some((outer, Some(value))) => {
                let value = ConfigValue { key: key.into(), value: value.clone(), ..outer.clone() };
                Ok(ConfigExplained { values: vec![value], files })
            }
            Some((outer, None)) => Err(format!("`{}` is not set in `{}`", file::shown(key), outer.key)),
            None => {
                let key = file::shown(key);
                let near = keys::nearest(&key).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                Err(format!("`{key}` is no settings key{near}"))
            }
        }
    }

    fn take(&self, layer: Layer, path: &Path) -> Taken {
        let text = match file::read(path) {
            Ok(Some(text)) => text,
            Ok(None) => {
                self.remember(path, None);
                return Taken { contents: Arc::default(), state: "absent".into(), notices: vec![], closed: None };
            }
            Err(problem) => return self.fall_back(path, &[problem], Contents::default()),
        };
        let contents = match file::parse(&text) {
            Ok(contents) => contents,
            Err(problem) => return self.fall_back(path, &[problem], Contents::default()),
        };
        let mut errors = contents.errors.clone();
        // A misspelt key of the user may be a denial that is missing now. A repository's may be of a newer version.
        let mut unknown = contents.unknown.clone();
        if layer == Layer::User {
            errors.append(&mut unknown);
        }
        if !errors.is_empty() {
            return self.fall_back(path, &errors, contents);
        }
        let contents = Arc::new(contents);
        self.remember(path, Some(Arc::clone(&contents)));
        let notices = if unknown.is_empty() { vec![] } else { vec![format!("ignored: {}", listed(&unknown))] };
        Taken { contents, state: "loaded".into(), notices, closed: None }
    }

    /// The last good version of a broken file; without one, what is sound of it, and nothing is permitted.
    fn fall_back(&self, path: &Path, problems: &[Problem], sound: Contents) -> Taken {
        let wrong = listed(problems);
        let good = self.remembered(path);
        let meanwhile = if good.is_some() {
            "until it is fixed, its last good version stays in force"
        } else {
            "until it is fixed, everything asks"
        };
        let notice = format!("{wrong}; {meanwhile}");
        let closed = good.is_none().then(|| wrong.clone());
        let contents = good.unwrap_or_else(|| Arc::new(sound));
        Taken { contents, state: notice.clone(), notices: vec![notice], closed }
    }

    fn remembered(&self, path: &Path) -> Option<Arc<Contents>> {
        self.last_good.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned()
    }

    fn remember(&self, path: &Path, contents: Option<Arc<Contents>>) {
        let mut last_good = self.last_good.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(contents) = contents else {
            last_good.remove(path);
            return;
        };
        if last_good.len() >= MAX_REMEMBERED && !last_good.contains_key(path) {
            let user = self.user_file();
            let other = last_good.keys().find(|known| **known != user).cloned();
            other.map(|other| last_good.remove(&other));
        }
        last_good.insert(path.to_owned(), contents);
    }
}

/// The root of the project that `cwd` is in: the nearest folder upward with a `.git`, else `cwd` itself. Never above
/// `home`. Symlinks are resolved.
#[must_use]
pub fn project_root(cwd: &Path, home: Option<&Path>) -> PathBuf {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let cwd = real(cwd);
    let home = home.map(real);
    for folder in cwd.ancestors() {
        if folder.join(".git").symlink_metadata().is_ok() {
            return folder.to_owned();
        }
        if home.as_deref() == Some(folder) {
            break;
        }
    }
    cwd
}

/// The value at a dotted path whose names may hold dots themselves, as model names do.
fn drill<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    value.as_object()?.iter().find_map(|(name, value)| {
        let rest = path.strip_prefix(name.as_str())?;
        if rest.is_empty() { Some(value) } else { drill(value, rest.strip_prefix('.')?) }
    })
}

/// Names what a file sets that nothing reads yet: nobody may believe that it holds.
fn idle(contents: &Contents) -> Option<String> {
    let name = |entry: &file::Entry| Some(format!("`{}`", keys::find(entry.key)?.idle(&entry.value)?));
    let names: Vec<_> = contents.entries.iter().filter_map(name).collect();
    let has = if names.len() == 1 { "has" } else { "have" };
    (!names.is_empty()).then(|| format!("{} {has} no effect in this version", names.join(", ")))
}

fn listed(problems: &[Problem]) -> String {
    let told: Vec<_> = problems.iter().take(MAX_TOLD).map(ToString::to_string).collect();
    let rest = if problems.len() > MAX_TOLD { "; and more" } else { "" };
    format!("{}{rest}", told.join("; "))
}

#[cfg(test)]
mod tests;
