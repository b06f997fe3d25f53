//! How a command is started, watched and ended.
//!
//! `process` is the one place that starts processes, `env` what they see, `capture` what is kept of their output,
//! `tree` which processes belong to a call and how they end, `orphans` whose those are that say
//! nothing, `leftovers` ends what a killed daemon could not. Decides nothing about what may run.

mod capture;
mod env;
mod leftovers;
mod orphans;
mod process;
mod tree;

pub(crate) use capture::text_of;
pub use env::ProcessEnv;
pub use leftovers::end_leftovers;
pub use orphans::adopt_orphans;
pub(crate) use process::{Command, Ending, Run, run};
