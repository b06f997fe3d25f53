//! The one end-to-end test binary: the real programs, driven from outside.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what fails here is a test")]

mod apart;
mod attach;
mod chat;
mod clients;
mod consent;
mod failpoints;
mod faults;
mod first_run;
mod history;
mod life;
mod lifecycle;
mod queue;
mod recovery;
mod socket;
mod store;
mod streaming;
mod tidy;
mod tools;
mod wire;
