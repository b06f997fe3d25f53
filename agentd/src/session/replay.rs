//! Where a subscriber begins that was here before, and how it catches up from the store.

use async_trait::async_trait;
use protocol::{Cursor, ErrorKind, RpcError, Seq, SessionId};

use super::feed::{Durable, Journal};
use super::storage;
use crate::store::Store;

#[async_trait]
impl Journal for Store {
    async fn page(&self, session: SessionId, after: Seq, limit: usize) -> Result<Vec<Durable>, RpcError> {
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let page = self.history(session, Some(after), None, limit).await.map_err(|error| storage(&error))?;
        Ok(page.events.into_iter().map(|event| Durable::stored(event.seq, &event.kind, event.json)).collect())
    }
}

/// The event that a cursor stands behind.
///
/// # Errors
/// `cursor_foreign` for a cursor of another database or of a place that this one has not reached.
pub(crate) fn place_of(cursor: &Cursor, epoch: &str, last_seq: Seq) -> Result<Seq, RpcError> {
    match cursor.parts() {
        Some((of, seq)) if of == epoch && seq <= last_seq => Ok(seq),
        _ => Err(RpcError::new(
            ErrorKind::CursorForeign,
            format!("cursor `{}` is none of this database", cursor.0),
            "the database was restored or replaced: read the session again with session/history, or subscribe from a \
             snapshot",
        )),
    }
}
