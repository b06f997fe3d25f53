//! A turn that was cut off, by a crash or by the daemon's stop: what is found of it, and whether it may go on.
//!
//! What is known is put into the journal at once; what is not known is said to be unknown. Going on needs a yes: of a
//! person, or of the policy that a person chose.

use std::collections::HashMap;

use coding::OnDisk;
use foundation::failpoint;
use jiff::{SignedDuration, Timestamp};
use protocol::{
    Actor as Who, ApprovalState, CallId, DecidedBy, Decision, EventBody, Message, NoticeLevel, QuestionState,
    Resolution, ResumePolicy, RpcError, Scope, Session, SessionStatus, Turn, TurnState, Usage,
};

use super::super::recovery::{self, Found};
use super::super::scribe::{Fact, Rows};
use super::super::storage;
use super::{Actor, Phase};
use crate::store::{CallRow, CallState};

/// How often a turn goes on by itself, however the policy stands: one that ends the daemon each time must not go round.
const MAX_RESUMES: u32 = 3;
/// How much of a broken-off answer is shown, in characters.
const DRAFT_CHARS: usize = 2000;

/// A cut-off turn as the journal has it.
pub(super) struct CutOff {
    pub(super) messages: Vec<Message>,
    pub(super) calls: Vec<(CallId, String, Found)>,
    /// Answers that the turn has had.
    pub(super) steps: u32,
    usage: Usage,
}

impl Actor {
    /// Takes up what an earlier life of the session left: a turn that was cut off, messages that wait.
    ///
    /// # Errors
    /// `storage_error`: then the session stays closed, and is tried again when somebody asks for it.
    pub(crate) async fn recover(&mut self) -> Result<(), RpcError> {
        failpoint::hit("recover.before");
        failpoint::hit_each("recover.of", [&*self.session.id.to_string()]);
        let open = self.env.store.open_turns(self.session.id).await.map_err(|error| storage(&error))?;
        let (queued, mut begun): (Vec<_>, Vec<_>) =
            open.into_iter().partition(|(turn, _)| turn.state == TurnState::Queued);
        self.queue.restore(queued);
        self.last_ended = self.env.store.last_turn(self.session.id).await.map_err(|error| storage(&error))?;
        let last = begun.pop();
        for (turn, _) in begun {
            // No life of ours runs two turns at once; whatever did gets its end all the same.
            self.end_cut_off(turn, TurnState::Interrupted).await?;
        }
        match last {
            Some((turn, _)) => {
                if turn.state == TurnState::Running {
                    self.cut_off(turn).await?;
                } else {
                    self.take_up_waiting(turn).await?;
                }
                self.go_on_by_policy().await?;
            }
            None if !self.queue.is_empty() => self.hold_queue().await?,
            None => self.forget_asked().await?,
        }
        failpoint::hit("recover.after");
        Ok(())
    }

    /// Settles what can be settled of a turn that nothing runs of any more, and lets it wait, or ends it.
    pub(super) async fn cut_off(&mut self, mut turn: Turn) -> Result<(), RpcError> {
        let found = self.found(&turn).await?;
        let (mut facts, rows) = self.settled(&turn, &found);
        turn.usage = found.usage;
        let over = self.is_over(&turn, &found).await?;
        if let Some(state) = over {
            if !facts.is_empty() {
                self.write_with_bench(facts, rows).await?;
            }
            turn.state = state;
            self.end_cut_off(turn, state).await?;
            return if self.queue.is_empty() { Ok(()) } else { self.hold_queue().await };
        }
        turn.state = TurnState::Recoverable;
        let session = self.used(&turn, &found).await?;
        facts.extend(self.draft().await?);
        let then = match self.session.resume_policy {
            ResumePolicy::Auto => "As you have set it, it may go on by itself once agentd is back.",
            ResumePolicy::Ask | ResumePolicy::Never => "Nothing of it runs until you say so.",
        };
        let text = format!("agentd was stopped in the middle of this turn. {then}");
        let bodies = [
            EventBody::Notice { level: NoticeLevel::Warning, text },
            EventBody::TurnRecoverable { turn: turn.clone() },
            EventBody::SessionStatus { status: SessionStatus::Interrupted },
            EventBody::SessionUpdated { session: session.clone() },
        ];
        facts.extend(bodies.map(|body| Fact::new(body, Who::Daemon)));
        let facts = facts.into_iter().map(|fact| fact.in_turn(turn.id)).collect();
        self.write_with_bench(facts, rows).await?;
        self.session = session;
        self.take_up_waiting(turn).await
    }

    /// What the journal and the disk say of a turn.
    pub(super) async fn found(&self, turn: &Turn) -> Result<CutOff, RpcError> {
        let store = &self.env.store;
        let messages = store.messages_of(turn.id).await.map_err(|error| storage(&error))?;
        let mut rows = store.calls(turn.id).await.map_err(|error| storage(&error))?;
        let questions = store.questions(Some(self.session.id), None).await.map_err(|error| storage(&error))?;
        let is_asked = |call: &CallId| questions.iter().any(|question| question.tool_use_id == *call);
        // A call that asks a person cuts nothing off: it may begin again as often as it must, and says nothing of it.
        rows.iter_mut().filter(|row| is_asked(&row.call_id)).for_each(|row| row.attempt = 0);
        let drafts = store.drafts(self.session.id).await.map_err(|error| storage(&error))?;
        let output: HashMap<String, String> = drafts.into_iter().collect();
        let on_disk = settle_on_disk(&rows).await;
        for row in rows.iter().filter(|row| on_disk.get(&row.call_id) == Some(&OnDisk::Applied)) {
            self.workbench.has_left(&row.files);
        }
        let mut calls = messages.last().map_or_else(Vec::new, |last| {
            let on_disk =
                |row: &CallRow| on_disk.get(&row.call_id).cloned().unwrap_or_else(|| OnDisk::Unknown(String::new()));
            recovery::sort(last, &rows, on_disk, &output)
        });
        for (_, _, found) in calls.iter_mut().filter(|(call, ..)| is_asked(call)) {
            if let Found::Again(note) = found {
                note.clear();
            }
        }
        let mut usage = Usage::default();
        messages.iter().filter_map(|message| message.usage.as_ref()).for_each(|used| usage.add(used));
        let steps = messages.iter().filter(|message| message.role == protocol::Role::Assistant).count();
        Ok(CutOff { messages, calls, steps: u32::try_from(steps).unwrap_or(u32::MAX), usage })
    }

    /// The ends of the calls of which something can be said now, and what is committed with them.
    pub(super) fn settled(&self, turn: &Turn, found: &CutOff) -> (Vec<Fact>, Rows) {
        let fact = |(id, _, found): &(CallId, String, Found)| {
            let Found::Settled { part: protocol::Part::ToolResult { is_error, code, .. }, summary } = found else {
                return None;
            };
            let body = EventBody::ToolFinished {
                tool_use_id: id.clone(),
                is_error: *is_error,
                code: code.clone(),
                duration_ms: 0,
                summary: summary.clone(),
                detail: None,
                denied_by: None,
            };
            Some(Fact::new(body, Who::Daemon).in_turn(turn.id))
        };
        let calls = finished(&self.session, turn, found);
        let rows = Rows { calls, workbench: self.workbench.take_changes(), ..Rows::default() };
        (found.calls.iter().filter_map(fact).collect(), rows)
    }

    /// How the turn ends at once, if it does.
    async fn is_over(&self, turn: &Turn, found: &CutOff) -> Result<Option<TurnState>, RpcError> {
        if let Some(state) = recovery::ended_by(found.messages.last()) {
            return Ok(Some(state));
        }
        if self.session.resume_policy == ResumePolicy::Never || self.was_called_off(turn).await? {
            return Ok(Some(TurnState::Interrupted));
        }
        Ok(None)
    }

    /// Whether a person had cancelled the turn, though its end was not written any more.
    async fn was_called_off(&self, turn: &Turn) -> Result<bool, RpcError> {
        let store = &self.env.store;
        let cancelled = store.approvals(Some(self.session.id), Some(ApprovalState::Cancelled)).await;
        let by_person = |resolution: &Resolution| {
            resolution.decision == Decision::CancelTurn && matches!(resolution.by, DecidedBy::Client { .. })
        };
        Ok(cancelled
            .map_err(|error| storage(&error))?
            .iter()
            .any(|approval| approval.turn_id == turn.id && approval.resolution.as_ref().is_some_and(by_person)))
    }

    /// Lets the turn that waits go on if the session's policy says so. Only when a session is taken up: one that is put
    /// away on the daemon's way out waits for the next life.
    async fn go_on_by_policy(&mut self) -> Result<(), RpcError> {
        let Phase::Interrupted(Some(turn)) = &self.phase else { return Ok(()) };
        let turn = (**turn).clone();
        if self.session.resume_policy != ResumePolicy::Auto || !self.goes_on_by_itself(&turn, &self.found(&turn).await?)
        {
            return Ok(());
        }
        if let Err(error) = self.go_on(Who::Policy { policy: "resume: auto".into() }).await {
            tracing::warn!(session = %self.session.id, %error, "a turn that was cut off could not go on by itself");
        }
        Ok(())
    }

    /// The policy's yes, within its bounds.
    fn goes_on_by_itself(&self, turn: &Turn, found: &CutOff) -> bool {
        let max_age = self.env.load(&self.session.cwd).settings.resume.max_age_secs;
        let age = Timestamp::now().duration_since(turn.started_at);
        let is_unknown = |(_, _, found): &(CallId, String, Found)| {
            matches!(found, Found::Settled { part: protocol::Part::ToolResult { is_error: true, .. }, .. })
        };
        turn.resumes < MAX_RESUMES
            && age <= SignedDuration::from_secs(i64::try_from(max_age).unwrap_or(i64::MAX))
            && !found.calls.iter().any(is_unknown)
    }

    /// The session with what its turns have used, this one's part so far included.
    async fn used(&self, turn: &Turn, found: &CutOff) -> Result<Session, RpcError> {
        let store = &self.env.store;
        let mut usage = store.usage_without(self.session.id, turn.id).await.map_err(|error| storage(&error))?;
        usage.add(&found.usage);
        let last = found.messages.iter().rev().find_map(|message| message.usage.as_ref());
        Ok(Session {
            status: SessionStatus::Interrupted,
            updated_at: Timestamp::now(),
            context_used: last.map_or(self.session.context_used, Usage::context_tokens),
            usage,
            ..self.session.clone()
        })
    }

    /// What the model had said of an answer that will be asked for again.
    async fn draft(&self) -> Result<Option<Fact>, RpcError> {
        let drafts = self.env.store.drafts(self.session.id).await.map_err(|error| storage(&error))?;
        let words = drafts.into_iter().find(|(key, text)| key == "message" && !text.trim().is_empty());
        Ok(words.map(|(_, text)| {
            let shown: String = text.chars().take(DRAFT_CHARS).collect();
            let cut = if shown.len() < text.len() { "…" } else { "" };
            let text = format!("the answer that was cut off had come so far: {shown}{cut}");
            Fact::new(EventBody::Notice { level: NoticeLevel::Info, text }, Who::Daemon)
        }))
    }

    /// The turn waits; what it asks stays asked.
    async fn take_up_waiting(&mut self, turn: Turn) -> Result<(), RpcError> {
        let (store, session) = (&self.env.store, Some(self.session.id));
        let approvals =
            store.approvals(session, Some(ApprovalState::Pending)).await.map_err(|error| storage(&error))?;
        let questions =
            store.questions(session, Some(QuestionState::Pending)).await.map_err(|error| storage(&error))?;
        self.waiting.approvals.restore(approvals.into_iter().filter(|approval| approval.turn_id == turn.id));
        self.waiting.questions.restore(questions.into_iter().filter(|question| question.turn_id == turn.id));
        self.session.status = SessionStatus::Interrupted;
        self.phase = Phase::Interrupted(Some(Box::new(turn)));
        self.expire_overdue().await;
        self.wake_waiters();
        Ok(())
    }

    /// Messages wait, and nobody has said since the restart that they shall run.
    async fn hold_queue(&mut self) -> Result<(), RpcError> {
        if self.session.status != SessionStatus::Interrupted {
            let status = SessionStatus::Interrupted;
            self.scribe
                .write(vec![Fact::new(EventBody::SessionStatus { status }, Who::Daemon)], Rows::default())
                .await?;
            self.session.status = status;
        }
        self.phase = Phase::Interrupted(None);
        Ok(())
    }

    /// Nothing runs and nothing waits, so nothing can still be asked.
    async fn forget_asked(&mut self) -> Result<(), RpcError> {
        let facts = self.withdrawn("the turn that asked is over").await?;
        if !facts.is_empty() {
            self.scribe.write(facts, Rows::default()).await?;
        }
        Ok(())
    }

    /// `bypass` does not survive a restart: a person sets it again or nobody does.
    ///
    /// # Errors
    /// `storage_error`.
    pub(crate) async fn fell_back_from_bypass(&mut self) -> Result<(), RpcError> {
        self.write_session(self.session.clone(), Who::Daemon).await?;
        let text = "the mode is `ask` again: `bypass` ends with the daemon".to_owned();
        let notice = EventBody::Notice { level: NoticeLevel::Warning, text };
        self.scribe.write(vec![Fact::new(notice, Who::Daemon)], Rows::default()).await?;
        Ok(())
    }

    /// What the journal says is asked and will not be answered any more, taken back.
    pub(super) async fn withdrawn(&self, cause: &str) -> Result<Vec<Fact>, RpcError> {
        let (store, session) = (&self.env.store, Some(self.session.id));
        let approvals =
            store.approvals(session, Some(ApprovalState::Pending)).await.map_err(|error| storage(&error))?;
        let questions =
            store.questions(session, Some(QuestionState::Pending)).await.map_err(|error| storage(&error))?;
        let resolution = Resolution {
            decision: Decision::CancelTurn,
            scope: Scope::Once,
            rule: None,
            message: None,
            by: DecidedBy::Policy { policy: cause.into() },
            at: Timestamp::now(),
        };
        let approvals = approvals.into_iter().map(|mut approval| {
            approval.state = ApprovalState::Cancelled;
            approval.resolution = Some(resolution.clone());
            (approval.turn_id, EventBody::ApprovalResolved { approval })
        });
        let questions = questions.into_iter().map(|mut question| {
            question.state = QuestionState::Cancelled;
            (question.turn_id, EventBody::QuestionResolved { question })
        });
        let who = Who::Policy { policy: cause.into() };
        Ok(approvals.chain(questions).map(|(turn, body)| Fact::new(body, who.clone()).in_turn(turn)).collect())
    }
}

/// The rows of the calls that have a result now.
fn finished(session: &Session, turn: &Turn, found: &CutOff) -> Vec<CallRow> {
    let row = |(id, name, found): &(CallId, String, Found)| {
        let Found::Settled { part, .. } = found else { return None };
        Some(CallRow {
            session: session.id,
            call_id: id.clone(),
            turn: turn.id,
            ordinal: 0,
            name: name.clone(),
            class: ' ',
            attempt: 1,
            state: CallState::Finished,
            started_at: None,
            finished_at: Some(Timestamp::now()),
            result: serde_json::to_string(part).ok(),
            files: Vec::new(),
        })
    };
    found.calls.iter().filter_map(row).collect()
}

/// What the files of the calls that were changing some say about them. Looks at the disk.
async fn settle_on_disk(rows: &[CallRow]) -> HashMap<CallId, OnDisk> {
    let begun: Vec<_> = rows.iter().filter(|row| is_change(row)).cloned().collect();
    let look = move || begun.into_iter().map(|row| (row.call_id, coding::settle(&row.files))).collect();
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

fn is_change(row: &CallRow) -> bool {
    row.class == 'H' && row.state == CallState::Started
}
