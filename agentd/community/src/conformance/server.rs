//! A loopback server that plays byte-exact answers and keeps what it was asked.
//!
//! One connection for each reply, in order. It understands just enough HTTP to find a request's end.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// What is sent back, to the byte.
pub(super) struct Reply {
    pub(super) head: String,
    pub(super) body: Vec<u8>,
    /// Bytes for each write; each becomes a segment of its own.
    pub(super) step: usize,
}

/// What came in.
#[derive(Debug)]
pub(super) struct Request {
    /// The request line and the headers, as they were sent.
    pub(super) head: String,
    pub(super) body: String,
}

impl Reply {
    /// An accepted request and its event stream.
    pub(super) fn events(body: &str) -> Self {
        Self::with_status("200 OK", "content-type: text/event-stream\r\n", body)
    }

    pub(super) fn with_status(status: &str, headers: &str, body: &str) -> Self {
        let head = format!("HTTP/1.1 {status}\r\n{headers}connection: close\r\n\r\n");
        Self { head, body: body.into(), step: usize::MAX }
    }
}

pub(super) struct Server {
    pub(super) origin: String,
    playing: JoinSet<Vec<Request>>,
}

impl Server {
    pub(super) async fn play(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let mut playing = JoinSet::new();
        playing.spawn(async move {
            let mut requests = Vec::new();
            for reply in replies {
                let (mut connection, _) = listener.accept().await.unwrap();
                connection.set_nodelay(true).unwrap();
                requests.push(receive(&mut connection).await);
                send(&mut connection, &reply).await;
            }
            requests
        });
        Self { origin, playing }
    }

    /// Sends the beginning of an answer and then waits until the client hangs up.
    pub(super) async fn hold(beginning: &str) -> Self {
        let reply = Reply::events(beginning);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let mut playing = JoinSet::new();
        playing.spawn(async move {
            let (mut connection, _) = listener.accept().await.unwrap();
            let request = receive(&mut connection).await;
            connection.write_all(reply.head.as_bytes()).await.unwrap();
            connection.write_all(&reply.body).await.unwrap();
            // An end of file or a reset: both say that nobody listens any more.
            let _end = connection.read_u8().await.unwrap_err();
            vec![request]
        });
        Self { origin, playing }
    }

    /// What was asked, once every reply has been played.
    pub(super) async fn requests(mut self) -> Vec<Request> {
        self.playing.join_next().await.unwrap().unwrap()
    }
}

async fn receive(connection: &mut TcpStream) -> Request {
    let mut bytes = Vec::new();
    loop {
        assert!(connection.read_buf(&mut bytes).await.unwrap() > 0, "the request ended early");
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        if body.len() == length.parse::<usize>().unwrap() {
            return Request { head: head.into(), body: body.into() };
        }
    }
}

/// A client that has heard enough may hang up at any time.
async fn send(connection: &mut TcpStream, reply: &Reply) {
    let mut whole = connection.write_all(reply.head.as_bytes()).await;
    for piece in reply.body.chunks(reply.step) {
        if whole.is_err() {
            return;
        }
        whole = connection.write_all(piece).await;
    }
    let _closed = connection.shutdown().await;
}
