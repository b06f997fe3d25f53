//! Messages for a session that is busy: they wait, may be changed, outlive a crash, and each is run once.

use e2e::client::Client;
use e2e::daemon::{Daemon, Home};
use serde_json::{Value, json};

/// A daemon whose model asks for one command, then answers; its session, with that command waiting for a yes.
fn busy() -> (Daemon, Client, String, Value) {
    let home = Home::new();
    let call = json!({"name": "bash", "input": {"description": "work", "command": "echo ran >> ledger"}});
    home.script(&json!({"loop": true, "steps": [[{"toolCalls": [call]}], [{"text": "done"}]]}));
    let daemon = home.start();
    let mut client = daemon.connect();
    let session = client.session(&daemon.home.work());
    let turn = start(&mut client, &session, "first", "start")["turnId"].clone();
    client.ok("turn/wait", &json!({"sessionId": session, "until": "approval"}));
    (daemon, client, session, turn)
}

fn start(client: &mut Client, session: &str, text: &str, delivery: &str) -> Value {
    client.ok("turn/start", &json!({"sessionId": session, "input": text, "delivery": delivery}))
}

fn allow_all(client: &mut Client) {
    for approval in client.ok("approval/list", &json!({}))["approvals"].as_array().unwrap() {
        client.ok("approval/respond", &json!({"approvalId": approval["id"], "decision": "allow"}));
    }
}

fn waiting(client: &mut Client, session: &str) -> Vec<String> {
    let turns = client.ok("queue/list", &json!({"sessionId": session}))["turns"].as_array().unwrap().clone();
    turns.iter().map(|turn| turn["input"][0]["text"].as_str().unwrap().to_owned()).collect()
}

/// What people said, in the order of the history, each with its turn.
fn said(history: &[Value]) -> Vec<(String, Value)> {
    let messages = history.iter().filter(|event| event["data"]["message"]["role"] == "user");
    messages
        .map(|event| {
            let text = event["data"]["message"]["content"][0]["text"].as_str().unwrap();
            (text.to_owned(), event["turnId"].clone())
        })
        .collect()
}

#[test]
fn messages_wait_in_order_and_can_be_changed_and_taken_back() {
    let (_daemon, mut client, session, first) = busy();
    let start_now = json!({"sessionId": session, "input": "now"});
    assert_eq!(client.err("turn/start", &start_now), "session_busy");
    let queued: Vec<Value> =
        ["a", "b", "c"].iter().map(|text| start(&mut client, &session, text, "queue")["turnId"].clone()).collect();
    client.ok("queue/update", &json!({"turnId": queued[0], "input": "A"}));
    client.ok("queue/delete", &json!({"turnId": queued[1]}));
    assert_eq!(waiting(&mut client, &session), ["A", "c"]);
    assert_eq!(client.err("queue/delete", &json!({"turnId": queued[1]})), "not_found");
    assert_eq!(client.err("queue/update", &json!({"turnId": queued[0], "input": " "})), "invalid_params");
    assert_eq!(client.err("queue/update", &json!({"turnId": first, "input": "x"})), "not_found");
    allow_all(&mut client);
    let idle = client.ok("turn/wait", &json!({"sessionId": session, "until": "idle", "timeoutMs": 30_000}));
    assert_eq!(idle["status"], "idle");
    let history = client.history(&session);
    let expected = [("first", &first), ("A", &queued[0]), ("c", &queued[2])];
    assert_eq!(said(&history), expected.map(|(text, turn)| (text.to_owned(), turn.clone())));
    assert_eq!(client.ended(&session, &queued[2])["state"], "completed");
    assert_eq!(client.err("turn/wait", &json!({"sessionId": session, "turnId": queued[1]})), "not_found");
}

#[test]
fn a_message_that_steers_goes_in_behind_the_next_results_of_the_same_turn() {
    let (daemon, mut client, session, turn) = busy();
    let steered = start(&mut client, &session, "also that", "steer");
    assert_eq!((&steered["turnId"], &steered["state"]), (&turn, &json!("running")));
    assert_eq!(waiting(&mut client, &session), ["also that"]);
    allow_all(&mut client);
    assert_eq!(client.ended(&session, &turn)["state"], "completed");
    assert_eq!(waiting(&mut client, &session), Vec::<String>::new());
    let history = client.history(&session);
    assert_eq!(said(&history), [("first".to_owned(), turn.clone()), ("also that".to_owned(), turn)]);
    let roles: Vec<_> = history.iter().filter_map(|event| event["data"]["message"]["role"].as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user", "assistant"]);
    assert_eq!(daemon.home.read("ledger"), "ran\n");
}

#[test]
fn a_message_that_steers_no_more_border_is_answered_all_the_same() {
    let home = Home::new();
    home.script(&json!({"loop": true, "steps": [[{"text": "a"}, {"delayMs": 300}, {"text": "b"}], [{"text": "c"}]]}));
    let daemon = home.start();
    let mut client = daemon.connect();
    let session = client.session(&daemon.home.work());
    start(&mut client, &session, "first", "start");
    let mut watcher = daemon.connect();
    watcher.subscribe(&session, &json!({"kind": "snapshot"}));
    watcher.event_of("snapshot");
    start(&mut client, &session, "more", "steer");
    client.ok("turn/wait", &json!({"sessionId": session, "until": "idle", "timeoutMs": 30_000}));
    let history = client.history(&session);
    let texts: Vec<String> = said(&history).into_iter().map(|(text, _)| text).collect();
    assert_eq!(texts, ["first", "more"]);
    let answers = history.iter().filter(|event| event["data"]["message"]["role"] == "assistant").count();
    assert_eq!(answers, 2);
}

#[test]
fn what_waits_outlives_a_crash_and_runs_once_when_its_session_goes_on() {
    for way in ["continue", "discard", "message"] {
        let (mut daemon, mut client, session, turn) = busy();
        let wait = json!({"sessionId": session, "input": "later", "delivery": "queue", "clientMessageId": "m"});
        let receipt = client.ok("turn/start", &wait);
        daemon.kill();
        let daemon = daemon.restart();
        let mut client = daemon.connect();
        assert_eq!(client.ok("turn/start", &wait), receipt, "{way}: the same receipt");
        assert_eq!(waiting(&mut client, &session), ["later"], "{way}: it waits");
        if way == "message" {
            start(&mut client, &session, "now", "start");
        } else {
            client.ok("turn/resume", &json!({"turnId": turn, "action": way}));
        }
        e2e::eventually("the session to be idle", || {
            allow_all(&mut client);
            let idle = json!({"sessionId": session, "until": "idle", "timeoutMs": 100});
            client.call("turn/wait", &idle).ok()
        });
        let texts: Vec<String> = said(&client.history(&session)).into_iter().map(|(text, _)| text).collect();
        let expected = if way == "message" { vec!["first", "now", "later"] } else { vec!["first", "later"] };
        assert_eq!(texts, expected, "{way}");
        assert_eq!(client.ended(&session, &receipt["turnId"])["state"], "completed", "{way}");
    }
}

#[test]
fn an_interrupt_ends_one_turn_and_lets_the_next_begin() {
    let (_daemon, mut client, session, turn) = busy();
    let next = start(&mut client, &session, "next", "queue")["turnId"].clone();
    assert_eq!(client.ok("turn/interrupt", &json!({"sessionId": session}))["turnId"], turn);
    assert_eq!(client.ended(&session, &next)["state"], "completed");
}

#[test]
fn a_message_for_another_turn_than_the_one_that_runs_is_not_taken() {
    let (_daemon, mut client, session, turn) = busy();
    let other = uuid::Uuid::now_v7().to_string();
    let steer =
        |expected: &Value| json!({"sessionId": session, "input": "x", "delivery": "steer", "expectedTurnId": expected});
    assert_eq!(client.err("turn/start", &steer(&json!(other))), "precondition_failed");
    assert_eq!(client.ok("turn/start", &steer(&turn))["turnId"], turn);
}
