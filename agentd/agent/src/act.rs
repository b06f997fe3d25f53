//! The tools of one answer: all at once within the cap, in order where they touch the same thing.
//!
//! Gives one result for each call, in the order of the calls, whatever becomes of them.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use foundation::{Access, ErrorCode, Message, Part, StopReason, Tool, ToolError, ToolSpec};
use futures_util::future::join_all;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::call::{Asked, Calls};
use crate::context::{RunContext, ToolCall};
use crate::hooks::Hooks;
use crate::order::{Touch, waits_for};
use crate::resume::Resumption;
use crate::toolbox::Toolbox;
use crate::validate;

/// What the calls of one answer have in common.
#[derive(Clone, Copy)]
pub(crate) struct Act<'a> {
    pub(crate) run: &'a RunContext,
    pub(crate) hooks: Hooks<'a>,
    pub(crate) toolbox: &'a Toolbox,
    /// What the model was told of.
    pub(crate) visible: &'a [ToolSpec],
    pub(crate) parallel: usize,
    pub(crate) so_far: &'a Resumption,
}

/// Why no call of an answer runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WhyNone {
    StepLimit,
    ToolsAreOff,
    BrokenOff,
}

impl Act<'_> {
    /// Runs what may run and answers the rest.
    pub(crate) async fn results(self, answer: &Message, why_none: Option<WhyNone>) -> Vec<Part> {
        let asked = self.sort(answer, why_none);
        let touches: Vec<_> = asked.iter().map(|asked| touch(asked, self.so_far)).collect();
        let order = waits_for(&touches);
        drop(touches);
        let permits = Semaphore::new(self.parallel.max(1));
        let calls =
            Calls { run: self.run, hooks: self.hooks, toolbox: self.toolbox, permits: &permits, so_far: self.so_far };
        // Each is cancelled when its call is over, and stays so: whoever waits later does not wait.
        let over: Vec<_> = asked.iter().map(|_| CancellationToken::new()).collect();
        let running = asked.into_iter().zip(&over).zip(order).map(|((asked, own), earlier)| {
            let earlier: Vec<_> = earlier.into_iter().map(|place| &over[place]).collect();
            async move {
                let _over = own.clone().drop_guard();
                match self.so_far.settled.get(&asked.call.id) {
                    Some(result) => result.clone(),
                    None => calls.result(asked, &earlier).await,
                }
            }
        });
        join_all(running).await
    }

    /// Which calls may run, and what is to be said to the others.
    fn sort(self, answer: &Message, why_none: Option<WhyNone>) -> Vec<Asked> {
        let last = answer.tool_uses().count().saturating_sub(1);
        let is_cut = answer.stop_reason == Some(StopReason::Length);
        let uses = answer.content.iter().filter_map(|part| match part {
            Part::ToolUse { id, name, input, raw_input } => Some((id, name, input, raw_input.as_deref())),
            _ => None,
        });
        uses.enumerate()
            .map(|(place, (id, name, input, raw))| {
                let mut call = ToolCall { id: id.clone(), name: name.clone(), input: input.clone() };
                let tool = match (why_none, raw) {
                    (Some(why), _) => Err(none_runs(why, name)),
                    (None, _) if is_cut && place == last => Err(cut(name)),
                    (None, Some(raw)) => Err(validate::not_json(name, raw)),
                    (None, None) => self.toolbox.admit(&mut call, self.visible).map(Arc::clone),
                };
                Asked { call, ordinal: u32::try_from(place).unwrap_or(u32::MAX), tool }
            })
            .collect()
    }
}

fn touch<'a>(asked: &'a Asked, so_far: &Resumption) -> Option<Touch<'a>> {
    if so_far.settled.contains_key(&asked.call.id) {
        return None;
    }
    let tool = asked.tool.as_ref().ok()?;
    let access = access(tool, &asked.call.input);
    Some(Touch { tool: &asked.call.name, class: tool.spec().class, access })
}

/// A tool that panics here will say what is wrong when it is run.
fn access(tool: &Arc<dyn Tool>, input: &Value) -> Access {
    std::panic::catch_unwind(AssertUnwindSafe(|| tool.access(input))).unwrap_or(Access::Nothing)
}

fn none_runs(why: WhyNone, name: &str) -> ToolError {
    let (why, hint) = match why {
        WhyNone::StepLimit => ("the step limit of this turn is reached", "Say what is done and what is left."),
        WhyNone::ToolsAreOff => ("tools are off for this answer", "Answer in words."),
        WhyNone::BrokenOff => ("the answer that asked for it was broken off", "Call it again if it is still needed."),
    };
    ToolError::new(ErrorCode::Cancelled, format!("`{name}` was not run: {why}. Nothing of it happened."), hint)
}

fn cut(name: &str) -> ToolError {
    ToolError::new(
        ErrorCode::InvalidInput,
        format!("`{name}` was not run: the answer was cut at the output limit before this call was whole"),
        "Split the work into smaller calls, for example several small edits instead of one large one.",
    )
}
