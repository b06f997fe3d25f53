//! Which sessions are in memory: id to handle. A session is opened when somebody asks for it, once.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use jiff::Timestamp;
use protocol::api::{SessionNew, SessionShown};
use protocol::{
    Actor as Who, ErrorKind, EventBody, Mode, NoticeLevel, ResumePolicy, RpcError, Session, SessionId, SessionStatus,
    TurnState, Usage,
};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::actor::Actor;
use super::assemble::{SessionEnv, Workbench};
use super::command::{Command, SessionHandle};
use super::feed::Feed;
use super::quarantine;
use super::scribe::{Fact, Rows, Scribe};
use crate::rpc::Caller;

/// Commands that may wait in a session's mailbox; whoever sends one more waits for a place.
const MAILBOX: usize = 64;

#[derive(Debug)]
pub(crate) struct Registry {
    env: Arc<SessionEnv>,
    /// Sessions in memory, for a quick look.
    open: Mutex<InMemory>,
    /// Held by whoever makes, opens or closes a session: one at a time, so that a session never has two actors.
    doors: tokio::sync::Mutex<Doors>,
    actors: TaskTracker,
}

#[derive(Default, Debug)]
struct InMemory {
    sessions: HashMap<SessionId, Resident>,
    /// Rises with every use of any of them.
    uses: u64,
}

#[derive(Debug)]
struct Resident {
    handle: SessionHandle,
    last_use: u64,
    actor: JoinHandle<()>,
}

#[derive(Default, Debug)]
struct Doors {
    /// The daemon is going down: nothing is opened any more.
    are_closing: bool,
    /// Sessions that this life of the daemon has made or opened.
    lived: HashSet<SessionId>,
}

impl Registry {
    pub(crate) fn new(env: Arc<SessionEnv>) -> Self {
        Self { env, open: Mutex::default(), doors: tokio::sync::Mutex::default(), actors: TaskTracker::new() }
    }

    /// Creates a session, or answers with the one that this id already names.
    ///
    /// # Errors
    /// `invalid_params` for a directory that is none, `idempotency_conflict` for an id that names a session elsewhere,
    /// `not_found` for a model that no provider has, `storage_error`.
    pub(crate) async fn create(&self, new: SessionNew, by: &Caller) -> Result<SessionShown, RpcError> {
        let cwd = workspace(&new.cwd).await?;
        let mut doors = self.doors.lock().await;
        doors.check()?;
        if let Some(id) = new.session_id
            && let Some(existing) = self.stored(id).await?
        {
            return same_session(existing, &cwd);
        }
        let loaded = self.env.load(&cwd);
        let defaults = loaded.settings;
        let model = new.model.unwrap_or_else(|| defaults.model.clone());
        let limits = self.env.models.get(&model)?.limits();
        let now = Timestamp::now();
        let session = Session {
            id: new.session_id.unwrap_or_default(),
            title: new.title.unwrap_or_default(),
            cwd,
            model,
            mode: new.mode.unwrap_or(defaults.mode),
            status: SessionStatus::Idle,
            created_at: now,
            updated_at: now,
            last_seq: 1,
            parent_id: None,
            archived: false,
            usage: Usage::default(),
            context_window: limits.context_window,
            context_used: 0,
            attached: 0,
            no_client_policy: new.no_client_policy.unwrap_or(defaults.no_client),
            resume_policy: new.resume_policy.unwrap_or(defaults.resume.policy),
        };
        let feed = Arc::new(Feed::new(session.id, 0, self.env.everyone.clone()));
        let mut scribe = self.scribe(session.id, &feed, 0);
        let created = Fact::new(EventBody::SessionCreated { session: session.clone() }, by.actor());
        let said = loaded
            .notices
            .into_iter()
            .map(|text| Fact::new(EventBody::Notice { level: NoticeLevel::Warning, text }, Who::Daemon));
        let seq = scribe.write(std::iter::once(created).chain(said).collect(), Rows::default()).await?;
        doors.lived.insert(session.id);
        Ok(SessionShown { session: Session { last_seq: seq, ..session }, seq: Some(seq) })
    }

    /// The session's handle; opens the session when it is not in memory.
    ///
    /// # Errors
    /// `not_found`, `storage_error`, `draining`.
    pub(crate) async fn get(&self, id: SessionId) -> Result<SessionHandle, RpcError> {
        if let Some(handle) = self.find(id) {
            return Ok(handle);
        }
        let mut doors = self.doors.lock().await;
        doors.check()?;
        self.open(id, &mut doors).await
    }

    /// Sessions in memory.
    pub(crate) fn in_memory(&self) -> Vec<SessionHandle> {
        self.lock().sessions.values().map(|resident| resident.handle.clone()).collect()
    }

    /// How many clients watch a session and may answer for it.
    pub(crate) fn attached(&self, id: SessionId) -> u32 {
        self.lock().sessions.get(&id).map_or(0, |resident| resident.handle.attached.load(Ordering::Relaxed))
    }

    /// Deletes a session that is not running, with its history.
    ///
    /// # Errors
    /// `session_busy`, `not_found`, `storage_error`, `draining`.
    pub(crate) async fn delete(&self, id: SessionId) -> Result<(), RpcError> {
        let mut doors = self.doors.lock().await;
        doors.check()?;
        match self.open(id, &mut doors).await {
            Ok(handle) => {
                handle.ask(|reply| Command::Close { park_until: None, reply }).await?;
                self.lock().sessions.remove(&id);
                handle.feed.end();
            }
            // Nothing of it is in memory, and to be rid of it may be what is wanted.
            Err(error) if error.kind == ErrorKind::InvalidState => {}
            Err(error) => return Err(error),
        }
        self.env.store.delete_session(id).await.map_err(|error| super::storage(&error))?;
        let outputs = self.env.outputs_of(id);
        match tokio::fs::remove_dir_all(&outputs).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(path = %outputs.display(), %error, "what commands of a deleted session said is left");
            }
            Ok(()) | Err(_) => {}
        }
        Ok(())
    }

    /// Ends all actors, and lets no further one in. Calls that run are waited for until then.
    pub(crate) async fn close_all(&self, until: Instant) {
        self.doors.lock().await.are_closing = true;
        let mut closing = JoinSet::new();
        for handle in self.in_memory() {
            closing.spawn(async move { handle.ask(|reply| Command::Close { park_until: Some(until), reply }).await });
        }
        while closing.join_next().await.is_some() {}
        self.actors.close();
        self.actors.wait().await;
    }

    /// Takes up the turns that an earlier life of the daemon left running, before anybody can ask for them, and those
    /// that wait and may go on by themselves. What waits for a person is opened when somebody asks.
    ///
    /// # Errors
    /// `storage_error` when even the list of them cannot be read.
    pub(crate) async fn recover(&self) -> Result<(), RpcError> {
        let store = &self.env.store;
        let with = async |state| store.sessions_with_turn(state).await.map_err(|error| super::storage(&error));
        let mut cut_off = with(TurnState::Running).await?;
        for waits in with(TurnState::Recoverable).await? {
            if self.stored(waits).await?.is_some_and(|session| session.resume_policy == ResumePolicy::Auto) {
                cut_off.push(waits);
            }
        }
        for session in cut_off {
            if let Err(error) = self.get(session).await {
                // One bad session never blocks the rest.
                tracing::error!(%session, %error, "a session could not be recovered");
                self.say_why_not(session, &error).await;
            }
        }
        Ok(())
    }

    /// With the doors held: nobody else opens or closes a session meanwhile.
    async fn open(&self, id: SessionId, doors: &mut Doors) -> Result<SessionHandle, RpcError> {
        if let Some(handle) = self.find(id) {
            return Ok(handle);
        }
        let mut session = self.stored(id).await?.ok_or_else(|| super::no_session(id))?;
        let has_turn = session.status != SessionStatus::Idle;
        quarantine::check(&self.env.store, &session).await?;
        let (mailbox, commands) = mpsc::channel(MAILBOX);
        let feed = Arc::new(Feed::new(id, session.last_seq, self.env.everyone.clone()));
        let scribe = self.scribe(id, &feed, session.last_seq);
        let fell_back = session.mode == Mode::Bypass && !doors.lived.contains(&id);
        if fell_back {
            session.mode = Mode::Ask;
        }
        let workbench = Workbench::restore(&session, &self.env).await?;
        let handle = SessionHandle { id, feed: Arc::clone(&feed), mailbox, attached: Arc::default() };
        let mut actor = Actor::new(session, scribe, workbench, (Arc::clone(&self.env), &handle));
        self.take_up(&mut actor, has_turn).await?;
        if fell_back {
            actor.fell_back_from_bypass().await?;
        }
        doors.lived.insert(id);
        let actor = self.actors.spawn(actor.run(commands));
        {
            let mut open = self.lock();
            open.uses += 1;
            let last_use = open.uses;
            open.sessions.insert(id, Resident { handle: handle.clone(), last_use, actor });
        }
        self.let_go_of_idle().await;
        Ok(handle)
    }

    /// Lets the actor find what an earlier life has left. What ends the daemon or panics in there is counted.
    async fn take_up(&self, actor: &mut Actor, has_turn: bool) -> Result<(), RpcError> {
        if !has_turn {
            return actor.recover().await;
        }
        let (store, id) = (&self.env.store, actor.session.id);
        store.begin_attempt(id).await.map_err(|error| super::storage(&error))?;
        let recovered = AssertUnwindSafe(actor.recover()).catch_unwind().await.map_err(|_| quarantine::panicked(id))?;
        if let Err(error) = store.end_attempt(id).await {
            tracing::warn!(session = %id, %error, "it counts as not taken up, though it was");
        }
        recovered
    }

    /// Leaves a word in the journal of a session that is not taken up, if that can be done.
    async fn say_why_not(&self, id: SessionId, error: &RpcError) {
        if error.kind != ErrorKind::InvalidState {
            return;
        }
        let Ok(Some(session)) = self.stored(id).await else { return };
        if session.status == SessionStatus::Error {
            return;
        }
        let feed = Arc::new(Feed::new(id, session.last_seq, self.env.everyone.clone()));
        let text = format!("{error} (hint: {})", error.data.hint);
        let bodies = [
            EventBody::Notice { level: NoticeLevel::Error, text },
            EventBody::SessionStatus { status: SessionStatus::Error },
        ];
        let facts = bodies.map(|body| Fact::new(body, Who::Daemon)).into();
        if let Err(error) = self.scribe(id, &feed, session.last_seq).write(facts, Rows::default()).await {
            tracing::warn!(session = %id, %error, "nothing could be written about it either");
        }
    }

    /// Lets the sessions that were not used for longest go out of memory while there are too many. With the doors held.
    ///
    /// A session whose only way in is the registry's has nobody who watches, asks or runs, and its actor keeps one itself
    /// while it has anything to do. Nobody can get another one meanwhile, so nothing is ever asked of a session that is
    /// on its way out.
    async fn let_go_of_idle(&self) {
        let cap = usize::try_from(self.env.load_user().limits.sessions_in_memory).unwrap_or(usize::MAX);
        let leaving: Vec<Resident> = {
            let mut open = self.lock();
            let mut idle: Vec<(u64, SessionId)> = open
                .sessions
                .iter()
                .filter(|(_, resident)| resident.handle.is_unused())
                .map(|(id, resident)| (resident.last_use, *id))
                .collect();
            idle.sort_unstable();
            let surplus = open.sessions.len().saturating_sub(cap);
            idle.iter().take(surplus).filter_map(|(_, id)| open.sessions.remove(id)).collect()
        };
        for Resident { handle, actor, .. } in leaving {
            drop(handle);
            if let Err(error) = actor.await {
                tracing::error!(%error, "a session's task ended badly");
            }
        }
    }

    /// A session in memory whose actor is alive.
    fn find(&self, id: SessionId) -> Option<SessionHandle> {
        let mut open = self.lock();
        open.uses += 1;
        let now = open.uses;
        let resident = open.sessions.get_mut(&id).filter(|resident| !resident.handle.mailbox.is_closed())?;
        resident.last_use = now;
        Some(resident.handle.clone())
    }

    fn scribe(&self, id: SessionId, feed: &Arc<Feed>, last_seq: u64) -> Scribe {
        Scribe::new(id, self.env.store.clone(), Arc::clone(feed), last_seq)
    }

    async fn stored(&self, id: SessionId) -> Result<Option<Session>, RpcError> {
        self.env.store.session(id).await.map_err(|error| super::storage(&error))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, InMemory> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Doors {
    /// # Errors
    /// `draining` once the daemon is going down.
    fn check(&self) -> Result<(), RpcError> {
        if !self.are_closing {
            return Ok(());
        }
        Err(RpcError::new(ErrorKind::Draining, "the daemon is going down", "try again once it is back"))
    }
}

/// The real path of a session's directory.
async fn workspace(cwd: &std::path::Path) -> Result<std::path::PathBuf, RpcError> {
    let refuse =
        |fact: String| RpcError::new(ErrorKind::InvalidParams, fact, "name an existing directory by its absolute path");
    if !cwd.is_absolute() {
        return Err(refuse(format!("cwd {} is not an absolute path", cwd.display())));
    }
    let real = tokio::fs::canonicalize(cwd).await.map_err(|error| refuse(format!("cwd {}: {error}", cwd.display())))?;
    if !real.is_dir() {
        return Err(refuse(format!("cwd {} is not a directory", cwd.display())));
    }
    Ok(real)
}

/// A retry finds the session that the first try made.
fn same_session(existing: Session, cwd: &std::path::Path) -> Result<SessionShown, RpcError> {
    if existing.cwd == *cwd {
        return Ok(SessionShown { session: existing, seq: None });
    }
    Err(RpcError::new(
        ErrorKind::IdempotencyConflict,
        format!("session {} exists already, in {}", existing.id, existing.cwd.display()),
        "leave sessionId out, or choose a new UUID",
    ))
}
