//! Copies of the database: made whole or not at all, looked at before they count, the newest few kept.
//!
//! A copy is never opened as the database: it is copied once more, under an epoch of its own, so that no cursor of the
//! time that was lost means another event.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags};
use uuid::Uuid;

use super::error::{StoreError, of_sqlite};
use super::schema::{io_error, private_file};
use super::{Store, check};

#[cfg(test)]
mod tests;

/// Copies that are kept.
const KEEP: usize = 3;
/// A copy that is older than this is due for a newer one.
const DAILY: Duration = Duration::from_secs(24 * 60 * 60);

impl Store {
    /// Makes a copy beside the database, verifies it, and lets go of the oldest ones. Blocks, and holds no write up.
    ///
    /// # Errors
    /// What the disk says, and `Corrupt` when the copy is not sound: it is then not kept.
    pub fn back_up(&self) -> Result<PathBuf, StoreError> {
        make(self.path(), &place(self.path()))
    }

    /// When the newest copy was made.
    #[must_use]
    pub fn last_backup(&self) -> Option<SystemTime> {
        newest_first(&place(self.path())).first().and_then(|copy| fs::metadata(copy).ok()?.modified().ok())
    }

    /// Whether the newest copy is older than a day.
    #[must_use]
    pub fn is_backup_due(&self) -> bool {
        // A clock that was set back makes a copy of the future: that one is as good as new.
        self.last_backup().is_none_or(|made| made.elapsed().is_ok_and(|age| age > DAILY))
    }
}

/// Where the copies of a database are.
pub(super) fn place(database: &Path) -> PathBuf {
    database.with_file_name("backups")
}

/// A name with the time in it that nothing bears yet. Names are as long as each other, so they sort by their time.
pub(super) fn dated(dir: &Path, stem: &str, extension: &str) -> PathBuf {
    loop {
        let time = Timestamp::now().strftime("%Y%m%dT%H%M%S%.6fZ");
        let path = dir.join(format!("{stem}-{time}{extension}"));
        if !path.exists() {
            return path;
        }
    }
}

fn make(database: &Path, dir: &Path) -> Result<PathBuf, StoreError> {
    // Not those above it: a directory of the database that is gone is not made again for a copy.
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(io_error(dir, &error)),
        Ok(()) | Err(_) => {}
    }
    let partial = dir.join("partial");
    check_room(database, dir)?;
    copy(database, &partial)?;
    if let Some(what) = fault_of(&partial) {
        let _removed = fs::remove_file(&partial);
        return Err(StoreError::Corrupt {
            file: database.to_owned(),
            detail: format!("its copy is not sound: {what}"),
        });
    }
    let copy = dated(dir, "agentd", ".db");
    finish(&partial, &copy)?;
    for old in newest_first(dir).iter().skip(KEEP) {
        fs::remove_file(old).map_err(|error| io_error(old, &error))?;
    }
    Ok(copy)
}

/// One file with all that is committed, whatever is written meanwhile.
fn copy(from: &Path, to: &Path) -> Result<(), StoreError> {
    match fs::remove_file(to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io_error(to, &error)),
        Ok(()) | Err(_) => {}
    }
    // Made here, so that it is nobody else's to read from its first byte on.
    private_file(to).map_err(|error| io_error(to, &error))?;
    let vacuum = || open_to_read(from)?.execute("VACUUM INTO ?1", [to.to_string_lossy()]);
    vacuum().map(drop).map_err(|error| {
        // What there is of it is of no use, and may be what fills the disk.
        let _removed = fs::remove_file(to);
        of_sqlite(from, &error)
    })
}

/// A copy must not be what fills the disk.
fn check_room(database: &Path, dir: &Path) -> Result<(), StoreError> {
    let needed = fs::metadata(database).map_err(|error| io_error(database, &error))?.len();
    let disk = rustix::fs::statvfs(dir).map_err(|error| io_error(dir, &error.into()))?;
    // Half as much again, for what is written meanwhile.
    if disk.f_bavail.saturating_mul(disk.f_frsize) / 3 * 2 < needed {
        return Err(StoreError::Full { file: dir.to_owned() });
    }
    Ok(())
}

/// Gives a whole file its name: after this it is there, also after a power cut.
fn finish(partial: &Path, name: &Path) -> Result<(), StoreError> {
    let settle = || {
        File::open(partial)?.sync_all()?;
        fs::rename(partial, name)?;
        name.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
    };
    settle().map_err(|error: io::Error| io_error(name, &error))
}

pub(super) fn open_to_read(path: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

/// What is wrong with a copy; `None` for a sound one.
pub(super) fn fault_of(copy: &Path) -> Option<String> {
    match open_to_read(copy) {
        Ok(db) => check::first_fault(&db),
        Err(error) => Some(error.to_string()),
    }
}

/// The copies in a directory.
pub(super) fn newest_first(dir: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut copies: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|it| it == "db")).collect();
    // Their names are their times.
    copies.sort_unstable_by(|one, other| other.cmp(one));
    copies
}

/// Moves a database with what belongs to it into a directory of its own, which is answered. Nothing is deleted.
pub(super) fn move_aside(database: &Path, stem: &str) -> Result<PathBuf, StoreError> {
    let aside = dated(database.parent().unwrap_or(Path::new("/")), stem, "");
    let failed = |error: io::Error| io_error(&aside, &error);
    DirBuilder::new().mode(0o700).create(&aside).map_err(failed)?;
    for end in ["-wal", "-shm", ""] {
        let from = beside(database, end);
        if let Some(name) = from.file_name().filter(|_| from.exists()) {
            fs::rename(&from, aside.join(name)).map_err(failed)?;
        }
    }
    Ok(aside)
}

/// The database's path with something behind it.
fn beside(database: &Path, end: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(end);
    path.into()
}

/// What takes the place of the database, whole, from before the old one is moved until it is there.
const READY: &str = ".ready";

/// Moves the database aside and puts a copy in its place; without one, the next opening makes a new database. Answers
/// where the old one is now. A crash in between leaves what [`go_on_replacing`] finishes.
pub(super) fn replace(database: &Path, copy: Option<&Path>, stem: &str) -> Result<PathBuf, StoreError> {
    if let Some(copy) = copy {
        make_ready(copy, database)?;
    }
    let aside = move_aside(database, stem)?;
    go_on_replacing(database)?;
    Ok(aside)
}

/// Finishes what a crash has cut off: with a copy that stands ready, the old database is on its way out.
pub(super) fn go_on_replacing(database: &Path) -> Result<(), StoreError> {
    let ready = beside(database, READY);
    if !ready.exists() {
        return Ok(());
    }
    // A WAL of the old one would be taken for the new one's.
    if ["", "-wal", "-shm"].iter().any(|end| beside(database, end).exists()) {
        move_aside(database, "replaced")?;
    }
    finish(&ready, database)
}

/// Makes what is to take the database's place, under a new epoch.
fn make_ready(copy_of_it: &Path, database: &Path) -> Result<(), StoreError> {
    let partial = beside(database, ".partial");
    copy(copy_of_it, &partial)?;
    let set = || {
        let db = Connection::open(&partial)?;
        let epoch = Uuid::now_v7().to_string();
        db.execute("UPDATE meta SET value = ?1 WHERE key = 'epoch'", [epoch])
    };
    set().map_err(|error| of_sqlite(&partial, &error))?;
    finish(&partial, &beside(database, READY))
}

/// Replaces the database by a copy: the one that is named, or the newest sound one. What was there is moved aside.
/// Nobody may have the database open. Answers with the copy that was used, and where the other is now.
///
/// # Errors
/// `Refused` when there is no sound copy: nothing was touched then. What the disk says.
pub fn restore(database: &Path, from: Option<&Path>) -> Result<(PathBuf, Option<PathBuf>), StoreError> {
    let copy = match from {
        Some(copy) => match fault_of(copy) {
            None => copy.to_owned(),
            Some(what) => {
                let what = format!("{}: is not a sound copy of a database: {what}", copy.display());
                return Err(StoreError::Refused { what, hint: "name another file with --from" });
            }
        },
        None => newest_first(&place(database)).into_iter().find(|copy| fault_of(copy).is_none()).ok_or_else(|| {
            let what = format!("{}: holds no sound copy", place(database).display());
            StoreError::Refused { what, hint: "name a file with --from" }
        })?,
    };
    if database.exists() {
        let aside = replace(database, Some(&copy), "replaced")?;
        return Ok((copy, Some(aside)));
    }
    make_ready(&copy, database)?;
    go_on_replacing(database)?;
    Ok((copy, None))
}
