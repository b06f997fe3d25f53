//! Streams that break and go on, against a daemon that plays a script.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use super::*;
use crate::fake::{self, Script};

fn notice(seq: u64) -> Value {
    json!({"type": "notice", "data": {"level": "info", "text": "x"}, "seq": seq, "cursor": format!("e.{seq}")})
}

async fn feed(world: &Arc<World>) -> Feed {
    let connection = Arc::new(Connection::open_running(world, ApprovalRole::Observe).await.unwrap());
    let target = Target::Session(fake::SESSION.parse().unwrap());
    Feed::open(Arc::clone(world), connection, ApprovalRole::Observe, target, From::Live).await.unwrap()
}

#[tokio::test]
async fn a_broken_connection_goes_on_at_its_cursor() {
    let dir = tempfile::tempdir().unwrap();
    let world = fake::world(dir.path());
    let count = AtomicU32::new(0);
    let _daemon = fake::daemon(&world, move |method, params| {
        assert_eq!(method, "session/subscribe");
        let answer = json!({"result": "s1"});
        if count.fetch_add(1, Ordering::Relaxed) == 0 {
            assert_eq!(params["from"], json!({"kind": "live"}));
            Script { answer, events: vec![notice(1), notice(2)], hang_up: true }
        } else {
            assert_eq!(params["from"], json!({"kind": "cursor", "cursor": "e.2"}));
            Script { answer, events: vec![notice(3)], hang_up: false }
        }
    });
    let mut feed = feed(&world).await;
    let mut seen = Vec::new();
    while seen.last() != Some(&"3".to_owned()) {
        seen.push(match feed.next().await.unwrap() {
            News::Event(_, event) => event.unwrap().seq.unwrap().to_string(),
            News::Lost(_) => "lost".into(),
            News::Stopped => "stopped".into(),
            News::Back(_) => "back".into(),
            News::Gone(failure) => panic!("{failure}"),
        });
    }
    assert_eq!(seen, ["1", "2", "lost", "back", "3"]);
}

#[tokio::test]
async fn a_refused_cursor_ends_the_stream_with_the_daemons_words() {
    let dir = tempfile::tempdir().unwrap();
    let world = fake::world(dir.path());
    let count = AtomicU32::new(0);
    let _daemon = fake::daemon(&world, move |_, _| {
        if count.fetch_add(1, Ordering::Relaxed) == 0 {
            Script { answer: json!({"result": "s1"}), events: vec![notice(1)], hang_up: true }
        } else {
            let data = json!({"kind": "cursor_foreign", "retryable": false, "hint": "begin again"});
            Script {
                answer: json!({"error": {"code": -32021, "message": "another database", "data": data}}),
                ..Script::default()
            }
        }
    });
    let mut feed = feed(&world).await;
    loop {
        match feed.next().await.unwrap() {
            News::Gone(failure) => {
                assert_eq!(failure.sentence(), "another database (hint: begin again)");
                break;
            }
            News::Event(..) | News::Lost(_) | News::Stopped => {}
            News::Back(_) => panic!("it was refused"),
        }
    }
    assert!(feed.next().await.is_none());
}

#[tokio::test]
async fn a_daemon_that_said_goodbye_was_stopped_and_not_lost() {
    let dir = tempfile::tempdir().unwrap();
    let world = fake::world(dir.path());
    let count = AtomicU32::new(0);
    let _daemon = fake::daemon(&world, move |_, _| {
        let is_first = count.fetch_add(1, Ordering::Relaxed) == 0;
        let draining = json!({"type": "daemon.draining", "data": {"retryAfterMs": 1}});
        let events = if is_first { vec![draining] } else { Vec::new() };
        Script { answer: json!({"result": "s1"}), events, hang_up: is_first }
    });
    let mut feed = feed(&world).await;
    assert!(matches!(feed.next().await, Some(News::Event(..))));
    assert!(matches!(feed.next().await, Some(News::Stopped)));
    let gone = feed.connection().call::<protocol::method::DaemonStatus>(protocol::api::Empty {}).await.unwrap_err();
    let words = "the daemon closed the connection (hint: ";
    assert!(gone.sentence().starts_with(words), "{}", gone.sentence());
    assert!(feed.reconnected().await.is_some_and(|connection| connection.is_connected()));
    assert!(matches!(feed.next().await, Some(News::Back(_))));
}
