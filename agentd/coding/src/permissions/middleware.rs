//! Stands between a model's call and the tool: decides, asks a person where needed, or answers in the tool's place.
//!
//! What was agreed to is what runs: after a person's answer the call is judged again, by the mode and rules of that
//! moment, and one that would touch something else by now asks anew. What counts is where its paths lead, not how they
//! are written: a link may have been turned while the person thought. Looking that up can block for as long as a file
//! system does, so it never happens on the runtime's own threads.

use std::sync::Arc;

use agent::{HookResult, Middleware, OnFailure, RunContext, ToolCall, ToolGate};
use async_trait::async_trait;
use foundation::{ErrorCode, Tool, ToolError};
use protocol::Ground;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::approver::{Approver, Consent, Verdict};
use super::decide::{Decision, decide};
use super::facts::{Call, Protected, Touch};
use super::grants::Grants;
use super::mode::SharedMode;
use super::rule::Rules;
use crate::paths::Workspace;

/// How often a call is asked about while what it would touch keeps changing.
const MAX_ROUNDS: usize = 3;

/// The permission engine of one session.
#[derive(Clone, Debug)]
pub struct Permissions {
    pub mode: SharedMode,
    pub rules: Arc<Rules>,
    pub grants: Grants,
    pub protected: Protected,
    pub workspace: Arc<Workspace>,
    pub approver: Arc<dyn Approver>,
}

impl Permissions {
    /// Decides on a call as things are now, and says what it would touch. Looks at the disk.
    fn judge(&self, tool: &dyn Tool, input: &Value) -> (Decision, Touch) {
        let call = Call::new(tool.spec().name, tool.access(input), &self.workspace, &self.protected);
        let decision = decide(self.mode.get(), &self.rules, &self.grants.list(), &call);
        (decision, call.touch)
    }

    /// As [`Self::judge`], on a thread that may block; a cancel does not wait for it.
    async fn judged(
        &self,
        call: &ToolCall,
        tool: &Arc<dyn Tool>,
        cancel: &CancellationToken,
    ) -> Result<(Decision, Touch), ToolError> {
        let (permissions, tool, input) = (self.clone(), Arc::clone(tool), call.input.clone());
        let judging = tokio::task::spawn_blocking(move || permissions.judge(tool.as_ref(), &input));
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(cancelled("while it was judged")),
            judged = judging => judged.map_err(|error| {
                tracing::error!(call = %call.id, tool = call.name, %error, "a call could not be judged");
                denied("the call could not be judged, by a defect of agentd", "Find another way, or ask the person.")
            }),
        }
    }

    async fn gate(&self, run: &RunContext, call: &ToolCall, tool: &Arc<dyn Tool>) -> Result<Ground, Refusal> {
        let mut agreed: Option<(Touch, Ground)> = None;
        for _ in 0..MAX_ROUNDS {
            let (decision, touch) = self.judged(call, tool, &run.cancel).await.map_err(unfounded)?;
            match decision {
                Decision::Allow { why } => return Ok(why.into()),
                Decision::Refuse { text, hint, why } => return Err(Box::new((denied(text, hint), Some(why.into())))),
                Decision::Ask { risks, options } => {
                    if let Some((_, ground)) = agreed.take_if(|(shown, _)| *shown == touch) {
                        return Ok(ground);
                    }
                    let plan = tool.plan(&call.input).await.map_err(unfounded)?;
                    let consent = Consent {
                        call: call.id.clone(),
                        tool: call.name.clone(),
                        title: call.title().to_owned(),
                        detail: plan.detail,
                        risks: risks.into_iter().chain(plan.risks).collect(),
                        options,
                    };
                    let ground = verdict_of(self.approver.ask(consent, &run.cancel).await)?;
                    agreed = Some((touch, ground));
                }
            }
        }
        let kept_changing = "what the call would touch kept changing while a person was asked";
        Err(unfounded(denied(kept_changing, "Send the call again.")))
    }
}

#[async_trait]
impl Middleware for Permissions {
    fn name(&self) -> &str {
        "permissions"
    }

    fn on_failure(&self) -> OnFailure {
        OnFailure::Closed
    }

    async fn before_tool(&self, run: &RunContext, call: &ToolCall, tool: &Arc<dyn Tool>) -> HookResult<ToolGate> {
        Ok(match self.gate(run, call, tool).await {
            Ok(ground) => ToolGate::Allowed(ground),
            Err(refusal) => ToolGate::Denied(refusal.0, refusal.1),
        })
    }
}

/// What the model is told, and on what ground.
type Refusal = Box<(ToolError, Option<Ground>)>;

fn unfounded(error: ToolError) -> Refusal {
    Box::new((error, None))
}

fn verdict_of(verdict: Verdict) -> Result<Ground, Refusal> {
    let asked = |approval_id| Ground::Approval { approval_id };
    match verdict {
        Verdict::Allowed(approval) => Ok(asked(approval)),
        Verdict::Denied { message: Some(message), by, approval } if !message.trim().is_empty() => {
            let said = format!("denied by {by}, who said: {}", message.trim());
            let hint = "The call did not run. Do what they say instead; do not send the same call again.";
            Err(Box::new((denied(said, hint), approval.map(asked))))
        }
        Verdict::Denied { by, approval, .. } => {
            let hint = "The call did not run. Do not send it again or get round this: find another way, or ask what \
                        they want.";
            Err(Box::new((denied(format!("denied by {by}"), hint), approval.map(asked))))
        }
        Verdict::Expired(approval) => {
            let hint = "The call did not run. Do what can be done without it, and say in your answer what still waits.";
            Err(Box::new((denied("denied: nobody answered in time", hint), Some(asked(approval)))))
        }
        Verdict::Cancelled => Err(unfounded(cancelled("while it waited for consent"))),
    }
}

fn cancelled(when: &str) -> ToolError {
    ToolError::new(ErrorCode::Cancelled, format!("the call was cancelled {when}"), "It did not run.")
}

fn denied(summary: impl Into<String>, hint: impl Into<String>) -> ToolError {
    let summary = summary.into();
    let summary = if summary.starts_with("denied") { summary } else { format!("denied: {summary}") };
    ToolError::new(ErrorCode::Denied, summary, hint)
}

#[cfg(test)]
mod tests;
