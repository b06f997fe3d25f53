//! The daemon: sockets, sessions and the store, around the layers below.
//!
//! `daemon` starts and stops everything in order. `rpc` is "socket in, session calls out", `session` is "one task owns
//! one conversation", `store` is everything that outlives the process. Knows nothing about terminals or how things
//! are printed.

mod args;
mod daemon;
mod file_system;
mod lock;
pub mod logging;
pub mod rpc;
mod session;
pub mod settings;
pub mod store;
pub mod systemd;

pub use args::{Args, Command};
pub use daemon::{Config, StartError, restore, run};
