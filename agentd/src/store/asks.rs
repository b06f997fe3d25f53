//! Requests for consent and questions: what is pending, and how each was settled.

use protocol::{Approval, ApprovalId, ApprovalState, QuestionId, QuestionRequest, QuestionState, SessionId};
use rusqlite::{Connection, OptionalExtension};
use serde::Deserialize;

use super::columns::{Data, Text};
use super::error::Fault;

#[derive(Deserialize)]
struct OfApproval {
    approval: Approval,
}

#[derive(Deserialize)]
struct OfQuestion {
    question: QuestionRequest,
}

const APPROVAL: &str = "SELECT e.payload FROM approval a
    JOIN event e ON e.session_id = a.session_id AND e.seq = a.seq WHERE a.id = ?1";

pub(super) fn approval(db: &Connection, id: ApprovalId) -> Result<Option<Approval>, Fault> {
    let mut statement = db.prepare_cached(APPROVAL)?;
    let found = statement.query_row([Text(id)], |row| row.get::<_, Data<OfApproval>>(0)).optional()?;
    Ok(found.map(|data| data.0.approval))
}

/// Oldest first.
pub(super) fn approvals(
    db: &Connection,
    session: Option<SessionId>,
    state: Option<ApprovalState>,
) -> Result<Vec<Approval>, Fault> {
    let mut statement = db.prepare_cached(&select("approval", session.is_some(), state.is_some()))?;
    let found = statement.query_map((session.map(Text), state.map(Text)), |row| row.get::<_, Data<OfApproval>>(0))?;
    Ok(found.map(|data| data.map(|data| data.0.approval)).collect::<Result<_, _>>()?)
}

const QUESTION: &str = "SELECT e.payload FROM question q
    JOIN event e ON e.session_id = q.session_id AND e.seq = q.seq WHERE q.id = ?1";

pub(super) fn question(db: &Connection, id: QuestionId) -> Result<Option<QuestionRequest>, Fault> {
    let mut statement = db.prepare_cached(QUESTION)?;
    let found = statement.query_row([Text(id)], |row| row.get::<_, Data<OfQuestion>>(0)).optional()?;
    Ok(found.map(|data| data.0.question))
}

/// Oldest first.
pub(super) fn questions(
    db: &Connection,
    session: Option<SessionId>,
    state: Option<QuestionState>,
) -> Result<Vec<QuestionRequest>, Fault> {
    let mut statement = db.prepare_cached(&select("question", session.is_some(), state.is_some()))?;
    let found = statement.query_map((session.map(Text), state.map(Text)), |row| row.get::<_, Data<OfQuestion>>(0))?;
    Ok(found.map(|data| data.map(|data| data.0.question)).collect::<Result<_, _>>()?)
}

/// Both parameters stand in the statement, wanted or not; a condition with `OR` would keep SQLite from using an index.
fn select(table: &str, of_session: bool, in_state: bool) -> String {
    let session = if of_session { "a.session_id = ?1" } else { "?1 IS NULL" };
    let state = if in_state { "a.state = ?2" } else { "?2 IS NULL" };
    format!(
        "SELECT e.payload FROM {table} a JOIN event e ON e.session_id = a.session_id AND e.seq = a.seq
         WHERE {session} AND {state} ORDER BY a.id"
    )
}
