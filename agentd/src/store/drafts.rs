//! What was growing a moment ago, so that a crash does not take all of it along. No promise stands on it.

use protocol::SessionId;
use rusqlite::Connection;

use super::columns::Text;
use super::error::Fault;

/// One row of the table: its key and its text.
pub(super) type Draft = (String, String);

pub(super) fn put(tx: &Connection, session: SessionId, drafts: &[Draft]) -> Result<(), Fault> {
    let sql = "INSERT INTO draft (session_id, key, text) VALUES (?1, ?2, ?3)
        ON CONFLICT DO UPDATE SET text = excluded.text";
    let mut put = tx.prepare_cached(sql)?;
    for (key, text) in drafts {
        put.execute((Text(session), key, text))?;
    }
    Ok(())
}

/// Forgets what a turn that is over had left.
pub(super) fn clear(tx: &Connection, session: SessionId) -> Result<(), Fault> {
    tx.prepare_cached("DELETE FROM draft WHERE session_id = ?1")?.execute([Text(session)])?;
    Ok(())
}

/// The answer that was growing is whole, and in the journal.
pub(super) fn forget_message(tx: &Connection, session: SessionId) -> Result<(), Fault> {
    tx.prepare_cached("DELETE FROM draft WHERE session_id = ?1 AND key = 'message'")?.execute([Text(session)])?;
    Ok(())
}

pub(super) fn of_session(db: &Connection, session: SessionId) -> Result<Vec<Draft>, Fault> {
    let mut statement = db.prepare_cached("SELECT key, text FROM draft WHERE session_id = ?1")?;
    let drafts = statement.query_map([Text(session)], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(drafts.collect::<Result<_, _>>()?)
}
