//! A client of raw JSON lines, on purpose none of agentctl's code: what it sees is what a script sees.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::PATIENCE;

#[derive(Debug)]
pub struct Client {
    reader: BufReader<UnixStream>,
    next_id: u64,
    /// Notifications that came while an answer was awaited.
    waiting: VecDeque<Value>,
    /// Bytes read so far.
    pub bytes: usize,
}

impl Client {
    /// # Panics
    /// When the stream cannot be given a time limit.
    #[must_use]
    pub fn new(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        Self { reader: BufReader::new(stream), next_id: 1, waiting: VecDeque::new(), bytes: 0 }
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.reader.get_mut().write_all(bytes.as_ref()).expect("the daemon takes it");
    }

    /// Reads so many bytes more, or what comes at all, and goes without a word, as a connection that breaks does.
    pub fn cut(mut self, bytes: usize) {
        let stream = self.reader.get_ref();
        stream.set_read_timeout(Some(Duration::from_millis(5))).expect("a time limit");
        let _as_far_as_it_came = self.reader.read_exact(&mut vec![0; bytes]);
    }

    /// Says that nothing more will be sent.
    pub fn half_close(&mut self) {
        self.reader.get_ref().shutdown(std::net::Shutdown::Write).expect("half a close");
    }

    /// The next line, or `None` when the daemon has closed the connection.
    pub fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.reader.read_line(&mut line).expect("a line in time");
        self.bytes += read;
        (read > 0).then(|| line.trim_end().to_owned())
    }

    /// Calls a method: its result, or its error object.
    ///
    /// # Errors
    /// The error object of the answer.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        let id = self.request(method, params);
        self.answer(id)
    }

    /// Sends a request and does not wait for its answer.
    pub fn request(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})));
        id
    }

    /// Waits for the answer to a request; notifications that come first are kept.
    ///
    /// # Errors
    /// The error object of the answer.
    pub fn answer(&mut self, id: u64) -> Result<Value, Value> {
        loop {
            let line = self.line().expect("the daemon is there");
            let mut message: Value = serde_json::from_str(&line).expect("JSON");
            if message["id"] == id {
                return match message.get_mut("error") {
                    Some(error) => Err(error.take()),
                    None => Ok(message["result"].take()),
                };
            }
            self.waiting.push_back(message);
        }
    }

    /// A call that must succeed.
    #[track_caller]
    pub fn ok(&mut self, method: &str, params: &Value) -> Value {
        self.call(method, params).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// The kind of the error of a call that must fail.
    #[track_caller]
    pub fn err(&mut self, method: &str, params: &Value) -> String {
        let error = self.call(method, params).expect_err("an error");
        assert!(error["data"]["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "no hint in {error}");
        error["data"]["kind"].as_str().expect("a kind").to_owned()
    }

    /// A new session in a directory; its id.
    #[track_caller]
    pub fn session(&mut self, cwd: &std::path::Path) -> String {
        let shown = self.ok("session/new", &json!({"cwd": cwd}));
        shown["session"]["id"].as_str().expect("an id").to_owned()
    }

    /// Runs a turn to its end; the turn.
    #[track_caller]
    pub fn turn(&mut self, session: &str, input: &str) -> Value {
        let started = self.ok("turn/start", &json!({"sessionId": session, "input": input}));
        self.ended(session, &started["turnId"])
    }

    /// Waits for the end of a turn; the turn.
    #[track_caller]
    pub fn ended(&mut self, session: &str, turn: &Value) -> Value {
        self.ok("turn/wait", &json!({"sessionId": session, "turnId": turn, "timeoutMs": 60_000}))["turn"].clone()
    }

    /// Follows a session from a place.
    #[track_caller]
    pub fn subscribe(&mut self, session: &str, from: &Value) -> String {
        let id = self.ok("session/subscribe", &json!({"sessionId": session, "from": from}));
        id.as_str().expect("a subscription id").to_owned()
    }

    /// The next event of any subscription.
    #[track_caller]
    pub fn event(&mut self) -> Value {
        let mut notification = self
            .waiting
            .pop_front()
            .unwrap_or_else(|| serde_json::from_str(&self.line().expect("the daemon is there")).expect("JSON"));
        notification["params"]["result"].take()
    }

    /// Reads events up to the first that `is_it` says yes to; all of them.
    #[track_caller]
    pub fn events_until(&mut self, is_it: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            events.push(self.event());
            if events.last().is_some_and(&is_it) {
                return events;
            }
        }
    }

    /// Reads events up to the first of a type; that one.
    #[track_caller]
    pub fn event_of(&mut self, kind: &str) -> Value {
        self.events_until(|event| event["type"] == kind).pop().expect("the last")
    }

    /// The durable events of a session, in order.
    #[track_caller]
    pub fn history(&mut self, session: &str) -> Vec<Value> {
        let page = self.ok("session/history", &json!({"sessionId": session, "limit": 10_000}));
        page["events"].as_array().expect("events").clone()
    }
}
