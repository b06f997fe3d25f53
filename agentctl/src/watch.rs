//! A stream of events that outlives its connection: when the daemon goes away it reconnects and goes on at its cursor.
//!
//! One task reads the socket and nothing else, so a slow terminal costs the connection nothing. A subscription that
//! was dropped because we were slow (`Lagged`) is treated like a lost connection.

use std::sync::Arc;
use std::time::Duration;

use jsonrpsee::core::client::SubscriptionCloseReason;
use protocol::api::{ApprovalRole, From};
use protocol::error::ErrorKind;
use protocol::event::{Event, EventBody};
use protocol::ids::SessionId;
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;

use crate::connect::{Connection, RawEvents, understand};
use crate::exit::Failure;
use crate::world::World;

/// How many events may wait for the terminal; then the reader waits too.
const NEWS_BUFFERED: usize = 256;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// After so many attempts in vain a daemon that did not say goodbye is started again.
const ATTEMPTS_BEFORE_START: u32 = 3;

/// What is followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    Session(SessionId),
    /// Status, approvals and questions of all sessions.
    All,
}

/// What came.
#[derive(Debug)]
pub(crate) enum News {
    /// An event as it came, and understood if it is one we know.
    Event(Box<RawValue>, Option<Box<Event>>),
    /// The connection is gone; a new one is being tried.
    Lost(String),
    /// The daemon was stopped on purpose. It is not started again from here; once it runs, events go on.
    Stopped,
    /// There is a connection again, and events go on where they ended.
    Back(Vec<String>),
    /// It cannot go on.
    Gone(Failure),
}

/// A followed session, with the connection that is open at the moment.
#[derive(Debug)]
pub(crate) struct Feed {
    news: mpsc::Receiver<News>,
    connection: watch::Receiver<Arc<Connection>>,
    /// Makes the reader try at once.
    nudge: Arc<Notify>,
    /// Owns the reading task: dropping the feed ends it.
    _tasks: JoinSet<()>,
}

impl Feed {
    /// Subscribes, and returns when the daemon has agreed.
    ///
    /// # Errors
    /// What the daemon says against it.
    pub(crate) async fn open(
        world: Arc<World>,
        connection: Arc<Connection>,
        role: ApprovalRole,
        target: Target,
        from: From,
    ) -> Result<Self, Failure> {
        let events = subscribe(&connection, target, &from).await?;
        let (news_in, news) = mpsc::channel(NEWS_BUFFERED);
        let (current, connection) = watch::channel(connection);
        let nudge = Arc::new(Notify::new());
        let (place, nudged) = (from, Arc::clone(&nudge));
        let reader = Reader { world, role, target, place, current, news: news_in, nudged, said_goodbye: false };
        let mut tasks = JoinSet::new();
        tasks.spawn(reader.run(events));
        Ok(Self { news, connection, nudge, _tasks: tasks })
    }

    /// The next thing; `None` after `Gone`.
    pub(crate) async fn next(&mut self) -> Option<News> {
        self.news.recv().await
    }

    /// The connection to call through now.
    pub(crate) fn connection(&self) -> Arc<Connection> {
        Arc::clone(&self.connection.borrow())
    }

    /// A daemon runs again: follows it now, not after the pause. `None` when that takes too long.
    pub(crate) async fn reconnected(&self) -> Option<Arc<Connection>> {
        self.nudge.notify_one();
        let mut connection = self.connection.clone();
        let connected = connection.wait_for(|connection| connection.is_connected());
        tokio::time::timeout(LONGEST_PAUSE, connected).await.ok()?.ok().map(|current| Arc::clone(&current))
    }
}

struct Reader {
    world: Arc<World>,
    role: ApprovalRole,
    target: Target,
    place: From,
    current: watch::Sender<Arc<Connection>>,
    news: mpsc::Sender<News>,
    nudged: Arc<Notify>,
    /// The daemon said that it goes down, so nobody wants it back at once.
    said_goodbye: bool,
}

/// The receiver of the news is gone, so there is nobody left to read for.
struct NobodyListens;

impl Reader {
    async fn run(mut self, mut events: RawEvents) {
        while let Ok(reason) = self.pump(&mut events).await {
            match self.resume(reason).await {
                Ok(Some(next)) => events = next,
                Ok(None) | Err(NobodyListens) => return,
            }
        }
    }

    /// Passes events on until the subscription ends; says why it did.
    async fn pump(&mut self, events: &mut RawEvents) -> Result<String, NobodyListens> {
        while let Some(Ok(raw)) = events.next().await {
            let event = understand(&raw).map(Box::new);
            if let Some(event) = &event {
                if let Some(cursor) = event.cursor.clone() {
                    self.place = From::Cursor { cursor };
                }
                self.said_goodbye |= matches!(event.body, EventBody::DaemonDraining { .. });
            }
            self.tell(News::Event(raw, event)).await?;
        }
        Ok(match events.close_reason() {
            Some(SubscriptionCloseReason::Lagged) => "this terminal was too slow".into(),
            Some(SubscriptionCloseReason::ConnectionClosed) | None => "the daemon went away".into(),
        })
    }

    /// A new subscription at the place where the old one ended; `None` when it cannot be had.
    async fn resume(&mut self, reason: String) -> Result<Option<RawEvents>, NobodyListens> {
        let was_slow = self.connected().is_connected();
        if !was_slow {
            let lost = if self.said_goodbye { News::Stopped } else { News::Lost(reason) };
            self.tell(lost).await?;
        }
        let mut pause = FIRST_PAUSE;
        for attempt in 0_u32.. {
            let subscribed = self.attempt(attempt).await;
            match subscribed {
                Ok((events, notes)) => {
                    self.said_goodbye = false;
                    if !was_slow {
                        self.tell(News::Back(notes)).await?;
                    }
                    return Ok(Some(events));
                }
                Err(Failure::Unreachable { .. }) => {}
                Err(failure) if failure.is(ErrorKind::Draining) || failure.is(ErrorKind::Overloaded) => {}
                Err(failure) => {
                    self.tell(News::Gone(failure)).await?;
                    return Ok(None);
                }
            }
            pause = tokio::select! {
                () = tokio::time::sleep(pause) => (pause * 2).min(LONGEST_PAUSE),
                () = self.nudged.notified() => FIRST_PAUSE,
                () = self.news.closed() => return Err(NobodyListens),
            };
        }
        Ok(None)
    }

    async fn attempt(&mut self, attempt: u32) -> Result<(RawEvents, Vec<String>), Failure> {
        let mut connection = self.connected();
        if !connection.is_connected() {
            let may_start = attempt >= ATTEMPTS_BEFORE_START && !self.said_goodbye;
            let opened = if may_start {
                Connection::open(&self.world, self.role).await?
            } else {
                Connection::open_running(&self.world, self.role).await?
            };
            connection = Arc::new(opened);
            self.current.send_replace(Arc::clone(&connection));
        }
        let events = subscribe(&connection, self.target, &self.place).await?;
        Ok((events, connection.notes.clone()))
    }

    fn connected(&self) -> Arc<Connection> {
        Arc::clone(&self.current.borrow())
    }

    async fn tell(&self, news: News) -> Result<(), NobodyListens> {
        self.news.send(news).await.map_err(|_| NobodyListens)
    }
}

async fn subscribe(connection: &Connection, target: Target, place: &From) -> Result<RawEvents, Failure> {
    match target {
        Target::Session(session) => connection.follow(session, place.clone()).await,
        Target::All => connection.follow_all().await,
    }
}

/// What a person is told when the daemon was stopped.
pub(crate) const STOPPED: &str = "agentd was stopped; start it with `agentctl daemon start`";

#[cfg(test)]
mod tests;
