//! The cursor: nothing twice, nothing missing, and snapshots in proportion to time.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

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
struct Subscriber {
    lines: BufReader<DuplexStream>,
    bytes: usize,
}

fn subscribe(tasks: &TaskTracker, source: Source) -> Subscriber {
    let (near, far) = tokio::io::duplex(4 << 10);
    let stop = Stop { draining: CancellationToken::new(), closed: CancellationToken::new() };
    let (responses, wire, mut writer) = outgoing(far, Arc::new(Client::new(0, None)), tasks.clone(), stop);
    let stream = source.open(Outlet::new(wire, "session/event", &1.into()));
    drop(responses);
    tasks.spawn(async move {
        let _gone = writer.run().await;
    });
    tasks.spawn(stream);
    Subscriber { lines: BufReader::new(near), bytes: 0 }
}

impl Subscriber {
    async fn text(&mut self) -> String {
        let mut line = String::new();
        tokio::time::timeout(PATIENCE, self.lines.read_line(&mut line)).await.expect("no event came").unwrap();
        self.bytes += line.len();
        line
    }

    async fn event(&mut self) -> Value {
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

fn answer(text: &str) -> Message {
    Message { content: vec![Part::Text { text: text.into() }], ..Message::draft("offline/rules") }
}

#[track_caller]
fn text_of(message: &mut Message) -> &mut String {
    let Part::Text { text } = &mut message.content[0] else { panic!("no text") };
    text
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
async fn whoever_attaches_in_mid_message_gets_the_whole_text_at_once_after_synced() {
    let (house, tasks) = (House::new(), TaskTracker::new());
    let (mut message, turn) = (answer("The answer"), TurnId::new());
    house.notice("before");
    house.feed.message_updated(&message, turn);
    text_of(&mut message).push_str(" is 42");
    house.feed.message_updated(&message, turn);
    for start in [Start::Live, Start::After(0), Start::Snapshot { at: 1, prelude: Vec::new() }] {
        let mut subscriber = subscribe(&tasks, house.source(start));
        let mut event = subscriber.event().await;
        while event["type"] != "snapshot" {
            event = subscriber.event().await;
        }
        assert_eq!(event["data"]["message"]["content"][0]["text"], "The answer is 42");
        assert_eq!(event["data"]["message"]["streaming"], true);
        assert_eq!((event["data"]["rev"].as_u64(), &event["turnId"]), (Some(2), &serde_json::json!(turn)));
    }
    assert_eq!(house.everyone.snapshots_serialised(), 1, "one revision is serialised once for all");
}

#[tokio::test(start_paused = true)]
async fn a_final_message_never_waits_and_no_snapshot_comes_after_it() {
    let (house, tasks) = (House::new(), TaskTracker::new());
    let mut subscriber = subscribe(&tasks, house.source(Start::Live));
    assert_eq!(subscriber.event().await["type"], "stream.synced");
    for _ in 0..50 {
        let mut message = answer(&"x".repeat(100_000));
        house.feed.message_updated(&message, TurnId::new());
        assert_eq!(subscriber.event().await["type"], "snapshot");
        text_of(&mut message).push_str("more");
        house.feed.message_updated(&message, TurnId::new());
        let before = tokio::time::Instant::now();
        house.publish(EventBody::Message { message });
        assert_eq!(subscriber.event().await["type"], "message");
        assert!(before.elapsed() < Duration::from_millis(5), "it waited {:?}", before.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn snapshots_cost_bytes_in_proportion_to_time_and_not_to_the_square_of_the_text() {
    let (house, tasks) = (House::new(), TaskTracker::new());
    let mut subscriber = subscribe(&tasks, house.source(Start::Live));
    let (mut message, turn, growing) = (answer(""), TurnId::new(), house.clone());
    let started = tokio::time::Instant::now();
    tasks.spawn(async move {
        for _ in 0..10_000 {
            text_of(&mut message).push_str(&"y".repeat(100));
            growing.feed.message_updated(&message, turn);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        growing.publish(EventBody::Message { message });
    });
    let (mut snapshots, mut last_rev) = (0, 0);
    loop {
        let event = subscriber.event().await;
        match event["type"].as_str() {
            Some("snapshot") => {
                snapshots += 1;
                let rev = event["data"]["rev"].as_u64().unwrap();
                assert!(rev > last_rev, "revisions only grow");
                last_rev = rev;
            }
            Some("message") => break,
            _ => {}
        }
    }
    let megabytes = usize::try_from(started.elapsed().as_secs()).unwrap() + 1;
    assert!(subscriber.bytes <= (megabytes + 2) << 20, "{} bytes in {:?}", subscriber.bytes, started.elapsed());
    assert!(snapshots >= 20, "{snapshots} snapshots");
    assert_eq!(house.everyone.snapshots_serialised(), snapshots);
}

#[tokio::test]
async fn without_a_subscriber_nothing_is_serialised() {
    let house = House::new();
    let mut message = answer("");
    for _ in 0..10_000 {
        text_of(&mut message).push_str("token ");
        house.feed.message_updated(&message, TurnId::new());
        house.feed.tool_output(&CallId("call_1".into()), TurnId::new(), b"output");
    }
    assert_eq!(house.everyone.snapshots_serialised(), 0);
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
