//! The database as it is on the disk, read from outside: no code of the daemon's.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

/// One event as it was stored.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) session: String,
    pub(crate) seq: u64,
    pub(crate) kind: String,
    pub(crate) body: Value,
    /// Whether its hash is that of the one before it and of its own bytes.
    pub(crate) is_chained: bool,
}

pub(crate) struct Journal(Connection);

impl Journal {
    pub(crate) fn open(path: &Path) -> rusqlite::Result<Self> {
        let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        db.busy_timeout(std::time::Duration::from_secs(5))?;
        Ok(Self(db))
    }

    /// All events in order, each checked against the one before it.
    pub(crate) fn events(&self) -> rusqlite::Result<Vec<Event>> {
        let sql = "SELECT session_id, seq, type, payload, prev_hash, hash FROM event ORDER BY session_id, seq";
        let mut statement = self.0.prepare(sql)?;
        let mut rows = statement.query([])?;
        let (mut events, mut heads) = (Vec::new(), BTreeMap::<String, [u8; 32]>::new());
        while let Some(row) = rows.next()? {
            let (session, payload): (String, String) = (row.get(0)?, row.get(3)?);
            let (previous, hash): ([u8; 32], [u8; 32]) = (row.get(4)?, row.get(5)?);
            let own = blake3::Hasher::new().update(&previous).update(payload.as_bytes()).finalize();
            let before = heads.insert(session.clone(), hash).unwrap_or_default();
            events.push(Event {
                session,
                seq: u64::try_from(row.get::<_, i64>(1)?).unwrap_or_default(),
                kind: row.get(2)?,
                body: serde_json::from_str(&payload).unwrap_or_default(),
                is_chained: before == previous && own.as_bytes() == &hash,
            });
        }
        Ok(events)
    }

    /// Turns that are not over: id, session, state.
    pub(crate) fn open_turns(&self) -> rusqlite::Result<Vec<(String, String, String)>> {
        let sql =
            "SELECT id, session_id, state FROM turn WHERE state IN ('queued', 'running', 'recoverable') ORDER BY id";
        let mut statement = self.0.prepare(sql)?;
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
    }

    /// The states of all requests for consent, by id.
    pub(crate) fn approvals(&self) -> rusqlite::Result<BTreeMap<String, String>> {
        let mut statement = self.0.prepare("SELECT id, state FROM approval")?;
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    }

    /// The turn of each request for consent.
    pub(crate) fn approval_turns(&self) -> rusqlite::Result<BTreeMap<String, String>> {
        let events = self.events()?;
        let asked = events.iter().filter(|event| event.kind == "approval.requested");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(asked.map(|event| (text(&event.body["data"]["approval"]["id"]), text(&event.body["turnId"]))).collect())
    }
}
