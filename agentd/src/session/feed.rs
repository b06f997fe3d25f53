//! What a session offers its subscribers: committed events and whatever is growing, behind one lock.
//!
//! The session's actor is the only one that publishes, and only after the commit. It never waits for a subscriber:
//! publishing moves two numbers, and whoever sleeps on them comes and reads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use protocol::{CallId, Event, EventBody, Message, Seq, SessionId, TurnId};
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

pub(crate) use super::live::{Changes, Want};
pub(crate) use super::tail::{Durable, Journal};

use super::live::Live;
use super::tail::Tail;

/// How many events a subscriber of the whole daemon may be behind before it has to list anew.
const OVERVIEW_EVENTS: usize = 1024;

/// What is shared by the feeds of all sessions: the events that concern whoever watches the whole daemon.
#[derive(Clone, Debug)]
pub(crate) struct DaemonFeed {
    events: broadcast::Sender<Durable>,
    snapshots_serialised: Arc<AtomicU64>,
}

impl Default for DaemonFeed {
    fn default() -> Self {
        Self { events: broadcast::Sender::new(OVERVIEW_EVENTS), snapshots_serialised: Arc::default() }
    }
}

impl DaemonFeed {
    /// Snapshots and tool outputs serialised so far, for all subscribers of all sessions together.
    pub(crate) fn snapshots_serialised(&self) -> u64 {
        self.snapshots_serialised.load(Ordering::Relaxed)
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Durable> {
        self.events.subscribe()
    }

    fn publish(&self, event: &Durable) {
        let group = event.kind.split('.').next().unwrap_or_default();
        let concerns_all = matches!(group, "session" | "approval" | "question" | "turn");
        if concerns_all && self.events.receiver_count() > 0 {
            // It fails only when the last receiver has just gone.
            let _nobody = self.events.send(event.clone());
        }
    }
}

/// One session's events for whoever follows it.
#[derive(Debug)]
pub(crate) struct Feed {
    session: SessionId,
    now: Mutex<Now>,
    /// The last committed event. Moved after the lock is released, so it is never ahead of the tail.
    seq: watch::Sender<Seq>,
    /// The newest revision of what grows.
    rev: watch::Sender<u64>,
    /// Cancelled when the session is gone: nothing will ever be published again.
    ended: CancellationToken,
    daemon: DaemonFeed,
}

#[derive(Debug)]
struct Now {
    tail: Tail,
    live: Live,
}

impl Feed {
    /// A feed for a session whose journal ends at `last_seq`.
    pub(crate) fn new(session: SessionId, last_seq: Seq, daemon: DaemonFeed) -> Self {
        Self {
            session,
            now: Mutex::new(Now { tail: Tail::new(last_seq), live: Live::default() }),
            seq: watch::Sender::new(last_seq),
            rev: watch::Sender::new(0),
            ended: CancellationToken::new(),
            daemon,
        }
    }

    pub(crate) fn session(&self) -> SessionId {
        self.session
    }

    /// Lets every subscriber know that there will never be anything more.
    pub(crate) fn end(&self) {
        self.ended.cancel();
    }

    pub(crate) fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// The last published event.
    pub(crate) fn last_seq(&self) -> Seq {
        self.now().tail.last_seq()
    }

    /// Shows committed events, in order, here and to whoever watches the daemon, and drops in the same moment whatever
    /// they make final.
    pub(crate) fn publish(&self, events: Vec<Durable>) {
        let last_seq = {
            let mut now = self.now();
            for event in events {
                now.live.end(&event.ends);
                self.daemon.publish(&event);
                now.tail.push(event);
            }
            now.tail.last_seq()
        };
        self.seq.send_replace(last_seq);
    }

    /// Notes how far the model's answer has come. A message with another id begins a new one.
    ///
    /// Costs what the message has more than at the last call: nothing is serialised here.
    pub(crate) fn message_updated(&self, message: &Message, turn: TurnId) {
        let rev = self.now().live.message_updated(message, turn);
        self.rev.send_replace(rev);
    }

    /// What has grown since the last call, under the names of the table `draft`.
    pub(crate) fn drafts(&self) -> Vec<(String, String)> {
        self.now().live.drafts()
    }

    /// Forgets a growing message that will never be final.
    pub(crate) fn message_dropped(&self) {
        self.now().live.message_dropped();
    }

    /// Notes what a running tool has printed since the last call.
    pub(crate) fn tool_output(&self, call: &CallId, turn: TurnId, bytes: &[u8]) {
        let rev = self.now().live.tool_output(call, turn, bytes);
        self.rev.send_replace(rev);
    }

    /// Tells who watches the daemon how many clients are attached here.
    pub(crate) fn attached(&self, attached: u32) {
        let body = EventBody::SessionAttached { attached };
        let (session_id, ts) = (self.session, Timestamp::now());
        let event = Event { body, session_id, seq: None, cursor: None, ts, turn_id: None, actor: None };
        if let Ok(json) = serde_json::to_string(&event) {
            self.daemon.publish(&Durable::committed(&event, json.into()));
        }
    }

    pub(crate) fn watch(&self) -> (watch::Receiver<Seq>, watch::Receiver<u64>) {
        (self.seq.subscribe(), self.rev.subscribe())
    }

    /// See [`Tail::after`].
    pub(crate) fn after(&self, cursor: Seq, limit: usize) -> Option<Vec<Durable>> {
        self.now().tail.after(cursor, limit)
    }

    /// What grows, for a subscriber that has all events up to `cursor`.
    ///
    /// Nothing when there are newer events: those come first, and perhaps they are the end of what it asks for.
    pub(crate) fn pull(&self, cursor: Seq, want: &Want) -> Changes {
        let mut now = self.now();
        if now.tail.last_seq() > cursor {
            return Changes { seen: want.seen, ..Changes::default() };
        }
        let changes = now.live.changes(self.session, want);
        self.daemon.snapshots_serialised.fetch_add(changes.serialised, Ordering::Relaxed);
        changes
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        // Nothing in here is left half done by a panic, so a poisoned lock is as good as any.
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
