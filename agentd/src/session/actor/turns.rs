//! Turns of a session: accepted, run in a task of their own, interrupted, ended.

use std::sync::Arc;

use agent::{Agent, AgentEvent, Halt, RunEnd, RunOutcome};
use foundation::ModelError;
use jiff::Timestamp;
use protocol::api::{Delivery, TurnInterrupted, TurnStart, TurnStarted};
use protocol::{
    Actor as Who, ErrorKind, EventBody, Message, Part, RpcError, Session, SessionStatus, Turn, TurnError, TurnId,
    TurnState, Usage,
};
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

use super::super::command::Reply;
use super::super::scribe::{Fact, Rows};
use super::super::translate::facts_of;
use super::super::turn::TurnLink;
use super::super::{internal, recovery, storage};
use super::{Actor, Phase, Running};
use crate::rpc::Caller;
use crate::store::ReceiptRow;

impl Actor {
    /// Accepts a message: once this answers, the message is durable and its turn runs.
    ///
    /// # Errors
    /// `session_busy` with `activeTurnId`, `idempotency_conflict`, `capability_required` for a delivery that is not
    /// built yet, `invalid_params` for an empty message, `storage_error`. None of them loses anything.
    pub(super) async fn start_turn(&mut self, start: TurnStart, by: &Caller) -> Result<TurnStarted, RpcError> {
        let payload =
            serde_json::to_vec(&(&start.input, start.max_steps)).map_err(|error| internal(error.to_string()))?;
        let payload_hash = blake3::hash(&payload).to_hex().to_string();
        if let Some(id) = &start.client_message_id
            && let Some(receipt) = self.env.store.receipt(self.session.id, id).await.map_err(|error| storage(&error))?
        {
            return receipt_for(&receipt, &payload_hash, id);
        }
        self.may_start(start.delivery)?;
        let input = start.input.into_parts();
        if !has_content(&input) {
            return Err(RpcError::new(ErrorKind::InvalidParams, "the message is empty", "send some text in `input`"));
        }
        let turn = self.new_turn(input.clone());
        let link = self.link(turn.id)?;
        let agent = self.env.agent(&self.session, &self.workbench, &link, start.max_steps)?;
        let message = Message::user(input);
        let receipts = start.client_message_id.map(|client_message_id| ReceiptRow {
            session: self.session.id,
            client_message_id,
            payload_hash,
            turn_id: turn.id,
            state: TurnState::Running,
            seq: self.scribe.last_seq() + 3,
        });
        let facts = vec![
            Fact::new(EventBody::TurnStarted { turn: turn.clone() }, by.actor()).in_turn(turn.id),
            Fact::new(EventBody::SessionStatus { status: SessionStatus::Running }, Who::Daemon).in_turn(turn.id),
            Fact::new(EventBody::Message { message }, by.actor()).in_turn(turn.id),
        ];
        let rows = Rows { receipts: receipts.into_iter().collect(), ..Rows::default() };
        let seq = self.scribe.write(facts, rows).await?;
        self.session.status = SessionStatus::Running;
        if self.session.title.is_empty() {
            let session = Session { title: title_of(&turn.input), ..self.session.clone() };
            self.write_session(session, Who::Daemon).await?;
        }
        let started = TurnStarted { turn_id: turn.id, state: TurnState::Running, seq };
        self.spawn(agent, turn, link);
        Ok(started)
    }

    fn may_start(&self, delivery: Delivery) -> Result<(), RpcError> {
        match (&self.phase, delivery) {
            (Phase::Closed, _) => Err(RpcError::new(
                ErrorKind::Draining,
                format!("session {} is being closed", self.session.id),
                "try again once the daemon is back",
            )),
            (Phase::Idle, _) => Ok(()),
            (Phase::Running(running), Delivery::Start) => Err(RpcError::new(
                ErrorKind::SessionBusy,
                format!("session {} already runs turn {}", self.session.id, running.turn.id),
                "wait for it with turn/wait, or stop it with turn/interrupt, then send the message again",
            )
            .with("activeTurnId", running.turn.id.to_string())),
            (Phase::Running(_), Delivery::Queue | Delivery::Steer) => Err(RpcError::new(
                ErrorKind::CapabilityRequired,
                "this daemon cannot take a message for a session whose turn runs",
                "wait for the turn with turn/wait, then send the message with delivery \"start\"",
            )),
        }
    }

    fn new_turn(&self, input: Vec<Part>) -> Turn {
        Turn {
            id: TurnId::new(),
            session_id: self.session.id,
            state: TurnState::Running,
            input,
            started_at: Timestamp::now(),
            ended_at: None,
            usage: Usage::default(),
            error: None,
        }
    }

    /// What the turn speaks to this actor through.
    fn link(&self, turn: TurnId) -> Result<TurnLink, RpcError> {
        let mailbox = self.own_mailbox.upgrade().ok_or_else(|| internal("the session has no mailbox".into()))?;
        Ok(TurnLink::new(turn, Arc::clone(&self.feed), mailbox))
    }

    /// Starts the loop in a task that this actor owns.
    fn spawn(&mut self, agent: Agent, turn: Turn, link: TurnLink) {
        let cancel = CancellationToken::new();
        let (store, session, token) = (self.env.store.clone(), self.session.id, cancel.clone());
        self.turns.spawn(async move {
            match store.transcript(session).await {
                Ok(transcript) => agent.run(transcript, Arc::new(link), &token).await,
                Err(error) => RunOutcome { end: RunEnd::Halted(Halt(error.to_string())), usage: Usage::default() },
            }
        });
        self.phase = Phase::Running(Box::new(Running { turn, cancel, interrupters: Vec::new() }));
    }

    /// Commits what the loop says.
    pub(super) async fn happened(&mut self, event: AgentEvent) -> Result<(), Halt> {
        let Phase::Running(running) = &mut self.phase else {
            return Err(Halt("the turn is over".into()));
        };
        if let AgentEvent::Message(Message { usage: Some(usage), .. }) = &event {
            running.turn.usage.add(usage);
            self.session.usage.add(usage);
            self.session.context_used = usage.context_tokens();
        }
        let (facts, rows) = facts_of(event, self.session.id, running.turn.id);
        self.scribe.write(facts, rows).await.map_err(|error| Halt(error.to_string()))?;
        Ok(())
    }

    /// Cancels the running turn. The answer comes when it is over.
    pub(super) async fn interrupt(&mut self, turn: Option<TurnId>, by: &Caller, reply: Reply<TurnInterrupted>) {
        match &mut self.phase {
            Phase::Running(running) if turn.is_none_or(|turn| turn == running.turn.id) => {
                running.cancel.cancel();
                running.interrupters.push(reply);
                self.withdraw(&format!("{} interrupted the turn", by.name)).await;
            }
            Phase::Running(_) | Phase::Idle | Phase::Closed => {
                let nothing = TurnInterrupted { turn_id: None, state: None, seq: self.scribe.last_seq() };
                drop(reply.send(Ok(nothing)));
            }
        }
    }

    /// Ends the turn in the journal, whatever became of its task, and tells everybody who waits.
    pub(super) async fn turn_ended(&mut self, outcome: Result<RunOutcome, JoinError>) {
        // While the phase still says so: what is withdrawn belongs to the turn, and waiters wait for its end.
        self.withdraw("the turn ended").await;
        let Phase::Running(running) = std::mem::replace(&mut self.phase, Phase::Idle) else { return };
        let Running { mut turn, cancel, interrupters } = *running;
        self.feed.message_dropped();
        let end = outcome.map_or_else(
            |error| RunEnd::Failed(crashed(&error)),
            |outcome| if cancel.is_cancelled() { RunEnd::Interrupted } else { outcome.end },
        );
        (turn.state, turn.error) = ended_as(end);
        turn.ended_at = Some(Timestamp::now());
        if let Err(error) = self.write_end(&turn).await {
            // Recovery at the next start ends the turn in the journal.
            tracing::error!(session = %self.session.id, turn = %turn.id, %error, "the end of a turn was not stored");
        }
        let seq = self.scribe.last_seq();
        for interrupter in interrupters {
            let answer = TurnInterrupted { turn_id: Some(turn.id), state: Some(turn.state), seq };
            drop(interrupter.send(Ok(answer)));
        }
        self.last_ended = Some(turn);
        self.wake_waiters();
    }

    async fn write_end(&mut self, turn: &Turn) -> Result<(), RpcError> {
        let mut facts = self.close_open_calls(turn.id).await?;
        self.session.status = SessionStatus::Idle;
        self.session.updated_at = Timestamp::now();
        let ended = EventBody::TurnEnded { state: turn.state, usage: turn.usage, error: turn.error.clone() };
        let bodies = [
            ended,
            EventBody::SessionStatus { status: SessionStatus::Idle },
            EventBody::SessionUpdated { session: self.session.clone() },
        ];
        facts.extend(bodies.map(|body| Fact::new(body, Who::Daemon).in_turn(turn.id)));
        self.session.last_seq = self.scribe.write(facts, Rows::default()).await?;
        Ok(())
    }

    /// A loop that was cut off by a panic or a full disk leaves calls without a result: each gets an honest one.
    pub(super) async fn close_open_calls(&self, turn: TurnId) -> Result<Vec<Fact>, RpcError> {
        let store = &self.env.store;
        let transcript = store.transcript(self.session.id).await.map_err(|error| storage(&error))?;
        let calls = store.calls(turn).await.map_err(|error| storage(&error))?;
        let message = recovery::close_open_calls(&transcript, &calls);
        Ok(message
            .map(|message| Fact::new(EventBody::Message { message }, Who::Daemon).in_turn(turn))
            .into_iter()
            .collect())
    }
}

/// The same message twice gets the same receipt; another message under the same id is a mistake.
fn receipt_for(receipt: &ReceiptRow, payload_hash: &str, id: &str) -> Result<TurnStarted, RpcError> {
    if receipt.payload_hash == payload_hash {
        return Ok(TurnStarted { turn_id: receipt.turn_id, state: receipt.state, seq: receipt.seq });
    }
    Err(RpcError::new(
        ErrorKind::IdempotencyConflict,
        format!("clientMessageId `{id}` was already used for another message"),
        "use a new clientMessageId for a new message",
    ))
}

fn has_content(input: &[Part]) -> bool {
    input.iter().any(|part| part.as_text().is_none_or(|text| !text.trim().is_empty()))
}

/// The first line of the first message, short enough for a listing.
fn title_of(input: &[Part]) -> String {
    let text = input.iter().find_map(Part::as_text).unwrap_or("(no text)").trim();
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= 60 { line.to_owned() } else { line.chars().take(59).chain(['…']).collect() }
}

fn ended_as(end: RunEnd) -> (TurnState, Option<TurnError>) {
    match end {
        RunEnd::Completed => (TurnState::Completed, None),
        RunEnd::Interrupted => (TurnState::Interrupted, None),
        RunEnd::Limit => (TurnState::Limit, None),
        RunEnd::Failed(error) => (TurnState::Failed, Some(provider_error(&error))),
        RunEnd::Halted(Halt(why)) => {
            let hint = "free disk space or mend the database, then send the message again";
            let error = RpcError::new(ErrorKind::StorageError, why, hint);
            (TurnState::Failed, Some(TurnError { message: error.message, data: *error.data }))
        }
    }
}

fn provider_error(error: &ModelError) -> TurnError {
    let mut rpc = RpcError::new(ErrorKind::ProviderError, error.message.clone(), error.hint.clone())
        .with("cause", error.kind.as_str());
    rpc.data.retryable = error.kind.is_retryable();
    rpc.data.retry_after_ms = error.retry_after.and_then(|after| u64::try_from(after.as_millis()).ok());
    TurnError { message: rpc.message, data: *rpc.data }
}

fn crashed(error: &JoinError) -> ModelError {
    tracing::error!(%error, "a turn's task ended badly");
    ModelError::new(
        foundation::ModelErrorKind::Server,
        "agentd itself made a mistake in this turn and ended it",
        "send the message again; please report it with the lines of the log",
    )
}
