//! One client's connection: lines in, calls, one writer out.
//!
//! Answers that are ready at once go out in order and without a task of their own; a slow call holds up nothing but its
//! own answer. A client that has closed only its writing side still gets what it asked for.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use jsonrpsee::types::Id;
use jsonrpsee::{BoundedSubscriptions, ConnectionId, Extensions, MethodSink, Methods};
use protocol::frame::{Frame, LineCutter, MAX_FRAME_BYTES};
use protocol::{ErrorKind, RpcError};
use serde_json::value::RawValue;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::task::TaskTracker;

use super::dispatch::{Dispatch, MAX_SUBSCRIPTIONS, SubscriptionIds};
use super::listener::{FLUSH, Stop};
use super::outgoing::outgoing;
use super::peer::Client;
use super::reply::{error_response, invalid_request, overloaded};

/// The most requests of one connection that are being worked on.
pub(crate) const MAX_IN_FLIGHT: u32 = 64;
/// How long a refused client may go on sending before it is cut off, so that it can read why.
const LINGER: Duration = Duration::from_secs(1);

/// Why nothing more is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// The client has closed its writing side, or all of it.
    Eof,
    /// What it sends is not our protocol, or too much.
    Refused,
    /// The daemon is going down.
    Stopped,
    /// The socket is broken.
    Broken,
}

/// Serves one client until it is gone or the daemon stops.
pub(crate) async fn serve_connection(
    stream: UnixStream,
    connection: ConnectionId,
    client: Arc<Client>,
    methods: Methods,
    (stop, tasks): (Stop, TaskTracker),
) {
    let (read, write) = stream.into_split();
    let gone = client.gone.clone().drop_guard();
    let (responses, wire, mut writer) = outgoing(write, client, tasks.clone(), stop.clone());
    let mut extensions = Extensions::new();
    extensions.insert(wire);
    let dispatch = Arc::new(Dispatch {
        methods,
        connection,
        sink: MethodSink::new(responses.clone()),
        subscriptions: BoundedSubscriptions::new(MAX_SUBSCRIPTIONS),
        ids: SubscriptionIds::default(),
        extensions,
    });
    let mut reader = Reader {
        read,
        lines: LineCutter::new(MAX_FRAME_BYTES),
        first: true,
        calls: Calls { dispatch, responses, places: Arc::new(Semaphore::new(MAX_IN_FLIGHT as usize)), tasks },
    };
    let end = {
        let writing = writer.run();
        tokio::pin!(writing);
        let end = tokio::select! {
            end = reader.run(&stop) => end,
            _ = &mut writing => End::Broken,
        };
        // From here on only calls and subscriptions hold the queues open, so the writer ends when they have.
        let Reader { read, calls, .. } = reader;
        drop(calls);
        match end {
            End::Broken => {}
            End::Eof => tokio::select! {
                _ = &mut writing => {}
                () = peer_gone(&read) => {}
                () = late(&stop) => {}
            },
            End::Refused | End::Stopped => drop(tokio::time::timeout(FLUSH, &mut writing).await),
        }
        (end, read)
    };
    if let (End::Refused, read) = end {
        let _closed = writer.shutdown().await;
        linger(&read).await;
    }
    drop(gone);
}

/// Ends when the daemon has been stopping for as long as a connection gets.
async fn late(stop: &Stop) {
    stop.closed.cancelled().await;
    tokio::time::sleep(FLUSH).await;
}

/// Ends when the peer has closed both directions. After the end of its input there is no event for that to wait on
/// alone (the socket is writable all the time), so this looks now and then.
async fn peer_gone(read: &OwnedReadHalf) {
    while read.ready(Interest::WRITABLE).await.is_ok_and(|ready| !ready.is_write_closed()) {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Throws away what still comes in.
async fn linger(read: &OwnedReadHalf) {
    let mut scratch = vec![0; 64 << 10];
    let drain = async {
        loop {
            read.readable().await?;
            match read.try_read(&mut scratch) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    };
    let _ended_or_late = tokio::time::timeout(LINGER, drain).await as Result<io::Result<()>, _>;
}

struct Reader {
    read: OwnedReadHalf,
    lines: LineCutter,
    first: bool,
    calls: Calls,
}

impl Reader {
    async fn run(&mut self, stop: &Stop) -> End {
        loop {
            let filled = tokio::select! {
                biased;
                () = stop.closed.cancelled() => return End::Stopped,
                filled = self.fill() => filled,
            };
            let Ok(count) = filled else { return End::Broken };
            if std::mem::take(&mut self.first) && is_foreign(self.lines.buffer()) {
                let hint = "this socket speaks JSON-RPC 2.0, one message a line; neither HTTP nor TLS";
                return self.calls.refuse_all(&invalid_request(hint)).await;
            }
            while let Some(frame) = if count > 0 { self.lines.next_frame() } else { self.lines.last_frame() } {
                if let Err(end) = self.take(frame).await {
                    return end;
                }
            }
            if self.lines.is_skipping() {
                return self.too_large().await;
            }
            if count == 0 {
                return End::Eof;
            }
        }
    }

    async fn take(&mut self, frame: Frame) -> Result<(), End> {
        match frame {
            Frame::Line(line) => self.calls.take(line).await,
            Frame::TooLong => Err(self.too_large().await),
        }
    }

    async fn too_large(&self) -> End {
        let message = format!("a line has more than {MAX_FRAME_BYTES} bytes");
        let hint = "send less in one message; this connection is closed";
        self.calls.refuse_all(&RpcError::new(ErrorKind::FrameTooLarge, message, hint)).await
    }

    /// Reads what is there. Holds no buffer while it waits.
    async fn fill(&mut self) -> io::Result<usize> {
        loop {
            self.read.readable().await?;
            let buffer = self.lines.buffer();
            buffer.reserve(if buffer.len() > 64 << 10 { 256 << 10 } else { 8 << 10 });
            match self.read.try_read_buf(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    }
}

/// Bytes that no client of ours begins with: a TLS record, or a request line of HTTP.
fn is_foreign(first: &[u8]) -> bool {
    const METHODS: [&[u8]; 9] =
        [b"GET ", b"POST ", b"PUT ", b"HEAD ", b"OPTIONS ", b"DELETE ", b"CONNECT ", b"PATCH ", b"PRI "];
    first.first() == Some(&0x16) || METHODS.iter().any(|method| first.starts_with(method))
}

struct Calls {
    dispatch: Arc<Dispatch>,
    responses: mpsc::Sender<Box<RawValue>>,
    places: Arc<Semaphore>,
    tasks: TaskTracker,
}

impl Calls {
    async fn take(&self, line: Vec<u8>) -> Result<(), End> {
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            let refusal = Dispatch::refuse(&line, &overloaded("requests of one connection", MAX_IN_FLIGHT));
            return match refusal {
                Some(answer) => self.responses.send(answer).await.map_err(|_| End::Broken),
                None => Ok(()),
            };
        };
        let (dispatch, responses) = (self.dispatch.clone(), self.responses.clone());
        let mut call = Box::pin(async move {
            if let Some(answer) = dispatch.answer(&line).await {
                // It fails only when the client is gone.
                let _gone = responses.send(answer).await;
            }
            drop(place);
        });
        if futures_util::poll!(&mut call).is_pending() {
            self.tasks.spawn(call);
        }
        Ok(())
    }

    /// Says to nobody in particular why the connection closes.
    async fn refuse_all(&self, error: &RpcError) -> End {
        match self.responses.send(error_response(Id::Null, error)).await {
            Ok(()) => End::Refused,
            Err(_) => End::Broken,
        }
    }
}
