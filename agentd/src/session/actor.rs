//! One task owns one session: it alone changes it, one command at a time.
//!
//! The mailbox loop is here; `actor/turns.rs` starts turns and keeps what they say, `actor/ends.rs` ends them, `actor/queue.rs` keeps the messages that wait,
//! `actor/consent.rs` asks people, `actor/recover.rs` finds what a crash left and `actor/resume.rs` lets it go on,
//! `actor/park.rs` lets go of a turn when the daemon stops, `actor/room.rs` waits out a full disk. Every change is committed by the scribe before anybody, the
//! caller included, is told of it.

mod consent;
mod ends;
mod park;
mod queue;
mod recover;
mod resume;
mod room;
mod running;
mod turns;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agent::RunOutcome;
use jiff::Timestamp;
use protocol::api::{SessionShown, SessionUpdate, TurnWaited, Until};
use protocol::{Actor as Who, EventBody, NoClientPolicy, RpcError, Session, SessionStatus, Turn};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::approvals::Approvals;
use super::assemble::{SessionEnv, Workbench};
use super::command::{Command, Reply, SessionHandle, SessionView, TurnSays};
use super::feed::Feed;
use super::questions::Questions;
use super::queue::Queue;
use super::scribe::{Fact, Rows, Scribe};
use super::waiters::{Standing, Waiter, Waiters};
use crate::rpc::Caller;
use running::Running;

/// The pause before the end of a turn that could not be stored is tried again.
pub(super) const WRITE_AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Actor {
    pub(super) session: Session,
    pub(super) scribe: Scribe,
    pub(super) env: Arc<SessionEnv>,
    pub(super) workbench: Workbench,
    pub(super) feed: Arc<Feed>,
    /// For the turn to speak to this actor.
    pub(super) own_mailbox: mpsc::WeakSender<Command>,
    /// Held while this session has something to do by itself, so that it is not let go of.
    stays: Option<mpsc::Sender<Command>>,
    phase: Phase,
    pub(super) queue: Queue,
    pub(super) last_ended: Option<Turn>,
    pub(super) turns: JoinSet<RunOutcome>,
    pub(super) waiting: Waiting,
}

/// Who and what waits in a session.
#[derive(Default, Debug)]
pub(super) struct Waiting {
    pub(super) approvals: Approvals,
    pub(super) questions: Questions,
    pub(super) waiters: Waiters,
    /// Clients that are attached and may answer, as their handles count them.
    pub(super) attached: Arc<AtomicU32>,
    /// Since when something has been asked while nobody was attached.
    pub(super) alone_since: Option<Instant>,
}

/// What the session does.
#[derive(Debug)]
enum Phase {
    Idle,
    Running(Box<Running>),
    /// Nothing runs, and nothing does until a person says so: a turn was cut off, or messages wait since a restart.
    Interrupted(Option<Box<Turn>>),
    /// The daemon or a client closes the session: no turn starts any more.
    Closed,
}

impl Actor {
    /// A session as the store has it; `recover` comes next, then `run`.
    pub(crate) fn new(
        session: Session,
        scribe: Scribe,
        workbench: Workbench,
        (env, handle): (Arc<SessionEnv>, &SessionHandle),
    ) -> Self {
        let waiting = Waiting { attached: Arc::clone(&handle.attached), ..Waiting::default() };
        Self {
            session,
            scribe,
            env,
            workbench,
            feed: Arc::clone(&handle.feed),
            own_mailbox: handle.mailbox.downgrade(),
            stays: None,
            phase: Phase::Idle,
            queue: Queue::default(),
            last_ended: None,
            turns: JoinSet::new(),
            waiting,
        }
    }

    /// Serves the mailbox until the session is closed or nobody can reach it any more.
    pub(crate) async fn run(mut self, mut mailbox: mpsc::Receiver<Command>) {
        let (mut closers, mut room) = (Vec::new(), self.env.store.watch_room());
        while closers.is_empty() || self.has_task() {
            self.notice_attachment();
            let patience = self.patience();
            let expiry = self.waiting.approvals.next_expiry();
            let retry = self.unwritten_end();
            let (queue_again, keep_again) = (self.queue.again_at, self.keeps_again());
            let parking_ends = self.parking_ends();
            let draft = self.next_draft();
            let is_due = [patience, expiry, retry, queue_again].iter().any(Option::is_some);
            let has_work = is_due || !self.waiting.waiters.is_empty() || matches!(self.phase, Phase::Running(_));
            self.stays = if has_work { self.stays.take().or_else(|| self.own_mailbox.upgrade()) } else { None };
            tokio::select! {
                Some(ended) = self.turns.join_next() => self.turn_ended(ended).await,
                command = mailbox.recv() => match command {
                    Some(Command::Close { park_until, reply }) => closers.extend(self.close(park_until, reply)),
                    Some(command) => self.serve(command).await,
                    None => break,
                },
                () = sleep_until(patience) => self.deny_unattended().await,
                () = sleep_until(expiry) => self.expire_asked().await,
                () = sleep_until(retry) => self.finish_turn().await,
                () = sleep_until(queue_again) => self.next_queued().await,
                () = sleep_until(keep_again) => self.hear_again().await,
                () = sleep_until(parking_ends) => self.turns.abort_all(),
                () = sleep_until(draft) => self.keep_drafts().await,
                Ok(()) = room.changed() => {
                    let is_short = *room.borrow_and_update();
                    self.room_changed(is_short).await;
                }
            }
        }
        for closer in closers {
            drop(closer.send(Ok(())));
        }
    }

    async fn serve(&mut self, command: Command) {
        match command {
            Command::Show(reply) => drop(reply.send(Ok(self.view()))),
            Command::Update { change, by, reply } => drop(reply.send(self.update(change, &by).await)),
            Command::StartTurn { start, by, reply } => drop(reply.send(self.start_turn(start, &by).await)),
            Command::Resume { turn, action, by, reply } => drop(reply.send(self.resume(turn, action, &by).await)),
            Command::ListQueue(reply) => drop(reply.send(Ok(self.list_queue()))),
            Command::UpdateQueued { turn, input, by, reply } => {
                drop(reply.send(self.update_queued(turn, input, &by).await));
            }
            Command::DeleteQueued { turn, by, reply } => drop(reply.send(self.delete_queued(turn, &by).await)),
            Command::Interrupt { turn, by, reply } => self.interrupt(turn, &by, reply).await,
            Command::Wait { turn, until, reply } => self.wait(Waiter { turn, until, reply }).await,
            Command::Decide { answer, by, reply } => drop(reply.send(self.decide(answer, &by).await)),
            Command::Answer { answer, by, reply } => drop(reply.send(self.answer(answer, &by).await)),
            Command::Turn(says) => self.hear(says).await,
            Command::AttachmentChanged | Command::Close { .. } => {}
        }
    }

    /// Does what the running turn's loop asks for.
    async fn hear(&mut self, says: TurnSays) {
        match says {
            TurnSays::Happened { event, reply } => self.happened(event, reply).await,
            TurnSays::SaidMeanwhile { reply } => drop(reply.send(self.said_meanwhile().await)),
            TurnSays::AskConsent { consent, reply } => self.ask_consent(consent, reply).await,
            TurnSays::AskPerson { call, title, questions, reply } => {
                self.ask_person((call, title, questions), reply).await;
            }
        }
    }

    pub(super) fn view(&self) -> SessionView {
        let session = Session {
            last_seq: self.scribe.last_seq(),
            attached: self.waiting.attached.load(Ordering::Relaxed),
            ..self.session.clone()
        };
        SessionView { session, approvals: self.waiting.approvals.all(), questions: self.waiting.questions.all() }
    }

    /// # Errors
    /// `not_found` for a model that no provider has, `storage_error`.
    async fn update(&mut self, change: SessionUpdate, by: &Caller) -> Result<SessionShown, RpcError> {
        let mut session = self.session.clone();
        if let Some(model) = change.model {
            let limits = self.env.models.get(&model)?.limits();
            session.context_window = limits.context_window;
            session.model = model;
        }
        session.title = change.title.unwrap_or(session.title);
        session.mode = change.mode.unwrap_or(session.mode);
        session.resume_policy = change.resume_policy.unwrap_or(session.resume_policy);
        session.no_client_policy = change.no_client_policy.unwrap_or(session.no_client_policy);
        let seq = self.write_session(session, by.actor()).await?;
        self.workbench.mode.set(self.session.mode);
        Ok(SessionShown { session: self.view().session, seq: Some(seq) })
    }

    async fn wait(&mut self, waiter: Waiter) {
        let standing = self.standing();
        // A turn that neither runs nor waits here has ended or was cut off, or there is none of that name.
        if let Some(turn) = waiter.turn.filter(|turn| !standing.goes_on(*turn) && waiter.until != Until::Idle) {
            let found = self.env.store.turn(turn).await.map_err(|error| super::storage(&error));
            let answer = found.and_then(|found| {
                let turn = found.filter(|found| found.session_id == self.session.id);
                let turn = turn.ok_or_else(|| super::no_turn(waiter.turn.unwrap_or_default(), self.session.id))?;
                Ok(TurnWaited { turn: Some(turn), status: standing.status, seq: standing.seq })
            });
            return drop(waiter.reply.send(answer));
        }
        self.waiting.waiters.add(waiter);
        self.wake_waiters();
    }

    pub(super) fn wake_waiters(&mut self) {
        let standing = self.standing();
        self.waiting.waiters.wake(&standing);
    }

    fn standing(&self) -> Standing {
        let running = match &self.phase {
            Phase::Running(running) => Some(running.turn.clone()),
            Phase::Idle | Phase::Interrupted(_) | Phase::Closed => None,
        };
        let rests = match &self.phase {
            Phase::Interrupted(Some(turn)) => Some((**turn).clone()),
            _ => self.last_ended.clone(),
        };
        // What is held back goes on only when somebody says so: nobody waits for that.
        let queued = match &self.phase {
            Phase::Interrupted(_) => Vec::new(),
            _ => self.queue.turns().iter().map(|turn| turn.id).collect(),
        };
        Standing { status: self.session.status, seq: self.scribe.last_seq(), running, queued, rests }
    }

    /// Commits the session's standing data as it shall be, then takes it over.
    pub(super) async fn write_session(&mut self, mut session: Session, by: Who) -> Result<u64, RpcError> {
        session.updated_at = Timestamp::now();
        session.last_seq = self.scribe.last_seq() + 1;
        let fact = Fact::new(EventBody::SessionUpdated { session: session.clone() }, by);
        let seq = self.scribe.write(vec![fact], Rows::default()).await?;
        self.session = session;
        Ok(seq)
    }

    /// What the session does, as its phase and what waits in it say.
    pub(super) fn status(&self) -> SessionStatus {
        match &self.phase {
            Phase::Idle | Phase::Closed => SessionStatus::Idle,
            Phase::Interrupted(_) => SessionStatus::Interrupted,
            Phase::Running(_) if !self.waiting.approvals.is_empty() => SessionStatus::WaitingApproval,
            Phase::Running(_) if !self.waiting.questions.is_empty() => SessionStatus::WaitingAnswer,
            Phase::Running(_) => SessionStatus::Running,
        }
    }

    /// When a request that nobody is there to answer is denied, if the session's policy says so.
    fn patience(&self) -> Option<Instant> {
        // Of a turn that was cut off nothing waits: a person has to come for it anyway.
        let since = self.waiting.alone_since.filter(|_| self.running().is_some())?;
        match self.session.no_client_policy {
            NoClientPolicy::Park => None,
            NoClientPolicy::Deny => Some(since),
            // What is too far away to be counted never comes.
            NoClientPolicy::DenyAfter { seconds } => since.checked_add(Duration::from_secs(seconds)),
        }
    }

    /// Lets no turn start any more. Gives the reply back that is owed once nothing runs.
    fn close(&mut self, park_until: Option<Instant>, reply: Reply<()>) -> Option<Reply<()>> {
        match &self.phase {
            Phase::Running(running) if park_until.is_none() => {
                drop(reply.send(Err(self.busy(running))));
                return None;
            }
            Phase::Running(_) => self.park(park_until),
            Phase::Idle | Phase::Interrupted(_) | Phase::Closed => self.phase = Phase::Closed,
        }
        Some(reply)
    }

    /// True while a turn's task is alive.
    fn has_task(&self) -> bool {
        matches!(&self.phase, Phase::Running(running) if running.end_again.is_none())
    }

    /// When the end of a turn that is over is written again.
    fn unwritten_end(&self) -> Option<Instant> {
        self.running().and_then(|running| running.end_again)
    }

    fn running(&self) -> Option<&Running> {
        match &self.phase {
            Phase::Running(running) => Some(running),
            Phase::Idle | Phase::Interrupted(_) | Phase::Closed => None,
        }
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
