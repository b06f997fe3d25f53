//! Where a session's next command runs.
//!
//! Belongs to the session, not to the tool: a new tool for the same session goes on where the old one was.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The shell's directory between calls.
#[derive(Debug)]
pub struct ShellDirectory(Mutex<PathBuf>);

impl ShellDirectory {
    /// Starts in `cwd`, an absolute path.
    #[must_use]
    pub fn new(cwd: PathBuf) -> Self {
        Self(Mutex::new(cwd))
    }

    /// Where it is now, be it there or not.
    #[must_use]
    pub fn get(&self) -> PathBuf {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, cwd: PathBuf) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = cwd;
    }

    /// Where a command can run, and the remembered directory if that was not it.
    pub(super) fn usable(&self, root: &Path) -> (PathBuf, Option<PathBuf>) {
        let cwd = self.get();
        if cwd.is_dir() { (cwd, None) } else { (root.to_path_buf(), Some(cwd)) }
    }
}
