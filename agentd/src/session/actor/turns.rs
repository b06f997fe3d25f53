//! Turns of a session: accepted, run in a task of their own, interrupted, ended.

use std::sync::Arc;

use agent::{Agent, AgentEvent, Halt, RunEnd, RunOutcome};
use jiff::Timestamp;
use protocol::api::{Delivery, TurnInterrupted, TurnStart, TurnStarted};
use protocol::{
    Actor as Who, ErrorKind, EventBody, Message, Part, RpcError, Session, SessionStatus, Turn, TurnId, TurnState, Usage,
};
use tokio::task::JoinError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::super::command::Reply;
use super::super::scribe::{Fact, Rows};
use super::super::translate::facts_of;
use super::super::turn::TurnLink;
use super::super::{internal, outcome, recovery, storage};
use super::{Actor, Phase, Running, WRITE_AGAIN};
use crate::rpc::Caller;
use crate::store::{CallRow, ReceiptRow};

impl Actor {
    /// Accepts a message: once this answers, the message is durable and its turn runs.
    ///
    /// # Errors
    /// `session_busy` with `activeTurnId`, `idempotency_conflict`, `capability_required` for a delivery that is not
    /// built yet, `invalid_params` for an empty message, `storage_error`. None of them loses anything.
    pub(super) async fn start_turn(&mut self, start: TurnStart, by: &Caller) -> Result<TurnStarted, RpcError> {
        let payload = serde_json::to_vec(&(&start.input, start.delivery, start.max_steps))
            .map_err(|error| internal(error.to_string()))?;
        let payload_hash = blake3::hash(&payload).to_hex().to_string();
        if let Some(id) = &start.client_message_id
            && let Some(receipt) = self.env.store.receipt(self.session.id, id).await.map_err(|error| storage(&error))?
        {
            return receipt_for(&receipt, &payload_hash, id);
        }
        self.may_start(start.delivery)?;
        let input = start.input.into_parts();
        check_input(&input)?;
        let turn = self.new_turn(input.clone());
        let link = self.link(turn.id)?;
        let agent = self.agent(&link, start.max_steps).await?;
        let message = Message::user(input);
        let session = self.titled(&turn);
        let bodies = [
            Some((EventBody::TurnStarted { turn: turn.clone() }, by.actor())),
            session.clone().map(|session| (EventBody::SessionUpdated { session }, Who::Daemon)),
            Some((EventBody::SessionStatus { status: SessionStatus::Running }, Who::Daemon)),
            Some((EventBody::Message { message }, by.actor())),
        ];
        let facts: Vec<Fact> =
            bodies.into_iter().flatten().map(|(body, who)| Fact::new(body, who).in_turn(turn.id)).collect();
        let receipts = start.client_message_id.map(|client_message_id| ReceiptRow {
            session: self.session.id,
            client_message_id,
            payload_hash,
            turn_id: turn.id,
            state: TurnState::Running,
            seq: self.scribe.last_seq() + facts.len() as u64,
        });
        let rows = Rows { receipts: receipts.into_iter().collect(), ..Rows::default() };
        let seq = self.scribe.write(facts, rows).await?;
        self.session = session.unwrap_or_else(|| self.session.clone());
        self.session.status = SessionStatus::Running;
        let started = TurnStarted { turn_id: turn.id, state: TurnState::Running, seq };
        self.spawn(agent, turn, link);
        Ok(started)
    }

    /// The session with a title of its first message, when it has none.
    fn titled(&self, turn: &Turn) -> Option<Session> {
        self.session.title.is_empty().then(|| Session {
            title: title_of(&turn.input),
            status: SessionStatus::Running,
            updated_at: Timestamp::now(),
            ..self.session.clone()
        })
    }

    /// Builds the turn's agent where reading files may take its time.
    async fn agent(&self, link: &TurnLink, max_steps: Option<u32>) -> Result<Agent, RpcError> {
        let (env, session, workbench) = (Arc::clone(&self.env), self.session.clone(), self.workbench.clone());
        let link = link.clone();
        let built = tokio::task::spawn_blocking(move || env.agent(&session, &workbench, &link, max_steps)).await;
        built.unwrap_or_else(|error| Err(internal(format!("the agent could not be built: {error}"))))
    }

    fn may_start(&self, delivery: Delivery) -> Result<(), RpcError> {
        match (&self.phase, delivery) {
            (Phase::Closed, _) => Err(RpcError::new(
                ErrorKind::Draining,
                format!("session {} is being closed", self.session.id),
                "try again once the daemon is back",
            )),
            (Phase::Idle, _) => Ok(()),
            (Phase::Running(running), Delivery::Start) => Err(self.busy(running)),
            (Phase::Running(_), Delivery::Queue | Delivery::Steer) => Err(RpcError::new(
                ErrorKind::CapabilityRequired,
                "this daemon cannot take a message for a session whose turn runs",
                "wait for the turn with turn/wait, then send the message with delivery \"start\"",
            )),
        }
    }

    pub(super) fn busy(&self, running: &Running) -> RpcError {
        RpcError::new(
            ErrorKind::SessionBusy,
            format!("session {} runs turn {}", self.session.id, running.turn.id),
            "wait for it with turn/wait, or stop it with turn/interrupt, then try again",
        )
        .with("activeTurnId", running.turn.id.to_string())
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
        self.phase = Phase::Running(Box::new(Running { turn, cancel, end_again: None, interrupters: Vec::new() }));
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

    /// Notes how the turn's task ended, whatever became of it, and puts that into the journal.
    pub(super) async fn turn_ended(&mut self, outcome: Result<RunOutcome, JoinError>) {
        let Phase::Running(running) = &mut self.phase else { return };
        (running.turn.state, running.turn.error) = outcome::ended(outcome, running.cancel.is_cancelled());
        running.turn.ended_at = Some(Timestamp::now());
        self.feed.message_dropped();
        // What the turn still asked is answered by its end, which takes it back in the journal too.
        self.waiting.approvals.drop_all();
        self.waiting.questions.drop_all();
        self.finish_turn().await;
    }

    /// Writes the end of a turn that is over, then tells everybody who waits. What cannot be written is tried again:
    /// a turn that started has exactly one end, and nobody is told of one that is not in the journal.
    pub(super) async fn finish_turn(&mut self) {
        let Phase::Running(running) = &mut self.phase else { return };
        running.end_again = Some(Instant::now() + WRITE_AGAIN);
        let turn = running.turn.clone();
        if let Err(error) = self.write_end(&turn).await {
            tracing::error!(session = %self.session.id, turn = %turn.id, %error, "the end of a turn cannot be stored yet");
            return;
        }
        let Phase::Running(running) = std::mem::replace(&mut self.phase, Phase::Idle) else { return };
        let seq = self.scribe.last_seq();
        for interrupter in running.interrupters {
            let answer = TurnInterrupted { turn_id: Some(turn.id), state: Some(turn.state), seq };
            drop(interrupter.send(Ok(answer)));
        }
        self.last_ended = Some(turn);
        self.wake_waiters();
    }

    async fn write_end(&mut self, turn: &Turn) -> Result<(), RpcError> {
        let calls = self.env.store.calls(turn.id).await.map_err(|error| storage(&error))?;
        let mut facts = self.withdrawn("the turn ended").await?;
        facts.extend(self.close_open_calls(turn.id, &calls).await?);
        let session = Session { status: SessionStatus::Idle, updated_at: Timestamp::now(), ..self.session.clone() };
        let bodies = [
            EventBody::TurnEnded { state: turn.state, usage: turn.usage, error: turn.error.clone() },
            EventBody::SessionStatus { status: SessionStatus::Idle },
            EventBody::SessionUpdated { session: session.clone() },
        ];
        facts.extend(bodies.map(|body| Fact::new(body, Who::Daemon).in_turn(turn.id)));
        self.scribe.write(facts, Rows::default()).await?;
        self.session = session;
        Ok(())
    }

    /// A loop that was cut off by a panic or a full disk leaves calls without a result: each gets an honest one.
    pub(super) async fn close_open_calls(&self, turn: TurnId, calls: &[CallRow]) -> Result<Vec<Fact>, RpcError> {
        let transcript = self.env.store.transcript(self.session.id).await.map_err(|error| storage(&error))?;
        let message = recovery::close_open_calls(&transcript, calls);
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

/// # Errors
/// `invalid_params` for a message that is empty, or that holds what only a model or a tool can say.
fn check_input(input: &[Part]) -> Result<(), RpcError> {
    let refuse = |fact: &str, hint: &str| Err(RpcError::new(ErrorKind::InvalidParams, fact, hint));
    if !input.iter().all(|part| matches!(part, Part::Text { .. } | Part::Image { .. })) {
        return refuse("a message of a person holds text and images only", "leave the other parts out of `input`");
    }
    if input.iter().all(|part| part.as_text().is_some_and(|text| text.trim().is_empty())) {
        return refuse("the message is empty", "send some text in `input`");
    }
    Ok(())
}

/// The first line of the first message, short enough for a listing.
fn title_of(input: &[Part]) -> String {
    let text = input.iter().find_map(Part::as_text).unwrap_or("(no text)").trim();
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= 60 { line.to_owned() } else { line.chars().take(59).chain(['…']).collect() }
}
