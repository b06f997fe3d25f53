//! Subscriptions over a connection: their ids, their limits and their ends.

use std::sync::Arc;

use protocol::{EventBody, SessionStatus};
use serde_json::{Value, json};

use super::{Peer, Rig};

async fn subscribe(rig: &Rig, peer: &mut Peer, from: &Value) -> Value {
    peer.ask("session/subscribe", &json!({"sessionId": rig.house.feed.session(), "from": from})).await
}

#[tokio::test]
async fn the_id_comes_first_then_the_replay_then_synced_then_what_is_live() {
    let rig = Rig::new();
    let mut peer = rig.connect();
    let stored = [rig.house.notice("one"), rig.house.notice("two")];
    let id = subscribe(&rig, &mut peer, &json!({"kind": "cursor", "cursor": "e.0"})).await;
    assert!(id.is_string(), "{id}");
    for event in stored {
        let line = peer.text().await.unwrap();
        let expected = format!(
            r#"{{"jsonrpc":"2.0","method":"session/event","params":{{"subscription":{id},"result":{event}}}}}"#
        );
        assert_eq!(line, expected, "the stored bytes, exactly");
    }
    let synced = peer.event().await;
    assert_eq!((&synced["type"], &synced["data"]), (&json!("stream.synced"), &json!({"seq": 2})));
    rig.house.notice("three");
    assert_eq!(peer.event().await["data"]["text"], "three");
}

#[tokio::test]
async fn a_snapshot_begins_with_its_prelude() {
    let rig = Rig::new();
    let mut peer = rig.connect();
    rig.house.notice("old");
    subscribe(&rig, &mut peer, &json!({"kind": "snapshot"})).await;
    assert_eq!(peer.event().await, "prelude");
    assert_eq!(peer.event().await["data"]["seq"], 1);
}

#[tokio::test]
async fn unsubscribing_answers_whether_there_was_anything_to_end() {
    let rig = Rig::new();
    let mut peer = rig.connect();
    for named in [false, true] {
        let id = subscribe(&rig, &mut peer, &json!({"kind": "live"})).await;
        assert_eq!(peer.event().await["type"], "stream.synced");
        let params = if named { json!({"subscription": id}) } else { json!([id]) };
        assert_eq!(peer.ask("session/unsubscribe", &params).await, true);
        assert_eq!(peer.ask("session/unsubscribe", &params).await, false);
    }
    rig.house.notice("unheard");
    assert_eq!(peer.ask("sum", &json!([1])).await, 1);
    assert_eq!(peer.ask("session/unsubscribe", &json!({"id": 1})).await["code"], -32602);
}

#[tokio::test]
async fn a_connection_has_a_limit_of_subscriptions_and_gets_places_back() {
    let rig = Rig::new();
    let mut peer = rig.connect();
    let mut last = Value::Null;
    for _ in 0..64 {
        last = subscribe(&rig, &mut peer, &json!({"kind": "live"})).await;
        assert_eq!(peer.event().await["type"], "stream.synced");
    }
    let refused = subscribe(&rig, &mut peer, &json!({"kind": "live"})).await;
    assert_eq!((&refused["code"], &refused["data"]["kind"]), (&json!(-32001), &json!("overloaded")));
    assert_eq!(peer.ask("session/unsubscribe", &json!([last])).await, true);
    // The place is free when the subscription has let go, which is soon but not at once.
    let again = async {
        loop {
            let id = subscribe(&rig, &mut peer, &json!({"kind": "live"})).await;
            if id.is_string() {
                return id;
            }
            tokio::task::yield_now().await;
        }
    };
    assert!(tokio::time::timeout(super::PATIENCE, again).await.unwrap().is_string());
}

#[tokio::test]
async fn a_half_closed_subscriber_is_streamed_to_until_it_is_gone() {
    let rig = Rig::new();
    let mut peer = rig.connect();
    subscribe(&rig, &mut peer, &json!({"kind": "live"})).await;
    assert_eq!(peer.event().await["type"], "stream.synced");
    peer.close_writing().await;
    for text in ["one", "two"] {
        rig.house.notice(text);
        assert_eq!(peer.event().await["data"]["text"], text);
    }
    assert_eq!(Arc::strong_count(&rig.house.kept), 2);
    drop(peer);
    rig.tasks.close();
    tokio::time::timeout(super::PATIENCE, rig.tasks.wait()).await.expect("the subscription outlived its client");
    assert_eq!(Arc::strong_count(&rig.house.kept), 1, "what the subscription kept is dropped");
}

#[tokio::test]
async fn subscribers_that_vanish_leave_nothing_behind() {
    let rig = Rig::new();
    for round in 0..200 {
        let mut peer = rig.connect();
        subscribe(&rig, &mut peer, &json!({"kind": "live"})).await;
        if round % 2 == 0 {
            peer.close_writing().await;
        }
        rig.house.notice("busy");
    }
    rig.tasks.close();
    tokio::time::timeout(super::PATIENCE, rig.tasks.wait()).await.expect("a subscription outlived its client");
    assert_eq!(Arc::strong_count(&rig.house.kept), 1);
}

#[tokio::test]
async fn draining_is_announced_and_what_is_committed_after_it_still_arrives() {
    let rig = Rig::new();
    let (mut peer, mut watcher) = (rig.connect(), rig.connect());
    subscribe(&rig, &mut peer, &json!({"kind": "live"})).await;
    assert_eq!(peer.event().await["type"], "stream.synced");
    watcher.ask("daemon/subscribe", &json!({})).await;
    rig.stop.draining.cancel();
    for peer in [&mut peer, &mut watcher] {
        let draining = peer.event().await;
        assert_eq!(draining["type"], "daemon.draining");
        assert!(draining["data"]["retryAfterMs"].is_u64());
    }
    rig.house.notice("last words");
    rig.stop.closed.cancel();
    assert_eq!(peer.event().await["data"]["text"], "last words");
    assert_eq!(peer.rest().await, "");
    assert_eq!(watcher.rest().await, "");
}

#[tokio::test]
async fn whoever_watches_the_daemon_sees_what_concerns_all_and_nothing_else() {
    let rig = Rig::new();
    let mut peer = rig.connect();
    assert!(peer.ask("daemon/subscribe", &json!({})).await.is_string());
    rig.house.notice("not this");
    let status = rig.house.publish(EventBody::SessionStatus { status: SessionStatus::Running });
    let line = peer.line().await;
    assert_eq!(line["method"], "daemon/event");
    assert_eq!(line["params"]["result"], serde_json::from_str::<Value>(&status).unwrap());
}

#[tokio::test]
async fn a_watcher_of_the_daemon_that_was_too_slow_is_told_to_list_again() {
    let rig = Rig::new();
    let mut peer = rig.connect();
    peer.ask("daemon/subscribe", &json!({})).await;
    // Nothing runs between these, so the watcher cannot keep up.
    for _ in 0..3000 {
        rig.house.publish(EventBody::SessionStatus { status: SessionStatus::Idle });
    }
    let mut events = Vec::new();
    while events.last().is_none_or(|seq| *seq != 3000) {
        let event = peer.event().await;
        match event["type"].as_str() {
            Some("notice") => assert!(event["data"]["text"].as_str().unwrap().contains("list sessions")),
            _ => events.push(event["seq"].as_u64().unwrap()),
        }
    }
    assert!(events.len() < 3000 && events.is_sorted());
}
