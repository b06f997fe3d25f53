//! The daemon's door: JSON-RPC 2.0, one message a line, over a Unix socket.
//!
//! Knows connections, calls and subscriptions, and nothing of turns or models: `handlers` does, and is registered from
//! outside. What a subscriber sees is pulled from a session's feed, so nobody in here can slow a session down.

mod bind;
mod caller;
mod connection;
mod control;
mod dispatch;
pub(crate) mod handlers;
pub(crate) mod listener;
mod outgoing;
mod overview;
pub(crate) mod peer;
pub(crate) mod register;
mod reply;
mod request;
pub(crate) mod subscription;

#[cfg(test)]
mod tests;

pub(crate) use caller::Caller;
pub(crate) use connection::MAX_IN_FLIGHT;
pub(crate) use dispatch::MAX_SUBSCRIPTIONS;
pub(crate) use peer::Client;
pub(crate) use request::MAX_BATCH;
