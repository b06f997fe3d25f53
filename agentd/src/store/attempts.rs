//! How often a session was being taken up when the daemon ended: one that is the cause must not end it for ever.

use protocol::SessionId;
use rusqlite::{Connection, OptionalExtension};

use super::columns::Text;
use super::error::Fault;

/// What another version has tried does not count.
const VERSION: &str = env!("CARGO_PKG_VERSION");

const BEGIN: &str = "INSERT INTO attempt (session_id, version, count) VALUES (?1, ?2, 1)
    ON CONFLICT DO UPDATE SET count = CASE version WHEN ?2 THEN count + 1 ELSE 1 END, version = ?2";

pub(super) fn begin(tx: &Connection, session: SessionId) -> Result<(), Fault> {
    tx.prepare_cached(BEGIN)?.execute((Text(session), VERSION))?;
    Ok(())
}

pub(super) fn end(tx: &Connection, session: SessionId) -> Result<(), Fault> {
    tx.prepare_cached("DELETE FROM attempt WHERE session_id = ?1")?.execute([Text(session)])?;
    Ok(())
}

/// Those that had a beginning and no end.
pub(super) fn count(db: &Connection, session: SessionId) -> Result<u32, Fault> {
    let mut count = db.prepare_cached("SELECT count FROM attempt WHERE session_id = ?1 AND version = ?2")?;
    Ok(count.query_row((Text(session), VERSION), |row| row.get(0)).optional()?.unwrap_or(0))
}
