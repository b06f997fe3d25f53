//! The ledger: what was decided about calls, by whom or by what. An index over the events that say so.

use protocol::{ApprovalState, DecisionRecord, Event, EventBody, Ground, Seq, SessionId};
use rusqlite::Connection;

use super::columns::{Count, Json, Nanos, Text};
use super::error::{Fault, StoreError};

/// Which decisions to list, newest first.
#[derive(Clone, Default, Debug)]
pub struct DecisionFilter {
    /// Of all sessions if absent.
    pub session: Option<SessionId>,
    /// What the page before this one answered as its end.
    pub cursor: Option<String>,
    pub limit: u32,
}

/// Whether an event decides: an answer to a request, or a start or a refusal without one.
pub(super) fn is_one(body: &EventBody) -> bool {
    let unasked = |ground: &Option<Ground>| matches!(ground, Some(Ground::Rule { .. } | Ground::Policy { .. }));
    match body {
        EventBody::ApprovalResolved { .. } => true,
        EventBody::ToolStarted { allowed_by, .. } => unasked(allowed_by),
        EventBody::ToolFinished { denied_by, .. } => unasked(denied_by),
        _ => false,
    }
}

pub(super) fn put(tx: &Connection, event: &Event, seq: Seq) -> rusqlite::Result<()> {
    let mut put = tx.prepare_cached("INSERT INTO decision (session_id, seq, at) VALUES (?1, ?2, ?3)")?;
    put.execute((Text(event.session_id), Count(seq), Nanos(event.ts))).map(drop)
}

/// One session's are numbered.
const OF_SESSION: &str = "
    SELECT e.payload, d.at, d.session_id, d.seq FROM decision d
    JOIN event e ON e.session_id = d.session_id AND e.seq = d.seq
    WHERE d.session_id = ?1 AND d.seq < ?2
    ORDER BY d.seq DESC LIMIT ?3";
/// Those of all sessions go by time.
const OF_ALL: &str = "
    SELECT e.payload, d.at, d.session_id, d.seq FROM decision d
    JOIN event e ON e.session_id = d.session_id AND e.seq = d.seq
    WHERE (d.at, d.session_id, d.seq) < (?1, ?2, ?3)
    ORDER BY d.at DESC, d.session_id DESC, d.seq DESC LIMIT ?4";

/// A page, and where the next one begins.
pub(super) fn list(db: &Connection, filter: &DecisionFilter) -> Result<(Vec<DecisionRecord>, Option<String>), Fault> {
    let (at, before, seq) = match &filter.cursor {
        Some(cursor) => read_cursor(cursor).map(|(at, session, seq)| (at, session.to_string(), seq))?,
        None => (i64::MAX, String::new(), Seq::MAX),
    };
    let limit = filter.limit.max(1);
    let mut statement = db.prepare_cached(if filter.session.is_some() { OF_SESSION } else { OF_ALL })?;
    let mut rows = match filter.session {
        Some(session) => statement.query((Text(session), Count(seq), i64::from(limit) + 1))?,
        None => statement.query((at, before, Count(seq), i64::from(limit) + 1))?,
    };
    let (mut records, mut last) = (Vec::new(), None);
    while let Some(row) = rows.next()? {
        if records.len() == limit as usize {
            return Ok((records, last));
        }
        let Json(event) = row.get::<_, Json<Event>>(0)?;
        records.extend(record(event));
        let (at, Text::<SessionId>(session), Count(seq)) = (row.get::<_, i64>(1)?, row.get(2)?, row.get(3)?);
        last = Some(format!("{at}.{session}.{seq}"));
    }
    Ok((records, None))
}

fn read_cursor(text: &str) -> Result<(i64, SessionId, Seq), StoreError> {
    let parse = || {
        let mut parts = text.split('.');
        let place = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        parts.next().is_none().then_some(place)
    };
    parse().ok_or_else(|| StoreError::Cursor { text: text.to_owned() })
}

fn record(event: Event) -> Option<DecisionRecord> {
    let (tool_use_id, outcome, summary, ground, approval) = match event.body {
        EventBody::ApprovalResolved { approval } => {
            (approval.tool_use_id.clone(), approval.state, approval.title.clone(), None, Some(approval))
        }
        EventBody::ToolStarted { tool_use_id, name, title, allowed_by, .. } => {
            let summary = if title == name { name } else { format!("{name}: {title}") };
            (tool_use_id, ApprovalState::Allowed, summary, allowed_by, None)
        }
        EventBody::ToolFinished { tool_use_id, summary, denied_by, .. } => {
            (tool_use_id, ApprovalState::Denied, summary, denied_by, None)
        }
        _ => return None,
    };
    let (at, session_id, turn_id) = (event.ts, event.session_id, event.turn_id);
    Some(DecisionRecord { at, session_id, turn_id, tool_use_id, outcome, summary, ground, approval })
}
