//! What a session's tools remember between calls: the files they have seen, and where the shell stands.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use blake3::Hash;
use protocol::SessionId;
use rusqlite::{Connection, OptionalExtension};

use super::columns::Text;
use super::error::Fault;

/// Changes to it, or all of it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct WorkbenchRows {
    /// The content that was last seen of a file; `None` for one that is no more.
    pub seen: Vec<(PathBuf, Option<Hash>)>,
    /// Where the shell stands, unless that is where it stood before.
    pub directory: Option<PathBuf>,
}

const SEE: &str = "INSERT INTO seen_file (session_id, path, hash) VALUES (?1, ?2, ?3)
    ON CONFLICT DO UPDATE SET hash = excluded.hash";
const FORGET: &str = "DELETE FROM seen_file WHERE session_id = ?1 AND path = ?2";
const STAND: &str = "INSERT INTO shell (session_id, directory) VALUES (?1, ?2)
    ON CONFLICT DO UPDATE SET directory = excluded.directory";

pub(super) fn put(tx: &Connection, session: SessionId, rows: &WorkbenchRows) -> Result<(), Fault> {
    for (path, hash) in &rows.seen {
        match hash {
            Some(hash) => tx.prepare_cached(SEE)?.execute((Text(session), bytes(path), hash.as_bytes()))?,
            None => tx.prepare_cached(FORGET)?.execute((Text(session), bytes(path)))?,
        };
    }
    if let Some(directory) = &rows.directory {
        tx.prepare_cached(STAND)?.execute((Text(session), bytes(directory)))?;
    }
    Ok(())
}

pub(super) fn of_session(db: &Connection, session: SessionId) -> Result<WorkbenchRows, Fault> {
    let mut seen = db.prepare_cached("SELECT path, hash FROM seen_file WHERE session_id = ?1")?;
    let seen = seen.query_map([Text(session)], |row| {
        Ok((path(&row.get::<_, Vec<u8>>(0)?), Some(Hash::from_bytes(row.get(1)?))))
    })?;
    let mut directory = db.prepare_cached("SELECT directory FROM shell WHERE session_id = ?1")?;
    let directory = directory.query_row([Text(session)], |row| row.get::<_, Vec<u8>>(0)).optional()?;
    Ok(WorkbenchRows { seen: seen.collect::<Result<_, _>>()?, directory: directory.as_deref().map(path) })
}

/// A path is bytes, and not always text.
fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

fn path(bytes: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes).into()
}
