//! A loopback model: plays byte-exact responses and keeps every request it got.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

/// What it answers to one request: the pieces are written one by one, each flushed on its own.
#[derive(Clone, Debug)]
pub struct Play {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub pieces: Vec<Vec<u8>>,
}

/// One request as it came in.
#[derive(Clone, Debug)]
pub struct Request {
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Value,
    /// When it had been read.
    pub came: Instant,
}

#[derive(Debug)]
pub struct FakeModel {
    pub base: String,
    requests: Arc<Mutex<Vec<Request>>>,
    answered: Arc<Mutex<Vec<Instant>>>,
}

impl Play {
    /// A stream of server-sent events, in one piece.
    #[must_use]
    pub fn sse(body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
        Self { status: 200, headers, pieces: vec![body.into()] }
    }
}

impl FakeModel {
    /// Answers the first request with the first play, and so on; further ones get status 500.
    ///
    /// # Panics
    /// When no loopback port can be had.
    #[must_use]
    pub fn start(plays: Vec<Play>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
        let base = format!("http://{}", listener.local_addr().expect("its address"));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let answered = Arc::new(Mutex::new(Vec::new()));
        let (seen, ends) = (Arc::clone(&requests), Arc::clone(&answered));
        std::thread::spawn(move || {
            let mut plays = plays.into_iter();
            for stream in listener.incoming().flatten() {
                let none = Play { status: 500, headers: Vec::new(), pieces: vec![b"no play left".to_vec()] };
                serve(&stream, &seen, || plays.next().unwrap_or(none));
                ends.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
            }
        });
        Self { base, requests, answered }
    }

    /// All requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From the end of each answer to the request after it.
    #[must_use]
    pub fn gaps(&self) -> Vec<Duration> {
        let answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        let requests = self.requests();
        answered.iter().zip(requests.iter().skip(1)).map(|(end, next)| next.came.duration_since(*end)).collect()
    }
}

impl Request {
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// One request for each connection: the answer ends with its end.
fn serve(stream: &TcpStream, seen: &Mutex<Vec<Request>>, play: impl FnOnce() -> Play) {
    let Some(request) = read_request(stream) else { return };
    seen.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    let play = play();
    let mut head = format!("HTTP/1.1 {} x\r\nconnection: close\r\n", play.status);
    for (name, value) in &play.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let mut stream = stream;
    // A client that has gone away is part of some tests.
    let _written = stream
        .write_all(head.as_bytes())
        .and_then(|()| play.pieces.iter().try_for_each(|piece| stream.write_all(piece).and_then(|()| stream.flush())));
}

/// Reads one request to its end; `None` for what is none.
#[must_use]
pub fn read_request(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.push((name.to_owned(), value.trim().to_owned())),
            None => break,
        }
    }
    let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?.1.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { path, headers, body: serde_json::from_slice(&body).ok()?, came: Instant::now() })
}
