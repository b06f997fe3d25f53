//! The agent loop: think, act, observe, until an answer asks for nothing more.
//!
//! [`Agent::run`] turns a transcript into a stream of [`AgentEvent`]s. Whoever runs it sees and keeps each of them
//! through an [`Observer`], and takes part through [`Middleware`]. Knows nothing about files, permissions, providers,
//! sessions, or the name of any tool but its own.

pub mod history;

mod act;
mod call;
mod context;
mod event;
mod growing;
mod hooks;
mod limits;
mod middleware;
mod order;
mod publish;
mod result_policy;
mod resume;
mod run;
mod think;
mod todos;
mod toolbox;
mod validate;

#[cfg(test)]
mod scripted;

pub use context::{ModelContext, RunContext, ToolCall};
pub use event::{AgentEvent, Halt, Observer};
pub use limits::Limits;
pub use middleware::{HookError, HookResult, Middleware, ModelEnd, ModelPatch, OnFailure, StepEnd, ToolEnd, ToolGate};
pub use result_policy::model_text;
pub use resume::Resumption;
pub use run::{Agent, RunEnd, RunOutcome};
pub use todos::{TodoList, TodoReminder, TodoWrite};
