//! What the session has read and written, so that it never writes over what it has not seen.
//!
//! Goes by content and not by time: a `touch` is no change, and a change within one tick of the clock is one. Keys are
//! real paths, so that two links to one file are one file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use foundation::{ErrorCode, ToolError};

/// The content that a session last saw of each file.
#[derive(Default, Debug)]
pub struct FileState {
    seen: Mutex<Seen>,
    writing: Mutex<()>,
}

#[derive(Default, Debug)]
struct Seen {
    now: HashMap<PathBuf, blake3::Hash>,
    /// What has changed since it was last asked for.
    changed: HashMap<PathBuf, Option<blake3::Hash>>,
}

impl FileState {
    /// Nothing read yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What an earlier life of the session had seen, as [`FileState::take_changes`] gave it.
    #[must_use]
    pub fn restored(entries: impl IntoIterator<Item = (PathBuf, blake3::Hash)>) -> Self {
        let seen = Seen { now: entries.into_iter().collect(), changed: HashMap::new() };
        Self { seen: Mutex::new(seen), writing: Mutex::default() }
    }

    /// What has changed since this was last asked: the content that was seen, `None` for a file that is no more.
    #[must_use]
    pub fn take_changes(&self) -> Vec<(PathBuf, Option<blake3::Hash>)> {
        std::mem::take(&mut lock(&self.seen).changed).into_iter().collect()
    }

    /// Those changes are to be told again, unless there are newer ones.
    pub fn put_back(&self, changes: Vec<(PathBuf, Option<blake3::Hash>)>) {
        let mut seen = lock(&self.seen);
        for (path, hash) in changes {
            seen.changed.entry(path).or_insert(hash);
        }
    }

    /// Takes note of the whole content that was read from, or written to, a real path.
    pub fn note(&self, real: &Path, content: blake3::Hash) {
        let mut seen = lock(&self.seen);
        if seen.now.insert(real.to_path_buf(), content) != Some(content) {
            seen.changed.insert(real.to_path_buf(), Some(content));
        }
    }

    /// The file is no more.
    pub fn forget(&self, real: &Path) {
        let mut seen = lock(&self.seen);
        if seen.now.remove(real).is_some() {
            seen.changed.insert(real.to_path_buf(), None);
        }
    }

    /// Whether the session knows exactly this content of the file.
    ///
    /// # Errors
    /// `NotRead` when it never saw the file, `Stale` when the file has changed since. `shown` names it in the text.
    pub fn check_fresh(&self, real: &Path, shown: &str, current: &[u8]) -> Result<(), ToolError> {
        match lock(&self.seen).now.get(real) {
            None => Err(ToolError::new(
                ErrorCode::NotRead,
                format!("{shown} exists but this session has not read it"),
                "Read the file first, then repeat the call so that it fits what is there.",
            )),
            Some(known) if *known != blake3::hash(current) => Err(stale(shown)),
            Some(_) => Ok(()),
        }
    }

    /// A file or a folder is somewhere else now; what was seen of it was seen there.
    pub(crate) fn moved(&self, from: &Path, to: &Path) {
        let known: Vec<(PathBuf, blake3::Hash)> = {
            let seen = lock(&self.seen);
            let below = |(path, hash): (&PathBuf, &blake3::Hash)| path.starts_with(from).then(|| (path.clone(), *hash));
            seen.now.iter().filter_map(below).collect()
        };
        self.forget(to);
        for (path, hash) in known {
            self.forget(&path);
            let rest = path.strip_prefix(from).unwrap_or(Path::new(""));
            self.note(&if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) }, hash);
        }
    }

    /// Held by whoever checks files and then writes them, so that two calls on one file cannot interleave.
    pub(crate) fn exclusive(&self) -> MutexGuard<'_, ()> {
        lock(&self.writing)
    }
}

/// Somebody else has changed the file.
pub(crate) fn stale(shown: &str) -> ToolError {
    ToolError::new(
        ErrorCode::Stale,
        format!("{shown} has changed since it was read; nothing was written"),
        "Read the file again and keep the other change, then repeat the call.",
    )
}

/// A panic elsewhere leaves the map whole: every change to it is one insertion or one removal.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_content_that_was_seen_is_fresh() {
        let state = FileState::new();
        let path = Path::new("/w/a");
        let code = |state: &FileState, bytes: &[u8]| state.check_fresh(path, "a", bytes).map_err(|error| error.code);
        assert_eq!(code(&state, b"one"), Err(ErrorCode::NotRead));
        state.note(path, blake3::hash(b"one"));
        assert_eq!(code(&state, b"one"), Ok(()));
        assert_eq!(code(&state, b"two"), Err(ErrorCode::Stale));
        let kept = state.take_changes();
        let kept = kept.into_iter().filter_map(|(path, hash)| Some((path, hash?)));
        assert_eq!(code(&FileState::restored(kept), b"one"), Ok(()));
        assert!(state.take_changes().is_empty(), "told once");
        state.forget(path);
        assert_eq!(state.take_changes(), [(path.to_owned(), None)]);
        assert_eq!(code(&state, b"one"), Err(ErrorCode::NotRead));
    }
}
