//! The nouns of an agent and the traits between its layers.
//!
//! `Model` is what thinks (providers implement it, the loop calls it), `Tool` is what acts (tools implement it, the
//! loop calls it). The message both speak in is the wire's own. Knows nothing about files, sockets, processes,
//! databases, the loop, or the name of any tool.

pub mod failpoint;

mod error;
mod model;
mod schema;
mod tool;

pub use error::{ErrorCode, ModelError, ModelErrorKind, ToolError};
pub use model::{Model, ModelLimits, ModelRequest, ModelStream, SystemText, ToolChoice};
pub use protocol::{CallId, Message, Part, Role, StopReason, Todo, Usage};
pub use schema::parameters;
pub use tool::{
    Access, Effect, FileMark, LiveOutput, Plan, ResultPolicy, Tool, ToolClass, ToolContext, ToolOutcome, ToolOutput,
    ToolSpec,
};
