//! Asking people: requests are committed before anybody sees them, answers before the waiting call goes on.

use std::sync::atomic::Ordering;

use coding::permissions::{Consent, Unanswered, Verdict};
use protocol::api::{ApprovalRespond, ApprovalSettled, QuestionRespond, QuestionSettled};
use protocol::{
    Actor as Who, Answer, Approval, ApprovalState, CallId, Decision, EventBody, NoticeLevel, Question, QuestionRequest,
    QuestionState, RpcError, Scope, SessionStatus, TurnState,
};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::super::command::TurnSays;
use super::super::scribe::{Fact, Rows};
use super::super::{approvals, questions, storage};
use super::room::passes;
use super::{Actor, Phase};
use crate::rpc::Caller;
use crate::store::GrantRow;

impl Actor {
    pub(super) async fn ask_consent(&mut self, consent: Consent, verdict: oneshot::Sender<Verdict>) {
        let Some(turn) = self.asking_turn() else {
            return drop(verdict.send(Verdict::Cancelled));
        };
        let (mut facts, mut replaced) = (Vec::new(), None);
        match self.asked_before(&consent).await {
            Some(before) if before.state != ApprovalState::Pending => {
                return drop(verdict.send(approvals::verdict_of(&before)));
            }
            Some(before) if shows_the_same(&before, &consent) => {
                self.waiting.approvals.join(before.id, verdict);
                return self.asked().await;
            }
            Some(before) => {
                let approval = approvals::superseded(&before);
                replaced = Some(approval.clone());
                facts.push(Fact::new(EventBody::ApprovalResolved { approval }, Who::Daemon).in_turn(turn));
            }
            None => {}
        }
        let approval =
            approvals::request(self.session.id, turn, consent.clone(), self.env.approvals_last(&self.session.cwd));
        let body = EventBody::ApprovalRequested { approval: approval.clone() };
        facts.push(Fact::new(body, Who::Daemon).in_turn(turn));
        if let Err(error) = self.scribe.write(facts, Rows::default()).await {
            if passes(&error) {
                return self.put_off(TurnSays::AskConsent { consent, reply: verdict });
            }
            let message = Some(format!("the request could not be stored: {error}"));
            return drop(verdict.send(Verdict::Denied { message, by: "agentd".into(), approval: None }));
        }
        if let Some(replaced) = replaced {
            self.waiting.approvals.release(&replaced);
        }
        self.waiting.approvals.hold(approval, verdict);
        self.asked().await;
    }

    pub(super) async fn ask_person(
        &mut self,
        (call, title, asked): (CallId, String, Vec<Question>),
        waiting: oneshot::Sender<Result<Vec<Answer>, Unanswered>>,
    ) {
        let Some(turn) = self.asking_turn() else {
            return drop(waiting.send(Err(Unanswered::Cancelled)));
        };
        match self.person_asked_before(&call).await {
            Some(before) if before.state == QuestionState::Pending => {
                self.waiting.questions.join(before.id, waiting);
                return self.asked().await;
            }
            Some(before) => return drop(waiting.send(questions::answers_of(&before))),
            None => {}
        }
        let question = questions::request(self.session.id, turn, call.clone(), title.clone(), asked.clone());
        let body = EventBody::QuestionRequested { question: question.clone() };
        if let Err(error) = self.scribe.write(vec![Fact::new(body, Who::Daemon).in_turn(turn)], Rows::default()).await {
            if passes(&error) {
                return self.put_off(TurnSays::AskPerson { call, title, questions: asked, reply: waiting });
            }
            return drop(waiting.send(Err(Unanswered::Expired)));
        }
        self.waiting.questions.hold(question, waiting);
        self.asked().await;
    }

    /// # Errors
    /// What [`approvals::Approvals::judge`] refuses; `approval_resolved` with the winning answer for a late one.
    pub(super) async fn decide(&mut self, answer: ApprovalRespond, by: &Caller) -> Result<ApprovalSettled, RpcError> {
        self.expire_overdue().await;
        let settled = match self.waiting.approvals.judge(&answer, by) {
            Ok(settled) => settled,
            Err(error) => return Err(self.late_or(&answer, error).await),
        };
        let rule = settled.resolution.as_ref().filter(|_| answer.scope == Scope::Session).and_then(|r| r.rule.clone());
        let covered =
            rule.as_deref().map(|rule| self.waiting.approvals.covered_by(rule, settled.id)).unwrap_or_default();
        let all: Vec<Approval> = std::iter::once(settled.clone()).chain(covered).collect();
        let grants = rule.iter().map(|rule| GrantRow::new(self.session.id, &settled.tool, rule)).collect();
        let mut facts: Vec<Fact> = resolved(&all[..1], &by.actor()).collect();
        if let Some(rule) = &rule {
            facts.extend(resolved(&all[1..], &Who::Rule { rule: rule.clone() }));
        }
        let seq = self.scribe.write(facts, Rows { grants, ..Rows::default() }).await?;
        if let Some(rule) = rule {
            self.workbench.grant(&rule);
        }
        self.release(&all).await;
        match (&self.phase, answer.decision) {
            (Phase::Running(running), Decision::CancelTurn) => {
                running.cancel.cancel();
                self.hear_again().await;
                self.withdraw(&format!("{} cancelled the turn", by.name)).await;
            }
            (Phase::Interrupted(Some(_)), Decision::CancelTurn) => drop(self.discard(TurnState::Interrupted).await?),
            (Phase::Interrupted(Some(_)), Decision::Allow | Decision::Deny) => self.goes_on_by_answer(by).await,
            _ => {}
        }
        Ok(ApprovalSettled { approval: settled, seq })
    }

    /// # Errors
    /// What [`questions::Questions::judge`] refuses, and `storage_error`.
    pub(super) async fn answer(&mut self, answer: QuestionRespond, by: &Caller) -> Result<QuestionSettled, RpcError> {
        let question = match self.waiting.questions.judge(&answer, by) {
            Ok(question) => question,
            Err(error) => return Err(self.late_question_or(&answer, error).await),
        };
        let body = EventBody::QuestionResolved { question: question.clone() };
        let fact = Fact::new(body, by.actor()).in_turn(question.turn_id);
        let seq = self.scribe.write(vec![fact], Rows::default()).await?;
        self.waiting.questions.release(&question);
        self.asked().await;
        if matches!(self.phase, Phase::Interrupted(Some(_))) {
            self.goes_on_by_answer(by).await;
        }
        Ok(QuestionSettled { question, seq })
    }

    /// An answer to what a cut-off turn asks is the yes that lets it go on. The answer stands whether it can or not.
    async fn goes_on_by_answer(&mut self, by: &Caller) {
        if let Err(error) = self.go_on(by.actor()).await {
            let text =
                format!("the answer is kept, but its turn cannot go on yet: {error} (hint: {})", error.data.hint);
            tracing::warn!(session = %self.session.id, %text, "resume");
            let notice = EventBody::Notice { level: NoticeLevel::Warning, text };
            drop(self.scribe.write(vec![Fact::new(notice, Who::Daemon)], Rows::default()).await);
        }
    }

    /// What was asked about this very call before its turn was cut off: still open, or answered and not yet acted upon.
    async fn asked_before(&self, consent: &Consent) -> Option<Approval> {
        if !self.running()?.is_resumed {
            return None;
        }
        if let Some(open) = self.waiting.approvals.of_call(&consent.call) {
            return Some(open.clone());
        }
        let all = self.env.store.approvals(Some(self.session.id), None).await.ok()?;
        // An answer is bound to what was shown. A refusal holds whatever the call would do by now.
        all.into_iter().rev().find(|approval| {
            approval.tool_use_id == consent.call
                && match approval.state {
                    ApprovalState::Allowed => shows_the_same(approval, consent),
                    ApprovalState::Denied | ApprovalState::Expired => true,
                    ApprovalState::Pending | ApprovalState::Cancelled | ApprovalState::Superseded => false,
                }
        })
    }

    async fn person_asked_before(&self, call: &CallId) -> Option<QuestionRequest> {
        if !self.running()?.is_resumed {
            return None;
        }
        let all = self.env.store.questions(Some(self.session.id), None).await.ok()?;
        all.into_iter()
            .rev()
            .find(|question| question.tool_use_id == *call && question.state != QuestionState::Cancelled)
    }

    /// Lets what is overdue lapse before anybody answers it: the clock counts, not who is quicker in the mailbox.
    pub(super) async fn expire_overdue(&mut self) {
        if self.waiting.approvals.next_expiry().is_some_and(|expiry| expiry <= Instant::now()) {
            self.expire_asked().await;
        }
    }

    /// Time is up for some of what is asked.
    pub(super) async fn expire_asked(&mut self) {
        let expired = self.waiting.approvals.expired();
        self.settle_by_policy("approvals.expireAfterSecs", expired, Vec::new()).await;
    }

    /// Starts or stops the clock of a policy that denies what nobody is there to answer.
    pub(super) fn notice_attachment(&mut self) {
        let open = !self.waiting.approvals.is_empty() || !self.waiting.questions.is_empty();
        let alone = open && self.waiting.attached.load(Ordering::Relaxed) == 0;
        self.waiting.alone_since = alone.then(|| self.waiting.alone_since.unwrap_or_else(Instant::now));
    }

    /// Nobody was there for as long as the policy waits: what is asked is denied, never allowed.
    pub(super) async fn deny_unattended(&mut self) {
        self.waiting.alone_since = None;
        let policy = format!("noClient: {}", String::from(self.session.no_client_policy));
        let approvals = self.waiting.approvals.settled_by_policy(ApprovalState::Denied, &policy);
        let questions = self.waiting.questions.ended(QuestionState::Expired);
        self.settle_by_policy(&policy, approvals, questions).await;
    }

    /// Takes back all that is asked, because the turn that asks ends.
    pub(super) async fn withdraw(&mut self, why: &str) {
        let approvals = self.waiting.approvals.settled_by_policy(ApprovalState::Cancelled, why);
        let questions = self.waiting.questions.ended(QuestionState::Cancelled);
        self.settle_by_policy(why, approvals, questions).await;
    }

    async fn settle_by_policy(&mut self, policy: &str, approvals: Vec<Approval>, questions: Vec<QuestionRequest>) {
        if approvals.is_empty() && questions.is_empty() {
            return;
        }
        let who = Who::Policy { policy: policy.into() };
        let asked = questions.iter().map(|question| {
            let body = EventBody::QuestionResolved { question: question.clone() };
            Fact::new(body, who.clone()).in_turn(question.turn_id)
        });
        let facts = resolved(&approvals, &who).chain(asked).collect();
        if let Err(error) = self.scribe.write(facts, Rows::default()).await {
            tracing::error!(session = %self.session.id, %error, "what was asked could not be settled in the journal");
        }
        for question in &questions {
            self.waiting.questions.release(question);
        }
        self.release(&approvals).await;
    }

    async fn release(&mut self, approvals: &[Approval]) {
        for approval in approvals {
            self.waiting.approvals.release(approval);
        }
        self.asked().await;
    }

    /// Brings status and waiters in line with what is asked now.
    pub(super) async fn asked(&mut self) {
        let status = self.status();
        if status != self.session.status && matches!(self.phase, Phase::Running(_)) {
            self.tell_status(status).await;
        }
        self.wake_waiters();
    }

    pub(super) async fn tell_status(&mut self, status: SessionStatus) {
        let fact = Fact::new(EventBody::SessionStatus { status }, Who::Daemon);
        if let Err(error) = self.scribe.write(vec![fact], Rows::default()).await {
            tracing::error!(session = %self.session.id, %error, "a change of status was not stored");
        }
        self.session.status = status;
    }

    /// The turn that may ask: not one that has been told to stop.
    fn asking_turn(&self) -> Option<protocol::TurnId> {
        match &self.phase {
            Phase::Running(running) if !running.cancel.is_cancelled() => Some(running.turn.id),
            Phase::Running(_) | Phase::Interrupted(_) | Phase::Idle | Phase::Closed => None,
        }
    }

    /// A late answer is told that somebody was first.
    async fn late_question_or(&self, answer: &QuestionRespond, error: RpcError) -> RpcError {
        if error.kind != protocol::ErrorKind::NotFound {
            return error;
        }
        match self.env.store.question(answer.question_id).await {
            Ok(Some(question)) => questions::already_settled(&question),
            Ok(None) => error,
            Err(error) => storage(&error),
        }
    }

    /// A late answer is told who won.
    async fn late_or(&self, answer: &ApprovalRespond, error: RpcError) -> RpcError {
        if error.kind != protocol::ErrorKind::NotFound {
            return error;
        }
        match self.env.store.approval(answer.approval_id).await {
            Ok(Some(approval)) => approvals::already_resolved(&approval),
            Ok(None) => error,
            Err(error) => storage(&error),
        }
    }
}

/// Whether a person who saw the one has seen the other: what would happen, and what to know before saying yes.
fn shows_the_same(before: &Approval, consent: &Consent) -> bool {
    (&before.tool, &before.detail, &before.risks) == (&consent.tool, &consent.detail, &consent.risks)
}

fn resolved<'a>(approvals: &'a [Approval], by: &'a Who) -> impl Iterator<Item = Fact> + 'a {
    approvals.iter().map(|approval| {
        let body = EventBody::ApprovalResolved { approval: approval.clone() };
        Fact::new(body, by.clone()).in_turn(approval.turn_id)
    })
}
