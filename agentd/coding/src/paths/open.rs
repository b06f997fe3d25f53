//! Opens what a target really is: one regular file or one directory, without waiting and without following links.
//!
//! The check and the use are on the same descriptor, and a link put into the path after it was resolved makes the
//! open fail instead of leading elsewhere.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use foundation::{ErrorCode, ToolError};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::{Target, not_found};

/// A regular file and what it was when it was opened.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: File,
    pub(crate) meta: Metadata,
}

/// Opens a regular file for reading. Returns at once, also for a FIFO that nobody writes.
///
/// # Errors
/// `NotFound` with the nearest name, `NotAFile` for directories, devices, FIFOs and sockets.
pub(crate) fn open_file(target: &Target, shown: &str) -> Result<Opened, ToolError> {
    // Looking before opening matters: merely opening some devices has effects.
    let found = match target.real.symlink_metadata() {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(not_found(target, shown)),
        Err(error) => return Err(io_error(shown, &error)),
    };
    check_regular(&found, shown)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = open(&target.real, flags).map_err(|error| io_error(shown, &error))?;
    let meta = file.metadata().map_err(|error| io_error(shown, &error))?;
    check_regular(&meta, shown)?;
    Ok(Opened { file, meta })
}

/// Opens a directory, which must not have become a link.
pub(crate) fn open_directory(real: &Path) -> io::Result<File> {
    open(real, OFlags::RDONLY | OFlags::DIRECTORY)
}

fn open(real: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    match rustix::fs::openat2(CWD, real, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(fd) => Ok(File::from(fd)),
        // Old kernels have no openat2 and some container filters refuse it.
        Err(Errno::NOSYS | Errno::PERM) => Ok(File::from(rustix::fs::open(real, flags, Mode::empty())?)),
        Err(error) => Err(error.into()),
    }
}

fn check_regular(meta: &Metadata, shown: &str) -> Result<(), ToolError> {
    let kind = meta.file_type();
    let (what, hint) = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => ("a directory", "Use the tool that lists directories, or name a file in it."),
        () if kind.is_fifo() => ("a FIFO", "It has no content of its own; find the file that is meant."),
        () if kind.is_socket() => ("a socket", "It has no content of its own; find the file that is meant."),
        () => ("a device", "Devices are neither read nor written; find the file that is meant."),
    };
    Err(ToolError::new(ErrorCode::NotAFile, format!("{shown} is {what}, not a regular file"), hint))
}

/// What the system said about a path, as an error that a model can act on.
pub(crate) fn io_error(shown: &str, error: &io::Error) -> ToolError {
    let (code, fact, hint) = match error.kind() {
        io::ErrorKind::NotFound => (ErrorCode::NotFound, "does not exist", "Look for the right path first."),
        io::ErrorKind::PermissionDenied => (
            ErrorCode::PermissionDenied,
            "the system refuses access",
            "Find another way, or ask the person to change the permissions.",
        ),
        io::ErrorKind::NotADirectory => {
            (ErrorCode::NotADirectory, "a part of this path is a file", "Leave out what follows the file's name.")
        }
        io::ErrorKind::IsADirectory => (ErrorCode::NotAFile, "is a directory", "Name a file in it."),
        io::ErrorKind::InvalidFilename => (ErrorCode::InvalidPath, "a name in it is too long", "Use a shorter name."),
        _ if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => (
            ErrorCode::InvalidPath,
            "its links lead round in a loop, or changed while it was opened",
            "Name the file itself instead of the link.",
        ),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            (ErrorCode::IoError, "no space left", "Nothing was changed. Ask the person to make room.")
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            (ErrorCode::PermissionDenied, "the file system is read-only", "Choose another place, or ask the person.")
        }
        _ => {
            let summary = format!("{shown}: {error}");
            return ToolError::new(ErrorCode::IoError, summary, "Check the path, then try once more or ask.");
        }
    };
    ToolError::new(code, format!("{shown}: {fact}"), hint)
}
