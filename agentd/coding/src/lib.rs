//! What makes it a coding agent: tools, permissions, prompt, processes.
//!
//! Everything a model or a person can make this crate do passes `permissions`; every process starts in
//! `sandbox::process`. Knows nothing about sockets, the database or providers.

pub mod permissions;
pub mod prompt;
pub mod sandbox;

mod atomic;
mod file_state;
mod lead_agent;
mod outputs;
mod patch;
mod paths;
mod settle;
mod text;
mod tools;

pub use file_state::FileState;
pub use lead_agent::{Place, Setup, Standing, lead_agent, tool_infos};
pub use outputs::Outputs;
pub use paths::{Target, Workspace};
pub use settle::{OnDisk, settle};
pub use tools::{ShellDirectory, file_tools};
