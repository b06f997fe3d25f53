//! Room on the disk: a file that holds some free, so that a full disk still lets us write down how things stand.
//!
//! The file is given up with the first write that finds the disk full. From then on room is short, and whoever starts
//! something looks here first. Room is there again once the file can be made anew.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use foundation::failpoint;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use tokio::sync::watch;

/// As much as is kept free.
const BYTES: u64 = 16 << 20;

/// The room of one database. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Room {
    reserve: PathBuf,
    is_short: Arc<watch::Sender<bool>>,
}

impl Room {
    /// Takes the reserve beside the database, if the disk has that much.
    pub(super) fn take(database: &Path) -> Self {
        let room = Self { reserve: database.with_extension("reserve"), is_short: Arc::new(watch::channel(false).0) };
        room.look();
        room
    }

    /// Changes with the room; true while it is short.
    pub(super) fn watch(&self) -> watch::Receiver<bool> {
        self.is_short.subscribe()
    }

    pub(super) fn is_short(&self) -> bool {
        *self.is_short.borrow()
    }

    /// The disk is full: gives the reserve up. False when there was none.
    pub(super) fn give_up(&self) -> bool {
        let freed = fs::remove_file(&self.reserve).is_ok();
        if self.turns(true) {
            tracing::error!(freed, "the disk is full: no new turn and no call starts until there is room again");
        }
        freed
    }

    /// Whether this is news; who watches is told of nothing else.
    fn turns(&self, short: bool) -> bool {
        self.is_short.send_if_modified(|is_short| std::mem::replace(is_short, short) != short)
    }

    /// Looks whether there is room for the reserve. Blocks.
    pub(super) fn look(&self) {
        let reserved = reserve(&self.reserve);
        let is_full = matches!(&reserved, Err(error) if is_full(error));
        match reserved {
            Err(error) if !is_full => {
                tracing::warn!(path = %self.reserve.display(), %error, "no room could be kept free for a full disk");
            }
            Ok(()) | Err(_) => {}
        }
        if self.turns(is_full) && !is_full {
            tracing::info!("there is room on the disk again");
        }
    }
}

/// A quota that is used up is a full disk to whoever has it.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Makes the file, or leaves the one that is whole.
fn reserve(path: &Path) -> io::Result<()> {
    failpoint::check("reserve")?;
    if fs::metadata(path).is_ok_and(|found| found.len() >= BYTES) {
        return Ok(());
    }
    let disk = rustix::fs::statvfs(path.parent().unwrap_or(path))?;
    if disk.f_bavail.saturating_mul(disk.f_frsize) < BYTES {
        // Trying would take what little there is from whoever needs it just now.
        return Err(Errno::NOSPC.into());
    }
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    let filled = fill(&file);
    if filled.is_err() {
        // What there was of it is not enough to be of use, and it may be all that is left.
        fs::remove_file(path)?;
    }
    filled
}

fn fill(file: &File) -> io::Result<()> {
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, BYTES) {
        // Some file systems can only be filled by hand.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
        allocated => return Ok(allocated?),
    }
    io::copy(&mut io::Read::take(io::repeat(0), BYTES), &mut &*file)?;
    file.sync_all()
}
