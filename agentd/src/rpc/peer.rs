//! Who is at the other end of a connection.
//!
//! What the kernel says (uid, pid) is fact; what the client says of itself (name, terminal, role) is courtesy and gives
//! no right that its uid does not have.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use protocol::ClientId;
use protocol::api::ApprovalRole;
use tokio_util::sync::CancellationToken;

/// One connection, as handlers see it.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: ClientId,
    pub(crate) uid: u32,
    pub(crate) pid: Option<i32>,
    /// Cancelled when the connection is over. A handler that can wait for long gives up on it; one that changes
    /// something goes on to its end.
    pub(crate) gone: CancellationToken,
    info: Mutex<ClientInfo>,
}

/// What a client has told in `initialize`, or the defaults of one that has not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ClientInfo {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) tty: Option<String>,
    pub(crate) role: ApprovalRole,
    /// The shortest pause between two snapshots.
    pub(crate) snapshot_min: Duration,
}

impl Default for ClientInfo {
    fn default() -> Self {
        Self {
            name: "unknown".into(),
            version: String::new(),
            tty: None,
            role: ApprovalRole::Answer,
            snapshot_min: Duration::from_millis(33),
        }
    }
}

impl Client {
    pub(crate) fn new(uid: u32, pid: Option<i32>) -> Self {
        Self { id: ClientId::new(), uid, pid, gone: CancellationToken::new(), info: Mutex::default() }
    }

    /// A copy of what the client has told.
    pub(crate) fn info(&self) -> ClientInfo {
        self.lock().clone()
    }

    pub(crate) fn set_info(&self, info: ClientInfo) {
        *self.lock() = info;
    }

    fn lock(&self) -> MutexGuard<'_, ClientInfo> {
        self.info.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
