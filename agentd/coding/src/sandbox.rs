//! How a command is started, watched and ended.
//!
//! `process` is the one place that starts processes, `env` what they see, `capture` what is kept of their output,
//! `tree` which processes belong to a call and how they end. Decides nothing about what may run.

mod capture;
mod env;
mod process;
mod tree;

pub use env::ProcessEnv;
pub(crate) use process::{Command, Ending, Run, run};
