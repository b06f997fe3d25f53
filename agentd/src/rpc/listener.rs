//! The accept loop: who may come in, how many, and how it all ends.
//!
//! A peer of another user is closed before a byte of it is read, whatever the modes of the socket are. Every connection
//! is a task of this server's tracker; when [`Server::stop`] returns, none of them writes any more.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jsonrpsee::types::Id;
use jsonrpsee::{ConnectionId, Methods};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use super::bind::BindError;
pub(crate) use super::bind::{Bound, adopt, bind};
use super::connection::serve_connection;
use super::peer::Client;
use super::reply::{error_response, overloaded};

/// The most connections at a time.
pub(crate) const MAX_CONNECTIONS: u32 = 256;
/// How long open connections may take to write what they have when the server ends.
pub(crate) const FLUSH: Duration = Duration::from_secs(2);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(1);

/// The two steps of going down.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    /// Every subscriber is told `daemon.draining`; all goes on.
    pub(crate) draining: CancellationToken,
    /// Nothing is read any more; what is committed is written, for two seconds at most, and connections close.
    pub(crate) closed: CancellationToken,
}

impl Stop {
    /// When it is worth to connect again, in milliseconds.
    pub(crate) const RETRY_AFTER_MS: u64 = 1000;
}

/// Answers clients over one listening socket.
#[derive(Debug)]
pub(crate) struct Server {
    doorman: Arc<Doorman>,
}

/// The number of open connections, for whoever reports it.
#[derive(Clone, Debug)]
pub(crate) struct Connections(Arc<Semaphore>);

impl Default for Connections {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_CONNECTIONS as usize)))
    }
}

impl Connections {
    pub(crate) fn len(&self) -> u32 {
        MAX_CONNECTIONS.saturating_sub(u32::try_from(self.0.available_permits()).unwrap_or(u32::MAX))
    }
}

impl Server {
    /// Begins to accept. Cancelling `draining` is how the daemon announces that it is going down.
    pub(crate) fn start(
        bound: Bound,
        methods: impl Into<Methods>,
        connections: Connections,
        draining: CancellationToken,
    ) -> Self {
        let doorman = Arc::new(Doorman {
            methods: methods.into(),
            stop: Stop { draining, closed: CancellationToken::new() },
            tasks: TaskTracker::new(),
            places: connections.0,
            next_connection: AtomicUsize::new(1),
        });
        doorman.tasks.spawn(doorman.clone().accept(bound));
        Self { doorman }
    }

    /// Removes the socket, lets connections write what they have, for two seconds at most, and closes them.
    pub(crate) async fn stop(self) {
        self.doorman.stop.closed.cancel();
        self.doorman.tasks.close();
        // Connections give themselves two seconds; a call that is stuck must not hold the daemon up for ever.
        if tokio::time::timeout(2 * FLUSH, self.doorman.tasks.wait()).await.is_err() {
            tracing::warn!(left = self.doorman.tasks.len(), "calls still running at the end");
        }
    }
}

#[derive(Debug)]
struct Doorman {
    methods: Methods,
    stop: Stop,
    tasks: TaskTracker,
    places: Arc<Semaphore>,
    next_connection: AtomicUsize,
}

impl Doorman {
    async fn accept(self: Arc<Self>, bound: Bound) {
        let mut back_off = Duration::ZERO;
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.stop.closed.cancelled() => return bound.close(),
                accepted = bound.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    back_off = Duration::ZERO;
                    self.welcome(stream);
                }
                Err(error) => {
                    // Out of descriptors, most likely: it passes when a connection closes, and trying again at once
                    // would only burn the processor.
                    back_off = (back_off * 2).clamp(Duration::from_millis(10), LONGEST_BACK_OFF);
                    tracing::warn!(%error, ?back_off, "cannot accept a connection");
                    tokio::time::sleep(back_off).await;
                }
            }
        }
    }

    fn welcome(&self, stream: UnixStream) {
        let client = match peer(&stream) {
            Ok(client) => client,
            Err(error) => return tracing::warn!(%error, "connection refused"),
        };
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            let line = format!("{}\n", error_response(Id::Null, &overloaded("connections", MAX_CONNECTIONS)));
            // A fresh socket has room for a line; if it has not, the close says enough.
            let _written = stream.try_write(line.as_bytes());
            return tracing::warn!(uid = client.uid, pid = client.pid, "connection refused: too many connections");
        };
        let connection = ConnectionId(self.next_connection.fetch_add(1, Ordering::Relaxed));
        let (methods, stop, tasks) = (self.methods.clone(), self.stop.clone(), self.tasks.clone());
        self.tasks.spawn(async move {
            serve_connection(stream, connection, client, methods, (stop, tasks)).await;
            drop(place);
        });
    }
}

/// Who connected, if it may.
fn peer(stream: &UnixStream) -> io::Result<Arc<Client>> {
    let peer = stream.peer_cred()?;
    let own = rustix::process::geteuid().as_raw();
    if peer.uid() == own {
        return Ok(Arc::new(Client::new(peer.uid(), peer.pid())));
    }
    let pid = peer.pid().unwrap_or_default();
    Err(io::Error::other(format!("peer has uid {} (pid {pid}), this daemon serves uid {own} only", peer.uid())))
}
