//! One call, from the answer that asks for it to the result that the model gets.
//!
//! Waits for the earlier calls of the same paths, then for the hooks' consent, then for a place among the running
//! tools; only then the start is told, and only when that is kept the tool starts. After a cancel nothing starts.

use std::sync::Arc;
use std::time::Duration;

use foundation::{ErrorCode, Part, ResultPolicy, Tool, ToolClass, ToolContext, ToolError, ToolOutcome};
use protocol::Ground;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::context::{RunContext, ToolCall};
use crate::event::AgentEvent;
use crate::hooks::{Hooks, within_grace};
use crate::middleware::ToolEnd;
use crate::publish::panic_text;
use crate::result_policy::model_text;
use crate::resume::Resumption;
use crate::toolbox::Toolbox;

/// A call that an answer asks for.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) call: ToolCall,
    pub(crate) ordinal: u32,
    /// The tool, or why there is none for this call.
    pub(crate) tool: Result<Arc<dyn Tool>, ToolError>,
}

/// What the calls of one answer share.
#[derive(Clone, Copy)]
pub(crate) struct Calls<'a> {
    pub(crate) run: &'a RunContext,
    pub(crate) hooks: Hooks<'a>,
    pub(crate) toolbox: &'a Toolbox,
    pub(crate) permits: &'a Semaphore,
    pub(crate) so_far: &'a Resumption,
}

/// How a call ended.
struct Ended {
    end: ToolEnd,
    outcome: ToolOutcome,
    duration: Duration,
    denied_by: Option<Ground>,
}

impl Ended {
    fn skipped(outcome: ToolOutcome) -> Self {
        Self { end: ToolEnd::Skipped, outcome, duration: Duration::ZERO, denied_by: None }
    }
}

impl Calls<'_> {
    /// Runs the call once all of `earlier` are over, tells its end and returns its `tool_result`.
    pub(crate) async fn result(self, asked: Asked, earlier: &[&CancellationToken]) -> Part {
        let Asked { mut call, ordinal, tool } = asked;
        let run = RunContext { step: self.run.step, cancel: self.run.cancel.child_token() };
        let (ended, for_model, policy) = match tool {
            Err(error) => (Ended::skipped(Err(error)), None, ResultPolicy::Summary),
            Ok(tool) => {
                let policy = tool.spec().policy;
                let is_turn = self.wait_for(earlier, &run.cancel).await;
                if is_turn {
                    let ended = self.judged(&run, &mut call, ordinal, &tool).await;
                    let for_model = self.hooks.after_tool(&run, &call, ended.end, &ended.outcome).await;
                    (ended, for_model, policy)
                } else {
                    (Ended::skipped(Err(not_started(&call.name))), None, policy)
                }
            }
        };
        let Ended { outcome, duration, denied_by, .. } = ended;
        let result = self.so_far.noted(result_part(&call, policy, for_model.as_ref().unwrap_or(&outcome)));
        let (summary, code, detail, effect) = match outcome {
            Ok(output) => (output.summary, None, output.detail, output.effect),
            Err(error) => (error.summary, Some(error.code), None, None),
        };
        let finished = AgentEvent::ToolFinished {
            call: call.id,
            name: call.name,
            result: result.clone(),
            summary,
            code,
            detail,
            effect,
            duration,
            denied_by,
        };
        // After a halt the run ends; the result is of no more use, but has its place.
        let _ = self.hooks.publisher.tell(finished).await;
        result
    }

    /// False when the run was cancelled first.
    async fn wait_for(self, earlier: &[&CancellationToken], cancel: &CancellationToken) -> bool {
        for over in earlier {
            tokio::select! {
                biased;
                () = cancel.cancelled() => return false,
                () = over.cancelled() => {}
            }
        }
        !cancel.is_cancelled()
    }

    /// Asks the hooks, then runs.
    async fn judged(self, run: &RunContext, call: &mut ToolCall, ordinal: u32, tool: &Arc<dyn Tool>) -> Ended {
        let allowed_by = match self.hooks.before_tool(run, call, tool).await {
            Ok(allowed_by) => allowed_by,
            Err((instead, denied_by)) => return Ended { denied_by, ..Ended::skipped(instead) },
        };
        if let Err(error) = self.toolbox.recheck(call) {
            return Ended::skipped(Err(error));
        }
        let permit = tokio::select! {
            biased;
            () = run.cancel.cancelled() => None,
            permit = self.permits.acquire() => permit.ok(),
        };
        let Some(_permit) = permit else { return Ended::skipped(Err(not_started(&call.name))) };
        let started = AgentEvent::ToolStarted {
            call: call.id.clone(),
            ordinal,
            name: call.name.clone(),
            class: tool.spec().class,
            title: call.title().to_owned(),
            input: call.input.clone(),
            allowed_by,
            files: tool.marks(&call.input).await,
        };
        let told = self.hooks.publisher.tell(started).await;
        if told.is_err() || run.cancel.is_cancelled() {
            return Ended::skipped(Err(not_started(&call.name)));
        }
        let begin = Instant::now();
        let outcome = self.invoke(call, tool, &run.cancel).await;
        Ended { end: ToolEnd::Ran, outcome, duration: begin.elapsed(), denied_by: None }
    }

    /// Runs the tool in a task of its own, so that one that blocks or panics hurts nobody else. After a cancel, one
    /// that changes files is waited for to its end, any other no longer than the grace.
    async fn invoke(self, call: &ToolCall, tool: &Arc<dyn Tool>, cancel: &CancellationToken) -> ToolOutcome {
        let mut task = JoinSet::new();
        let span = tracing::info_span!("call", id = %call.id, tool = call.name);
        let tool_class = tool.spec().class;
        let (tool, observer) = (Arc::clone(tool), self.hooks.publisher.observer());
        let (id, input, token) = (call.id.clone(), call.input.clone(), cancel.clone());
        let invoked =
            async move { tool.invoke(input, &ToolContext { call: &id, live: observer.as_ref() }, &token).await };
        task.spawn(invoked.instrument(span));
        let ended = match tool_class {
            // Its work stands on a thread that nothing can end: left behind, its write would land after the answer to
            // the interrupt. It looks at the token before it writes, and the write itself is bounded.
            ToolClass::File => Some(task.join_next().await),
            ToolClass::Read | ToolClass::Get | ToolClass::Effect => within_grace(cancel, task.join_next()).await,
        };
        match ended {
            Some(Some(Ok(outcome))) => outcome,
            Some(Some(Err(error))) => {
                let why = error.try_into_panic().map_or_else(
                    |_| "its task was ended from outside".to_owned(),
                    |panic| panic_text(panic.as_ref()).to_owned(),
                );
                tracing::error!(call = %call.id, tool = call.name, why, "a tool panicked");
                Err(panicked(&call.name, &why))
            }
            Some(None) => Err(panicked(&call.name, "it was never started")),
            // Dropping the set ends the task at its next wait. What it runs on a blocking thread goes on to its end.
            None => Err(abandoned(&call.name)),
        }
    }
}

fn result_part(call: &ToolCall, policy: ResultPolicy, outcome: &ToolOutcome) -> Part {
    let code = outcome.as_ref().err().map(|error| error.code.as_str().to_owned());
    Part::ToolResult {
        tool_use_id: call.id.clone(),
        content: model_text(policy, outcome),
        is_error: outcome.is_err(),
        code,
    }
}

fn not_started(name: &str) -> ToolError {
    ToolError::new(
        ErrorCode::Cancelled,
        format!("`{name}` was not run: the turn was interrupted before it started. Nothing of it happened."),
        "Call it again only if the user still wants it.",
    )
}

fn abandoned(name: &str) -> ToolError {
    ToolError::new(
        ErrorCode::UnknownOutcome,
        format!("`{name}` was interrupted and did not stop in time: it is not known how much of it happened"),
        "Look at what it would have changed before you call it again.",
    )
}

fn panicked(name: &str, why: &str) -> ToolError {
    ToolError::new(
        ErrorCode::Internal,
        format!("`{name}` has a defect and broke off: {why}. It is not known how much of it happened."),
        "Look at what it would have changed, then go on in another way.",
    )
}
