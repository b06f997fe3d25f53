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

pub(crate) use super::bind::{BindError, Bound, adopt, bind};
use super::connection::serve_connection;
use super::peer::Client;
use super::reply::{error_response, overloaded};

/// The most connections at a time.
pub(crate) const MAX_CONNECTIONS: u32 = 256;
/// How long open connections may take to write what they have when the server ends.
pub(crate) const FLUSH: Duration = Duration::from_secs(2);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(1);
/// How often to look whether the socket's file is still there. A client that finds none waits longer than that for the
/// daemon that it started, which finds the lock taken.
const LOOK: Duration = Duration::from_secs(3);

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
        let uid = rustix::process::geteuid().as_raw();
        Self::for_uid(bound, methods.into(), connections, draining, uid)
    }

    fn for_uid(
        bound: Bound,
        methods: Methods,
        connections: Connections,
        draining: CancellationToken,
        uid: u32,
    ) -> Self {
        let doorman = Arc::new(Doorman {
            methods,
            uid,
            stop: Stop { draining, closed: CancellationToken::new() },
            lost: CancellationToken::new(),
            tasks: TaskTracker::new(),
            places: connections.0,
            next_connection: AtomicUsize::new(1),
        });
        doorman.tasks.spawn(doorman.clone().accept(bound));
        Self { doorman }
    }

    /// Cancelled when the socket's file has been removed or replaced and cannot be made again: nobody can find this
    /// daemon any more.
    pub(crate) fn lost(&self) -> CancellationToken {
        self.doorman.lost.clone()
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
    /// Whom to serve.
    uid: u32,
    stop: Stop,
    lost: CancellationToken,
    tasks: TaskTracker,
    places: Arc<Semaphore>,
    next_connection: AtomicUsize,
}

impl Doorman {
    async fn accept(self: Arc<Self>, mut bound: Bound) {
        let mut back_off = Duration::ZERO;
        let mut look = tokio::time::interval(LOOK);
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.stop.closed.cancelled() => return bound.close(),
                _ = look.tick() => {
                    if !bound.is_reachable() && !self.lost.is_cancelled() {
                        bound = self.bind_again(bound);
                    }
                    continue;
                }
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

    /// Whoever clears a runtime directory away, as a log-out may, ends neither turns nor connections.
    fn bind_again(&self, bound: Bound) -> Bound {
        match bound.again() {
            Ok(again) => {
                tracing::warn!("the socket's file was gone and was made again");
                again
            }
            Err(error) => {
                tracing::error!(%error, "the socket's file is gone or another's, and cannot be made again");
                self.lost.cancel();
                bound
            }
        }
    }

    fn welcome(&self, stream: UnixStream) {
        let client = match self.peer(&stream) {
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

    /// Who connected, if it may.
    fn peer(&self, stream: &UnixStream) -> io::Result<Arc<Client>> {
        let peer = stream.peer_cred()?;
        if peer.uid() == self.uid {
            return Ok(Arc::new(Client::new(peer.uid(), peer.pid())));
        }
        let (theirs, pid, ours) = (peer.uid(), peer.pid().unwrap_or_default(), self.uid);
        Err(io::Error::other(format!("peer has uid {theirs} (pid {pid}), this daemon serves uid {ours} only")))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream as Blocking;
    use std::path::Path;

    use serde_json::Value;

    use super::*;
    use crate::rpc::tests::{House, check_error, module};

    const PING: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sum\",\"params\":[1]}\n";

    fn start(path: &Path, uid: u32) -> (Arc<House>, Server, Connections) {
        let (house, connections) = (House::new(), Connections::default());
        let (bound, draining) = (bind(path).unwrap(), CancellationToken::new());
        let server = Server::for_uid(bound, module(&house), connections.clone(), draining, uid);
        (house, server, connections)
    }

    /// Sends bytes, closes the writing side and reads to the end, on a thread of its own like a program would.
    async fn ask(path: &Path, bytes: &'static [u8]) -> String {
        let path = path.to_owned();
        let asked = tokio::task::spawn_blocking(move || {
            let mut stream = Blocking::connect(path).unwrap();
            // A daemon that turns us away may have closed before this arrives.
            let _sent = stream.write_all(bytes).and_then(|()| stream.shutdown(std::net::Shutdown::Write));
            let mut answer = Vec::new();
            let _read = stream.read_to_end(&mut answer);
            String::from_utf8(answer).unwrap()
        });
        asked.await.unwrap()
    }

    fn own_uid() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    #[tokio::test]
    async fn a_program_without_a_client_of_ours_gets_its_answer_and_the_socket_goes_at_the_end() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("run/agentd.sock");
        let (_house, server, _) = start(&path, own_uid());
        assert_eq!(ask(&path, PING).await, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}\n");
        server.stop().await;
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn another_user_is_closed_before_a_byte_is_read() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("run/agentd.sock");
        let (house, server, _) = start(&path, own_uid() + 1);
        assert_eq!(ask(&path, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tell\",\"params\":[1]}\n").await, "");
        server.stop().await;
        assert!(house.told.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn one_connection_too_many_is_told_so_and_the_others_go_on() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("run/agentd.sock");
        let (_house, server, connections) = start(&path, own_uid());
        let mut open = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            open.push(UnixStream::connect(&path).await.unwrap());
        }
        let refused = ask(&path, b"").await;
        check_error(&serde_json::from_str::<Value>(&refused).unwrap(), -32001, "overloaded");
        assert_eq!(connections.len(), MAX_CONNECTIONS);
        open.clear();
        while connections.len() > 0 {
            tokio::task::yield_now().await;
        }
        assert!(ask(&path, PING).await.contains("result"));
        server.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_socket_that_was_removed_is_made_again_and_one_that_is_anothers_is_given_up() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("run/agentd.sock");
        let (_house, server, _) = start(&path, own_uid());
        let lost = server.lost();
        std::fs::remove_dir_all(home.path().join("run")).unwrap();
        tokio::time::sleep(2 * LOOK).await;
        assert!(!lost.is_cancelled());
        assert_eq!(ask(&path, PING).await, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}\n");
        std::fs::remove_file(&path).unwrap();
        let other = std::os::unix::net::UnixListener::bind(&path).unwrap();
        tokio::time::timeout(2 * LOOK, lost.cancelled()).await.unwrap();
        server.stop().await;
        assert!(path.exists(), "the other's socket is not ours to remove");
        drop(other);
    }
}
