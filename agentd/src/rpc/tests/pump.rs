//! The cursor: nothing twice, nothing missing.

use std::collections::HashSet;
use std::sync::Arc;

use protocol::{CallId, EventBody, Message, NoticeLevel, Part, TurnId};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{House, PATIENCE};
use crate::rpc::listener::Stop;
use crate::rpc::outgoing::{Outlet, outgoing};
use crate::rpc::peer::Client;
use crate::rpc::subscription::{Source, Start, Subscribe};

/// A subscription whose client reads when the test says so, through a pipe of a few bytes.
pub(super) struct Subscriber {
    lines: BufReader<DuplexStream>,
    pub(super) bytes: usize,
}

pub(super) fn subscribe(tasks: &TaskTracker, source: Source) -> Subscriber {
    subscribe_as(tasks, source, Client::new(0, None))
}

pub(super) fn subscribe_as(tasks: &TaskTracker, source: Source, client: Client) -> Subscriber {
    let (near, far) = tokio::io::duplex(4 << 10);
    let stop = Stop { draining: CancellationToken::new(), closed: CancellationToken::new() };
    let (responses, wire, mut writer) = outgoing(far, Arc::new(client), tasks.clone(), stop);
    let stream = source.open(Outlet::new(wire, "session/event", &1.into()));
    drop(responses);
    tasks.spawn(async move {
        let _gone = writer.run().await;
    });
    tasks.spawn(stream);
    Subscriber { lines: BufReader::new(near), bytes: 0 }
}

impl Subscriber {
    pub(super) async fn text(&mut self) -> String {
        let mut line = String::new();
        tokio::time::timeout(PATIENCE, self.lines.read_line(&mut line)).await.expect("no event came").unwrap();
        self.bytes += line.len();
        line
    }

    pub(super) async fn event(&mut self) -> Value {
        serde_json::from_str::<Value>(&self.text().await).unwrap()["params"]["result"].take()
    }

    /// The sequence numbers up to `last`, and where `stream.synced` stood among them.
    async fn until(&mut self, last: u64) -> (Vec<u64>, u64) {
        let (mut seqs, mut synced) = (Vec::new(), None);
        while seqs.last() != Some(&last) {
            let event = self.event().await;
            match event["type"].as_str() {
                Some("stream.synced") => {
                    assert_eq!(synced.replace(event["data"]["seq"].as_u64().unwrap()), None, "synced twice");
                    assert!(seqs.last().is_none_or(|last| synced == Some(*last)), "synced at its place");
                }
                Some("notice") => seqs.push(event["seq"].as_u64().unwrap()),
                _ => {}
            }
        }
        (seqs, synced.expect("stream.synced"))
    }
}

pub(super) fn answer(text: &str) -> Message {
    Message { content: vec![Part::Text { text: text.into() }], ..Message::draft("offline/rules") }
}

#[tokio::test]
async fn replay_from_any_cursor_is_what_a_live_subscriber_saw() {
    let (house, tasks) = (House::new(), TaskTracker::new());
    let mut live = subscribe(&tasks, house.source(Start::Live));
    assert_eq!(live.event().await["type"], "stream.synced");
    let mut seen = Vec::new();
    for number in 0..1000 {
        house.notice(&format!("event {number}"));
        seen.push(live.text().await);
    }
    for cursor in [0, 1, 63, 64, 487, 488, 500, 999, 1000] {
        let mut replay = subscribe(&tasks, house.source(Start::After(cursor)));
        for expected in &seen[usize::try_from(cursor).unwrap()..] {
            assert_eq!(&replay.text().await, expected, "after {cursor}");
        }
        let synced = replay.event().await;
        assert_eq!((synced["type"].as_str(), synced["data"]["seq"].as_u64()), (Some("stream.synced"), Some(1000)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_gap_and_no_double_for_whoever_comes_while_events_are_published() {
    const LAST: u64 = 1000;
    let (house, tasks) = (House::new(), TaskTracker::new());
    let publisher = house.clone();
    let published = tasks.spawn(async move {
        for number in 0..LAST {
            publisher.notice("event");
            if number % 7 == 0 {
                tokio::task::yield_now().await;
            }
        }
    });
    let mut readers = tokio::task::JoinSet::new();
    for number in 0..40_u64 {
        tokio::task::yield_now().await;
        let from = house.feed.last_seq() * (number % 3) / 2;
        let mut subscriber = subscribe(&tasks, house.source(Start::After(from)));
        readers.spawn(async move { (from, subscriber.until(LAST).await) });
    }
    published.await.unwrap();
    while let Some(done) = readers.join_next().await {
        let (from, (seqs, synced)) = done.unwrap();
        assert_eq!(seqs, (from + 1..=LAST).collect::<Vec<_>>());
        assert!((from..=LAST).contains(&synced), "synced at {synced}, from {from}");
    }
}

#[tokio::test]
async fn a_stalled_subscriber_holds_a_few_events_slows_nobody_and_misses_nothing() {
    let (house, tasks) = (House::new(), TaskTracker::new());
    let mut stalled = subscribe(&tasks, house.source(Start::Live));
    let mut other = subscribe(&tasks, house.source(Start::Live));
    assert_eq!(other.event().await["type"], "stream.synced");
    let large = "z".repeat(20_000);
    let mut bodies = Vec::new();
    for _ in 0..1000 {
        let body = house.notice(&large);
        bodies.push(Arc::downgrade(&body));
        drop(body);
        house.feed.message_updated(&answer(&large), TurnId::new());
        while other.event().await["type"] != "notice" {}
    }
    // The journal of this test holds all of them. What has one more holder is in the tail (1 MiB) or on its way to the
    // stalled subscriber (a page, a queue and a burst).
    let held = bodies.iter().filter(|body| body.strong_count() > 1).count();
    assert!(held <= 52 + 32 + 8 + 8, "{held} events of {} bytes are held", large.len());
    let (seqs, _) = stalled.until(1000).await;
    assert_eq!(seqs, (1..=1000).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_subscriber_that_slept_reads_on_without_a_gap() {
    let (house, tasks) = (House::new(), TaskTracker::new());
    let mut sleeper = subscribe(&tasks, house.source(Start::Live));
    for _ in 0..2000 {
        house.notice(&"n".repeat(1000));
        tokio::task::yield_now().await;
    }
    let (seqs, synced) = sleeper.until(2000).await;
    assert_eq!(seqs, (1..=2000).collect::<Vec<_>>());
    assert_eq!(synced, 0);
}

#[tokio::test]
async fn types_filter_everything_but_stream_control() {
    let (house, tasks) = (House::new(), TaskTracker::new());
    let types = Some(HashSet::from(["tool.output".to_owned(), "message".to_owned()]));
    let mut subscriber = subscribe(&tasks, Source { types, ..house.source(Start::After(0)) });
    assert_eq!(subscriber.event().await["type"], "stream.synced");
    house.publish(EventBody::Notice { level: NoticeLevel::Info, text: "no".into() });
    house.feed.message_updated(&answer("no"), TurnId::new());
    house.feed.tool_output(&CallId("call_1".into()), TurnId::new(), b"yes");
    let output = subscriber.event().await;
    assert_eq!((&output["type"], &output["data"]["text"]), (&"tool.output".into(), &"yes".into()));
    house.publish(EventBody::Message { message: answer("yes") });
    assert_eq!(subscriber.event().await["type"], "message");
}

#[tokio::test]
async fn a_journal_that_cannot_go_on_ends_the_stream_instead_of_leaving_a_hole() {
    let (house, tasks) = (House::new(), TaskTracker::new());
    for _ in 0..600 {
        house.notice("event");
    }
    house.journal.0.lock().unwrap().clear();
    let mut subscriber = subscribe(&tasks, house.source(Start::After(0)));
    let notice = subscriber.event().await;
    assert_eq!((&notice["type"], &notice["data"]["level"]), (&"notice".into(), &"error".into()));
    assert_eq!(subscriber.text().await, "", "then the stream ends");
}
