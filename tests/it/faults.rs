//! What others do to the database while turns run: lock it, read it slowly, write to one session at once.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use e2e::client::Client;
use e2e::daemon::{Daemon, Home};
use serde_json::{Value, json};

/// A home whose model runs a command and then says "after", in every turn.
fn home_that_works(turns: usize) -> Home {
    let home = Home::new();
    let call = json!({"name": "bash", "input": {"description": "work", "command": "echo ran >> ledger"}});
    let round = [json!([{"toolCalls": [call]}]), json!([{"text": "after"}])];
    let steps: Vec<Value> = round.iter().cycle().take(2 * turns).cloned().collect();
    home.script(&json!({"steps": steps}));
    home.add_settings(&json!({"permissions": {"allow": ["bash"]}}));
    home
}

/// Hands a message in until it is taken: what refuses it says that it may be tried again.
fn hand_in(client: &mut Client, session: &str, key: &str) -> Value {
    let start = json!({"sessionId": session, "input": "go", "clientMessageId": key});
    e2e::eventually("the message is taken", || match client.call("turn/start", &start) {
        Ok(taken) => Some(taken["turnId"].clone()),
        Err(error) => {
            assert_eq!(
                (&error["data"]["retryable"], &error["data"]["cause"]),
                (&json!(true), &json!("busy")),
                "{error}"
            );
            None
        }
    })
}

/// Locks the database for so long, and again as soon as anybody else had a chance, until its input ends.
fn locker(daemon: &Daemon, seconds: f32) -> std::process::Child {
    let locks = "import sqlite3, sys, time, select\n\
        db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)\n\
        while not select.select([sys.stdin], [], [], 0.3)[0]:\n\
        \x20   db.execute('BEGIN IMMEDIATE')\n\
        \x20   print('locked', flush=True)\n\
        \x20   time.sleep(float(sys.argv[2]))\n\
        \x20   db.execute('COMMIT')";
    let mut locker = e2e::command("python3");
    locker.args(["-c", locks]).arg(daemon.home.state().join("agentd.db")).arg(seconds.to_string());
    let mut locker = locker.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    BufReader::new(locker.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
    locker
}

#[test]
fn a_program_that_locks_the_database_again_and_again_only_slows_turns_down() {
    const TURNS: usize = 5;
    // The second is longer than any write waits by itself.
    for (seconds, sessions) in [(0.5, 8), (6.0, 2)] {
        let daemon = home_that_works(TURNS).start();
        let mut client = daemon.connect();
        let all: Vec<String> = (0..sessions).map(|_| client.session(&daemon.home.work())).collect();
        let mut locker = locker(&daemon, seconds);
        std::thread::scope(|scope| {
            for session in &all {
                let daemon = &daemon;
                scope.spawn(move || {
                    let mut client = daemon.connect();
                    let turns = if seconds > 5.0 { 1 } else { TURNS };
                    for turn in 0..turns {
                        let turn = hand_in(&mut client, session, &turn.to_string());
                        assert_eq!(client.ended(session, &turn)["state"], "completed");
                    }
                });
            }
        });
        drop(locker.stdin.take());
        locker.wait().unwrap();
        let turns = if seconds > 5.0 { 1 } else { TURNS };
        assert_eq!(daemon.home.read("ledger").lines().count(), sessions * turns, "each command ran once");
        for session in &all {
            let history = client.history(session);
            let count = |kind: &str| history.iter().filter(|event| event["type"] == kind).count();
            assert_eq!(["turn.started", "tool.finished", "turn.ended"].map(count), [turns; 3]);
            assert!(!history.iter().any(|event| event["type"] == "turn.recoverable"));
        }
        assert!(daemon.home.ctl(&["doctor"]).status.success());
    }
}

#[test]
fn the_log_of_writes_stays_bounded_beside_a_client_that_reads_slowly() {
    let home = Home::new();
    home.script(&json!({"loop": true, "steps": [[{"text": "said"}]]}));
    let daemon = home.start();
    let mut client = daemon.connect();
    let session = client.session(&daemon.home.work());
    // It asks for all there is and all there will be, and reads none of it.
    let mut slow = daemon.connect();
    let epoch = client.ok("daemon/status", &json!({}))["storeEpoch"].as_str().unwrap().to_owned();
    slow.subscribe(&session, &json!({"kind": "cursor", "cursor": format!("{epoch}.0")}));
    let long = "x".repeat(1 << 20);
    let mut most = 0;
    for _ in 0..48 {
        assert_eq!(client.turn(&session, &long)["state"], "completed");
        let status = client.ok("daemon/status", &json!({}));
        most = most.max(status["store"]["walBytes"].as_u64().unwrap());
    }
    let database = std::fs::metadata(daemon.home.state().join("agentd.db")).unwrap().len();
    assert!(database > 64 << 20, "enough was written to tell: {database}");
    assert!(most < 64 << 20, "the WAL grew to {most}");
}

#[test]
fn two_who_send_at_once_both_get_their_turn_in_an_order_that_both_see() {
    let home = Home::new();
    home.script(&json!({"loop": true, "steps": [[{"delayMs": 20}, {"text": "said"}]]}));
    let daemon = home.start();
    let session = daemon.connect().session(&daemon.home.work());
    let mut watchers: Vec<Client> = (0..2).map(|_| daemon.connect()).collect();
    watchers.iter_mut().for_each(|watcher| drop(watcher.subscribe(&session, &json!({"kind": "live"}))));
    let gate = std::sync::Barrier::new(2);
    for round in 0..10 {
        let states: Vec<Value> = std::thread::scope(|scope| {
            let send = |name: &'static str| {
                let (daemon, session, gate) = (&daemon, &session, &gate);
                scope.spawn(move || {
                    let mut client = daemon.connect();
                    gate.wait();
                    let start = json!({"sessionId": session, "input": format!("{name} {round}"), "delivery": "queue"});
                    client.ok("turn/start", &start)["state"].clone()
                })
            };
            let both = [send("A"), send("B")];
            both.map(|send| send.join().unwrap()).into()
        });
        let mut sorted: Vec<&str> = states.iter().filter_map(Value::as_str).collect();
        sorted.sort_unstable();
        assert_eq!(sorted, ["queued", "running"], "round {round}: one runs and one waits");
        daemon.connect().ok("turn/wait", &json!({"sessionId": session, "until": "idle"}));
    }
    let said = |events: Vec<Value>| -> Vec<String> {
        let users = events.into_iter().filter(|event| event["data"]["message"]["role"] == "user");
        users.map(|event| event["data"]["message"]["content"][0]["text"].as_str().unwrap().to_owned()).collect()
    };
    daemon.connect().ok("session/update", &json!({"sessionId": session, "title": "over"}));
    let is_over = |event: &Value| event["data"]["session"]["title"] == "over";
    let seen: Vec<_> = watchers.iter_mut().map(|watcher| said(watcher.events_until(is_over))).collect();
    assert_eq!(seen[0].len(), 20);
    assert_eq!(seen[0], seen[1], "both saw the same, in the same order");
    assert_eq!(seen[0], said(daemon.connect().history(&session)));
}
