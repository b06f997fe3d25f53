//! The command as bash gets it: with a last word that tells where it ended.
//!
//! The shell writes its directory to a file when it exits, so `cd` is seen also after `exit 3`, and no descriptor is
//! left open for the command to find. A command that sets its own EXIT trap keeps it; its `cd` then does not count.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use tempfile::NamedTempFile;

/// One command with its place for the answer.
#[derive(Debug)]
pub(super) struct Script {
    text: String,
    answer: NamedTempFile,
}

impl Script {
    pub(super) fn new(command: &str) -> io::Result<Self> {
        let answer = tempfile::Builder::new().prefix("agentd-cwd-").tempfile()?;
        let path = answer.path().to_str().ok_or(io::ErrorKind::InvalidFilename)?;
        // `>|` for `set -C`, `set +x` so that a traced command shows only itself.
        let trap = format!("{{ set +x; builtin pwd -P >|{}; }} 2>/dev/null", quote(path));
        // On the command's own first line, so that the line numbers in error messages are the command's.
        Ok(Self { text: format!("trap -- {} EXIT; {command}", quote(&trap)), answer })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The directory in which the shell ended, if it could say so and it is still there.
    pub(super) fn ended_in(&self) -> Option<PathBuf> {
        let answer = std::fs::read(self.answer.path()).ok()?;
        let path = answer.strip_suffix(b"\n")?;
        let path = PathBuf::from(OsStr::from_bytes(path));
        (path.is_absolute() && path.is_dir()).then_some(path)
    }
}

/// One word that bash takes literally.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_survive_being_quoted() {
        assert_eq!(quote("a'b"), r"'a'\''b'");
    }
}
