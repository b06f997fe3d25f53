//! Turns that a crash or a stop cut off: what waits, what goes on, and what is said of it.

use e2e::client::Client;
use e2e::daemon::{Daemon, Home};
use serde_json::{Value, json};

/// A home whose model asks for these calls at once and then says "after".
fn home(calls: &Value) -> Home {
    let home = Home::new();
    home.script(&json!({"loop": true, "steps": [[{"toolCalls": calls}], [{"text": "after"}]]}));
    home
}

fn bash(command: &str) -> Value {
    json!({"name": "bash", "input": {"description": "work", "command": command}})
}

/// Starts a turn and waits until it asks for consent.
fn asking(daemon: &Daemon, session: &str) -> (Value, Vec<Value>) {
    let mut client = daemon.connect();
    let turn = client.ok("turn/start", &json!({"sessionId": session, "input": "go"}))["turnId"].clone();
    client.ok("turn/wait", &json!({"sessionId": session, "until": "approval"}));
    (turn, pending(&mut client))
}

fn pending(client: &mut Client) -> Vec<Value> {
    client.ok("approval/list", &json!({}))["approvals"].as_array().unwrap().clone()
}

fn allow(client: &mut Client, approval: &Value) {
    client.ok("approval/respond", &json!({"approvalId": approval["id"], "decision": "allow"}));
}

fn crash(mut daemon: Daemon) -> Daemon {
    daemon.kill();
    daemon.restart()
}

fn status(client: &mut Client, session: &str) -> Value {
    client.ok("session/get", &json!({"sessionId": session}))["session"]["status"].clone()
}

/// The texts of all results, in order.
fn results(history: &[Value]) -> Vec<String> {
    let parts = history.iter().flat_map(|event| event["data"]["message"]["content"].as_array().into_iter().flatten());
    let parts = parts.filter(|part| part["type"] == "tool_result");
    parts.map(|part| part["content"].as_str().unwrap().to_owned()).collect()
}

/// Every turn that started has ended, once.
#[track_caller]
fn ended_once(history: &[Value]) {
    let turns = |kind: &str| -> Vec<Value> {
        let mut turns: Vec<_> =
            history.iter().filter(|event| event["type"] == kind).map(|event| event["turnId"].clone()).collect();
        turns.sort_by_key(Value::to_string);
        turns
    };
    assert!(!turns("turn.started").is_empty());
    assert_eq!(turns("turn.started"), turns("turn.ended"));
}

#[test]
fn a_request_for_consent_stays_open_over_crashes_and_its_answer_lets_the_turn_go_on() {
    let daemon = home(&json!([bash("echo ran >> ledger")])).start();
    let session = daemon.connect().session(&daemon.home.work());
    let (turn, before) = asking(&daemon, &session);
    let daemon = crash(crash(daemon));
    let mut client = daemon.connect();
    assert_eq!(pending(&mut client), before, "the same request, open again");
    assert_eq!(status(&mut client, &session), "interrupted");
    let waited = client.ok("turn/wait", &json!({"sessionId": session, "turnId": turn}));
    assert_eq!(waited["turn"]["state"], "recoverable");
    assert!(!daemon.home.work().join("ledger").exists(), "nothing ran unasked");
    allow(&mut client, &before[0]);
    assert_eq!(client.ended(&session, &turn)["state"], "completed");
    assert_eq!(daemon.home.read("ledger"), "ran\n");
    let history = client.history(&session);
    ended_once(&history);
    assert_eq!(history.iter().filter(|event| event["type"] == "approval.requested").count(), 1, "asked once");
}

#[test]
fn a_stop_parks_a_turn_that_waits_and_a_command_that_runs_may_end() {
    let daemon = home(&json!([bash("sleep 1; echo ran >> ledger"), bash("echo asked >> ledger")])).start();
    let session = daemon.connect().session(&daemon.home.work());
    let (turn, _) = asking(&daemon, &session);
    let asked = e2e::eventually("both requests", || {
        let asked = pending(&mut daemon.connect());
        (asked.len() == 2).then_some(asked)
    });
    let mut client = daemon.connect();
    client.subscribe(&session, &json!({"kind": "live"}));
    let slow = asked.iter().find(|asked| asked["detail"].as_str().unwrap().contains("sleep")).unwrap();
    allow(&mut daemon.connect(), slow);
    client.event_of("tool.started");
    let mut daemon = daemon;
    assert_eq!(daemon.terminate(), Some(0));
    assert_eq!(daemon.home.read("ledger"), "ran\n", "the command came to its end");
    let daemon = daemon.restart();
    let mut client = daemon.connect();
    let left = pending(&mut client);
    assert_eq!(left.len(), 1, "{left:?}");
    allow(&mut client, &left[0]);
    assert_eq!(client.ended(&session, &turn)["state"], "completed");
    assert_eq!(daemon.home.read("ledger"), "ran\nasked\n", "each ran once");
    ended_once(&client.history(&session));
}

#[test]
fn a_command_cut_off_by_a_crash_is_said_to_be_unknown_and_the_turn_goes_on_only_when_told() {
    let daemon = home(&json!([bash("(setsid sleep 60 &); echo so far; echo ran >> ledger; sleep 60")])).start();
    let session = daemon.connect().session(&daemon.home.work());
    let (turn, asked) = asking(&daemon, &session);
    let mut client = daemon.connect();
    allow(&mut client, &asked[0]);
    e2e::eventually("the command's effect", || daemon.home.work().join("ledger").exists().then_some(()));
    // What it printed is kept every other second.
    let kept = e2e::eventually("the output to be kept", || {
        let output = e2e::command("python3").args(["-c", KEPT]).arg(daemon.home.state().join("agentd.db")).output();
        output.ok().filter(|output| output.stdout == b"1\n")
    });
    assert!(kept.status.success());
    let daemon = crash(daemon);
    assert_eq!(e2e::running_in(&daemon.home.work()), 1, "the daemon alone: what the crash left was ended first");
    let mut client = daemon.connect();
    let finished = client.history(&session);
    let finished = finished.iter().rev().find(|event| event["type"] == "tool.finished").unwrap();
    assert_eq!(finished["data"]["code"], "UNKNOWN_OUTCOME", "{finished}");
    client.ok("turn/resume", &json!({"turnId": turn, "action": "continue"}));
    assert_eq!(client.ended(&session, &turn)["state"], "completed");
    let history = client.history(&session);
    let result = &results(&history)[0];
    for words in ["UNKNOWN_OUTCOME", "started ", "check before repeating", "so far"] {
        assert!(result.contains(words), "{words:?} in {result}");
    }
    assert_eq!(daemon.home.read("ledger"), "ran\n", "nothing was run again");
    ended_once(&history);
}

const KEPT: &str = "import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute(\"select count(*) from draft where text like '%so far%'\").fetchone()[0])";

#[test]
fn a_new_message_or_a_discard_or_an_interrupt_ends_what_was_cut_off() {
    for way in ["message", "discard", "interrupt", "cancel_turn"] {
        let daemon = home(&json!([bash("echo ran >> ledger")])).start();
        let session = daemon.connect().session(&daemon.home.work());
        let (turn, asked) = asking(&daemon, &session);
        let daemon = crash(daemon);
        let mut client = daemon.connect();
        match way {
            "message" => assert_eq!(client.turn(&session, "and now?")["state"], "completed"),
            "discard" => {
                let answer = client.ok("turn/resume", &json!({"turnId": turn, "action": "discard"}));
                assert_eq!(answer["state"], "interrupted");
            }
            "interrupt" => {
                assert_eq!(client.ok("turn/interrupt", &json!({"sessionId": session}))["state"], "interrupted");
            }
            _ => {
                let deny = json!({"approvalId": asked[0]["id"], "decision": "cancel_turn"});
                client.ok("approval/respond", &deny);
            }
        }
        assert_eq!(client.ended(&session, &turn)["state"], "interrupted", "{way}");
        assert_eq!(status(&mut client, &session), "idle", "{way}");
        assert_eq!(pending(&mut client), Vec::<Value>::new(), "{way}");
        assert!(!daemon.home.work().join("ledger").exists(), "{way}: nothing ran");
        let history = client.history(&session);
        ended_once(&history);
        assert!(results(&history)[0].contains("was not run"), "{way}");
        assert_eq!(client.err("turn/resume", &json!({"turnId": turn, "action": "continue"})), "invalid_state");
    }
}

#[test]
fn a_policy_that_lets_turns_go_on_waits_for_the_next_life() {
    let home = Home::new();
    home.script(&json!({"loop": true, "steps": [[{"delayMs": 30_000}, {"text": "late"}]]}));
    let mut daemon = home.start();
    let mut client = daemon.connect();
    let new = json!({"cwd": daemon.home.work(), "resumePolicy": "auto"});
    let session = client.ok("session/new", &new)["session"]["id"].as_str().unwrap().to_owned();
    client.ok("turn/start", &json!({"sessionId": session, "input": "go"}));
    let waits = json!({"sessionId": session, "input": "and then", "delivery": "queue"});
    assert_eq!(client.ok("turn/start", &waits)["state"], "queued");
    assert_eq!(daemon.terminate(), Some(0));
    let db = rusqlite::Connection::open(daemon.home.state().join("agentd.db")).unwrap();
    let count = |kind: &str| -> u32 {
        db.query_row("SELECT count(*) FROM event WHERE type = ?1", [kind], |row| row.get(0)).unwrap()
    };
    let counts = ["turn.started", "turn.recoverable", "turn.resumed", "turn.ended"].map(count);
    assert_eq!(counts, [1, 1, 0, 0], "it is left as it was, and nothing began on the way out");
}

#[test]
fn a_request_that_lapsed_while_nobody_ran_is_not_answered_any_more() {
    let home = home(&json!([bash("echo ran >> ledger")]));
    home.add_settings(&json!({"approvals": {"expireAfterSecs": 1}}));
    let daemon = home.start();
    let session = daemon.connect().session(&daemon.home.work());
    let (_, asked) = asking(&daemon, &session);
    let daemon = crash(crash(daemon));
    let mut client = daemon.connect();
    e2e::eventually("it lapses", || pending(&mut client).is_empty().then_some(()));
    let yes = json!({"approvalId": asked[0]["id"], "decision": "allow"});
    let error = client.call("approval/respond", &yes).unwrap_err();
    assert_eq!(error["data"]["kind"], "approval_resolved", "{error}");
    assert!(!daemon.home.work().join("ledger").exists());
}

#[test]
fn a_refusal_outlives_a_crash() {
    let daemon = home(&json!([bash("echo a >> ledger"), bash("echo b >> ledger")])).start();
    let session = daemon.connect().session(&daemon.home.work());
    let (turn, _) = asking(&daemon, &session);
    let asked = e2e::eventually("both requests", || {
        let asked = pending(&mut daemon.connect());
        (asked.len() == 2).then_some(asked)
    });
    let of = |command: &str| asked.iter().find(|it| it["detail"].as_str().unwrap().contains(command)).unwrap().clone();
    let mut client = daemon.connect();
    client
        .ok("approval/respond", &json!({"approvalId": of("echo a")["id"], "decision": "deny", "message": "not that"}));
    let daemon = crash(daemon);
    let mut client = daemon.connect();
    allow(&mut client, &of("echo b"));
    assert_eq!(client.ended(&session, &turn)["state"], "completed");
    assert_eq!(daemon.home.read("ledger"), "b\n");
    assert!(results(&client.history(&session))[0].contains("not that"));
}

#[test]
fn the_policy_of_a_session_decides_what_waits() {
    for (policy, expected) in [("ask", "recoverable"), ("never", "interrupted"), ("auto", "completed")] {
        let home = Home::new();
        home.script(&json!({"loop": true, "steps": [[{"text": "a"}, {"stallMs": 60_000}], [{"text": "whole"}]]}));
        let mut daemon = home.start();
        let mut client = daemon.connect();
        let new = json!({"cwd": daemon.home.work(), "resumePolicy": policy});
        let session = client.ok("session/new", &new)["session"]["id"].as_str().unwrap().to_owned();
        let turn = client.ok("turn/start", &json!({"sessionId": session, "input": "go"}))["turnId"].clone();
        client.subscribe(&session, &json!({"kind": "snapshot"}));
        client.event_of("snapshot");
        daemon.kill();
        // The model has had its stall: from now on it answers.
        daemon.home.script(&json!({"loop": true, "steps": [[{"text": "whole"}]]}));
        let daemon = daemon.restart();
        assert_eq!(daemon.connect().ended(&session, &turn)["state"], expected, "{policy}");
    }
}

#[test]
fn a_question_outlives_as_many_crashes_as_there_are_and_its_answer_reaches_the_model() {
    let question = json!({"question": "Which?", "header": "Choice", "multiSelect": false,
        "options": [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}]});
    let ask = json!({"name": "ask_user_question", "input": {"description": "ask", "questions": [question]}});
    let mut daemon = home(&json!([ask])).start();
    let session = daemon.connect().session(&daemon.home.work());
    let turn = daemon.connect().ok("turn/start", &json!({"sessionId": session, "input": "go"}))["turnId"].clone();
    let open = |daemon: &Daemon| {
        e2e::eventually("the question", || {
            let listed = daemon.connect().ok("question/list", &json!({}))["questions"].clone();
            listed.as_array().filter(|listed| listed.len() == 1).map(|listed| listed[0]["id"].clone())
        })
    };
    let id = open(&daemon);
    for _ in 0..4 {
        daemon = crash(daemon);
        daemon.connect().ok("turn/resume", &json!({"turnId": turn, "action": "continue"}));
        let wait = json!({"sessionId": session, "until": "approval", "timeoutMs": 5000});
        assert_eq!(daemon.connect().ok("turn/wait", &wait)["status"], "waiting_answer");
        assert_eq!(open(&daemon), id);
    }
    assert_eq!(daemon.terminate(), Some(0), "a question holds no stop up");
    let daemon = daemon.restart();
    let mut client = daemon.connect();
    client.ok("question/respond", &json!({"questionId": id, "answers": [{"selected": ["B"]}]}));
    assert_eq!(client.ended(&session, &turn)["state"], "completed");
    let result = &results(&client.history(&session))[0];
    assert!(result.contains('B') && !result.contains("interrupted"), "{result}");
}

#[test]
fn a_turn_that_a_person_stopped_is_interrupted_also_when_the_daemon_stops_meanwhile() {
    let daemon = home(&json!([bash("trap '' TERM; echo on >> ledger; sleep 60; sleep 60")])).start();
    let session = daemon.connect().session(&daemon.home.work());
    let (turn, asked) = asking(&daemon, &session);
    allow(&mut daemon.connect(), &asked[0]);
    e2e::eventually("it runs", || daemon.home.work().join("ledger").exists().then_some(()));
    let mut stopper = daemon.connect();
    stopper.request("turn/interrupt", &json!({"sessionId": session}));
    let mut daemon = daemon;
    daemon.terminate();
    let daemon = daemon.restart();
    let mut client = daemon.connect();
    assert_eq!(client.ended(&session, &turn)["state"], "interrupted");
    ended_once(&client.history(&session));
}
