//! The requests for consent of one session that still wait for an answer.
//!
//! Decides who may answer and whether an answer is valid; the actor commits what comes out. The grant is computed from
//! the stored request, never from what a client sends.

use std::collections::BTreeMap;
use std::time::Duration;

use coding::permissions::{Consent, Verdict};
use jiff::Timestamp;
use protocol::api::{ApprovalRespond, ApprovalRole};
use protocol::{
    Approval, ApprovalId, ApprovalState, CallId, DecidedBy, Decision, ErrorKind, Resolution, RpcError, Scope,
    SessionId, TurnId,
};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::rpc::Caller;

#[derive(Default, Debug)]
pub(crate) struct Approvals {
    pending: BTreeMap<ApprovalId, Waiting>,
}

/// A request, and the call that waits for its answer. After a restart nothing waits yet.
#[derive(Debug)]
struct Waiting {
    approval: Approval,
    call: Option<oneshot::Sender<Verdict>>,
    expires: Option<Instant>,
}

impl Approvals {
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    pub(crate) fn all(&self) -> Vec<Approval> {
        self.pending.values().map(|waiting| waiting.approval.clone()).collect()
    }

    /// Holds a committed request until somebody answers.
    pub(crate) fn hold(&mut self, approval: Approval, verdict: oneshot::Sender<Verdict>) {
        let expires = expiry(&approval);
        self.pending.insert(approval.id, Waiting { approval, call: Some(verdict), expires });
    }

    /// Takes over requests that an earlier life of the session has committed.
    pub(crate) fn restore(&mut self, approvals: impl Iterator<Item = Approval>) {
        self.pending = approvals
            .map(|approval| (approval.id, Waiting { expires: expiry(&approval), approval, call: None }))
            .collect();
    }

    /// The request that was committed for a call before it was cut off.
    pub(crate) fn of_call(&self, call: &CallId) -> Option<&Approval> {
        self.pending.values().map(|waiting| &waiting.approval).find(|approval| approval.tool_use_id == *call)
    }

    /// Lets a call wait for a request that is there already.
    pub(crate) fn join(&mut self, id: ApprovalId, verdict: oneshot::Sender<Verdict>) {
        if let Some(waiting) = self.pending.get_mut(&id) {
            waiting.call = Some(verdict);
        }
    }

    /// When the first of them is answered by the clock.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.pending.values().filter_map(|waiting| waiting.expires).min()
    }

    /// Those whose time is up, as they stand then.
    pub(crate) fn expired(&self) -> Vec<Approval> {
        let now = Instant::now();
        let up = self.pending.values().filter(|waiting| waiting.expires.is_some_and(|expires| expires <= now));
        let by = DecidedBy::Policy { policy: "approvals.expireAfterSecs".into() };
        up.map(|waiting| {
            settled(&waiting.approval, ApprovalState::Expired, by_itself(Decision::Deny, by.clone(), None))
        })
        .collect()
    }

    /// Lets go of an answered request: the waiting call goes on.
    pub(crate) fn release(&mut self, approval: &Approval) {
        let Some(Waiting { call: Some(call), .. }) = self.pending.remove(&approval.id) else { return };
        // The call may be gone already: then nobody needs the verdict.
        drop(call.send(verdict_of(approval)));
    }

    /// Forgets all requests of a turn whose task is gone.
    pub(crate) fn drop_all(&mut self) {
        self.pending.clear();
    }

    /// The request as it stands once this answer is committed.
    ///
    /// # Errors
    /// `not_found` for one that is not pending here, `capability_required` for an observer, `precondition_failed`
    /// for an older revision, `scope_forbidden` for what was not offered. None of them consumes anything.
    pub(crate) fn judge(&self, answer: &ApprovalRespond, by: &Caller) -> Result<Approval, RpcError> {
        let approval = self.pending.get(&answer.approval_id).map(|waiting| &waiting.approval);
        let approval = approval.ok_or_else(|| not_pending(answer.approval_id))?;
        may_answer(by)?;
        if answer.revision.is_some_and(|revision| revision != approval.revision) {
            return Err(RpcError::new(
                ErrorKind::PreconditionFailed,
                format!("approval {} has changed since it was shown", approval.short_id),
                "read it again with approval/get, then answer that revision",
            ));
        }
        let rule = match answer.decision {
            Decision::Allow => offered(approval, answer)?,
            Decision::Deny | Decision::CancelTurn => None,
        };
        let state = match answer.decision {
            Decision::Allow => ApprovalState::Allowed,
            Decision::Deny => ApprovalState::Denied,
            Decision::CancelTurn => ApprovalState::Cancelled,
        };
        let scope = if answer.decision == Decision::Allow { answer.scope } else { Scope::Once };
        let resolution = Resolution {
            decision: answer.decision,
            scope,
            rule,
            message: answer.message.clone(),
            by: by.decided_by(),
            at: Timestamp::now(),
        };
        Ok(settled(approval, state, resolution))
    }

    /// The pending requests that a newly granted rule covers, as it settles them.
    pub(crate) fn covered_by(&self, rule: &str, except: ApprovalId) -> Vec<Approval> {
        let covers = |approval: &Approval| approval.options.iter().any(|option| option.rule.as_deref() == Some(rule));
        let by = DecidedBy::Rule { rule: rule.into() };
        self.all()
            .iter()
            .filter(|approval| approval.id != except && covers(approval))
            .map(|approval| settled(approval, ApprovalState::Allowed, by_itself(Decision::Allow, by.clone(), None)))
            .collect()
    }

    /// All pending requests, as they stand when the policy of the daemon settles them.
    pub(crate) fn settled_by_policy(&self, state: ApprovalState, policy: &str) -> Vec<Approval> {
        let decision = if state == ApprovalState::Denied { Decision::Deny } else { Decision::CancelTurn };
        let by = DecidedBy::Policy { policy: policy.into() };
        let message = (state == ApprovalState::Denied).then(|| "nobody was there to answer".to_owned());
        self.all()
            .iter()
            .map(|approval| settled(approval, state, by_itself(decision, by.clone(), message.clone())))
            .collect()
    }
}

/// What the call that waits is told.
pub(crate) fn verdict_of(approval: &Approval) -> Verdict {
    match (approval.state, &approval.resolution) {
        (ApprovalState::Allowed, _) => Verdict::Allowed(approval.id),
        (ApprovalState::Denied, Some(resolution)) => {
            let (message, by) = (resolution.message.clone(), name_of(&resolution.by));
            Verdict::Denied { message, by, approval: Some(approval.id) }
        }
        (ApprovalState::Expired, _) => Verdict::Expired(approval.id),
        _ => Verdict::Cancelled,
    }
}

/// A request that does not say any more what would happen.
pub(crate) fn superseded(approval: &Approval) -> Approval {
    let by = DecidedBy::Policy { policy: "what the call would do has changed since".into() };
    settled(approval, ApprovalState::Superseded, by_itself(Decision::Deny, by, None))
}

/// The moment on the clock that no one can turn, for a time of day that someone can: never later than the whole time
/// that was given from the start.
fn expiry(approval: &Approval) -> Option<Instant> {
    let expires = approval.expires_at?;
    let whole = expires.duration_since(approval.created_at);
    let left = expires.duration_since(Timestamp::now()).min(whole);
    Some(Instant::now() + Duration::try_from(left).unwrap_or_default())
}

/// A new request, not yet committed.
pub(crate) fn request(session: SessionId, turn: TurnId, consent: Consent, lasts: Option<Duration>) -> Approval {
    let (id, now) = (ApprovalId::new(), Timestamp::now());
    Approval {
        id,
        short_id: short_id(&id.to_string()),
        session_id: session,
        turn_id: turn,
        tool_use_id: consent.call,
        tool: consent.tool,
        title: consent.title,
        detail: consent.detail,
        risks: consent.risks,
        options: consent.options,
        state: ApprovalState::Pending,
        revision: 1,
        created_at: now,
        expires_at: lasts.and_then(|lasts| now.checked_add(lasts).ok()),
        resolution: None,
    }
}

/// The random end of an id: short enough to type, and one in a million to meet its like among those that are pending.
pub(crate) fn short_id(id: &str) -> String {
    id[id.len() - 5..].to_owned()
}

/// # Errors
/// `capability_required` for a client that said it only watches.
pub(crate) fn may_answer(by: &Caller) -> Result<(), RpcError> {
    if by.role == ApprovalRole::Answer {
        return Ok(());
    }
    Err(RpcError::new(
        ErrorKind::CapabilityRequired,
        "this client said that it only observes, so it cannot answer",
        "answer from another connection, or initialize with capabilities.approvals = \"answer\"",
    ))
}

/// What the loser of a race for an answer is told.
pub(crate) fn already_resolved(approval: &Approval) -> RpcError {
    let Some(resolution) = &approval.resolution else { return not_pending(approval.id) };
    let error = RpcError::new(
        ErrorKind::ApprovalResolved,
        format!("approval {} was already answered by {}", approval.short_id, name_of(&resolution.by)),
        "nothing to do: the first valid answer counts",
    );
    error.with("resolution", serde_json::to_value(resolution).unwrap_or_default())
}

fn not_pending(id: ApprovalId) -> RpcError {
    RpcError::new(
        ErrorKind::NotFound,
        format!("there is no approval {id}"),
        "approval/list shows those that are pending",
    )
}

/// The rule of the option that was chosen.
fn offered(approval: &Approval, answer: &ApprovalRespond) -> Result<Option<String>, RpcError> {
    let option = approval.options.iter().find(|option| {
        option.decision == Decision::Allow
            && option.scope == answer.scope
            && (answer.rule.is_none() || answer.rule == option.rule)
    });
    option.map(|option| option.rule.clone()).ok_or_else(|| {
        RpcError::new(
            ErrorKind::ScopeForbidden,
            format!("approval {} does not offer that answer", approval.short_id),
            "choose one of its options, with the rule exactly as it stands there",
        )
    })
}

fn settled(approval: &Approval, state: ApprovalState, resolution: Resolution) -> Approval {
    Approval { state, resolution: Some(resolution), ..approval.clone() }
}

fn by_itself(decision: Decision, by: DecidedBy, message: Option<String>) -> Resolution {
    Resolution { decision, scope: Scope::Once, rule: None, message, by, at: Timestamp::now() }
}

/// Who decided, for people and for the model.
fn name_of(by: &DecidedBy) -> String {
    match by {
        DecidedBy::Client { client, pid, tty: Some(tty), .. } => format!("{client} (pid {pid}, {tty})"),
        DecidedBy::Client { client, pid, .. } => format!("{client} (pid {pid})"),
        DecidedBy::Rule { rule } => format!("the rule {rule}"),
        DecidedBy::Policy { policy } => format!("the policy {policy}"),
    }
}
