//! The one end-to-end test binary: the real programs, driven from outside.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what fails here is a test")]

mod apart;
mod attach;
mod chat;
mod consent;
mod failpoints;
mod first_run;
mod life;
mod lifecycle;
mod queue;
mod recovery;
mod socket;
mod store;
mod streaming;
mod tidy;
mod wire;
