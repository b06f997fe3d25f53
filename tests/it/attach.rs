//! Several terminals on one session, and what a subscriber sees from wherever it begins.

use e2e::daemon::{Daemon, Home};
use e2e::terminal::Terminal;
use serde_json::{Value, json};

/// The events that have a place in the journal.
fn durable(events: &[Value]) -> Vec<Value> {
    events.iter().filter(|event| event["seq"].is_number()).cloned().collect()
}

#[test]
fn a_second_terminal_sees_the_whole_text_so_far_and_answers_for_the_first() {
    let home = Home::new();
    home.script(&json!({"steps": [
        [{"text": "ALPHA first words. "}, {"repeat": {"text": "word ", "count": 60, "delayMs": 50}}, {"text": "OMEGA\n"},
         {"toolCalls": [{"name": "bash", "input": {"description": "make a file", "command": "touch made"}}]}],
        [{"text": "All is DONE now.\n"}],
    ]}));
    let daemon = home.start();
    let mut first = Terminal::start(&daemon.home, &["chat"]);
    first.see("offline");
    first.type_in("go");
    first.see("ALPHA");
    let mut second = Terminal::start(&daemon.home, &["attach", "@last"]);
    // In mid-answer: what was said before it came is there, and what is said goes on.
    second.see("ALPHA first words.");
    first.see("touch made");
    second.see("OMEGA").see("touch made").see("yes, this once").see("? ").type_in("y");
    first.see("DONE");
    second.see("DONE");
    first.see("── done");
    second.see("── done");
    assert!(daemon.home.work().join("made").exists());
    second.ctrl('d').end();
    first.ctrl('d').end();
}

#[test]
fn replay_from_any_cursor_is_what_a_live_subscriber_saw() {
    let daemon = Daemon::start();
    let mut live = daemon.connect();
    let session = live.session(&daemon.home.work());
    daemon.home.write("f.txt", "x\n");
    live.subscribe(&session, &json!({"kind": "live"}));
    let mut driver = daemon.connect();
    // Eleven events or so a turn.
    let mut seen: Vec<Value> = Vec::new();
    while seen.last().is_none_or(|event| event["seq"].as_u64().unwrap() < 1000) {
        driver.turn(&session, "read f.txt");
        let idle = |event: &Value| event["type"] == "session.updated" && event["data"]["session"]["status"] == "idle";
        seen.extend(durable(&live.events_until(idle)));
    }
    let last = seen.last().unwrap()["seq"].as_u64().unwrap();
    let history = driver.history(&session);
    assert_eq!(history.len() as u64, last, "gapless from 1");
    assert!(history.iter().zip(1..).all(|(event, seq)| event["seq"] == seq));
    assert_eq!(history[1..], seen[..], "the live subscriber saw all but the session's creation");
    for from in [1, 2, 17, 500, last - 1] {
        let mut replay = daemon.connect();
        replay.subscribe(&session, &json!({"kind": "cursor", "cursor": history[from as usize - 1]["cursor"]}));
        let events = replay.events_until(|event| event["type"] == "stream.synced");
        assert_eq!(events.last().unwrap()["data"]["seq"], last);
        assert_eq!(durable(&events), history[from as usize..], "from {from}");
    }
}

#[test]
fn replayed_bytes_are_the_bytes_that_were_sent_live() {
    let daemon = Daemon::start();
    daemon.home.write("f.txt", "x\n");
    let mut live = daemon.connect();
    let session = live.session(&daemon.home.work());
    let event_of = |line: &str| line.split_once("\"result\":").unwrap().1.strip_suffix("}}").unwrap().to_owned();
    let read = |client: &mut e2e::client::Client, until: &str| {
        let mut lines = Vec::new();
        loop {
            let line = client.line().unwrap();
            if line.contains(until) {
                return lines;
            }
            if line.contains("\"seq\":") && line.contains("\"cursor\":") {
                lines.push(event_of(&line));
            }
        }
    };
    live.subscribe(&session, &json!({"kind": "live"}));
    daemon.connect().turn(&session, "read f.txt");
    daemon.connect().ok("session/update", &json!({"sessionId": session, "title": "the-end-marker"}));
    let sent = read(&mut live, "the-end-marker");
    let mut replay = daemon.connect();
    let first: Value = serde_json::from_str(&sent[0]).unwrap();
    let (epoch, _) = first["cursor"].as_str().unwrap().rsplit_once('.').unwrap();
    replay.subscribe(&session, &json!({"kind": "cursor", "cursor": format!("{epoch}.1")}));
    assert_eq!(read(&mut replay, "the-end-marker"), sent);
}

#[test]
fn a_cursor_of_another_database_is_refused() {
    let daemon = Daemon::start();
    let mut client = daemon.connect();
    let session = client.session(&daemon.home.work());
    let subscribe = |cursor: &str| json!({"sessionId": session, "from": {"kind": "cursor", "cursor": cursor}});
    assert_eq!(client.err("session/subscribe", &subscribe("0195-other-epoch.1")), "cursor_foreign");
    assert_eq!(client.err("session/subscribe", &subscribe("nonsense")), "cursor_foreign");
}

#[test]
fn a_fast_result_is_published_before_a_slow_call_ends_and_both_stand_in_call_order() {
    let home = Home::new();
    home.script(&json!({"steps": [
        [{"toolCalls": [
            {"name": "bash", "input": {"description": "slow", "command": "sleep 2; echo slow"}},
            {"name": "bash", "input": {"description": "fast", "command": "echo fast"}},
        ]}],
        [{"text": "done"}],
    ]}));
    let daemon = home.start();
    let mut client = daemon.connect();
    let session = client.session(&daemon.home.work());
    client.subscribe(&session, &json!({"kind": "live"}));
    client.ok("turn/start", &json!({"sessionId": session, "input": "go"}));
    let mut answers = daemon.connect();
    for _ in 0..2 {
        let approval = client.event_of("approval.requested")["data"]["approval"]["id"].clone();
        answers.ok("approval/respond", &json!({"approvalId": approval, "decision": "allow"}));
    }
    let events = client.events_until(|event| event["type"] == "turn.ended");
    let finished: Vec<&Value> = events.iter().filter(|event| event["type"] == "tool.finished").collect();
    let history = client.history(&session);
    let message = |role: &str| {
        &history.iter().find(|event| event["data"]["message"]["role"] == role).unwrap()["data"]["message"]["content"]
    };
    let (uses, results) = (message("assistant"), message("tool"));
    assert_eq!(finished[0]["data"]["toolUseId"], uses[1]["id"], "the fast one is told first");
    let slow_ms = finished[1]["data"]["durationMs"].as_u64().unwrap();
    assert!(slow_ms >= 2000, "the slow one took {slow_ms} ms");
    assert_eq!(results[0]["toolUseId"], uses[0]["id"]);
    assert_eq!(results[1]["toolUseId"], uses[1]["id"]);
    assert!(results[0]["content"].as_str().unwrap().contains("slow"));
}

#[test]
fn whoever_follows_the_daemon_sees_turns_requests_and_who_is_attached() {
    let daemon = Daemon::start();
    let mut overview = daemon.connect();
    overview.ok("daemon/subscribe", &json!({}));
    let mut client = daemon.connect();
    let session = client.session(&daemon.home.work());
    client.subscribe(&session, &json!({"kind": "live"}));
    let attached =
        |event: &Value, count: u32| event["type"] == "session.attached" && event["data"]["attached"] == count;
    overview.events_until(|event| attached(event, 1));
    client.ok("turn/start", &json!({"sessionId": session, "input": "run echo hi"}));
    let events = overview.events_until(|event| event["type"] == "approval.requested");
    assert!(events.iter().any(|event| event["type"] == "turn.started"), "{events:?}");
    drop(client);
    overview.events_until(|event| attached(event, 0));
}

#[test]
fn sessions_that_nobody_uses_leave_memory_and_come_back_when_asked() {
    let home = Home::new();
    home.settings(&json!({"limits": {"sessionsInMemory": 3}}));
    let daemon = home.start();
    let mut client = daemon.connect();
    let watched = client.session(&daemon.home.work());
    client.turn(&watched, "hello");
    let mut watcher = daemon.connect();
    watcher.subscribe(&watched, &json!({"kind": "live"}));
    let asking = client.session(&daemon.home.work());
    client.ok("turn/start", &json!({"sessionId": asking, "input": "run echo hi"}));
    client.ok("turn/wait", &json!({"sessionId": asking, "until": "approval"}));
    let others: Vec<String> = (0..12).map(|_| client.session(&daemon.home.work())).collect();
    for session in &others {
        client.turn(session, "hello");
    }
    let in_memory = client.ok("daemon/status", &json!({}))["sessions"]["inMemory"].as_u64().unwrap();
    assert!(in_memory <= 4, "{in_memory} in memory");
    // What was let go of goes on where it was; what is watched or asks was never let go of.
    assert_eq!(client.turn(&others[0], "again")["state"], "completed");
    client.turn(&watched, "hello");
    watcher.event_of("turn.ended");
    let waits = client.ok("session/get", &json!({"sessionId": asking}));
    assert_eq!(waits["session"]["status"], "waiting_approval");
}
