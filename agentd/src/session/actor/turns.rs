//! Turns of a session: accepted, run in a task of their own, heard, interrupted.

use std::sync::Arc;

use agent::{Agent, AgentEvent, Halt, Resumption, RunEnd, RunOutcome};
use jiff::Timestamp;
use protocol::api::{Delivery, TurnInterrupted, TurnStart, TurnStarted};
use protocol::{
    Actor as Who, ErrorKind, EventBody, Message, Part, RpcError, Session, SessionId, SessionStatus, Turn, TurnId,
    TurnState, Usage,
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::super::command::{Reply, TurnSays};
use super::super::scribe::{Fact, Rows};
use super::super::translate::facts_of;
use super::super::turn::TurnLink;
use super::super::{internal, storage};
use super::ends::over;
use super::room::{Unkept, passes, starts};
use super::{Actor, Phase, Running};
use crate::rpc::Caller;
use crate::store::ReceiptRow;

impl Actor {
    /// Accepts a message: once this answers, the message is durable, and its turn runs or waits.
    ///
    /// # Errors
    /// `session_busy` with `activeTurnId`, `idempotency_conflict`, `precondition_failed` when another turn runs than
    /// the sender believes, `invalid_params` for an empty message, `storage_error`. None of them loses anything.
    pub(super) async fn start_turn(&mut self, start: TurnStart, by: &Caller) -> Result<TurnStarted, RpcError> {
        let payload = serde_json::to_vec(&(&start.input, start.delivery, start.max_steps))
            .map_err(|error| internal(error.to_string()))?;
        let payload_hash = blake3::hash(&payload).to_hex().to_string();
        if let Some(id) = &start.client_message_id
            && let Some(receipt) = self.env.store.receipt(self.session.id, id).await.map_err(|error| storage(&error))?
        {
            return receipt_for(&receipt, &payload_hash, id);
        }
        self.check_room()?;
        self.check_expected(start.expected_turn_id)?;
        match (&self.phase, start.delivery) {
            (Phase::Closed, _) => return Err(self.closing()),
            (Phase::Running(running), _) if running.parking.is_some() => return Err(self.closing()),
            (Phase::Running(running), Delivery::Start) => return Err(self.busy(running)),
            (Phase::Running(_) | Phase::Interrupted(_), Delivery::Queue | Delivery::Steer) => {
                return self.queue_turn(start, payload_hash, by).await;
            }
            // Messages wait to be tried again: this one does not overtake them.
            (Phase::Idle, Delivery::Queue | Delivery::Steer) if !self.queue.is_empty() => {
                return self.queue_turn(start, payload_hash, by).await;
            }
            (Phase::Interrupted(_), Delivery::Start) | (Phase::Idle, _) => {}
        }
        let input = start.input.into_parts();
        check_input(&input)?;
        let turn = self.new_turn(input, start.max_steps);
        self.begin(turn, by.actor(), start.client_message_id.map(|id| (id, payload_hash))).await
    }

    /// Commits the start of a turn with its message, and runs it. A turn that was cut off ends by it.
    pub(super) async fn begin(
        &mut self,
        mut turn: Turn,
        by: Who,
        receipt: Option<(String, String)>,
    ) -> Result<TurnStarted, RpcError> {
        (turn.state, turn.started_at) = (TurnState::Running, Timestamp::now());
        let link = self.link(turn.id)?;
        let agent = self.agent(&link, turn.max_steps).await?;
        let ends = match &self.phase {
            Phase::Interrupted(Some(cut_off)) => Some(over((**cut_off).clone(), TurnState::Interrupted)),
            _ => None,
        };
        // Both or neither: a message that is refused ends nothing.
        let mut facts = match &ends {
            Some(ends) => self.end_facts(ends).await?.0,
            None => Vec::new(),
        };
        let session = self.titled(&turn);
        let bodies = [
            Some((EventBody::TurnStarted { turn: turn.clone() }, by.clone())),
            session.clone().map(|session| (EventBody::SessionUpdated { session }, Who::Daemon)),
            Some((EventBody::SessionStatus { status: SessionStatus::Running }, Who::Daemon)),
            Some((EventBody::Message { message: Message::user(turn.input.clone()) }, by)),
        ];
        facts.extend(bodies.into_iter().flatten().map(|(body, who)| Fact::new(body, who).in_turn(turn.id)));
        let seq = self.scribe.last_seq() + facts.len() as u64;
        let receipt =
            receipt.map(|(id, hash)| new_receipt((self.session.id, id), hash, (turn.id, TurnState::Running), seq));
        let rows = Rows { receipts: receipt.into_iter().collect(), ..Rows::default() };
        let seq = self.scribe.write(facts, rows).await?;
        if let Some(ends) = ends {
            self.has_ended(ends);
        }
        self.session = session.unwrap_or_else(|| self.session.clone());
        self.session.status = SessionStatus::Running;
        let started = TurnStarted { turn_id: turn.id, state: TurnState::Running, seq };
        self.spawn(agent, turn, link, None);
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
    pub(super) async fn agent(&self, link: &TurnLink, max_steps: Option<u32>) -> Result<Agent, RpcError> {
        let (env, session, workbench) = (Arc::clone(&self.env), self.session.clone(), self.workbench.clone());
        let link = link.clone();
        let built = tokio::task::spawn_blocking(move || env.agent(&session, &workbench, &link, max_steps)).await;
        built.unwrap_or_else(|error| Err(internal(format!("the agent could not be built: {error}"))))
    }

    fn check_expected(&self, expected: Option<TurnId>) -> Result<(), RpcError> {
        let active = match &self.phase {
            Phase::Running(running) => Some(running.turn.id),
            Phase::Interrupted(Some(turn)) => Some(turn.id),
            Phase::Idle | Phase::Interrupted(None) | Phase::Closed => None,
        };
        let Some(expected) = expected.filter(|expected| Some(*expected) != active) else { return Ok(()) };
        let runs = active.map_or_else(|| "none".to_owned(), |active| active.to_string());
        let fact = format!("turn {expected} was expected to run, but {runs} does; the message was not taken");
        Err(RpcError::new(ErrorKind::PreconditionFailed, fact, "look at the session again, then send what still fits"))
    }

    fn closing(&self) -> RpcError {
        let fact = format!("session {} is being closed", self.session.id);
        RpcError::new(ErrorKind::Draining, fact, "try again once the daemon is back")
    }

    pub(super) fn busy(&self, running: &Running) -> RpcError {
        RpcError::new(
            ErrorKind::SessionBusy,
            format!("session {} runs turn {}", self.session.id, running.turn.id),
            "send it with delivery \"queue\" or \"steer\", wait with turn/wait, or stop the turn with turn/interrupt",
        )
        .with("activeTurnId", running.turn.id.to_string())
    }

    pub(super) fn new_turn(&self, input: Vec<Part>, max_steps: Option<u32>) -> Turn {
        Turn {
            id: TurnId::new(),
            session_id: self.session.id,
            state: TurnState::Running,
            input,
            started_at: Timestamp::now(),
            ended_at: None,
            usage: Usage::default(),
            error: None,
            delivery: Delivery::Start,
            max_steps,
            resumes: 0,
        }
    }

    /// What the turn speaks to this actor through.
    pub(super) fn link(&self, turn: TurnId) -> Result<TurnLink, RpcError> {
        let mailbox = self.own_mailbox.upgrade().ok_or_else(|| internal("the session has no mailbox".into()))?;
        Ok(TurnLink::new(turn, Arc::clone(&self.feed), mailbox))
    }

    /// Starts the loop in a task that this actor owns; one that was cut off goes on from where it was.
    pub(super) fn spawn(&mut self, agent: Agent, turn: Turn, link: TurnLink, so_far: Option<Resumption>) {
        let cancel = CancellationToken::new();
        let (store, session, token) = (self.env.store.clone(), self.session.id, cancel.clone());
        let is_resumed = so_far.is_some();
        self.turns.spawn(async move {
            let transcript = match store.transcript(session).await {
                Ok(transcript) => transcript,
                Err(error) => {
                    return RunOutcome { end: RunEnd::Halted(Halt(error.to_string())), usage: Usage::default() };
                }
            };
            match so_far {
                Some(so_far) => agent.resume(transcript, so_far, Arc::new(link), &token).await,
                None => agent.run(transcript, Arc::new(link), &token).await,
            }
        });
        self.phase = Phase::Running(Box::new(Running::new(turn, cancel, is_resumed)));
    }

    /// Commits what the loop says. While the session is being parked nothing new starts: what would is left unanswered,
    /// and goes with the loop.
    pub(super) async fn happened(&mut self, event: AgentEvent, reply: oneshot::Sender<Result<(), Halt>>) {
        if let Phase::Running(running) = &mut self.phase
            && running.parking.is_some()
            && starts(&event)
        {
            return running.held.push(reply);
        }
        let waits = starts(&event) && self.env.store.is_short_of_room() && !self.is_cancelled();
        let kept = if waits { Err(Unkept::NotYet) } else { self.keep(event.clone()).await };
        match kept {
            Err(Unkept::NotYet) => self.put_off(TurnSays::Happened { event, reply }),
            Err(Unkept::Halt(halt)) => drop(reply.send(Err(halt))),
            Ok(()) => drop(reply.send(Ok(()))),
        }
        self.park_when_quiet();
    }

    async fn keep(&mut self, event: AgentEvent) -> Result<(), Unkept> {
        let Phase::Running(running) = &mut self.phase else {
            return Err(Unkept::Halt(Halt("the turn is over".into())));
        };
        let used = match &event {
            AgentEvent::Message(message) => message.usage,
            _ => None,
        };
        let (begun, over) = match &event {
            AgentEvent::ToolStarted { call, .. } => (Some(call.clone()), None),
            AgentEvent::ToolFinished { call, .. } => (None, Some(call.clone())),
            AgentEvent::Message(_) | AgentEvent::Notice { .. } => (None, None),
        };
        let (facts, mut rows) = facts_of(event, self.session.id, running.turn.id);
        if over.is_some() {
            rows.workbench = self.workbench.take_changes();
        }
        // Before the commit, which may reach the disk and fail all the same.
        running.open_calls.extend(begun.clone());
        let written = self.write_with_bench(facts, rows).await;
        let Phase::Running(running) = &mut self.phase else { return Ok(()) };
        match written {
            Err(error) if passes(&error) => {
                running.open_calls.retain(|call| Some(call) != begun.as_ref());
                return Err(Unkept::NotYet);
            }
            Err(error) => return Err(Unkept::Halt(Halt(error.to_string()))),
            Ok(_) => {}
        }
        if let Some(call) = over {
            running.open_calls.remove(&call);
        }
        if let Some(usage) = used {
            running.turn.usage.add(&usage);
            self.session.usage.add(&usage);
            self.session.context_used = usage.context_tokens();
        }
        Ok(())
    }

    /// Cancels the running turn; the answer comes when it is over. One that was cut off ends.
    pub(super) async fn interrupt(&mut self, turn: Option<TurnId>, by: &Caller, reply: Reply<TurnInterrupted>) {
        match &mut self.phase {
            Phase::Running(running) if turn.is_none_or(|turn| turn == running.turn.id) => {
                running.cancel.cancel();
                running.interrupters.push(reply);
                self.hear_again().await;
                self.withdraw(&format!("{} interrupted the turn", by.name)).await;
            }
            Phase::Interrupted(Some(cut_off)) if turn.is_none_or(|turn| turn == cut_off.id) => {
                let (turn_id, state) = (Some(cut_off.id), Some(TurnState::Interrupted));
                let ended = self.discard(TurnState::Interrupted).await;
                drop(reply.send(ended.map(|seq| TurnInterrupted { turn_id, state, seq })));
            }
            Phase::Running(_) | Phase::Interrupted(_) | Phase::Idle | Phase::Closed => {
                let nothing = TurnInterrupted { turn_id: None, state: None, seq: self.scribe.last_seq() };
                drop(reply.send(Ok(nothing)));
            }
        }
    }
}

pub(super) fn new_receipt(
    (session, client_message_id): (SessionId, String),
    payload_hash: String,
    (turn_id, state): (TurnId, TurnState),
    seq: u64,
) -> ReceiptRow {
    ReceiptRow { session, client_message_id, payload_hash, turn_id, state, seq }
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
pub(super) fn check_input(input: &[Part]) -> Result<(), RpcError> {
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
