//! The one end-to-end test binary: the real programs, driven from outside.

mod attach;
mod chat;
mod consent;
mod first_run;
mod lifecycle;
mod socket;
mod streaming;
mod tidy;
mod wire;
