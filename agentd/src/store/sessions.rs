//! Sessions: one, a page of a listing, how many, and their end.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use jiff::Timestamp;
use protocol::{Session, SessionId};
use rusqlite::{Connection, OptionalExtension, Row, named_params};
use serde::Deserialize;

use super::columns::{Count, Data, Nanos, Text};
use super::error::{Fault, StoreError};

/// Which sessions to list, newest change first.
#[derive(Clone, Default, Debug)]
pub struct SessionFilter {
    /// Only those of this workspace.
    pub cwd: Option<PathBuf>,
    /// Only archived ones, or only others; both if absent.
    pub archived: Option<bool>,
    /// Only those whose title has all these words or parts of words, whatever their case.
    pub query: Option<String>,
    /// What the page before this one answered as its end.
    pub cursor: Option<String>,
    pub limit: u32,
}

/// How many sessions there are.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SessionTotals {
    pub total: u32,
    /// Those with a turn that is running or waiting for a person.
    pub running: u32,
}

/// The place after a session in a listing.
struct Place {
    updated_at: Timestamp,
    id: SessionId,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.updated_at.as_nanosecond(), self.id)
    }
}

impl FromStr for Place {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let parse = || {
            let (nanos, id) = text.split_once('.')?;
            Some(Self { updated_at: Timestamp::from_nanosecond(nanos.parse().ok()?).ok()?, id: id.parse().ok()? })
        };
        parse().ok_or_else(|| StoreError::Cursor { text: text.to_owned() })
    }
}

#[derive(Deserialize)]
struct OfSession {
    session: Session,
}

const GET: &str = "SELECT e.payload, s.status, s.updated_at, s.last_seq
    FROM session s JOIN event e ON e.session_id = s.id AND e.seq = s.seq WHERE s.id = ?1";

/// The session as its newest whole event tells it, with what has changed since.
pub(super) fn get(db: &Connection, id: SessionId) -> Result<Option<Session>, Fault> {
    Ok(db.prepare_cached(GET)?.query_row([Text(id)], read).optional()?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<Session> {
    let Data(OfSession { session }) = row.get(0)?;
    let (Text(status), Nanos(updated_at), Count(last_seq)) = (row.get(1)?, row.get(2)?, row.get::<_, Count>(3)?);
    // Who watches is known to the running daemon alone.
    Ok(Session { status, updated_at, last_seq, attached: 0, ..session })
}

const LIST: &str = "
    SELECT id, title, updated_at FROM session
    WHERE (:cwd IS NULL OR cwd = :cwd) AND (:archived IS NULL OR archived = :archived)
        AND (:at IS NULL OR (updated_at, id) < (:at, :id))
    ORDER BY updated_at DESC, id DESC";

/// A page, and where the next one begins.
pub(super) fn list(db: &Connection, filter: &SessionFilter) -> Result<(Vec<Session>, Option<String>), Fault> {
    let place = filter.cursor.as_deref().map(Place::from_str).transpose()?;
    let words = filter.query.as_deref().unwrap_or_default().to_lowercase();
    let limit = filter.limit.max(1) as usize;
    let mut statement = db.prepare_cached(LIST)?;
    let mut rows = statement.query(named_params! {
        ":cwd": filter.cwd.as_ref().map(|cwd| cwd.to_string_lossy()),
        ":archived": filter.archived,
        ":at": place.as_ref().map(|place| Nanos(place.updated_at)),
        ":id": place.as_ref().map(|place| Text(place.id)),
    })?;
    let (mut sessions, mut last) = (Vec::new(), None);
    while let Some(row) = rows.next()? {
        // Here and not in SQL, which knows the case of ASCII letters only.
        let title = row.get::<_, String>(1)?.to_lowercase();
        if !words.split_whitespace().all(|word| title.contains(word)) {
            continue;
        }
        if sessions.len() == limit {
            return Ok((sessions, last.map(|place: Place| place.to_string())));
        }
        let (Text(id), Nanos(updated_at)) = (row.get(0)?, row.get(2)?);
        sessions.extend(get(db, id)?);
        last = Some(Place { updated_at, id });
    }
    Ok((sessions, None))
}

pub(super) fn totals(db: &Connection) -> Result<SessionTotals, Fault> {
    let sql = "SELECT count(*), count(*) FILTER (WHERE status IN ('running', 'waiting_approval', 'waiting_answer'))
        FROM session";
    let totals = |row: &Row<'_>| Ok(SessionTotals { total: row.get(0)?, running: row.get(1)? });
    Ok(db.prepare_cached(sql)?.query_row([], totals)?)
}

/// Removes all that is known of a session. The index follows its session by foreign keys.
pub(super) fn delete(tx: &Connection, session: SessionId) -> Result<(), Fault> {
    for table in ["session", "event", "call", "receipt", "session_grant", "draft", "seen_file", "shell", "attempt"] {
        let id = if table == "session" { "id" } else { "session_id" };
        tx.execute(&format!("DELETE FROM {table} WHERE {id} = ?1"), [Text(session)])?;
    }
    Ok(())
}
