//! What clients were told about messages that they may send again.
//!
//! A receipt is committed with the message that it is for, so a client that retries gets it or has sent nothing.

use protocol::{Seq, SessionId, TurnId, TurnState};
use rusqlite::{Connection, OptionalExtension};

use super::columns::{Count, Text};
use super::error::{Fault, StoreError};

/// The answer to one accepted message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceiptRow {
    pub session: SessionId,
    /// The client's own id of the message; once per session.
    pub client_message_id: String,
    /// Tells the same message from another one under the same id.
    pub payload_hash: String,
    pub turn_id: TurnId,
    /// How the turn stood when the message was accepted.
    pub state: TurnState,
    pub seq: Seq,
}

const PUT: &str = "INSERT INTO receipt (session_id, client_message_id, payload_hash, turn_id, state, seq)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING";

pub(super) fn put(tx: &Connection, row: &ReceiptRow) -> Result<(), Fault> {
    let (session, turn, state) = (Text(row.session), Text(row.turn_id), Text(row.state));
    let values = (session, &row.client_message_id, &row.payload_hash, turn, state, Count(row.seq));
    if tx.prepare_cached(PUT)?.execute(values)? == 1 {
        return Ok(());
    }
    let what = format!("session {}: clientMessageId `{}` was used before", row.session, row.client_message_id);
    Err(StoreError::Refused { what, hint: "use a new clientMessageId for a new message" }.into())
}

const GET: &str = "SELECT payload_hash, turn_id, state, seq FROM receipt
    WHERE session_id = ?1 AND client_message_id = ?2";

pub(super) fn get(db: &Connection, session: SessionId, client_message_id: String) -> Result<Option<ReceiptRow>, Fault> {
    let mut statement = db.prepare_cached(GET)?;
    let found = statement.query_row((Text(session), &client_message_id), |row| {
        Ok((row.get(0)?, row.get::<_, Text<_>>(1)?.0, row.get::<_, Text<_>>(2)?.0, row.get::<_, Count>(3)?.0))
    });
    Ok(found.optional()?.map(|(payload_hash, turn_id, state, seq)| ReceiptRow {
        session,
        client_message_id,
        payload_hash,
        turn_id,
        state,
        seq,
    }))
}
