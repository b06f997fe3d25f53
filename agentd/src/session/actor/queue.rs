//! Messages that wait while a turn runs: each is in the journal before its sender is told, and runs in its turn or is
//! taken in by the turn that runs.

use agent::Halt;
use protocol::api::{Delivery, Input, QueueDeleted, QueueListed, QueueUpdated, TurnStart, TurnStarted};
use protocol::{Actor as Who, ErrorKind, EventBody, Message, QueueChange, RpcError, TurnError, TurnId, TurnState};
use tokio::time::Instant;

use super::super::queue::Waits;
use super::super::scribe::{Fact, Rows};
use super::ends::over;
use super::room::passes;
use super::turns::{check_input, new_receipt};
use super::{Actor, Phase, WRITE_AGAIN};
use crate::rpc::Caller;

impl Actor {
    /// Takes a message for later. `steer` is for the turn that runs or was cut off, when there is one.
    pub(super) async fn queue_turn(
        &mut self,
        start: TurnStart,
        payload_hash: String,
        by: &Caller,
    ) -> Result<TurnStarted, RpcError> {
        self.queue.check_room()?;
        let input = start.input.into_parts();
        check_input(&input)?;
        let mut turn = self.new_turn(input, start.max_steps);
        (turn.state, turn.delivery) = (TurnState::Queued, start.delivery);
        let (names, state) = match (&self.phase, start.delivery) {
            (Phase::Running(running), Delivery::Steer) => (running.turn.id, TurnState::Running),
            (Phase::Interrupted(Some(cut_off)), Delivery::Steer) => (cut_off.id, TurnState::Recoverable),
            _ => (turn.id, TurnState::Queued),
        };
        let fact = Fact::new(EventBody::TurnQueued { turn: turn.clone() }, by.actor()).in_turn(turn.id);
        let receipt = |id| new_receipt((self.session.id, id), payload_hash, (names, state), self.scribe.last_seq() + 1);
        let rows = Rows { receipts: start.client_message_id.map(receipt).into_iter().collect(), ..Rows::default() };
        let seq = self.scribe.write(vec![fact], rows).await?;
        self.queue.push(Waits { turn, by: by.actor() });
        Ok(TurnStarted { turn_id: names, state, seq })
    }

    pub(super) fn list_queue(&self) -> QueueListed {
        QueueListed { turns: self.queue.turns() }
    }

    /// # Errors
    /// `not_found` for a message that does not wait any more, `invalid_params` for an empty one, `storage_error`.
    pub(super) async fn update_queued(
        &mut self,
        turn: TurnId,
        input: Input,
        by: &Caller,
    ) -> Result<QueueUpdated, RpcError> {
        let mut turn = self.queue.get(turn)?.clone();
        turn.input = input.into_parts();
        check_input(&turn.input)?;
        let seq = self.change_queue(QueueChange::Updated, &turn, by.actor()).await?;
        self.queue.replace(Waits { turn: turn.clone(), by: by.actor() });
        Ok(QueueUpdated { turn, seq })
    }

    /// # Errors
    /// As [`Self::update_queued`].
    pub(super) async fn delete_queued(&mut self, turn: TurnId, by: &Caller) -> Result<QueueDeleted, RpcError> {
        let turn = self.queue.get(turn)?.clone();
        let seq = self.change_queue(QueueChange::Deleted, &turn, by.actor()).await?;
        self.queue.remove(turn.id);
        self.rest_when_empty().await;
        self.wake_waiters();
        Ok(QueueDeleted { seq })
    }

    async fn change_queue(&mut self, change: QueueChange, turn: &protocol::Turn, who: Who) -> Result<u64, RpcError> {
        let body = EventBody::QueueChanged { change, turn: turn.clone() };
        self.scribe.write(vec![Fact::new(body, who).in_turn(turn.id)], Rows::default()).await
    }

    /// Messages for the turn that runs: they become part of it, in the journal first.
    pub(super) async fn said_meanwhile(&mut self) -> Result<Vec<Message>, Halt> {
        let Phase::Running(running) = &self.phase else { return Err(Halt("the turn is over".into())) };
        let turn = running.turn.id;
        let steering = self.queue.steering();
        if steering.is_empty() {
            return Ok(Vec::new());
        }
        let (mut facts, mut messages) = (Vec::new(), Vec::new());
        for Waits { turn: said, by } in &steering {
            let message = Message::user(said.input.clone());
            let taken_in = EventBody::QueueChanged { change: QueueChange::Steered, turn: said.clone() };
            facts.push(Fact::new(taken_in, Who::Daemon).in_turn(turn));
            facts.push(Fact::new(EventBody::Message { message: message.clone() }, by.clone()).in_turn(turn));
            messages.push(message);
        }
        match self.scribe.write(facts, Rows::default()).await {
            // They wait for the next border, or have a turn of their own.
            Err(error) if passes(&error) => return Ok(Vec::new()),
            Err(error) => return Err(Halt(error.to_string())),
            Ok(_) => {}
        }
        steering.iter().for_each(|waits| self.queue.remove(waits.turn.id));
        Ok(messages)
    }

    /// A person has said that the messages which wait since the restart shall run.
    pub(super) async fn release_queue(&mut self) {
        if matches!(self.phase, Phase::Interrupted(None)) {
            self.phase = Phase::Idle;
        }
        self.next_queued().await;
    }

    /// Starts the message that waits longest. One that cannot start fails, and the next one is tried.
    pub(super) async fn next_queued(&mut self) {
        while matches!(self.phase, Phase::Idle)
            && let Some(Waits { turn, by }) = self.queue.first()
        {
            let id = turn.id;
            let refused = match self.check_room() {
                Ok(()) => self.begin(turn.clone(), by.clone(), None).await.err(),
                Err(error) => Some(error),
            };
            let Some(error) = refused else {
                self.queue.remove(id);
                continue;
            };
            let is_storage = matches!(error.kind, ErrorKind::StorageError | ErrorKind::DiskFull);
            if is_storage || self.fail_queued(turn, by, error).await.is_err() {
                if self.queue.again_at.replace(Instant::now() + WRITE_AGAIN).is_none() {
                    tracing::warn!(session = %self.session.id, turn = %id, "a message that waits cannot be started yet");
                }
                return;
            }
            self.queue.remove(id);
        }
        self.queue.again_at = None;
        self.rest_when_empty().await;
        self.wake_waiters();
    }

    /// A message whose turn cannot even begin has had its turn all the same.
    async fn fail_queued(&mut self, mut turn: protocol::Turn, by: Who, error: RpcError) -> Result<(), RpcError> {
        turn.state = TurnState::Running;
        let started = EventBody::TurnStarted { turn: turn.clone() };
        let message = EventBody::Message { message: Message::user(turn.input.clone()) };
        turn.error = Some(TurnError { message: error.message, data: *error.data });
        let turn = over(turn, TurnState::Failed);
        let (ended, session) = self.end_facts(&turn).await?;
        let begun = [started, message].map(|body| Fact::new(body, by.clone()).in_turn(turn.id));
        self.scribe.write(begun.into_iter().chain(ended).collect(), Rows::default()).await?;
        self.session = session;
        self.has_ended(turn);
        Ok(())
    }

    /// A session that only its queue held back is idle once that is empty.
    async fn rest_when_empty(&mut self) {
        if matches!(self.phase, Phase::Interrupted(None)) && self.queue.is_empty() {
            self.phase = Phase::Idle;
        }
        let status = self.status();
        if status != self.session.status && matches!(self.phase, Phase::Idle) {
            self.tell_status(status).await;
        }
    }
}
