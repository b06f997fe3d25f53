//! Which variables a command sees: a short list, never the daemon's own environment.
//!
//! A key that a provider needs, a socket of the session bus or of systemd, an agent that signs: none of them passes by
//! being there. What people list in their settings passes, save what would hand over the daemon itself.

use std::ffi::{OsStr, OsString};

use protocol::CallId;

/// Set for every command, so that its processes can be told from all others.
pub(crate) const CALL_VARIABLE: &str = "AGENTD_CALL";

const PASSED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];

const NEVER_PASSED: &[&str] =
    &["AGENTD_", "LISTEN_", "NOTIFY_SOCKET", "CREDENTIALS_DIRECTORY", "INVOCATION_ID", "BASH_ENV", "BASH_FUNC_"];

/// The environment of commands, without the mark of the call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessEnv {
    variables: Vec<(OsString, OsString)>,
    /// Stands in the mark of every call, so that what a killed daemon left is known as its own.
    owner: String,
}

impl ProcessEnv {
    /// Takes from the daemon's own variables those on the built-in list and those named in `also`.
    ///
    /// `also` is the user's `env.pass`; names that begin with what only the daemon may have are ignored there.
    #[must_use]
    pub fn new(own: impl IntoIterator<Item = (OsString, OsString)>, also: &[String]) -> Self {
        let mut variables: Vec<_> = own.into_iter().filter(|(name, _)| passes(name, also)).collect();
        variables.sort();
        let mut env = Self { variables, owner: String::new() };
        // Programs that think they have no capable terminal neither colour, page nor open an editor.
        for (name, value) in [("TERM", "dumb"), ("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0")] {
            env.set(name, value);
        }
        if env.get("PATH").is_none() {
            env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
        }
        env
    }

    /// Names the daemon to which the commands belong: its database's epoch.
    #[must_use]
    pub fn owned_by(mut self, owner: &str) -> Self {
        owner.clone_into(&mut self.owner);
        self
    }

    /// A new mark for one call.
    pub(crate) fn mark(&self) -> String {
        format!("{}.{}", self.owner, CallId::new())
    }

    /// Sets one variable, as the user's `env.set` asks. The daemon's own names are ignored.
    pub fn set(&mut self, name: &str, value: impl Into<OsString>) {
        if never_passes(name) {
            return;
        }
        self.variables.retain(|(have, _)| have != OsStr::new(name));
        self.variables.push((name.into(), value.into()));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    fn get(&self, name: &str) -> Option<&OsStr> {
        self.iter().find(|(have, _)| *have == OsStr::new(name)).map(|(_, value)| value)
    }
}

fn passes(name: &OsStr, also: &[String]) -> bool {
    let Some(name) = name.to_str() else { return false };
    let listed = PASSED.contains(&name) || name.starts_with("LC_") || also.iter().any(|other| other == name);
    listed && !never_passes(name)
}

fn never_passes(name: &str) -> bool {
    name.is_empty() || name.contains(['=', '\0']) || NEVER_PASSED.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(own: &[(&str, &str)], also: &[&str], expected: &[&str]) {
        let own = own.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let also: Vec<_> = also.iter().map(ToString::to_string).collect();
        let env = ProcessEnv::new(own, &also);
        let mut names: Vec<_> =
            env.iter().map(|(name, value)| format!("{}={}", name.display(), value.display())).collect();
        names.sort();
        assert_eq!(names, expected);
    }

    const FIXED: [&str; 4] = ["GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "PAGER=cat", "PATH=/bin"];

    #[test]
    fn only_what_is_listed_passes() {
        let [git_pager, prompt, pager, path] = FIXED;
        let own = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("TERM", "xterm"),
            ("ANTHROPIC_API_KEY", "x"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("SSH_AUTH_SOCK", "x"),
            ("DBUS_SESSION_BUS_ADDRESS", "x"),
            ("XDG_RUNTIME_DIR", "x"),
            ("NOTIFY_SOCKET", "x"),
            ("LD_PRELOAD", "x"),
            ("FOO", "x"),
        ];
        check(&own, &[], &[git_pager, prompt, "LC_ALL=C", pager, path, "TERM=dumb"]);
        check(&own, &["FOO"], &["FOO=x", git_pager, prompt, "LC_ALL=C", pager, path, "TERM=dumb"]);
    }

    #[test]
    fn the_daemons_own_never_passes() {
        let [git_pager, prompt, pager, path] = FIXED;
        let names = ["AGENTD_SOCKET", "AGENTD_CALL", "LISTEN_FDS", "NOTIFY_SOCKET", "BASH_ENV"];
        let own: Vec<_> = names.iter().map(|name| (*name, "x")).chain([("PATH", "/bin")]).collect();
        check(&own, &names, &[git_pager, prompt, pager, path, "TERM=dumb"]);
    }

    #[test]
    fn commands_are_found_even_without_a_path() {
        check(&[], &[], &[FIXED[0], FIXED[1], FIXED[2], "PATH=/usr/local/bin:/usr/bin:/bin", "TERM=dumb"]);
    }
}
