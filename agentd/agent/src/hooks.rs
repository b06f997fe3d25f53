//! Runs hooks so that none of them can hurt the run: what errs, panics or does not return becomes a notice.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use foundation::{ErrorCode, Message, Role, SystemText, Tool, ToolError, ToolOutcome, ToolSpec};
use futures_util::FutureExt as _;
use protocol::{Ground, NoticeLevel};
use tokio_util::sync::CancellationToken;

use crate::context::{ModelContext, RunContext, ToolCall};
use crate::middleware::{HookResult, Middleware, ModelEnd, ModelPatch, OnFailure, StepEnd, ToolEnd, ToolGate};
use crate::publish::{Publisher, panic_text};
use crate::run::RunEnd;

/// What tools and hooks promise to need at most after a cancel is a second; this is that, and some slack. Calls that
/// change files have no such limit.
pub(crate) const GRACE: Duration = Duration::from_millis(1500);

/// The middleware of one run.
#[derive(Clone, Copy)]
pub(crate) struct Hooks<'a> {
    pub(crate) middleware: &'a [Arc<dyn Middleware>],
    pub(crate) publisher: &'a Publisher,
}

/// A hook gave nothing; a notice has said so.
struct Failed;

impl Hooks<'_> {
    pub(crate) async fn before_run(self, run: &RunContext) -> Vec<Message> {
        let mut context = Vec::new();
        for layer in self.middleware {
            let added = self.isolate((layer, "before_run"), run, layer.before_run(run)).await;
            context.extend(self.user_messages((layer, "before_run"), added.unwrap_or_default(), "context").await);
        }
        context
    }

    pub(crate) async fn before_step(self, run: &RunContext) -> Vec<Message> {
        let mut context = Vec::new();
        for layer in self.middleware {
            let added = self.isolate((layer, "before_step"), run, layer.before_step(run)).await;
            context.extend(self.user_messages((layer, "before_step"), added.unwrap_or_default(), "context").await);
        }
        context
    }

    /// Applies each hook's patch to `draft`, so that the next one sees it.
    pub(crate) async fn before_model(self, run: &RunContext, draft: &mut Draft<'_>) {
        for layer in self.middleware {
            let context = ModelContext {
                system: &draft.system,
                messages: draft.messages,
                tools: &draft.tools,
                limits: draft.limits,
            };
            let hook = (layer, "before_model");
            let patch = self.isolate(hook, run, layer.before_model(run, &context)).await;
            let ModelPatch { system, reminders, hide_tools } = patch.unwrap_or_default();
            draft.system.extend(system);
            draft.messages.extend(self.user_messages(hook, reminders, "reminder").await);
            draft.tools.retain(|spec| !hide_tools.iter().any(|hidden| hidden == spec.name));
        }
    }

    /// Why the call may run. The first hook that does not let it pass decides; `ProceedWith` changes what the later
    /// ones see.
    pub(crate) async fn before_tool(
        self,
        run: &RunContext,
        call: &mut ToolCall,
        tool: &Arc<dyn Tool>,
    ) -> Result<Option<Ground>, (ToolOutcome, Option<Ground>)> {
        let mut allowed_by = None;
        for layer in self.middleware {
            match self.isolate((layer, "before_tool"), run, layer.before_tool(run, call, tool)).await {
                Ok(ToolGate::Proceed) => {}
                Ok(ToolGate::ProceedWith(input)) => call.input = input,
                Ok(ToolGate::Allowed(ground)) => allowed_by = Some(ground),
                Ok(ToolGate::Skip(outcome)) => return Err((outcome, None)),
                Ok(ToolGate::Denied(error, ground)) => return Err((Err(error), ground)),
                Err(Failed) => match layer.on_failure() {
                    OnFailure::Open => {}
                    OnFailure::Closed => return Err((Err(not_judged(layer.name(), call)), None)),
                },
            }
        }
        Ok(allowed_by)
    }

    /// What the model gets instead of `outcome`, if a hook says so.
    pub(crate) async fn after_tool(
        self,
        run: &RunContext,
        call: &ToolCall,
        end: ToolEnd,
        outcome: &ToolOutcome,
    ) -> Option<ToolOutcome> {
        let mut replaced = None;
        for layer in self.middleware.iter().rev() {
            let so_far = replaced.as_ref().unwrap_or(outcome);
            let hook = layer.after_tool(run, call, end, so_far);
            if let Ok(Some(instead)) = self.isolate((layer, "after_tool"), run, hook).await {
                replaced = Some(instead);
            }
        }
        replaced
    }

    pub(crate) async fn after_model(self, run: &RunContext, end: ModelEnd<'_>) {
        for layer in self.middleware.iter().rev() {
            let _ = self.isolate((layer, "after_model"), run, layer.after_model(run, end)).await;
        }
    }

    pub(crate) async fn after_step(self, run: &RunContext, end: StepEnd) {
        for layer in self.middleware.iter().rev() {
            let _ = self.isolate((layer, "after_step"), run, layer.after_step(run, end)).await;
        }
    }

    pub(crate) async fn after_run(self, run: &RunContext, end: &RunEnd) {
        for layer in self.middleware.iter().rev() {
            let _ = self.isolate((layer, "after_run"), run, layer.after_run(run, end)).await;
        }
    }

    async fn isolate<T>(
        self,
        (layer, point): (&Arc<dyn Middleware>, &str),
        run: &RunContext,
        hook: impl Future<Output = HookResult<T>>,
    ) -> Result<T, Failed> {
        let hook = AssertUnwindSafe(hook).catch_unwind();
        let why = match within_grace(&run.cancel, hook).await {
            Some(Ok(Ok(value))) => return Ok(value),
            Some(Ok(Err(error))) => error.to_string(),
            Some(Err(panic)) => format!("it panicked: {}", panic_text(panic.as_ref())),
            None => "it did not return when the run was cancelled".into(),
        };
        let text = format!("hook {point} of `{}` did nothing: {why}", layer.name());
        self.publisher.notice(NoticeLevel::Warning, text).await;
        Err(Failed)
    }

    /// Anything but a user message would break the order of calls and results.
    async fn user_messages(
        self,
        (layer, point): (&Arc<dyn Middleware>, &str),
        messages: Vec<Message>,
        why: &str,
    ) -> Vec<Message> {
        let given = messages.len();
        let mut kept = messages;
        kept.retain(|message| message.role == Role::User);
        if kept.len() < given {
            let text = format!("hook {point} of `{}`: messages that are not a user's were left out", layer.name());
            self.publisher.notice(NoticeLevel::Warning, text).await;
        }
        for message in &mut kept {
            message.synthetic.get_or_insert_with(|| why.to_owned());
        }
        kept
    }
}

/// A request on its way through the hooks. What they put behind the last message is taken off again afterwards.
pub(crate) struct Draft<'a> {
    pub(crate) system: Vec<SystemText>,
    pub(crate) messages: &'a mut Vec<Message>,
    pub(crate) tools: Vec<ToolSpec>,
    pub(crate) limits: foundation::ModelLimits,
}

/// Waits for `future`, after a cancel no longer than the grace.
pub(crate) async fn within_grace<T>(cancel: &CancellationToken, future: impl Future<Output = T>) -> Option<T> {
    let too_late = async {
        cancel.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        biased;
        value = future => Some(value),
        () = too_late => None,
    }
}

fn not_judged(layer: &str, call: &ToolCall) -> ToolError {
    ToolError::new(
        ErrorCode::Denied,
        format!("`{}` was not run: `{layer}` could not decide whether it may", call.name),
        "Nothing of it happened. Go on without this call, or tell the user that it was refused.",
    )
}
