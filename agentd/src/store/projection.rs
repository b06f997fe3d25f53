//! The index over the journal, made from events and from nothing else.
//!
//! A row says in which event the whole thing stands (`seq`), and holds only what is searched by or changed since. So
//! the index can be thrown away and made again, and content is stored once.

use protocol::{Approval, Event, EventBody, Message, QuestionRequest, Seq, Session, SessionId, Turn, TurnError};
use protocol::{QueueChange, TurnState, Usage};
use rusqlite::types::Value;
use rusqlite::{Connection, Row, named_params};

use super::columns::{Count, Json, Nanos, Text};
use super::error::{Fault, StoreError};
use super::{decisions, schema};

#[cfg(test)]
mod tests;

/// Brings the index up to date with the event that has just become number `seq` of its session.
pub(super) fn project(tx: &Connection, event: &Event, seq: Seq) -> Result<(), Fault> {
    // First of all, so that all other rows find the session that they belong to.
    match &event.body {
        EventBody::SessionCreated { session } | EventBody::SessionUpdated { session } => {
            put_session(tx, event, session, seq)?;
        }
        _ => touch_session(tx, event, seq)?,
    }
    if decisions::is_one(&event.body) {
        decisions::put(tx, event, seq)?;
    }
    match &event.body {
        EventBody::SessionStatus { status } => {
            let mut set = tx.prepare_cached("UPDATE session SET status = ?2 WHERE id = ?1")?;
            set.execute((Text(event.session_id), Text(status)))?;
        }
        EventBody::TurnQueued { turn }
        | EventBody::TurnStarted { turn }
        | EventBody::TurnRecoverable { turn }
        | EventBody::TurnResumed { turn }
        | EventBody::QueueChanged { change: QueueChange::Updated, turn } => put_turn(tx, event, turn, seq)?,
        EventBody::QueueChanged { change: QueueChange::Deleted | QueueChange::Steered, turn } => {
            let sql = "DELETE FROM turn WHERE id = ?1 AND session_id = ?2 AND state = 'queued'";
            tx.prepare_cached(sql)?.execute((Text(turn.id), Text(event.session_id)))?;
        }
        EventBody::TurnEnded { state, usage, error } => end_turn(tx, event, (*state, usage, error.as_ref()))?,
        EventBody::Message { message } => put_message(tx, event, message, seq)?,
        EventBody::ApprovalRequested { approval } | EventBody::ApprovalResolved { approval } => {
            put_approval(tx, event, approval, seq)?;
        }
        EventBody::QuestionRequested { question } | EventBody::QuestionResolved { question } => {
            put_question(tx, event, question, seq)?;
        }
        EventBody::TodosUpdated { .. } => {
            let sql = "INSERT INTO todo VALUES (?1, ?2) ON CONFLICT DO UPDATE SET seq = excluded.seq";
            tx.prepare_cached(sql)?.execute((Text(event.session_id), Count(seq)))?;
        }
        EventBody::SessionCreated { .. }
        | EventBody::SessionUpdated { .. }
        | EventBody::ToolStarted { .. }
        | EventBody::ToolFinished { .. }
        | EventBody::Notice { .. }
        | EventBody::Other { .. } => {}
        EventBody::Snapshot { .. }
        | EventBody::ToolOutput { .. }
        | EventBody::SessionAttached { .. }
        | EventBody::StreamSynced { .. }
        | EventBody::DaemonDraining { .. } => {
            let what = format!("{}: `{}` is not a durable event", event.session_id, event.body.kind());
            return Err(StoreError::Refused { what, hint: "this is a mistake in agentd: please report it" }.into());
        }
    }
    Ok(())
}

/// Throws a session's index away and makes it again from its events.
pub(super) fn rebuild(tx: &Connection, session: SessionId) -> Result<(), Fault> {
    // The other tables of the index follow by their foreign keys.
    tx.execute("DELETE FROM session WHERE id = ?1", [Text(session)])?;
    replay(tx, session, tx)
}

/// Makes the index of `into` from the journal of `from`.
fn replay(from: &Connection, session: SessionId, into: &Connection) -> Result<(), Fault> {
    let mut events = from.prepare("SELECT seq, payload FROM event WHERE session_id = ?1 ORDER BY seq")?;
    let mut rows = events.query([Text(session)])?;
    while let Some(row) = rows.next()? {
        let Json(event) = row.get::<_, Json<Event>>(1)?;
        project(into, &event, row.get::<_, Count>(0)?.0)?;
    }
    Ok(())
}

/// The tables of the index, and the column that names the session.
const INDEX: [(&str, &str); 7] = [
    ("session", "id"),
    ("turn", "session_id"),
    ("message", "session_id"),
    ("approval", "session_id"),
    ("question", "session_id"),
    ("todo", "session_id"),
    ("decision", "session_id"),
];

/// Makes a session's index anew, in memory, and names the first table that is not the same. Changes nothing.
pub(super) fn differs(db: &Connection, session: SessionId) -> Result<Option<&'static str>, Fault> {
    let anew = schema::in_memory()?;
    replay(db, session, &anew)?;
    for (table, id) in INDEX {
        if rows_of(db, (table, id), session)? != rows_of(&anew, (table, id), session)? {
            return Ok(Some(table));
        }
    }
    Ok(None)
}

fn rows_of(db: &Connection, (table, id): (&str, &str), session: SessionId) -> rusqlite::Result<Vec<Vec<Value>>> {
    let mut statement = db.prepare(&format!("SELECT * FROM {table} WHERE {id} = ?1 ORDER BY 1, 2"))?;
    let columns = statement.column_count();
    let row = |row: &Row<'_>| (0..columns).map(|column| row.get(column)).collect();
    statement.query_map([Text(session)], row)?.collect()
}

const PUT_SESSION: &str = "
    INSERT INTO session (id, seq, cwd, title, status, archived, updated_at, last_seq)
    VALUES (:id, :seq, :cwd, :title, :status, :archived, :ts, :seq)
    ON CONFLICT DO UPDATE SET seq = :seq, cwd = :cwd, title = :title, status = :status, archived = :archived,
        updated_at = :ts, last_seq = :seq";

fn put_session(tx: &Connection, event: &Event, session: &Session, seq: Seq) -> rusqlite::Result<()> {
    tx.prepare_cached(PUT_SESSION)?
        .execute(named_params! {
            ":id": Text(event.session_id),
            ":seq": Count(seq),
            ":cwd": session.cwd.to_string_lossy(),
            ":title": session.title,
            ":status": Text(session.status),
            ":archived": session.archived,
            ":ts": Nanos(event.ts),
        })
        .map(drop)
}

fn touch_session(tx: &Connection, event: &Event, seq: Seq) -> Result<(), Fault> {
    let mut touch = tx.prepare_cached("UPDATE session SET last_seq = ?2, updated_at = ?3 WHERE id = ?1")?;
    if touch.execute((Text(event.session_id), Count(seq), Nanos(event.ts)))? == 1 {
        return Ok(());
    }
    let what =
        format!("session {} is not in the store, so `{}` cannot belong to it", event.session_id, event.body.kind());
    Err(StoreError::Refused { what, hint: "session/list shows the sessions that exist" }.into())
}

const PUT_TURN: &str = "
    INSERT INTO turn (id, session_id, seq, state, ended_at, error, input_tokens, output_tokens, cache_read_tokens,
        cache_write_tokens, reasoning_tokens, cost_usd)
    VALUES (:id, :session, :seq, :state, :ended_at, :error, :input, :output, :cache_read, :cache_write, :reasoning,
        :cost)
    ON CONFLICT DO UPDATE SET seq = :seq, state = :state, ended_at = :ended_at, error = :error, input_tokens = :input,
        output_tokens = :output, cache_read_tokens = :cache_read, cache_write_tokens = :cache_write,
        reasoning_tokens = :reasoning, cost_usd = :cost";

fn put_turn(tx: &Connection, event: &Event, turn: &Turn, seq: Seq) -> rusqlite::Result<()> {
    tx.prepare_cached(PUT_TURN)?
        .execute(named_params! {
            ":id": Text(turn.id),
            ":session": Text(event.session_id),
            ":seq": Count(seq),
            ":state": Text(turn.state),
            ":ended_at": turn.ended_at.map(Nanos),
            ":error": turn.error.as_ref().map(Json),
            ":input": Count(turn.usage.input_tokens),
            ":output": Count(turn.usage.output_tokens),
            ":cache_read": Count(turn.usage.cache_read_tokens),
            ":cache_write": Count(turn.usage.cache_write_tokens),
            ":reasoning": Count(turn.usage.reasoning_tokens),
            ":cost": turn.usage.cost_usd,
        })
        .map(drop)
}

const END_TURN: &str = "
    UPDATE turn SET state = :state, ended_at = :ts, error = :error, input_tokens = :input, output_tokens = :output,
        cache_read_tokens = :cache_read, cache_write_tokens = :cache_write, reasoning_tokens = :reasoning,
        cost_usd = :cost
    WHERE id = :id AND session_id = :session";

fn end_turn(tx: &Connection, event: &Event, end: (TurnState, &Usage, Option<&TurnError>)) -> Result<(), Fault> {
    let (state, usage, error) = end;
    let ended = tx.prepare_cached(END_TURN)?.execute(named_params! {
        ":id": event.turn_id.map(Text),
        ":session": Text(event.session_id),
        ":state": Text(state),
        ":ts": Nanos(event.ts),
        ":error": error.map(Json),
        ":input": Count(usage.input_tokens),
        ":output": Count(usage.output_tokens),
        ":cache_read": Count(usage.cache_read_tokens),
        ":cache_write": Count(usage.cache_write_tokens),
        ":reasoning": Count(usage.reasoning_tokens),
        ":cost": usage.cost_usd,
    })?;
    if ended == 1 {
        return Ok(());
    }
    let turn = event.turn_id.map_or_else(|| "without an id".to_owned(), |id| id.to_string());
    let what = format!("session {}: turn {turn} cannot end, it never began", event.session_id);
    Err(StoreError::Refused { what, hint: "this is a mistake in agentd: please report it" }.into())
}

fn put_message(tx: &Connection, event: &Event, message: &Message, seq: Seq) -> rusqlite::Result<()> {
    let sql = "INSERT INTO message (session_id, seq, id, turn_id, role) VALUES (?1, ?2, ?3, ?4, ?5)";
    let (session, turn) = (Text(event.session_id), event.turn_id.map(Text));
    tx.prepare_cached(sql)?.execute((session, Count(seq), Text(message.id), turn, Text(message.role))).map(drop)
}

fn put_approval(tx: &Connection, event: &Event, approval: &Approval, seq: Seq) -> rusqlite::Result<()> {
    let sql = "INSERT INTO approval (id, session_id, seq, short_id, state) VALUES (?1, ?2, ?3, ?4, ?5)
        ON CONFLICT DO UPDATE SET seq = excluded.seq, short_id = excluded.short_id, state = excluded.state";
    let (id, session, state) = (Text(approval.id), Text(event.session_id), Text(approval.state));
    tx.prepare_cached(sql)?.execute((id, session, Count(seq), &approval.short_id, state)).map(drop)
}

fn put_question(tx: &Connection, event: &Event, question: &QuestionRequest, seq: Seq) -> rusqlite::Result<()> {
    let sql = "INSERT INTO question (id, session_id, seq, short_id, state) VALUES (?1, ?2, ?3, ?4, ?5)
        ON CONFLICT DO UPDATE SET seq = excluded.seq, short_id = excluded.short_id, state = excluded.state";
    let (id, session, state) = (Text(question.id), Text(event.session_id), Text(question.state));
    tx.prepare_cached(sql)?.execute((id, session, Count(seq), &question.short_id, state)).map(drop)
}
