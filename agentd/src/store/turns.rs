//! Turns, the transcript and the task list, read through the index from the events that hold them.

use protocol::{Actor, Message, SessionId, Todo, Turn, TurnId, Usage};
use rusqlite::{Connection, OptionalExtension, Row, ToSql};
use serde::Deserialize;

use super::columns::{Count, Data, Json, Nanos, Text};
use super::error::Fault;

#[derive(Deserialize)]
struct OfTurn {
    turn: Turn,
}

#[derive(Deserialize)]
struct OfActor {
    actor: Option<Actor>,
}

#[derive(Deserialize)]
struct OfMessage {
    message: Message,
}

#[derive(Deserialize)]
struct OfTodos {
    todos: Vec<Todo>,
}

/// Ids sort by the time they were made, so a listing by id is one in the order of sending.
macro_rules! turns {
    ($condition:literal) => {
        concat!(
            "SELECT e.payload, t.state, t.ended_at, t.error, t.input_tokens, t.output_tokens, t.cache_read_tokens, ",
            "t.cache_write_tokens, t.reasoning_tokens, t.cost_usd ",
            "FROM turn t JOIN event e ON e.session_id = t.session_id AND e.seq = t.seq WHERE ",
            $condition,
            " ORDER BY t.id"
        )
    };
}

pub(super) fn get(db: &Connection, turn: TurnId) -> Result<Option<Turn>, Fault> {
    Ok(db.prepare_cached(turns!("t.id = ?1"))?.query_row([Text(turn)], read).optional()?)
}

pub(super) fn of_session(db: &Connection, session: SessionId) -> Result<Vec<Turn>, Fault> {
    all(db, turns!("t.session_id = ?1"), &[&Text(session)])
}

/// Sessions with a turn that runs, or did when an earlier life of the daemon ended.
pub(super) fn sessions_with(db: &Connection, state: protocol::TurnState) -> Result<Vec<SessionId>, Fault> {
    // The first condition is the index's own, so that SQLite uses it.
    let sql = "SELECT DISTINCT session_id FROM turn WHERE state IN ('queued', 'running', 'recoverable')
        AND state = ?1";
    let mut statement = db.prepare_cached(sql)?;
    let sessions = statement.query_map([Text(state)], |row| row.get::<_, Text<_>>(0).map(|id| id.0))?;
    Ok(sessions.collect::<Result<_, _>>()?)
}

/// Those of a session that can still change, each with who handed it in last.
pub(super) fn open(db: &Connection, session: SessionId) -> Result<Vec<(Turn, Option<Actor>)>, Fault> {
    let sql = turns!("t.session_id = ?1 AND t.state IN ('queued', 'running', 'recoverable')");
    let mut statement = db.prepare_cached(sql)?;
    let turns =
        statement.query_map([Text(session)], |row| Ok((read(row)?, row.get::<_, Json<OfActor>>(0)?.0.actor)))?;
    Ok(turns.collect::<Result<_, _>>()?)
}

/// The one that was handed in last.
pub(super) fn last(db: &Connection, session: SessionId) -> Result<Option<Turn>, Fault> {
    let sql = turns!("t.id = (SELECT max(id) FROM turn WHERE session_id = ?1)");
    Ok(db.prepare_cached(sql)?.query_row([Text(session)], read).optional()?)
}

/// What all turns of a session but one have used, as their ends say.
pub(super) fn usage_without(db: &Connection, session: SessionId, turn: TurnId) -> Result<Usage, Fault> {
    let sql = "SELECT coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0),
        coalesce(sum(cache_read_tokens), 0), coalesce(sum(cache_write_tokens), 0), coalesce(sum(reasoning_tokens), 0),
        sum(cost_usd) FROM turn WHERE session_id = ?1 AND id <> ?2";
    let usage = db.prepare_cached(sql)?.query_row((Text(session), Text(turn)), |row| {
        let tokens = |column| row.get::<_, Count>(column).map(|count| count.0);
        Ok(Usage {
            input_tokens: tokens(0)?,
            output_tokens: tokens(1)?,
            cache_read_tokens: tokens(2)?,
            cache_write_tokens: tokens(3)?,
            reasoning_tokens: tokens(4)?,
            cost_usd: row.get(5)?,
        })
    });
    Ok(usage?)
}

fn all(db: &Connection, sql: &str, values: &[&dyn ToSql]) -> Result<Vec<Turn>, Fault> {
    let mut statement = db.prepare_cached(sql)?;
    let turns = statement.query_map(values, read)?.collect::<Result<_, _>>()?;
    Ok(turns)
}

fn read(row: &Row<'_>) -> rusqlite::Result<Turn> {
    let Data(OfTurn { turn }) = row.get(0)?;
    let tokens = |column| row.get::<_, Count>(column).map(|count| count.0);
    Ok(Turn {
        state: row.get::<_, Text<_>>(1)?.0,
        ended_at: row.get::<_, Option<Nanos>>(2)?.map(|at| at.0),
        error: row.get::<_, Option<Json<_>>>(3)?.map(|error| error.0),
        usage: Usage {
            input_tokens: tokens(4)?,
            output_tokens: tokens(5)?,
            cache_read_tokens: tokens(6)?,
            cache_write_tokens: tokens(7)?,
            reasoning_tokens: tokens(8)?,
            cost_usd: row.get(9)?,
        },
        ..turn
    })
}

const TRANSCRIPT: &str = "SELECT e.payload FROM message m
    JOIN event e ON e.session_id = m.session_id AND e.seq = m.seq WHERE m.session_id = ?1 ORDER BY m.seq";

pub(super) fn transcript(db: &Connection, session: SessionId) -> Result<Vec<Message>, Fault> {
    let mut statement = db.prepare_cached(TRANSCRIPT)?;
    let messages =
        statement.query_map([Text(session)], |row| row.get::<_, Data<OfMessage>>(0).map(|data| data.0.message))?;
    Ok(messages.collect::<Result<_, _>>()?)
}

const LAST: &str = "SELECT e.payload FROM message m
    JOIN event e ON e.session_id = m.session_id AND e.seq = m.seq WHERE m.session_id = ?1 ORDER BY m.seq DESC LIMIT 1";

pub(super) fn last_message(db: &Connection, session: SessionId) -> Result<Option<Message>, Fault> {
    let mut statement = db.prepare_cached(LAST)?;
    let message = statement.query_row([Text(session)], |row| row.get::<_, Data<OfMessage>>(0));
    Ok(message.optional()?.map(|data| data.0.message))
}

const OF_TURN: &str = "SELECT e.payload FROM message m
    JOIN event e ON e.session_id = m.session_id AND e.seq = m.seq WHERE m.turn_id = ?1 ORDER BY m.seq";

/// The messages of one turn, in order.
pub(super) fn messages(db: &Connection, turn: TurnId) -> Result<Vec<Message>, Fault> {
    let mut statement = db.prepare_cached(OF_TURN)?;
    let messages =
        statement.query_map([Text(turn)], |row| row.get::<_, Data<OfMessage>>(0).map(|data| data.0.message))?;
    Ok(messages.collect::<Result<_, _>>()?)
}

const TODOS: &str = "SELECT e.payload FROM todo t
    JOIN event e ON e.session_id = t.session_id AND e.seq = t.seq WHERE t.session_id = ?1";

pub(super) fn todos(db: &Connection, session: SessionId) -> Result<Vec<Todo>, Fault> {
    let mut statement = db.prepare_cached(TODOS)?;
    let todos = statement.query_row([Text(session)], |row| row.get::<_, Data<OfTodos>>(0));
    Ok(todos.optional()?.map(|data| data.0.todos).unwrap_or_default())
}
