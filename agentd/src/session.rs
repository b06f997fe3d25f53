//! Sessions: one task owns each, everything else asks it.
//!
//! `registry` finds or opens a session, `command` is the way in, `actor` is the task. `scribe` commits and publishes,
//! `feed` is what watchers see, `turn` is how a running loop reaches its session, `assemble` builds that loop.

mod actor;
mod approvals;
pub(crate) mod assemble;
pub(crate) mod attachment;
pub(crate) mod command;
pub(crate) mod feed;
mod live;
pub(crate) mod models;
mod outcome;
mod prelude;
mod quarantine;
mod questions;
mod queue;
mod recovery;
pub(crate) mod registry;
mod replay;
mod scribe;
mod tail;
mod translate;
mod turn;
mod waiters;

use protocol::{ErrorKind, RpcError, SessionId, TurnId};

pub(crate) use prelude::prelude;
pub(crate) use replay::place_of;

use crate::store::StoreError;

/// A failure of the store, as clients see it.
pub(crate) fn storage(error: &StoreError) -> RpcError {
    let kind = match error {
        StoreError::Full { .. } => ErrorKind::DiskFull,
        StoreError::Cursor { .. } => ErrorKind::InvalidParams,
        _ => ErrorKind::StorageError,
    };
    RpcError::new(kind, error.fact(), error.hint()).with("cause", error.kind())
}

/// A mistake of agentd itself.
pub(crate) fn internal(what: String) -> RpcError {
    RpcError::new(ErrorKind::Internal, what, "this is a mistake in agentd: please report it with the lines of its log")
}

pub(crate) fn no_session(id: SessionId) -> RpcError {
    RpcError::new(ErrorKind::NotFound, format!("there is no session {id}"), "session/list shows those that exist")
}

/// A turn's state as it stands on the wire.
pub(crate) fn name_of(state: protocol::TurnState) -> &'static str {
    match state {
        protocol::TurnState::Queued => "queued",
        protocol::TurnState::Running => "running",
        protocol::TurnState::Completed => "completed",
        protocol::TurnState::Interrupted => "interrupted",
        protocol::TurnState::Failed => "failed",
        protocol::TurnState::Limit => "limit",
        protocol::TurnState::Recoverable => "recoverable",
    }
}

pub(crate) fn no_turn(id: TurnId, session: SessionId) -> RpcError {
    RpcError::new(ErrorKind::NotFound, format!("session {session} has no turn {id}"), "session/history shows its turns")
}
