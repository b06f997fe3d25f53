//! Replaces a file's content as one step: after a crash or on a full disk there is the old file or the new one.
//!
//! Works on real paths, whose links were followed before, and holds the directory open: a link put into the path
//! meanwhile makes the write fail. A failed write leaves no temporary file.

use std::fs::{File, Metadata};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use foundation::failpoint;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, RenameFlags, XattrFlags};
use rustix::io::Errno;

use crate::paths::open_directory;

const MAX_ATTEMPTS: u32 = 100;
/// How the names of temporary files begin and end.
const PREFIX: &str = ".agentd-";
const SUFFIX: &str = ".tmp";
/// Without it the group bits of the mode, which then are the list's mask, would become the group's rights.
const ACCESS_LIST: &str = "system.posix_acl_access";
const MAX_ACCESS_LIST_BYTES: usize = 16 * 1024;

/// What must stand at the path for the write to go on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expect<'a> {
    Nothing,
    /// The file that was read, unchanged.
    Same(&'a Metadata),
    Anything,
}

#[derive(thiserror::Error, Debug)]
pub(crate) enum WriteError {
    #[error("changed meanwhile")]
    Changed,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<Errno> for WriteError {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

/// Writes the whole content and makes it durable. Mode, owner and access list are those of `like`, or the umask's.
pub(crate) fn replace(
    real: &Path,
    bytes: &[u8],
    like: Option<&Metadata>,
    expect: Expect<'_>,
) -> Result<(), WriteError> {
    let (dir, name) = split(real)?;
    let mut temporary = Temporary::create(&dir, like.is_some())?;
    temporary.file.write_all(bytes)?;
    failpoint::check("file.written")?;
    if let Some(like) = like {
        adopt(&temporary.file, real, like)?;
    }
    temporary.file.sync_all()?;
    failpoint::check("file.synced")?;
    match expect {
        Expect::Nothing => temporary.link_as(name)?,
        Expect::Same(old) => {
            check_same(&dir, name, old)?;
            rustix::fs::renameat(&dir, &temporary.name, &dir, name)?;
        }
        Expect::Anything => rustix::fs::renameat(&dir, &temporary.name, &dir, name)?,
    }
    temporary.placed = true;
    failpoint::hit("file.placed");
    drop(temporary);
    sync(&dir, real);
    Ok(())
}

/// Removes a file that is still the one that was read.
pub(crate) fn remove(real: &Path, expect: Expect<'_>) -> Result<(), WriteError> {
    let (dir, name) = split(real)?;
    if let Expect::Same(old) = expect {
        check_same(&dir, name, old)?;
    }
    rustix::fs::unlinkat(&dir, name, AtFlags::empty())?;
    sync(&dir, real);
    Ok(())
}

/// Moves a file or a folder; `replaced` is the file that it takes the place of, unchanged. `Changed` when something else
/// stands there.
pub(crate) fn rename(from: &Path, to: &Path, replaced: Option<&Metadata>) -> Result<(), WriteError> {
    let ((old, name), (new, new_name)) = (split(from)?, split(to)?);
    match replaced {
        Some(replaced) => {
            check_same(&new, new_name, replaced)?;
            rustix::fs::renameat(&old, name, &new, new_name)?;
        }
        None => match rustix::fs::renameat_with(&old, name, &new, new_name, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => return Err(WriteError::Changed),
            // Some file systems do not know the flag.
            Err(Errno::INVAL | Errno::NOSYS) if to.symlink_metadata().is_err() => {
                rustix::fs::renameat(&old, name, &new, new_name)?;
            }
            renamed => renamed?,
        },
    }
    failpoint::hit("file.placed");
    sync(&new, to);
    sync(&old, from);
    Ok(())
}

/// The change has happened by now, and some file systems cannot do this: so it is told, but no error.
fn sync(dir: &File, real: &Path) {
    if let Err(error) = dir.sync_all() {
        tracing::warn!(path = %real.display(), %error, "directory not synced");
    }
}

/// Creates what is missing above `real`, and says what that was, outermost first.
pub(crate) fn create_parents(real: &Path) -> io::Result<Vec<PathBuf>> {
    let mut missing = Vec::new();
    let mut at = real.parent();
    while let Some(dir) = at.filter(|dir| !dir.is_dir()) {
        missing.push(dir.to_path_buf());
        at = dir.parent();
    }
    missing.reverse();
    let mut created = Vec::new();
    for dir in missing {
        match std::fs::create_dir(&dir) {
            Ok(()) => created.push(dir),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
            Err(error) => {
                remove_created(&created);
                return Err(error);
            }
        }
    }
    Ok(created)
}

/// Takes directories away again, as far as they are still empty.
pub(crate) fn remove_created(created: &[PathBuf]) {
    for dir in created.iter().rev() {
        // One that somebody has put something into stays, and so do those above it.
        if std::fs::remove_dir(dir).is_err() {
            return;
        }
    }
}

fn split(real: &Path) -> io::Result<(File, &std::ffi::OsStr)> {
    let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    };
    Ok((open_directory(parent)?, name))
}

fn check_same(dir: &File, name: &std::ffi::OsStr, old: &Metadata) -> Result<(), WriteError> {
    let now = match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(now) => now,
        Err(Errno::NOENT) => return Err(WriteError::Changed),
        Err(error) => return Err(error.into()),
    };
    let same = now.st_ino == old.ino()
        && now.st_dev == old.dev()
        && i128::from(now.st_size) == i128::from(old.size())
        && i128::from(now.st_mtime) == i128::from(old.mtime())
        && i128::from(now.st_mtime_nsec) == i128::from(old.mtime_nsec());
    if same { Ok(()) } else { Err(WriteError::Changed) }
}

/// Owner first, because changing it clears the set-id bits.
fn adopt(file: &File, real: &Path, like: &Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if own.uid() != like.uid() || own.gid() != like.gid() {
        // Allowed to few; a file of another owner then becomes the session's, which the plan has said.
        let _refused = std::os::unix::fs::fchown(file, Some(like.uid()), Some(like.gid()))
            .or_else(|_| std::os::unix::fs::fchown(file, None, Some(like.gid())));
    }
    file.set_permissions(std::fs::Permissions::from_mode(like.mode() & 0o7777))?;
    let mut list = vec![0; MAX_ACCESS_LIST_BYTES];
    if let Ok(length) = rustix::fs::lgetxattr(real, ACCESS_LIST, &mut list[..])
        && let Some(list) = list.get(..length)
    {
        rustix::fs::fsetxattr(file, ACCESS_LIST, list, XattrFlags::empty())?;
    }
    Ok(())
}

/// Removes the temporary files that a crash has left in a directory. One that cannot be removed harms nobody.
pub(crate) fn sweep(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let is_ours = |name: &str| name.starts_with(PREFIX) && name.ends_with(SUFFIX);
        let left_over = entry.file_name().to_str().filter(|name| is_ours(name)).and_then(|_| left_over(&entry.path()));
        if let Some(_held) = left_over {
            let removed = std::fs::remove_file(entry.path());
            tracing::info!(path = %entry.path().display(), ?removed, "a temporary file was left over");
        }
    }
}

/// A temporary file that nobody holds any more, held now: its maker does to the end, and lets go of it by its death.
fn left_over(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok().then_some(file)
}

/// A file beside its destination, gone again unless it was placed.
struct Temporary<'a> {
    dir: &'a File,
    name: String,
    file: File,
    placed: bool,
}

impl<'a> Temporary<'a> {
    fn create(dir: &'a File, private: bool) -> io::Result<Self> {
        // Private until the old file's own mode is set; a new file is the umask's from the start.
        let mode = Mode::from_raw_mode(if private { 0o600 } else { 0o666 });
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let tick = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |now| now.as_nanos());
        for attempt in 0..MAX_ATTEMPTS {
            let name = format!("{PREFIX}{}-{tick:x}-{attempt}{SUFFIX}", std::process::id());
            match rustix::fs::openat(dir, &name, flags, mode) {
                // Whoever sweeps here may take it away before it is held.
                Ok(fd) if hold(&fd) => return Ok(Self { dir, name, file: File::from(fd), placed: false }),
                Ok(_) => {}
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists))
    }

    /// Places it where nothing stands.
    fn link_as(&self, name: &std::ffi::OsStr) -> Result<(), WriteError> {
        match rustix::fs::renameat_with(self.dir, &self.name, self.dir, name, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(()),
            Err(Errno::EXIST) => return Err(WriteError::Changed),
            // Some file systems do not know the flag; a second name refuses an existing one as well.
            Err(Errno::INVAL | Errno::NOSYS) => {}
            Err(error) => return Err(error.into()),
        }
        match rustix::fs::linkat(self.dir, &self.name, self.dir, name, AtFlags::empty()) {
            Ok(()) => Ok(rustix::fs::unlinkat(self.dir, &self.name, AtFlags::empty())?),
            Err(Errno::EXIST) => Err(WriteError::Changed),
            Err(error) => Err(error.into()),
        }
    }
}

/// Keeps a temporary file from being swept. False when it has been already.
fn hold(file: &OwnedFd) -> bool {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => false,
        // Where there are no locks, nothing is swept.
        Ok(()) | Err(_) => rustix::fs::fstat(file).is_ok_and(|found| found.st_nlink > 0),
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.placed {
            let _gone = rustix::fs::unlinkat(self.dir, &self.name, AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests;
