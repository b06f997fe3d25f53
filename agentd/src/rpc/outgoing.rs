//! What leaves a connection: one writer, fed by short queues, in the order answers, durable events, snapshots.
//!
//! A queue holds a few messages and a few megabytes at most, so a client that has stopped reading costs a constant
//! amount of memory, however long its events are. A snapshot is not queued at all: its ticket is, and the writer
//! redeems it when it is about to write, so that what goes out is the newest there is.

use std::fmt;
use std::io::{self, IoSlice};
use std::sync::Arc;

use foundation::failpoint;
use jsonrpsee::types::SubscriptionId;
use serde_json::value::RawValue;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::task::TaskTracker;

use super::listener::Stop;
use super::peer::Client;

const RESPONSES: usize = 16;
const EVENTS: usize = 8;
/// What durable events may have in bytes that are queued or being written. A longer event goes alone.
const EVENT_BYTES: u32 = 4 << 20;
/// Up to this size a burst is copied into one buffer, which is cheaper than a long list of slices.
const SMALL_BYTES: usize = 16 << 10;

/// A connection as its calls and subscriptions see it.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) client: Arc<Client>,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: Stop,
    events: mpsc::Sender<Line>,
    event_room: Arc<Semaphore>,
    tickets: mpsc::Sender<Ticket>,
}

/// One notification: what is the same for the subscription, and the event.
#[derive(Debug)]
pub(crate) struct Line {
    head: Arc<str>,
    event: Arc<str>,
    /// Given back when it has been written; a snapshot takes none.
    _room: Option<OwnedSemaphorePermit>,
}

/// The right to send whatever is newest when the writer is ready.
pub(crate) struct Ticket {
    head: Arc<str>,
    redeem: Box<dyn FnOnce() -> Vec<Arc<str>> + Send>,
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("head", &self.head).finish_non_exhaustive()
    }
}

/// The peer is gone, or the subscription has been ended.
#[derive(Debug)]
pub(crate) struct Gone;

/// Where one subscription puts its events.
#[derive(Debug)]
pub(crate) struct Outlet {
    pub(crate) wire: Arc<Wire>,
    head: Arc<str>,
}

impl Outlet {
    pub(crate) fn new(wire: Arc<Wire>, event: &str, id: &SubscriptionId<'_>) -> Self {
        let id = serde_json::to_string(id).unwrap_or_default();
        let head = format!(r#"{{"jsonrpc":"2.0","method":"{event}","params":{{"subscription":{id},"result":"#);
        Self { wire, head: head.into() }
    }

    /// Sends an event; waits while the client does not read.
    pub(crate) async fn send(&self, event: Arc<str>) -> Result<(), Gone> {
        let bytes = u32::try_from(event.len()).unwrap_or(u32::MAX).min(EVENT_BYTES);
        let room = tokio::select! {
            biased;
            () = self.wire.events.closed() => return Err(Gone),
            room = self.wire.event_room.clone().acquire_many_owned(bytes) => Some(room.map_err(|_| Gone)?),
        };
        self.wire.events.send(Line { head: self.head.clone(), event, _room: room }).await.map_err(|_| Gone)
    }

    /// Waits for the place that a ticket takes. Cancel safe.
    pub(crate) fn ticket_place(&self) -> impl Future<Output = Result<TicketPlace, Gone>> + use<> {
        let (tickets, head) = (self.wire.tickets.clone(), self.head.clone());
        async move {
            let permit = tickets.reserve_owned().await.map_err(|_| Gone)?;
            Ok(TicketPlace { permit, head })
        }
    }
}

pub(crate) struct TicketPlace {
    permit: mpsc::OwnedPermit<Ticket>,
    head: Arc<str>,
}

impl TicketPlace {
    pub(crate) fn fill(self, redeem: impl FnOnce() -> Vec<Arc<str>> + Send + 'static) {
        drop(self.permit.send(Ticket { head: self.head, redeem: Box::new(redeem) }));
    }
}

/// The queues and their writer. The writer ends when every sender of the queues is gone and all is written.
pub(crate) fn outgoing<W: AsyncWrite + Unpin>(
    write: W,
    client: Arc<Client>,
    tasks: TaskTracker,
    stop: Stop,
) -> (mpsc::Sender<Box<RawValue>>, Arc<Wire>, Writer<W>) {
    let (responses_in, responses) = mpsc::channel(RESPONSES);
    let (events_in, events) = mpsc::channel(EVENTS);
    let (tickets_in, tickets) = mpsc::channel(1);
    let event_room = Arc::new(Semaphore::new(EVENT_BYTES as usize));
    let wire = Arc::new(Wire { client, tasks, stop, events: events_in, event_room, tickets: tickets_in });
    (responses_in, wire, Writer { write, responses, events, tickets, burst: Burst::default() })
}

#[derive(Debug)]
pub(crate) struct Writer<W> {
    write: W,
    responses: mpsc::Receiver<Box<RawValue>>,
    events: mpsc::Receiver<Line>,
    tickets: mpsc::Receiver<Ticket>,
    burst: Burst,
}

/// What is written in one go.
#[derive(Default, Debug)]
struct Burst {
    responses: Vec<Box<RawValue>>,
    lines: Vec<Line>,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    /// Writes until there is nothing left that could send.
    pub(crate) async fn run(&mut self) -> io::Result<()> {
        while self.gather().await {
            self.burst.write_to(&mut self.write).await?;
            self.burst.responses.iter().for_each(|_| failpoint::hit("reply.after"));
        }
        self.write.flush().await
    }

    pub(crate) async fn shutdown(&mut self) -> io::Result<()> {
        self.write.shutdown().await
    }

    async fn gather(&mut self) -> bool {
        self.burst.responses.clear();
        self.burst.lines.clear();
        let mut ticket = None;
        tokio::select! {
            biased;
            Some(response) = self.responses.recv() => self.burst.responses.push(response),
            Some(line) = self.events.recv() => self.burst.lines.push(line),
            Some(first) = self.tickets.recv() => ticket = Some(first),
            else => return false,
        }
        // Whatever was queued before this event, such as the answer to its subscription, goes first.
        while self.burst.responses.len() < RESPONSES
            && let Ok(response) = self.responses.try_recv()
        {
            self.burst.responses.push(response);
        }
        if ticket.is_some() || !self.burst.lines.is_empty() {
            while self.burst.lines.len() < EVENTS
                && let Ok(line) = self.events.try_recv()
            {
                self.burst.lines.push(line);
            }
        }
        if let Some(Ticket { head, redeem }) = ticket {
            self.burst.lines.extend(redeem().into_iter().map(|event| Line { head: head.clone(), event, _room: None }));
        }
        true
    }
}

impl Burst {
    async fn write_to(&self, write: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        let responses = self.responses.iter().flat_map(|response| [response.get(), "\n"]);
        let lines = self.lines.iter().flat_map(|line| [&*line.head, &*line.event, "}}\n"]);
        let pieces = responses.chain(lines).map(str::as_bytes);
        let bytes = pieces.clone().map(<[u8]>::len).sum();
        if bytes <= SMALL_BYTES {
            let mut copy = Vec::with_capacity(bytes);
            pieces.for_each(|piece| copy.extend_from_slice(piece));
            return write.write_all(&copy).await;
        }
        let mut slices: Vec<IoSlice<'_>> = pieces.map(IoSlice::new).collect();
        let mut left = &mut slices[..];
        while !left.is_empty() {
            match write.write_vectored(left).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => IoSlice::advance_slices(&mut left, written),
            }
        }
        Ok(())
    }
}
