//! Opening a database that is damaged: it is moved aside whole, the newest sound copy takes its place, and what still
//! chains of the newer events is added to it.
//!
//! Nothing is deleted, and it is tried once: what cannot be opened after that is an error like any other.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use protocol::SessionId;
use rusqlite::types::Value;
use rusqlite::{Connection, Row};

use super::error::{Fault, StoreError, of_sqlite};
use super::{Store, backup, check, journal, schema};

#[cfg(test)]
mod tests;

/// How long the start may look at a database that was not closed.
const QUICK: Duration = Duration::from_secs(2);

/// What became of a damaged database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rescue {
    /// What was wrong with it.
    pub damage: String,
    /// Where it is now, with all that belongs to it.
    pub moved_to: PathBuf,
    /// The copy that took its place; a new database if there was none.
    pub restored: Option<PathBuf>,
    /// Events of the damaged one that were added.
    pub salvaged: u64,
    /// What could not be saved, in words.
    pub lost: Vec<String>,
}

impl fmt::Display for Rescue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the database was damaged ({}) and is now in {}; ", self.damage, self.moved_to.display())?;
        match &self.restored {
            Some(copy) => write!(f, "the copy {} took its place", copy.display())?,
            None => write!(f, "there was no sound copy, so a new one took its place")?,
        }
        write!(f, ", {} newer events were saved, lost: ", self.salvaged)?;
        if self.lost.is_empty() { f.write_str("nothing") } else { f.write_str(&self.lost.join("; ")) }
    }
}

impl Store {
    /// Opens the database as [`Store::open`] does, and rescues what can be rescued when it is damaged.
    ///
    /// # Errors
    /// As [`Store::open`], of the database that took the place of a damaged one.
    pub fn open_or_rescue(path: &Path) -> Result<Self, StoreError> {
        backup::go_on_replacing(path)?;
        let damage = match quick_check(path) {
            Some(damage) => damage,
            None => match Self::open(path) {
                Err(StoreError::Corrupt { detail, .. }) => detail,
                opened => return opened,
            },
        };
        let rescue = rescue(path, damage)?;
        Self::open_after(path, Some(rescue))
    }
}

/// What is wrong with a database that was not closed, as far as that shows in the time there is. One that was closed
/// left no WAL behind, and is not looked at: that would make every start wait.
fn quick_check(path: &Path) -> Option<String> {
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    if fs::metadata(PathBuf::from(wal)).map_or(0, |wal| wal.len()) == 0 {
        return None;
    }
    // One that can only read leaves the file and its WAL as they were found.
    let db = backup::open_to_read(path).ok()?;
    let done = db.get_interrupt_handle();
    let (finished, waits) = mpsc::channel::<()>();
    let clock = thread::spawn(move || {
        if waits.recv_timeout(QUICK) == Err(RecvTimeoutError::Timeout) {
            done.interrupt();
        }
    });
    let found: rusqlite::Result<String> = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0));
    drop(finished);
    let _ended = clock.join();
    match found {
        Ok(line) if line == "ok" => None,
        Ok(line) => Some(line),
        // Time is over, or somebody else is in the way: whoever opens it will see.
        Err(error) => match of_sqlite(path, &error) {
            StoreError::Corrupt { detail, .. } => Some(detail),
            _ => None,
        },
    }
}

fn rescue(path: &Path, damage: String) -> Result<Rescue, StoreError> {
    let copies = backup::newest_first(&backup::place(path));
    let restored = copies.into_iter().find(|copy| backup::fault_of(copy).is_none());
    let moved_to = backup::replace(path, restored.as_deref(), "corrupt")?;
    let (mut into, ..) = schema::open(path)?;
    let mut rescue = Rescue { damage, moved_to, restored, salvaged: 0, lost: Vec::new() };
    let old = rescue.moved_to.join(path.file_name().unwrap_or_default());
    match backup::open_to_read(&old).and_then(|old| check::names(&old).map(|names| (old, names))) {
        Ok((old, names)) => {
            for name in names {
                salvage(&old, &mut into, &name, &mut rescue);
            }
        }
        Err(error) => rescue.lost.push(format!("all that is newer than the copy, which cannot be read: {error}")),
    }
    Ok(rescue)
}

/// Adds what one session has beyond the copy: its events up to the first that is not what was stored, and the rows that
/// were committed with them. All of it or nothing: an event without its call would make a call look as if it never ran.
fn salvage(old: &Connection, into: &mut Connection, name: &str, rescue: &mut Rescue) {
    let Ok(session) = name.parse::<SessionId>() else {
        rescue.lost.push(format!("events under `{name}`, which names no session"));
        return;
    };
    let mut save = || -> Result<(u64, Option<u64>), Fault> {
        let tx = into.transaction()?;
        let saved = journal::take_over(old, session, &tx)?;
        for table in ["call", "session_grant", "seen_file", "shell"] {
            take_rows(old, &tx, (table, "true"), name)?;
        }
        // A receipt for what is lost would make whoever sends it again believe that it is there.
        take_rows(old, &tx, ("receipt", &format!("seq < {}", saved.1.unwrap_or(i64::MAX.unsigned_abs()))), name)?;
        tx.commit()?;
        Ok(saved)
    };
    match save() {
        Ok((saved, broken_at)) => {
            rescue.salvaged += saved;
            rescue.lost.extend(broken_at.map(|seq| format!("session {session} from event {seq} on")));
        }
        Err(Fault::Sql(error)) => rescue.lost.push(format!("session {session} beyond the copy: {error}")),
        Err(Fault::Refused(error)) => rescue.lost.push(format!("session {session} beyond the copy: {}", error.fact())),
    }
}

fn take_rows(old: &Connection, tx: &Connection, (table, which): (&str, &str), session: &str) -> rusqlite::Result<()> {
    let mut select = old.prepare(&format!("SELECT * FROM {table} WHERE session_id = ?1 AND {which}"))?;
    // By name: the database that was damaged may be of an older schema, with fewer columns.
    let (columns, names) = (select.column_count(), select.column_names().join(", "));
    let places = vec!["?"; columns].join(", ");
    let mut insert = tx.prepare(&format!("INSERT OR REPLACE INTO {table} ({names}) VALUES ({places})"))?;
    let row = |row: &Row<'_>| (0..columns).map(|column| row.get(column)).collect::<rusqlite::Result<Vec<Value>>>();
    for values in select.query_map([session], row)? {
        insert.execute(rusqlite::params_from_iter(values?))?;
    }
    Ok(())
}
