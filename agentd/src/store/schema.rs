//! Opens the database file: its mode, its settings, its migrations and its epoch.
//!
//! Migrations only go forward, in one transaction, after a copy of the file was made. A database from a newer agentd
//! is left alone.

use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, MAIN_DB, OpenFlags};
use rusqlite_migration::{M, Migrations};
use uuid::Uuid;

use super::error::{StoreError, of_sqlite};

#[cfg(test)]
mod tests;

/// Every released migration, in order. A released file never changes: a mistake in it is mended by the next file.
const FILES: &[(&str, &str)] = &[
    ("0001_journal.sql", include_str!("../../../migrations/0001_journal.sql")),
    ("0002_recovery.sql", include_str!("../../../migrations/0002_recovery.sql")),
    ("0003_files_and_decisions.sql", include_str!("../../../migrations/0003_files_and_decisions.sql")),
    ("0004_attempts.sql", include_str!("../../../migrations/0004_attempts.sql")),
];

const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const STATEMENT_CACHE: usize = 64;

/// The file that is open, to see whether it is still the one at its path.
#[derive(Clone, Debug)]
pub(super) struct DatabaseFile {
    pub(super) path: PathBuf,
    device: u64,
    inode: u64,
}

impl DatabaseFile {
    /// Fails once the file has been deleted, moved or replaced: SQLite would go on writing where nobody looks.
    ///
    /// Asks by path. Opening the file here would drop SQLite's locks on it when that descriptor is closed.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        match fs::metadata(&self.path) {
            Ok(found) if (found.dev(), found.ino()) == (self.device, self.inode) => Ok(()),
            Ok(_) | Err(_) => Err(StoreError::Unlinked { file: self.path.clone() }),
        }
    }
}

/// The writing connection, ready to use, and the database's epoch.
pub(super) fn open(path: &Path) -> Result<(Connection, DatabaseFile, String), StoreError> {
    let steps: Vec<M<'_>> = FILES.iter().map(|(_, sql)| M::up(sql)).collect();
    open_with(path, steps)
}

fn open_with(path: &Path, steps: Vec<M<'_>>) -> Result<(Connection, DatabaseFile, String), StoreError> {
    let file = private_file(path).map_err(|error| io_error(path, &error))?;
    let mut db = Connection::open(path).map_err(|error| of_sqlite(path, &error))?;
    migrate(&mut db, path, steps)?;
    let epoch = settle(&db).map_err(|error| of_sqlite(path, &error))?;
    Ok((db, file, epoch))
}

/// An empty database that nobody else sees.
pub(super) fn in_memory() -> rusqlite::Result<Connection> {
    let db = Connection::open_in_memory()?;
    FILES.iter().try_for_each(|(_, sql)| db.execute_batch(sql))?;
    db.pragma_update(None, "foreign_keys", true)?;
    Ok(db)
}

/// A connection that can only read.
pub(super) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let open = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(path, flags)?;
        db.busy_timeout(BUSY_TIMEOUT)?;
        db.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
        Ok(db)
    };
    open().map_err(|error| of_sqlite(path, &error))
}

/// Makes the file if there is none. Nobody but its owner may read what people said; SQLite gives the -wal and -shm
/// files the same mode.
pub(super) fn private_file(path: &Path) -> io::Result<DatabaseFile> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::set_permissions(path, Permissions::from_mode(0o600))?;
        }
        Err(error) => return Err(error),
    }
    let found = fs::metadata(path)?;
    Ok(DatabaseFile { path: path.to_owned(), device: found.dev(), inode: found.ino() })
}

fn migrate(db: &mut Connection, path: &Path, steps: Vec<M<'_>>) -> Result<(), StoreError> {
    let sqlite = |error: rusqlite::Error| of_sqlite(path, &error);
    db.busy_timeout(BUSY_TIMEOUT).map_err(sqlite)?;
    let supported = i32::try_from(steps.len()).unwrap_or(i32::MAX);
    let found: i32 = db.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(sqlite)?;
    if found > supported {
        return Err(StoreError::TooNew { file: path.to_owned(), found, supported });
    }
    // WAL comes first: changing the journal afterwards would be one more write outside the migration.
    db.pragma_update(None, "journal_mode", "WAL").map_err(sqlite)?;
    db.pragma_update(None, "synchronous", "FULL").map_err(sqlite)?;
    if 0 < found && found < supported {
        back_up(db, path, found)?;
    }
    Migrations::new(steps).to_latest(db).map_err(|error| match error {
        rusqlite_migration::Error::RusqliteError { err, .. } => of_sqlite(path, &err),
        other => StoreError::Other { file: path.to_owned(), detail: other.to_string() },
    })
}

/// Copies the database beside itself, as `<name>.v<version>`, before it is changed.
fn back_up(db: &Connection, path: &Path, version: i32) -> Result<(), StoreError> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".v{version}"));
    let copy = PathBuf::from(&name);
    name.push(".partial");
    let partial = PathBuf::from(name);
    let failed = |error: io::Error| io_error(&partial, &error);
    if partial.exists() {
        fs::remove_file(&partial).map_err(failed)?;
    }
    private_file(&partial).map_err(failed)?;
    db.backup(MAIN_DB, &partial, None).map_err(|error| of_sqlite(&partial, &error))?;
    fs::File::open(&partial).and_then(|file| file.sync_all()).map_err(failed)?;
    fs::rename(&partial, &copy).map_err(failed)
}

fn settle(db: &Connection) -> rusqlite::Result<String> {
    db.pragma_update(None, "foreign_keys", true)?;
    db.pragma_update(None, "journal_size_limit", 64 << 20)?;
    db.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    db.execute(
        "INSERT INTO meta (key, value) VALUES ('epoch', ?1) ON CONFLICT DO NOTHING",
        [Uuid::now_v7().to_string()],
    )?;
    db.query_row("SELECT value FROM meta WHERE key = 'epoch'", [], |row| row.get(0))
}

pub(super) fn io_error(file: &Path, error: &io::Error) -> StoreError {
    let file = file.to_owned();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full { file },
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => StoreError::ReadOnly { file },
        _ => StoreError::Other { file, detail: error.to_string() },
    }
}
