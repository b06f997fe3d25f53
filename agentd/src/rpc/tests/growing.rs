//! What grows, as subscribers see it: whole, in its place, and in proportion to time.

use std::time::Duration;

use protocol::{CallId, EventBody, Message, Part, TurnId};
use tokio_util::task::TaskTracker;

use super::House;
use super::pump::{answer, subscribe, subscribe_as};
use crate::rpc::peer::{Client, ClientInfo};
use crate::rpc::subscription::Start;

#[track_caller]
fn text_of(message: &mut Message) -> &mut String {
    let Part::Text { text } = &mut message.content[0] else { panic!("no text") };
    text
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_snapshot_comes_before_an_older_event_or_after_its_own_end() {
    let (house, tasks) = (House::new(), TaskTracker::new());
    let eager = Client::new(0, None);
    eager.set_info(ClientInfo { snapshot_min: Duration::ZERO, ..ClientInfo::default() });
    let mut subscriber = subscribe_as(&tasks, house.source(Start::Live), eager);
    let publisher = house.clone();
    tasks.spawn(async move {
        for number in 0..300 {
            let message = answer(&number.to_string());
            for _ in 0..3 {
                publisher.feed.message_updated(&message, TurnId::new());
                tokio::task::yield_now().await;
            }
            publisher.publish(EventBody::Message { message });
        }
    });
    let (mut finals, mut snapshots) = (0, 0);
    while finals < 300 {
        let event = subscriber.event().await;
        let number = || event["data"]["message"]["content"][0]["text"].as_str().unwrap().parse::<u32>().unwrap();
        match event["type"].as_str() {
            Some("message") => {
                assert_eq!(number(), finals);
                finals += 1;
            }
            Some("snapshot") => {
                assert_eq!(number(), finals, "the snapshot of the message that is growing now");
                snapshots += 1;
            }
            _ => {}
        }
    }
    assert!(snapshots > 0);
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
