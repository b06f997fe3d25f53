//! The eight places where others take part in a run.
//!
//! `before_*` hooks run in list order, `after_*` hooks in reverse. A hook that errs, panics or does not return changes
//! nothing and ends nothing: the loop says so in a notice and goes on. For every phase that was entered, its end hooks
//! run exactly once, however the phase ended. (Dropping the future of `Agent::run` runs none: cancel it instead.)

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use foundation::{Message, ModelError, SystemText, Tool, ToolError, ToolOutcome};
use protocol::Ground;
use serde_json::Value;

use crate::context::{ModelContext, RunContext, ToolCall};
use crate::run::RunEnd;

/// Something that takes part in runs. All hooks are optional.
#[async_trait]
pub trait Middleware: Send + Sync + fmt::Debug {
    /// For notices and logs.
    fn name(&self) -> &str;

    /// What a failing `before_tool` means.
    fn on_failure(&self) -> OnFailure {
        OnFailure::Open
    }

    /// A run begins. The messages returned are told, kept and become part of the transcript; they must be user
    /// messages, and are marked as synthetic `context` where they are not marked otherwise.
    async fn before_run(&self, _run: &RunContext) -> HookResult<Vec<Message>> {
        Ok(Vec::new())
    }

    /// A step (one model call and the tools it asks for) begins. Messages as in [`Middleware::before_run`].
    async fn before_step(&self, _run: &RunContext) -> HookResult<Vec<Message>> {
        Ok(Vec::new())
    }

    /// A request is about to be sent; each hook sees it with the patches of those before it.
    async fn before_model(&self, _run: &RunContext, _request: &ModelContext<'_>) -> HookResult<ModelPatch> {
        Ok(ModelPatch::default())
    }

    /// A call is about to run. May wait, also for a person: that holds up neither its siblings nor their number. Calls
    /// of the same paths are asked about one after the other, each when the one before it is over.
    async fn before_tool(&self, _run: &RunContext, _call: &ToolCall, _tool: &Arc<dyn Tool>) -> HookResult<ToolGate> {
        Ok(ToolGate::Proceed)
    }

    /// A call is over, or was skipped. What is returned replaces what the model gets; what happened (code, detail and
    /// effect for people and session) stays as it was.
    async fn after_tool(
        &self,
        _run: &RunContext,
        _call: &ToolCall,
        _end: ToolEnd,
        _outcome: &ToolOutcome,
    ) -> HookResult<Option<ToolOutcome>> {
        Ok(None)
    }

    /// A model call is over; a whole answer has been told and kept.
    async fn after_model(&self, _run: &RunContext, _end: ModelEnd<'_>) -> HookResult<()> {
        Ok(())
    }

    /// A step is over.
    async fn after_step(&self, _run: &RunContext, _end: StepEnd) -> HookResult<()> {
        Ok(())
    }

    /// The run is over.
    async fn after_run(&self, _run: &RunContext, _end: &RunEnd) -> HookResult<()> {
        Ok(())
    }
}

/// What a hook gives back.
pub type HookResult<T> = Result<T, HookError>;

/// A hook that could not do its work: what happened to what.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct HookError(pub String);

/// What a failing `before_tool` means for the call. All other hooks are always open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnFailure {
    /// The call goes on as if the hook were not there.
    Open,
    /// The call is refused.
    Closed,
}

/// Additions to one request. None of them is kept.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct ModelPatch {
    /// Behind the system texts that are there.
    pub system: Vec<SystemText>,
    /// Behind the last message; user messages only.
    pub reminders: Vec<Message>,
    /// Names of tools that the model must not see in this request. A call of one is answered like an unknown tool's.
    pub hide_tools: Vec<String>,
}

/// Whether a call runs.
#[derive(Clone, PartialEq, Debug)]
pub enum ToolGate {
    Proceed,
    /// With this input instead, which must fit the schema too. The transcript keeps what the model wrote.
    ProceedWith(Value),
    /// As `Proceed`, and this is why it may.
    Allowed(Ground),
    /// Not at all; this stands for its outcome. No later `before_tool` is asked.
    Skip(ToolOutcome),
    /// As `Skip`, because it may not, for this reason if there is one.
    Denied(ToolError, Option<Ground>),
}

/// How a call came to its outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ToolEnd {
    /// The tool was started.
    Ran,
    /// It was not: a hook refused or answered, or the run was cancelled first.
    Skipped,
}

/// How a model call ended.
#[derive(Clone, Copy, Debug)]
pub enum ModelEnd<'a> {
    Answered(&'a Message),
    Interrupted,
    Failed(&'a ModelError),
}

/// How a step ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepEnd {
    /// Another step follows.
    Continues,
    /// The run ends here.
    Last,
}
