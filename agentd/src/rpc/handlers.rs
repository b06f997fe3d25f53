//! What each method does: look up, ask the session, answer. A loop or a decision here is in the wrong room.

mod catalogue;
mod consent;
mod daemon;
mod sessions;
mod turns;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use jsonrpsee::RpcModule;
use protocol::api::DaemonInfo;
use protocol::{ErrorKind, RpcError};
use tokio_util::sync::CancellationToken;

use crate::rpc::listener::Connections;
use crate::session::assemble::SessionEnv;
use crate::session::command::SessionHandle;
use crate::session::registry::Registry;

/// What handlers reach the daemon through.
#[derive(Debug)]
pub(crate) struct House {
    pub(crate) sessions: Registry,
    pub(crate) env: Arc<SessionEnv>,
    pub(crate) info: DaemonInfo,
    pub(crate) socket: std::path::PathBuf,
    pub(crate) clients: Connections,
    pub(crate) stop: CancellationToken,
    /// How long the turns may take to end once the daemon is told to stop.
    pub(crate) drain_ms: AtomicU64,
}

/// All methods of the protocol that are built.
///
/// # Errors
/// A name that is registered twice.
pub(crate) fn module(house: Arc<House>) -> Result<RpcModule<House>, jsonrpsee::core::RegisterMethodError> {
    let mut module = RpcModule::from_arc(house);
    daemon::register(&mut module)?;
    sessions::register(&mut module)?;
    turns::register(&mut module)?;
    consent::register(&mut module)?;
    catalogue::register(&mut module)?;
    Ok(module)
}

impl House {
    async fn session(&self, id: protocol::SessionId) -> Result<SessionHandle, RpcError> {
        self.sessions.get(id).await
    }

    /// The session that a turn belongs to.
    async fn session_of(&self, turn: protocol::TurnId) -> Result<SessionHandle, RpcError> {
        let found = self.env.store.turn(turn).await.map_err(|error| crate::session::storage(&error))?;
        let Some(found) = found else {
            let hint = "session/history shows a session's turns, queue/list those that wait";
            return Err(RpcError::new(ErrorKind::NotFound, format!("there is no turn {turn}"), hint));
        };
        self.session(found.session_id).await
    }
}
