//! Where the socket is. Client and daemon must agree, so the answer stands here once.

use std::path::{Path, PathBuf};

/// The longest path that a Unix socket address can hold, in bytes, on Linux (`unix(7)`: 108 with the final NUL).
pub const MAX_PATH_BYTES: usize = 107;

/// The keys and base URLs of the providers that agentd knows by itself, as their services name them.
///
/// A client that starts the daemon hands it these variables, `PATH`, `HOME`, `LANG`, and what begins with `XDG_` or
/// `AGENTD_`, and nothing else of its own environment: the daemon outlives the shell that it was started from, and
/// whatever else is secret there is none of its business.
pub const PROVIDER_VARIABLES: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENROUTER_API_KEY",
    "OPENROUTER_BASE_URL",
    "DEEPSEEK_API_KEY",
    "DEEPSEEK_BASE_URL",
    "MOONSHOT_API_KEY",
    "MOONSHOT_BASE_URL",
    "ZAI_API_KEY",
    "ZHIPU_API_KEY",
    "ZAI_BASE_URL",
    "DASHSCOPE_API_KEY",
    "DASHSCOPE_BASE_URL",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GEMINI_BASE_URL",
    "GROQ_API_KEY",
    "GROQ_BASE_URL",
    "MISTRAL_API_KEY",
    "MISTRAL_BASE_URL",
    "OLLAMA_API_KEY",
    "OLLAMA_BASE_URL",
    "LMSTUDIO_API_KEY",
    "LMSTUDIO_BASE_URL",
    "VLLM_API_KEY",
    "VLLM_BASE_URL",
    "LLAMACPP_API_KEY",
    "LLAMACPP_BASE_URL",
];

/// What the environment says, read once by `main`.
#[derive(Clone, Default, Debug)]
pub struct Homes {
    /// `$AGENTD_SOCKET`.
    pub socket: Option<PathBuf>,
    /// `$XDG_RUNTIME_DIR`.
    pub runtime: Option<PathBuf>,
    /// `$AGENTD_STATE_HOME`, or `agentd` under `$XDG_STATE_HOME`, or under `~/.local/state`.
    pub state: PathBuf,
    /// `$AGENTD_CONFIG_HOME`, or `agentd` under `$XDG_CONFIG_HOME`, or under `~/.config`.
    pub config: PathBuf,
}

impl Homes {
    /// Reads the variables through `var`, which answers `None` for one that is not set.
    ///
    /// Empty and relative values count as not set, as the XDG specification asks.
    ///
    /// # Errors
    /// A sentence when neither the variables nor `HOME` tell where things are.
    pub fn from_env(var: impl Fn(&str) -> Option<PathBuf>) -> Result<Self, String> {
        let path = |name: &str| var(name).filter(|path| path.is_absolute());
        let home = |ours: &str, xdg: &str, below: &str| {
            path(ours)
                .or_else(|| path(xdg).map(|base| base.join("agentd")))
                .or_else(|| path("HOME").map(|home| home.join(below).join("agentd")))
                .ok_or_else(|| format!("neither {ours}, {xdg} nor HOME is set to an absolute path (hint: set HOME)"))
        };
        Ok(Self {
            socket: path("AGENTD_SOCKET"),
            runtime: path("XDG_RUNTIME_DIR"),
            state: home("AGENTD_STATE_HOME", "XDG_STATE_HOME", ".local/state")?,
            config: home("AGENTD_CONFIG_HOME", "XDG_CONFIG_HOME", ".config")?,
        })
    }

    /// The socket: `explicit`, else `$AGENTD_SOCKET`, else under the runtime directory, else under the state home.
    #[must_use]
    pub fn socket_path(&self, explicit: Option<&Path>) -> PathBuf {
        explicit
            .map(Path::to_path_buf)
            .or_else(|| self.socket.clone())
            .or_else(|| self.runtime.as_ref().map(|dir| dir.join("agentd/agentd.sock")))
            .unwrap_or_else(|| self.state.join("run/agentd.sock"))
    }
}

/// Refuses a path that no socket address can hold, with the way out.
///
/// # Errors
/// A sentence with the path, its length and what to set.
pub fn check_length(path: &Path) -> Result<(), String> {
    let length = path.as_os_str().len();
    if length <= MAX_PATH_BYTES {
        return Ok(());
    }
    Err(format!(
        "socket path {} has {length} bytes, a Unix socket can have {MAX_PATH_BYTES} (hint: set AGENTD_SOCKET or \
         --socket to a shorter path in a directory that only you can enter)",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(vars: &[(&str, &str)], socket: &str) {
        let lookup = |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| PathBuf::from(value));
        assert_eq!(Homes::from_env(lookup).unwrap().socket_path(None), Path::new(socket));
    }

    #[test]
    fn the_socket_is_found_in_the_order_of_the_protocol() {
        let home = ("HOME", "/h");
        check(&[home], "/h/.local/state/agentd/run/agentd.sock");
        check(&[home, ("XDG_STATE_HOME", "/s")], "/s/agentd/run/agentd.sock");
        check(&[home, ("XDG_RUNTIME_DIR", "/run/user/1")], "/run/user/1/agentd/agentd.sock");
        check(&[home, ("XDG_RUNTIME_DIR", "")], "/h/.local/state/agentd/run/agentd.sock");
        check(&[home, ("XDG_RUNTIME_DIR", "/run/user/1"), ("AGENTD_SOCKET", "/x/s")], "/x/s");
        check(&[home, ("AGENTD_STATE_HOME", "/mine")], "/mine/run/agentd.sock");
    }

    #[test]
    fn a_path_over_the_limit_says_so_and_names_the_way_out() {
        assert!(check_length(Path::new(&"a".repeat(107))).is_ok());
        let error = check_length(Path::new(&"a".repeat(108))).unwrap_err();
        assert!(error.contains("108 bytes") && error.contains("AGENTD_SOCKET"), "{error}");
    }
}
