//! The providers that settings and environment name, as plain data for whoever builds them, and where their keys are.
//!
//! A key is read only when it is needed and lives only in a `SecretString`. What a field leaves open, the preset of the
//! same name decides. Knows no provider.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use secrecy::SecretString;

use super::environment::{Environment, PresetVariables};
use super::model::{Api, ApiKey, ModelEntry, Provider, Settings};

/// The longest key file, in bytes.
const MAX_KEY_BYTES: u64 = 64 * 1024;

/// One provider.
#[derive(Clone, PartialEq, Debug)]
pub struct ProviderConfig {
    /// The part of a model's name before the `/`.
    pub name: String,
    /// Absent: the preset of this name knows.
    pub api: Option<Api>,
    /// Absent: the preset of this name knows. Without a `/` at its end.
    pub base_url: Option<String>,
    pub key: KeySource,
    /// May hold secrets: never to be logged.
    pub headers: BTreeMap<String, String>,
    /// By the part of the name after the `/`; beside what the preset knows.
    pub models: BTreeMap<String, ModelEntry>,
    pub timeouts: ProviderTimeouts,
    pub max_retries: u32,
}

/// How long to wait for a provider.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProviderTimeouts {
    pub connect: Duration,
    pub first_byte: Duration,
    /// Between two pieces of an answer.
    pub idle: Duration,
}

/// Where a key is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeySource {
    /// The provider needs none, or nothing says where it is.
    None,
    /// A variable of the daemon's environment.
    Env(String),
    /// As in the settings: absolute, or below `~/`.
    File(String),
    Command(Vec<String>),
}

impl KeySource {
    /// Reads the key; `None` when the provider needs none.
    ///
    /// # Errors
    /// A sentence that names the variable or file and the next step, never any part of the key.
    pub fn resolve(&self, env: &Environment) -> Result<Option<SecretString>, String> {
        let (key, place) = match self {
            Self::None => return Ok(None),
            Self::Env(name) => {
                let missing = || {
                    // Whoever has set it in a shell wonders why that is not enough.
                    let hint = "set it where agentd itself starts; agentctl passes on the names of known providers \
                                and AGENTD_*";
                    format!("{name} is not set in the daemon's environment (hint: {hint})")
                };
                (env.get(name).ok_or_else(missing)?.to_owned(), name.clone())
            }
            Self::File(path) => {
                let path = expand(path, env)?;
                (
                    read_key(&path).map_err(|error| format!("key file {}: {error}", path.display()))?,
                    path.display().to_string(),
                )
            }
            Self::Command(_) => return Err("apiKey.command is not built yet (hint: use env or file)".into()),
        };
        let key = SecretString::from(key.trim());
        let bytes = secrecy::ExposeSecret::expose_secret(&key).as_bytes();
        if bytes.is_empty() || !bytes.iter().all(u8::is_ascii_graphic) {
            return Err(format!("{place} holds no key: one line of visible ASCII is expected"));
        }
        Ok(Some(key))
    }
}

/// All providers that the settings name, then every preset whose key or address is in the environment.
pub(crate) fn providers(settings: &Settings, env: &Environment, presets: &[PresetVariables]) -> Vec<ProviderConfig> {
    let preset_of = |name: &str| presets.iter().find(|preset| preset.name == name);
    let named = settings.providers.iter().map(|(name, entry)| config(name, entry, preset_of(name), env));
    let is_asked_for =
        |preset: &&PresetVariables| env.first_set(&preset.key).is_some() || env.first_set(&preset.base_url).is_some();
    let by_environment = presets
        .iter()
        .filter(|preset| !settings.providers.contains_key(&preset.name))
        .filter(is_asked_for)
        .map(|preset| config(&preset.name, &Provider::default(), Some(preset), env));
    named.chain(by_environment).collect()
}

fn config(name: &str, entry: &Provider, preset: Option<&PresetVariables>, env: &Environment) -> ProviderConfig {
    let from_env = || env.get(env.first_set(&preset?.base_url)?).map(str::to_owned);
    // With no variable set there is no key: a local server works without, another provider says what to set.
    let preset_key = || {
        let variable = preset.and_then(|preset| env.first_set(&preset.key));
        variable.map_or(KeySource::None, |variable| KeySource::Env(variable.to_owned()))
    };
    let seconds = Duration::from_secs;
    ProviderConfig {
        name: name.into(),
        api: entry.api,
        base_url: entry.base_url.clone().or_else(from_env).map(|url| url.trim_end_matches('/').to_owned()),
        key: entry.api_key.as_ref().map_or_else(preset_key, source),
        headers: entry.headers.clone(),
        models: entry.models.clone(),
        timeouts: ProviderTimeouts {
            connect: seconds(entry.timeouts.connect_secs),
            first_byte: seconds(entry.timeouts.first_byte_secs),
            idle: seconds(entry.timeouts.idle_secs),
        },
        max_retries: entry.retries.max,
    }
}

fn source(key: &ApiKey) -> KeySource {
    match key {
        ApiKey::Env(name) => KeySource::Env(name.clone()),
        ApiKey::File(path) => KeySource::File(path.clone()),
        ApiKey::Command(command) => KeySource::Command(command.clone()),
    }
}

fn expand(path: &str, env: &Environment) -> Result<PathBuf, String> {
    let full = match path.strip_prefix("~/") {
        Some(rest) => Path::new(env.get("HOME").ok_or("HOME is not set, so ~/ means nothing")?).join(rest),
        None => PathBuf::from(path),
    };
    if full.is_absolute() {
        Ok(full)
    } else {
        Err(format!("key file {path}: the path must be absolute or begin with ~/"))
    }
}

/// Reads a file that nobody but the user can read.
fn read_key(path: &Path) -> Result<String, String> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|error| error.to_string())?;
    // Asked of the open file, so that it cannot be another one than the one that is read.
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("is not a regular file".into());
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err("belongs to another user; a key file must be your own".into());
    }
    if metadata.mode() & 0o077 != 0 {
        let mode = metadata.mode() & 0o777;
        return Err(format!("others may read it (mode {mode:o}); run chmod 600 on it"));
    }
    let mut text = String::new();
    file.take(MAX_KEY_BYTES).read_to_string(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

#[cfg(test)]
mod tests;
