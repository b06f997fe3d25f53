//! Tool calls from their start to their result, so that a crash in between is seen for what it is.
//!
//! The start is committed before the tool acts. A finished call never changes again.

use foundation::FileMark;
use jiff::Timestamp;
use protocol::{CallId, SessionId, TurnId};
use rusqlite::{Connection, Row, named_params};
use serde::{Deserialize, Serialize};

use super::columns::{Json, Nanos, Text};
use super::error::{Fault, StoreError};

/// A tool call that was started, and what became of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallRow {
    pub session: SessionId,
    pub call_id: CallId,
    pub turn: TurnId,
    /// Its place among the calls of one answer, from 0.
    pub ordinal: u32,
    pub name: String,
    /// How it may be recovered: `R` reads only, `H` changes a file, `G` fetches from the web, `X` may do anything.
    pub class: char,
    pub state: CallState,
    /// How often it was started, this time included; counted here, what is handed in does not matter.
    pub attempt: u32,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    /// The call's `tool_result` part as JSON, once it is finished.
    pub result: Option<String>,
    /// What it was to make of files; told with its start.
    pub files: Vec<FileMark>,
}

/// Where a call stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    Started,
    Finished,
}

/// A row that exists keeps its turn, ordinal, name and class; a start that is told again keeps the later time.
const PUT: &str = "
    INSERT INTO call (session_id, call_id, turn_id, ordinal, name, class, state, started_at, finished_at, result, files)
    VALUES (:session, :id, :turn, :ordinal, :name, :class, :state, :started_at, :finished_at, :result, :files)
    ON CONFLICT DO UPDATE SET attempt = attempt + (:state = 'started'), state = :state, started_at = coalesce(:started_at, started_at),
        finished_at = :finished_at, result = :result, files = coalesce(:files, files)
    WHERE call.state = 'started'";

pub(super) fn put(tx: &Connection, row: &CallRow) -> Result<(), Fault> {
    let changed = tx.prepare_cached(PUT)?.execute(named_params! {
        ":session": Text(row.session),
        ":id": row.call_id.0,
        ":turn": Text(row.turn),
        ":ordinal": row.ordinal,
        ":name": row.name,
        ":class": row.class.to_string(),
        ":state": Text(row.state),
        ":started_at": row.started_at.map(Nanos),
        ":finished_at": row.finished_at.map(Nanos),
        ":result": row.result,
        ":files": (!row.files.is_empty()).then_some(Json(&row.files)),
    })?;
    if changed == 1 {
        return Ok(());
    }
    let what = format!("session {}: call {} has its result already", row.session, row.call_id);
    Err(StoreError::Refused { what, hint: "give a call that is made again an id of its own" }.into())
}

const OF_TURN: &str =
    "SELECT session_id, call_id, turn_id, ordinal, name, class, state, started_at, finished_at, result,
    attempt, files FROM call WHERE turn_id = ?1 ORDER BY started_at, ordinal";

/// All calls of a turn, in the order of their start.
pub(super) fn of_turn(db: &Connection, turn: TurnId) -> Result<Vec<CallRow>, Fault> {
    let mut statement = db.prepare_cached(OF_TURN)?;
    let rows = statement.query_map([Text(turn)], read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<CallRow> {
    let class: String = row.get(5)?;
    Ok(CallRow {
        session: row.get::<_, Text<_>>(0)?.0,
        call_id: CallId(row.get(1)?),
        turn: row.get::<_, Text<_>>(2)?.0,
        ordinal: row.get(3)?,
        name: row.get(4)?,
        class: class.chars().next().unwrap_or(' '),
        state: row.get::<_, Text<_>>(6)?.0,
        started_at: row.get::<_, Option<Nanos>>(7)?.map(|at| at.0),
        finished_at: row.get::<_, Option<Nanos>>(8)?.map(|at| at.0),
        result: row.get(9)?,
        attempt: row.get(10)?,
        files: row.get::<_, Option<Json<_>>>(11)?.map(|files| files.0).unwrap_or_default(),
    })
}
