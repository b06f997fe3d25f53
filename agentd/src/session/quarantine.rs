//! A session that ends the daemon each time it is taken up is left alone, so that all others can be used.

use protocol::{ErrorKind, RpcError, Session, SessionId};

use super::storage;
use crate::store::Store;

/// How often a session may end the daemon.
const MOST: u32 = 3;

/// # Errors
/// `invalid_state` for a session that is left alone, `storage_error`.
pub(super) async fn check(store: &Store, session: &Session) -> Result<(), RpcError> {
    let attempts = store.attempts(session.id).await.map_err(|error| storage(&error))?;
    if attempts < MOST {
        return Ok(());
    }
    Err(RpcError::new(
        ErrorKind::InvalidState,
        format!(
            "session {} ended agentd {attempts} times while it was being taken up, so it is left alone",
            session.id
        ),
        "its history can be read with `agentctl history`; another version of agentd will try it again, and \
         `agentctl rm` deletes it",
    ))
}

/// Being taken up it broke off.
pub(super) fn panicked(id: SessionId) -> RpcError {
    super::internal(format!("session {id} could not be taken up: agentd has a defect there"))
}
