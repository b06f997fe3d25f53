//! One daemon for one state directory: a lock on a file, held for as long as the daemon lives.
//!
//! The kernel lets go of it when the process ends, however it ends. Nothing is ever decided by a process id: the one in
//! the file is for people to read.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

/// The lock. Dropping it lets the next daemon in.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// Why there is no lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("{}: another agentd{} holds this lock (hint: use the one that is running, or `agentctl daemon stop`)", .path.display(), .by)]
    AlreadyRunning {
        path: PathBuf,
        /// ` (pid 123)`, as the holder wrote it, or nothing.
        by: String,
    },
    #[error("{}: {source} (hint: the state directory must be yours and writable)", .path.display())]
    Io { path: PathBuf, source: std::io::Error },
}

impl Lock {
    /// Takes the lock without waiting.
    ///
    /// # Errors
    /// `AlreadyRunning` when somebody holds it.
    pub(crate) fn take(path: &Path) -> Result<Self, LockError> {
        let failed = |source| LockError::Io { path: path.into(), source };
        let no_follow = OFlags::NOFOLLOW.bits().cast_signed();
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(no_follow)
            .open(path)
            .map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(LockError::AlreadyRunning { path: path.into(), by: holder(&mut file) });
            }
            Err(error) => return Err(failed(error.into())),
        }
        file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(failed)?;
        Ok(Self { _file: file })
    }
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    match file.read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => format!(" (pid {})", text.trim()),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_daemon_is_told_who_holds_the_lock_and_the_next_one_gets_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agentd.lock");
        let first = Lock::take(&path).unwrap();
        let error = Lock::take(&path).unwrap_err();
        assert!(matches!(error, LockError::AlreadyRunning { .. }));
        assert!(error.to_string().contains(&format!("(pid {})", std::process::id())), "{error}");
        drop(first);
        drop(Lock::take(&path).unwrap());
    }

    #[test]
    fn a_left_over_lock_file_with_a_living_pid_in_it_stops_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agentd.lock");
        std::fs::write(&path, "1\n").unwrap();
        drop(Lock::take(&path).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
    }

    #[test]
    fn a_link_in_place_of_the_lock_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        std::os::unix::fs::symlink(&target, dir.path().join("agentd.lock")).unwrap();
        assert!(matches!(Lock::take(&dir.path().join("agentd.lock")), Err(LockError::Io { .. })));
        assert!(!target.exists());
    }
}
