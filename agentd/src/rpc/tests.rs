//! The socket side as a client sees it: bytes in, lines out. No handler of the product is in here.

mod calls;
mod frames;
mod growing;
mod pump;
mod spec;
mod streams;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jsonrpsee::{ConnectionId, Methods, RpcModule};
use protocol::api::From as StartFrom;
use protocol::{Event, EventBody, Method, NoticeLevel, RpcError, Seq, SessionId, method};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::serve_connection;
use super::listener::Stop;
use super::peer::Client;
use super::register;
use super::subscription::{Source, Start};
use crate::session::feed::{DaemonFeed, Durable, Feed, Journal};

/// Longer than anything in here takes; a test that hangs fails by it.
const PATIENCE: Duration = Duration::from_secs(20);

/// A session without a loop: what is published is also what its journal holds.
#[derive(Debug)]
pub(super) struct House {
    feed: Arc<Feed>,
    everyone: DaemonFeed,
    journal: Arc<Book>,
    /// Lets `wait` answer.
    gate: Notify,
    /// Told by `tell`.
    pub(super) told: Mutex<Vec<Value>>,
    /// Lives as long as a subscription does.
    kept: Arc<()>,
}

#[derive(Default, Debug)]
pub(super) struct Book(Mutex<Vec<Durable>>);

#[async_trait]
impl Journal for Book {
    async fn page(&self, _: SessionId, after: Seq, limit: usize) -> Result<Vec<Durable>, RpcError> {
        tokio::task::yield_now().await; // a real one waits, too
        let events = self.0.lock().unwrap();
        Ok(events.iter().filter(|event| event.seq > after).take(limit).cloned().collect())
    }
}

impl House {
    pub(super) fn new() -> Arc<Self> {
        let everyone = DaemonFeed::default();
        let feed = Arc::new(Feed::new(SessionId::new(), 0, everyone.clone()));
        let (journal, gate) = (Arc::default(), Notify::new());
        Arc::new(Self { feed, everyone, journal, gate, told: Mutex::default(), kept: Arc::default() })
    }

    /// Commits and publishes an event; answers with its bytes.
    pub(super) fn publish(&self, body: EventBody) -> Arc<str> {
        let seq = self.feed.last_seq() + 1;
        let ts = jiff::Timestamp::now();
        let session_id = self.feed.session();
        let event = Event { body, session_id, seq: Some(seq), cursor: None, ts, turn_id: None, actor: None };
        let json: Arc<str> = serde_json::to_string(&event).unwrap().into();
        let durable = Durable::committed(&event, json.clone());
        self.journal.0.lock().unwrap().push(durable.clone());
        self.feed.publish(vec![durable]);
        json
    }

    pub(super) fn notice(&self, text: &str) -> Arc<str> {
        self.publish(EventBody::Notice { level: NoticeLevel::Info, text: text.into() })
    }

    pub(super) fn source(&self, start: Start) -> Source {
        let keep: Option<Box<dyn std::any::Any + Send>> = Some(Box::new(self.kept.clone()));
        Source { feed: self.feed.clone(), journal: self.journal.clone(), start, types: None, keep }
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Subtraction {
    minuend: i64,
    subtrahend: i64,
}

/// Declares methods for tests.
macro_rules! test_methods {
    ($($name:ident $wire:literal ($params:ty) -> $result:ty;)*) => {$(
        struct $name;
        impl Method for $name {
            const NAME: &'static str = $wire;
            type Params = $params;
            type Result = $result;
        }
    )*};
}

test_methods! {
    Subtract "subtract" (Subtraction) -> i64;
    Sum "sum" (Vec<i64>) -> i64;
    GetData "get_data" (protocol::api::Empty) -> (String, i64);
    Tell "tell" (Value) -> usize;
    Wait "wait" (protocol::api::Empty) -> String;
    Crash "crash" (protocol::api::Empty) -> i64;
    Fail "fail" (protocol::api::Empty) -> i64;
}

/// The methods of the specification's examples, some that misbehave, and the two subscriptions.
pub(super) fn module(house: &Arc<House>) -> Methods {
    let mut module = RpcModule::from_arc(house.clone());
    let m = &mut module;
    register::method::<Subtract, _, _>(m, async |_, _, it| Ok(it.minuend - it.subtrahend)).unwrap();
    register::method::<Sum, _, _>(m, async |_, _, numbers| Ok(numbers.iter().sum())).unwrap();
    register::method::<GetData, _, _>(m, async |_, _, _| Ok(("hello".into(), 5))).unwrap();
    register::method::<Tell, _, _>(m, async |house, _, what| {
        let mut told = house.told.lock().unwrap();
        told.push(what);
        Ok(told.len())
    })
    .unwrap();
    register::method::<Wait, _, _>(m, async |house, _, _| {
        house.gate.notified().await;
        Ok("waited".into())
    })
    .unwrap();
    register::method::<Crash, _, _>(m, async |_, _, _| {
        tokio::task::yield_now().await;
        panic!("as told")
    })
    .unwrap();
    register::method::<Fail, _, _>(m, async |_, _, _| {
        Err(RpcError::new(protocol::ErrorKind::SessionBusy, "session is busy", "wait").with("activeTurnId", "t"))
    })
    .unwrap();
    module
        .register_method("theirs", |_, _, _| Err::<(), _>(jsonrpsee::types::error::reject_too_big_request(1)))
        .unwrap();
    register::subscription::<method::SessionSubscribe, _, _>(&mut module, async |house, _, wanted| {
        let start = match wanted.from {
            StartFrom::Live => Start::Live,
            StartFrom::Snapshot => Start::Snapshot { at: house.feed.last_seq(), prelude: vec!["\"prelude\"".into()] },
            StartFrom::Cursor { cursor } => Start::After(cursor.parts().unwrap().1),
        };
        Ok(Source { types: wanted.types.map(FromIterator::from_iter), ..house.source(start) })
    })
    .unwrap();
    register::everyone::<method::DaemonSubscribe, _>(&mut module, |house| house.everyone.clone()).unwrap();
    module.into()
}

/// Connections over socket pairs, as the listener would make them.
pub(super) struct Rig {
    pub(super) house: Arc<House>,
    pub(super) stop: Stop,
    pub(super) tasks: TaskTracker,
    methods: Methods,
}

impl Rig {
    pub(super) fn new() -> Self {
        let house = House::new();
        let stop = Stop { draining: CancellationToken::new(), closed: CancellationToken::new() };
        Self { methods: module(&house), house, stop, tasks: TaskTracker::new() }
    }

    pub(super) fn connect(&self) -> Peer {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (methods, stop, tasks) = (self.methods.clone(), self.stop.clone(), self.tasks.clone());
        let client = Arc::new(Client::new(0, None));
        self.tasks.spawn(serve_connection(theirs, ConnectionId(self.tasks.len()), client, methods, (stop, tasks)));
        Peer(BufReader::new(ours))
    }
}

/// A raw client.
pub(super) struct Peer(BufReader<UnixStream>);

impl Peer {
    pub(super) async fn send(&mut self, line: &str) {
        self.send_bytes(format!("{line}\n").as_bytes()).await;
    }

    pub(super) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).await.unwrap();
    }

    pub(super) async fn close_writing(&mut self) {
        self.0.get_mut().shutdown().await.unwrap();
    }

    /// The next line, or `None` at the end.
    pub(super) async fn text(&mut self) -> Option<String> {
        let mut line = String::new();
        let count = tokio::time::timeout(PATIENCE, self.0.read_line(&mut line)).await.expect("no line came").unwrap();
        (count > 0).then(|| line.trim_end().to_owned())
    }

    pub(super) async fn line(&mut self) -> Value {
        serde_json::from_str(&self.text().await.expect("the connection was closed")).unwrap()
    }

    pub(super) async fn call(&mut self, line: &str) -> Value {
        self.send(line).await;
        self.line().await
    }

    /// Calls a method and gives its result or its error.
    pub(super) async fn ask(&mut self, method: &str, params: &Value) -> Value {
        let mut answer =
            self.call(&format!(r#"{{"jsonrpc":"2.0","id":"a","method":"{method}","params":{params}}}"#)).await;
        let outcome = if answer.get("result").is_some() { "result" } else { "error" };
        answer[outcome].take()
    }

    /// The event of the next notification.
    pub(super) async fn event(&mut self) -> Value {
        self.line().await["params"]["result"].take()
    }

    /// Reads what is left; the connection must end.
    pub(super) async fn rest(mut self) -> String {
        let mut rest = String::new();
        tokio::time::timeout(PATIENCE, self.0.read_to_string(&mut rest)).await.expect("no end came").unwrap();
        rest
    }
}

/// A parsed error, after a look at what every one carries.
#[track_caller]
pub(super) fn check_error(answer: &Value, code: i64, kind: &str) {
    assert_eq!(answer["error"]["code"], code, "{answer}");
    let data = &answer["error"]["data"];
    assert_eq!(data["kind"], kind, "{answer}");
    assert!(data["retryable"].is_boolean() && data["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{answer}");
}
