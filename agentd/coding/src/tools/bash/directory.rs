//! Where a session's next command runs.
//!
//! Belongs to the session, not to the tool: a new tool for the same session goes on where the old one was.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The shell's directory between calls.
#[derive(Debug)]
pub struct ShellDirectory(Mutex<Standing>);

#[derive(Debug)]
struct Standing {
    at: PathBuf,
    has_moved: bool,
}

impl ShellDirectory {
    /// Starts in `cwd`, an absolute path.
    #[must_use]
    pub fn new(cwd: PathBuf) -> Self {
        Self(Mutex::new(Standing { at: cwd, has_moved: false }))
    }

    /// Where it is now, be it there or not.
    #[must_use]
    pub fn get(&self) -> PathBuf {
        self.lock().at.clone()
    }

    /// Where it is now, if it has moved since this was last asked.
    #[must_use]
    pub fn take_move(&self) -> Option<PathBuf> {
        let mut standing = self.lock();
        std::mem::take(&mut standing.has_moved).then(|| standing.at.clone())
    }

    /// The move is to be told again.
    pub fn put_back_move(&self) {
        self.lock().has_moved = true;
    }

    pub(super) fn set(&self, cwd: PathBuf) {
        let mut standing = self.lock();
        standing.has_moved |= standing.at != cwd;
        standing.at = cwd;
    }

    fn lock(&self) -> MutexGuard<'_, Standing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a command can run, and the remembered directory if that was not it.
    pub(super) fn usable(&self, root: &Path) -> (PathBuf, Option<PathBuf>) {
        let cwd = self.get();
        if cwd.is_dir() { (cwd, None) } else { (root.to_path_buf(), Some(cwd)) }
    }
}
