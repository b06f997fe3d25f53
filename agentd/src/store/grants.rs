//! Rules that a person granted for the rest of a session.

use jiff::Timestamp;
use protocol::SessionId;
use rusqlite::Connection;

use super::columns::{Nanos, Text};
use super::error::Fault;

/// One granted rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GrantRow {
    pub session: SessionId,
    pub tool: String,
    pub rule: String,
    pub created_at: Timestamp,
}

impl GrantRow {
    /// A rule that is granted now.
    #[must_use]
    pub fn new(session: SessionId, tool: &str, rule: &str) -> Self {
        Self { session, tool: tool.into(), rule: rule.into(), created_at: Timestamp::now() }
    }
}

/// The same rule twice is the same grant.
const PUT: &str =
    "INSERT INTO session_grant (session_id, tool, rule, created_at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";

pub(super) fn put(tx: &Connection, row: &GrantRow) -> Result<(), Fault> {
    tx.prepare_cached(PUT)?.execute((Text(row.session), &row.tool, &row.rule, Nanos(row.created_at)))?;
    Ok(())
}

const OF_SESSION: &str = "SELECT tool, rule, created_at FROM session_grant WHERE session_id = ?1 ORDER BY created_at";

/// In the order in which they were granted.
pub(super) fn of_session(db: &Connection, session: SessionId) -> Result<Vec<GrantRow>, Fault> {
    let mut statement = db.prepare_cached(OF_SESSION)?;
    let rows = statement.query_map([Text(session)], |row| {
        Ok(GrantRow { session, tool: row.get(0)?, rule: row.get(1)?, created_at: row.get::<_, Nanos>(2)?.0 })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
