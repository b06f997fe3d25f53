//! A subscription to one session: a cursor over its journal, not a queue.
//!
//! Replay, then `stream.synced`, then live. Durable events come from the shared tail or, behind that, from the journal,
//! whenever the socket can take more. What grows is pulled when the writer is ready and the pause is over, and only by
//! a subscriber that has every durable event; so a snapshot never comes after the message that supersedes it.

use std::any::Any;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use protocol::{EventBody, Seq};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::control::control;
use super::listener::Stop;
use super::outgoing::{Gone, Outlet};
use crate::session::feed::{Durable, Feed, Journal, Want};

/// Events taken from the tail or the journal at a time, and held while the client does not read.
const PAGE: usize = 32;
/// A subscriber gets snapshots at no more than this, so that a long answer costs bytes in proportion to its duration.
const SNAPSHOT_BYTES_PER_SECOND: usize = 1 << 20;

/// What a subscription sends.
pub(crate) trait Subscribe: Send + 'static {
    /// Fixes now where the stream begins; the future sends it, and is first polled after the id has been answered.
    fn open(self, outlet: Outlet) -> BoxFuture<'static, ()>;
}

/// One session, from a point on.
pub(crate) struct Source {
    pub(crate) feed: Arc<Feed>,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) start: Start,
    /// Only events of these types; stream control always comes.
    pub(crate) types: Option<HashSet<String>>,
    /// Dropped when the subscription ends.
    pub(crate) keep: Option<Box<dyn Any + Send>>,
}

/// Where a subscription begins.
#[derive(Debug)]
pub(crate) enum Start {
    /// After what is published at this moment.
    Live,
    /// First `prelude`, which tells how things stood after event `at`; then all after `at`.
    Snapshot { at: Seq, prelude: Vec<Arc<str>> },
    /// All after this event.
    After(Seq),
}

impl Subscribe for Source {
    fn open(self, outlet: Outlet) -> BoxFuture<'static, ()> {
        let tip = self.feed.last_seq();
        let (cursor, prelude) = match self.start {
            Start::Live => (tip, Vec::new()),
            Start::Snapshot { at, prelude } => (at, prelude),
            Start::After(seq) => (seq, Vec::new()),
        };
        let (seq, rev) = self.feed.watch();
        let types = self.types;
        let wants = |kind| types.as_ref().is_none_or(|types| types.contains(kind));
        let want =
            Want { seen: 0, fresh_within: Duration::ZERO, message: wants("snapshot"), tools: wants("tool.output") };
        let pause = Pause { least: outlet.wire.client.info().snapshot_min, until: Instant::now() };
        let sync_at = Some(tip.max(cursor));
        let pump =
            Pump { feed: self.feed, journal: self.journal, types, outlet, cursor, sync_at, seq, rev, want, pause };
        let keep = self.keep;
        async move {
            // Either way it is over: the peer is gone, or the journal has been reported as unreadable.
            let _ended = pump.run(prelude).await;
            drop(keep);
        }
        .boxed()
    }
}

struct Pump {
    feed: Arc<Feed>,
    journal: Arc<dyn Journal>,
    types: Option<HashSet<String>>,
    outlet: Outlet,
    /// The last event that has been sent or filtered out.
    cursor: Seq,
    /// Where `stream.synced` belongs, until it has been sent.
    sync_at: Option<Seq>,
    seq: watch::Receiver<Seq>,
    rev: watch::Receiver<u64>,
    want: Want,
    pause: Pause,
}

struct Pause {
    least: Duration,
    until: Instant,
}

/// What became of a ticket.
struct Redeemed {
    seen: u64,
    bytes: usize,
}

impl Pump {
    async fn run(mut self, prelude: Vec<Arc<str>>) -> Result<(), Gone> {
        for event in prelude {
            self.outlet.send(event).await?;
        }
        let stop = self.outlet.wire.stop.clone();
        let ended = self.feed.ended();
        let mut ticket: Option<oneshot::Receiver<Redeemed>> = None;
        let mut announced = false;
        loop {
            let gone = ended.is_cancelled();
            let stopping = gone || stop.closed.is_cancelled();
            self.catch_up().await?;
            if gone {
                let text = "the session was deleted: this subscription has ended".to_owned();
                self.control(EventBody::Notice { level: protocol::NoticeLevel::Warning, text }).await?;
            }
            if stopping {
                return Ok(());
            }
            let behind = *self.rev.borrow() > self.want.seen;
            let idle = ticket.is_none() && (self.want.message || self.want.tools);
            let due = self.pause.until <= Instant::now();
            tokio::select! {
                biased;
                changed = self.seq.changed() => changed.map_err(|_| Gone)?,
                () = stop.closed.cancelled() => {}
                () = ended.cancelled() => {}
                () = stop.draining.cancelled(), if !announced => {
                    announced = true;
                    self.control(EventBody::DaemonDraining { retry_after_ms: Stop::RETRY_AFTER_MS }).await?;
                }
                redeemed = redeemed(&mut ticket), if ticket.is_some() => {
                    ticket = None;
                    self.note(&redeemed?);
                }
                place = self.outlet.ticket_place(), if idle && behind && due => {
                    let (feed, cursor, want) = (self.feed.clone(), self.cursor, self.want);
                    let (done, result) = oneshot::channel();
                    place?.fill(move || redeem(&feed, cursor, &want, done));
                    ticket = Some(result);
                }
                () = tokio::time::sleep_until(self.pause.until), if idle && behind && !due => {}
                changed = self.rev.changed(), if idle && !behind => changed.map_err(|_| Gone)?,
            }
        }
    }

    /// Sends all durable events that there are.
    async fn catch_up(&mut self) -> Result<(), Gone> {
        loop {
            self.sync_when_reached().await?;
            if self.cursor >= *self.seq.borrow_and_update() {
                return Ok(());
            }
            for event in self.page().await? {
                self.sync_when_reached().await?;
                self.cursor = event.seq;
                if self.types.as_ref().is_none_or(|types| types.contains(&*event.kind)) {
                    self.outlet.send(event.json).await?;
                }
            }
        }
    }

    async fn page(&self) -> Result<Vec<Durable>, Gone> {
        if let Some(events) = self.feed.after(self.cursor, PAGE) {
            return Ok(events);
        }
        let page = self.journal.page(self.feed.session(), self.cursor, PAGE).await;
        match page {
            Ok(events) if !events.is_empty() => Ok(events),
            // Going on would leave a hole in the stream. The client sees it end and resumes from its cursor.
            Ok(_) => self.give_up("the journal has no events there").await,
            Err(error) => self.give_up(&error.to_string()).await,
        }
    }

    async fn give_up<T>(&self, why: &str) -> Result<T, Gone> {
        tracing::error!(session = %self.feed.session(), cursor = self.cursor, why, "subscription cannot go on");
        let text = format!("subscription ended, events after {} cannot be read: {why}", self.cursor);
        self.control(EventBody::Notice { level: protocol::NoticeLevel::Error, text }).await?;
        Err(Gone)
    }

    async fn sync_when_reached(&mut self) -> Result<(), Gone> {
        if self.sync_at.is_some_and(|seq| self.cursor >= seq)
            && let Some(seq) = self.sync_at.take()
        {
            self.control(EventBody::StreamSynced { seq }).await?;
        }
        Ok(())
    }

    async fn control(&self, body: EventBody) -> Result<(), Gone> {
        self.outlet.send(control(self.feed.session(), body)).await
    }

    fn note(&mut self, redeemed: &Redeemed) {
        self.want.seen = redeemed.seen;
        if redeemed.bytes > 0 {
            let millis = redeemed.bytes.saturating_mul(1000) / SNAPSHOT_BYTES_PER_SECOND;
            let pause = self.pause.least.max(Duration::from_millis(millis as u64));
            self.pause.until = Instant::now() + pause;
            // A little age is not seen, and lets subscribers whose pauses end at other times share the bytes.
            self.want.fresh_within = pause / 4;
        }
    }
}

fn redeem(feed: &Feed, cursor: Seq, want: &Want, done: oneshot::Sender<Redeemed>) -> Vec<Arc<str>> {
    let changes = feed.pull(cursor, want);
    let events: Vec<Arc<str>> = changes.events.into_iter().map(|(_, json)| json).collect();
    let bytes = events.iter().map(|event| event.len()).sum();
    // It fails only when the subscription has been ended meanwhile.
    let _unsubscribed = done.send(Redeemed { seen: changes.seen, bytes });
    events
}

async fn redeemed(ticket: &mut Option<oneshot::Receiver<Redeemed>>) -> Result<Redeemed, Gone> {
    match ticket {
        Some(ticket) => ticket.await.map_err(|_| Gone),
        None => std::future::pending().await,
    }
}
