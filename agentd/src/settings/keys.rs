//! Every settings key, once, with who may set it.
//!
//! The invariant: a key without a row here cannot be set by any file, and a file inside a repository can only make the
//! agent more careful. The rows are the leaves of `model.rs`; a test compares the two.

use serde_json::Value;

/// Who may set a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// Only the user's own file.
    User,
    /// Any file, but a repository's only in the stricter direction.
    Tighten(Stricter),
    /// The user's own file, and a repository's once the user has trusted that repository.
    TrustedProject,
}

/// Which of two values is the more careful one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stricter {
    /// A list of which more is stricter: layers only add.
    More,
    /// The lower number; `null` is no limit at all.
    Lower,
    /// `true`.
    True,
    /// The earlier word.
    Earlier(&'static [&'static str]),
    /// `deny`, then `deny_after` with fewer seconds, then `park`.
    Sooner,
}

/// Whether this version does what a key says. Only who relies on a key needs to know, so a value without an effect is
/// taken, and told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    Built,
    /// Nothing reads it yet.
    NotBuilt,
    /// Nothing reads yet this member of the objects that the key's value consists of.
    NotBuiltInside(&'static str),
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// Dotted, as `agentctl config explain` takes it.
    pub(crate) name: &'static str,
    pub(crate) scope: Scope,
    pub(crate) effect: Effect,
}

const fn user(name: &'static str) -> Key {
    Key { name, scope: Scope::User, effect: Effect::Built }
}

const fn trusted(name: &'static str) -> Key {
    Key { name, scope: Scope::TrustedProject, effect: Effect::Built }
}

const fn tighten(name: &'static str, stricter: Stricter) -> Key {
    Key { name, scope: Scope::Tighten(stricter), effect: Effect::Built }
}

impl Key {
    const fn not_built(self) -> Self {
        Self { effect: Effect::NotBuilt, ..self }
    }

    const fn not_built_inside(self, member: &'static str) -> Self {
        Self { effect: Effect::NotBuiltInside(member), ..self }
    }

    /// What a person must know who relies on this key.
    pub(crate) fn without_effect(&self) -> Option<String> {
        match self.effect {
            Effect::Built => None,
            Effect::NotBuilt => Some("no effect in this version".into()),
            Effect::NotBuiltInside(member) => Some(format!("`{member}` in it has no effect in this version")),
        }
    }

    /// The name of what `value` sets here without an effect.
    pub(crate) fn idle(&self, value: &Value) -> Option<String> {
        match self.effect {
            Effect::Built => None,
            Effect::NotBuilt => Some(self.name.into()),
            Effect::NotBuiltInside(member) => {
                let is_there = value.as_object()?.values().any(|inner| inner.get(member).is_some());
                is_there.then(|| format!("{}.*.{member}", self.name))
            }
        }
    }
}

/// In the order in which people are shown them.
pub(crate) const KEYS: &[Key] = &[
    trusted("model"),
    user("providers").not_built_inside("retries"),
    tighten("mode", Stricter::Earlier(&["plan", "ask", "accept-edits", "auto", "bypass"])),
    trusted("permissions.allow"),
    tighten("permissions.ask", Stricter::More),
    tighten("permissions.deny", Stricter::More),
    trusted("permissions.additionalDirectories").not_built(),
    tighten("sandbox.enabled", Stricter::True).not_built(),
    tighten("sandbox.network", Stricter::Earlier(&["off", "on"])).not_built(),
    user("sandbox.allowHosts").not_built(),
    user("env.pass"),
    user("env.set"),
    tighten("noClient", Stricter::Sooner),
    tighten("approvals.expireAfterSecs", Stricter::Lower),
    tighten("resume.policy", Stricter::Earlier(&["never", "ask", "auto"])),
    tighten("resume.maxAgeSecs", Stricter::Lower),
    tighten("limits.maxSteps", Stricter::Lower),
    tighten("limits.parallelTools", Stricter::Lower),
    tighten("limits.bashTimeoutSecs", Stricter::Lower),
    user("limits.sessionsInMemory"),
    tighten("budget.turnUsd", Stricter::Lower).not_built(),
    tighten("budget.sessionUsd", Stricter::Lower).not_built(),
    tighten("budget.dayUsd", Stricter::Lower).not_built(),
    trusted("compaction.auto").not_built(),
    trusted("compaction.at").not_built(),
    trusted("compaction.target").not_built(),
    tighten("context.fileMaxBytes", Stricter::Lower).not_built(),
    trusted("todos.remindAfterSteps"),
    user("web.allowHosts"),
    trusted("hooks").not_built(),
    trusted("mcpServers").not_built(),
    user("notify.command").not_built(),
];

/// The row of a key.
pub(crate) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// True when `name` is the common beginning of several keys, such as `limits`.
pub(crate) fn is_section(name: &str) -> bool {
    KEYS.iter().any(|key| key.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
}

/// The known name that looks most like `name`, if one comes near; both are dotted.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    let names = KEYS.iter().flat_map(|key| [Some(key.name), key.name.split_once('.').map(|(section, _)| section)]);
    closest(name, names.flatten())
}

/// The candidate that looks most like `name`, if one comes near.
pub(crate) fn closest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|candidate| (strsim::jaro_winkler(&name.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, candidate)| candidate)
}

impl Stricter {
    /// Whether `proposed` is at least as careful as `current`. Both have the key's type.
    pub(crate) fn holds(self, current: &Value, proposed: &Value) -> bool {
        match self {
            Self::More => true,
            Self::Lower => match (current.as_f64(), proposed.as_f64()) {
                (Some(current), Some(proposed)) => proposed <= current,
                (None, _) => true,
                (Some(_), None) => false,
            },
            Self::True => proposed.as_bool() == Some(true) || current.as_bool() == Some(false),
            Self::Earlier(words) => {
                let rank = |value: &Value| words.iter().position(|word| value.as_str() == Some(*word));
                rank(proposed).is_some() && rank(proposed) <= rank(current)
            }
            Self::Sooner => match (seconds_to_denial(current), seconds_to_denial(proposed)) {
                (None, _) => true,
                (Some(current), Some(proposed)) => proposed <= current,
                (Some(_), None) => false,
            },
        }
    }

    /// The direction in words, for the reason why a value was ignored.
    pub(crate) fn describe(self) -> String {
        match self {
            Self::More => "only add to it".into(),
            Self::Lower => "only lower it".into(),
            Self::True => "only switch it on".into(),
            Self::Earlier(words) => format!("only move it towards `{}`", words.first().copied().unwrap_or_default()),
            Self::Sooner => "only move it towards `deny`".into(),
        }
    }
}

/// How long a request for consent waits before it is refused; `None` for ever.
fn seconds_to_denial(policy: &Value) -> Option<u64> {
    match policy.as_str()? {
        "deny" => Some(0),
        other => other.strip_prefix("deny_after:")?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::settings::model::Settings;

    /// Collects the dotted names of the leaves that no row covers.
    fn uncovered(prefix: &str, value: &Value, out: &mut Vec<String>) {
        if find(prefix).is_some() {
            return;
        }
        match value {
            Value::Object(section) if prefix.is_empty() || !section.is_empty() => {
                for (name, value) in section {
                    let dot = if prefix.is_empty() { "" } else { "." };
                    uncovered(&format!("{prefix}{dot}{name}"), value, out);
                }
            }
            _ => out.push(prefix.to_owned()),
        }
    }

    #[test]
    fn every_key_of_the_file_has_a_scope() {
        let mut missing = vec![];
        uncovered("", &serde_json::to_value(Settings::default()).unwrap(), &mut missing);
        assert_eq!(missing, Vec::<String>::new(), "add a row to KEYS for each");
    }

    #[test]
    fn every_row_is_a_key_of_the_file() {
        let defaults = serde_json::to_value(Settings::default()).unwrap();
        for key in KEYS {
            let pointer = format!("/{}", key.name.replace('.', "/"));
            assert!(defaults.pointer(&pointer).is_some(), "{} is no key of Settings", key.name);
        }
    }

    #[track_caller]
    fn check(name: &str, current: &Value, proposed: &Value, stricter: bool) {
        let Scope::Tighten(direction) = find(name).unwrap().scope else { panic!("{name} has no direction") };
        assert_eq!(direction.holds(current, proposed), stricter, "{name}: {current} to {proposed}");
    }

    #[test]
    fn a_repository_can_only_tighten() {
        for (name, strict, loose) in [
            ("mode", json!("plan"), json!("ask")),
            ("mode", json!("auto"), json!("bypass")),
            ("sandbox.enabled", json!(true), json!(false)),
            ("sandbox.network", json!("off"), json!("on")),
            ("noClient", json!("deny"), json!("park")),
            ("noClient", json!("deny_after:5"), json!("deny_after:6")),
            ("noClient", json!("deny_after:5"), json!("park")),
            ("approvals.expireAfterSecs", json!(60), json!(null)),
            ("resume.policy", json!("never"), json!("auto")),
            ("limits.maxSteps", json!(5), json!(6)),
            ("budget.dayUsd", json!(0.5), json!(null)),
        ] {
            check(name, &loose, &strict, true);
            check(name, &strict, &strict, true);
            check(name, &strict, &loose, false);
        }
    }

    #[test]
    fn a_misspelt_key_finds_its_nearest_name() {
        assert_eq!(nearest("permisions"), Some("permissions"));
        assert_eq!(nearest("limits.maxstep"), Some("limits.maxSteps"));
        assert_eq!(nearest("zzz"), None);
    }
}
