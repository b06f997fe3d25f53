//! Consent: asked once, answered from anywhere, the first valid answer wins.

use e2e::daemon::{Daemon, Home};
use serde_json::{Value, json};

/// A daemon with a session whose turn waits for consent to a command.
fn asking(command: &str) -> (Daemon, String, Value, Value) {
    let daemon = Home::new().start();
    let mut client = daemon.connect();
    let session = client.session(&daemon.home.work());
    client.subscribe(&session, &json!({"kind": "live"}));
    let turn =
        client.ok("turn/start", &json!({"sessionId": session, "input": format!("run {command}")}))["turnId"].clone();
    let approval = client.event_of("approval.requested")["data"]["approval"].clone();
    (daemon, session, turn, approval)
}

#[test]
fn nothing_runs_before_somebody_said_yes_and_another_connection_may_say_it() {
    let (daemon, session, turn, approval) = asking("touch made");
    assert!(approval["detail"].as_str().unwrap().contains("touch made"), "{approval}");
    assert_eq!(approval["state"], "pending");
    let mut other = daemon.connect();
    assert_eq!(other.ok("session/get", &json!({"sessionId": session}))["session"]["status"], "waiting_approval");
    assert_eq!(other.ok("approval/list", &json!({}))["approvals"][0]["id"], approval["id"]);
    assert!(!daemon.home.work().join("made").exists());
    let settled = other.ok("approval/respond", &json!({"approvalId": approval["id"], "decision": "allow"}));
    assert_eq!(settled["approval"]["state"], "allowed");
    assert_eq!(other.ended(&session, &turn)["state"], "completed");
    assert!(daemon.home.work().join("made").exists());
}

#[test]
fn a_late_answer_is_told_who_won() {
    let (daemon, session, turn, approval) = asking("touch made");
    let answer = json!({"approvalId": approval["id"], "decision": "deny", "message": "not now"});
    let mut first = daemon.connect();
    first.ok("initialize", &json!({"client": {"name": "first"}}));
    first.ok("approval/respond", &answer);
    let error = daemon.connect().call("approval/respond", &answer).unwrap_err();
    assert_eq!(error["data"]["kind"], "approval_resolved");
    assert_eq!(error["data"]["resolution"]["by"]["client"], "first");
    assert_eq!(first.ended(&session, &turn)["state"], "completed", "a no concerns that call only");
    assert!(!daemon.home.work().join("made").exists());
    let result = first.history(&session).into_iter().find(|event| event["data"]["message"]["role"] == "tool").unwrap();
    assert!(result.to_string().contains("not now"), "the reason reaches the model: {result}");
}

#[test]
fn an_invalid_answer_is_an_error_and_consumes_nothing() {
    let (daemon, _, _, approval) = asking("touch made");
    let mut client = daemon.connect();
    let id = &approval["id"];
    for (answer, kind) in [
        (json!({"approvalId": id, "decision": "allow", "scope": "user"}), "scope_forbidden"),
        (json!({"approvalId": id, "decision": "allow", "scope": "session", "rule": "bash(*)"}), "scope_forbidden"),
        (json!({"approvalId": id, "decision": "allow", "revision": 99}), "precondition_failed"),
        (json!({"approvalId": id, "decision": "perhaps"}), "invalid_params"),
    ] {
        assert_eq!(client.err("approval/respond", &answer), kind, "{answer}");
    }
    let mut observer = daemon.connect();
    observer.ok("initialize", &json!({"client": {"name": "o"}, "capabilities": {"approvals": "observe"}}));
    assert_eq!(
        observer.err("approval/respond", &json!({"approvalId": id, "decision": "allow"})),
        "capability_required"
    );
    assert_eq!(client.ok("approval/get", &json!({"approvalId": id}))["approval"]["state"], "pending");
    assert!(!daemon.home.work().join("made").exists());
}

#[test]
fn a_yes_for_the_session_covers_the_same_call_and_no_other() {
    let (daemon, session, turn, approval) = asking("touch made");
    let mut client = daemon.connect();
    let options = approval["options"].as_array().unwrap();
    let option = options.iter().find(|option| option["scope"] == "session").expect("a rule for the session");
    let answer = json!({"approvalId": approval["id"], "decision": "allow", "scope": "session", "rule": option["rule"]});
    client.ok("approval/respond", &answer);
    client.ended(&session, &turn);
    assert_eq!(client.turn(&session, "run touch made")["state"], "completed", "the same command runs unasked");
    let other = client.ok("turn/start", &json!({"sessionId": session, "input": "run touch other"}))["turnId"].clone();
    let waited = client
        .ok("turn/wait", &json!({"sessionId": session, "turnId": other, "until": "approval", "timeoutMs": 30_000}));
    assert_eq!(waited["status"], "waiting_approval", "another command asks");
}

#[test]
fn an_interrupt_takes_the_request_back_and_an_answer_after_it_does_nothing() {
    let (daemon, session, turn, approval) = asking("touch made");
    let mut client = daemon.connect();
    let over = client.ok("turn/interrupt", &json!({"sessionId": session}));
    assert_eq!((&over["turnId"], &over["state"]), (&turn, &json!("interrupted")));
    assert_eq!(
        client.err("approval/respond", &json!({"approvalId": approval["id"], "decision": "allow"})),
        "approval_resolved"
    );
    assert!(!daemon.home.work().join("made").exists());
    let history = client.history(&session);
    let uses =
        history.iter().filter(|event| event["data"]["message"]["content"].to_string().contains("\"tool_use\"")).count();
    let results = history.iter().filter(|event| event["data"]["message"]["role"] == "tool").count();
    assert_eq!((uses, results), (1, 1), "the open call has its result");
    assert_eq!(client.turn(&session, "hello")["state"], "completed", "the session goes on");
}

#[test]
fn a_policy_that_waits_longer_than_time_itself_only_waits() {
    let daemon = Home::new().start();
    let mut client = daemon.connect();
    let policy = format!("deny_after:{}", u64::MAX);
    let shown = client.ok("session/new", &json!({"cwd": daemon.home.work(), "noClientPolicy": policy}));
    let session = shown["session"]["id"].as_str().unwrap();
    client.ok("turn/start", &json!({"sessionId": session, "input": "run touch made"}));
    client.ok("turn/wait", &json!({"sessionId": session, "until": "approval"}));
    assert_eq!(client.ok("turn/interrupt", &json!({"sessionId": session}))["state"], "interrupted");
}

#[test]
fn bypass_lasts_as_long_as_the_daemon_and_no_longer() {
    let daemon = Home::new().start();
    let mut client = daemon.connect();
    let shown = client.ok("session/new", &json!({"cwd": daemon.home.work(), "mode": "bypass"}));
    let session = shown["session"]["id"].as_str().unwrap().to_owned();
    assert_eq!(client.turn(&session, "run touch made")["state"], "completed");
    assert!(daemon.home.work().join("made").exists(), "it ran unasked");
    let daemon = daemon.restart();
    let shown = daemon.connect().ok("session/get", &json!({"sessionId": session}));
    assert_eq!(shown["session"]["mode"], "ask");
}

#[test]
fn a_question_is_answered_from_another_connection() {
    let home = Home::new();
    let question = json!({"question": "Which?", "header": "Choice", "multiSelect": false,
        "options": [{"label": "A", "description": "first"}, {"label": "B", "description": "second"}]});
    home.script(&json!({"steps": [
        [{"toolCalls": [{"name": "ask_user_question", "input": {"description": "choose", "questions": [question]}}]}],
        [{"text": "thanks"}],
    ]}));
    let daemon = home.start();
    let mut client = daemon.connect();
    let session = client.session(&daemon.home.work());
    let turn = client.ok("turn/start", &json!({"sessionId": session, "input": "go"}))["turnId"].clone();
    client.ok("turn/wait", &json!({"sessionId": session, "until": "approval"}));
    let mut other = daemon.connect();
    let listed = other.ok("question/list", &json!({"sessionId": session}))["questions"][0].clone();
    let answer = |selected: &str| json!({"questionId": listed["id"], "answers": [{"selected": [selected]}]});
    assert_eq!(other.err("question/respond", &answer("C")), "invalid_params");
    assert_eq!(other.ok("question/respond", &answer("B"))["question"]["state"], "answered");
    assert_eq!(client.err("question/respond", &answer("A")), "approval_resolved");
    assert_eq!(client.ended(&session, &turn)["state"], "completed");
    let history = client.history(&session);
    let result = history.iter().find(|event| event["data"]["message"]["role"] == "tool").unwrap();
    assert!(result["data"]["message"]["content"][0]["content"].as_str().unwrap().contains('B'), "{result}");
}

#[test]
fn with_nobody_attached_the_policy_denies_and_never_allows() {
    let daemon = Home::new().start();
    let mut client = daemon.connect();
    let new = json!({"cwd": daemon.home.work(), "noClientPolicy": "deny"});
    let session = client.ok("session/new", &new)["session"]["id"].as_str().unwrap().to_owned();
    assert_eq!(client.turn(&session, "run touch made")["state"], "completed");
    assert!(!daemon.home.work().join("made").exists());
    let history = client.history(&session);
    let resolved = history.iter().find(|event| event["type"] == "approval.resolved").unwrap();
    assert_eq!(resolved["data"]["approval"]["state"], "denied");
    assert!(resolved["data"]["approval"]["resolution"]["by"]["policy"].is_string(), "{resolved}");
}

#[test]
fn the_ledger_has_every_decision_with_who_or_what_made_it_and_outlives_a_crash() {
    let home = Home::new();
    let call = |command: &str| json!({"name": "bash", "input": {"description": "work", "command": command}});
    let calls = json!([call("echo ruled"), call("echo forbidden"), call("echo asked")]);
    home.script(&json!({"loop": true, "steps": [[{"toolCalls": calls}], [{"text": "after"}]]}));
    home.add_settings(&json!({"permissions": {"allow": ["bash(echo ruled)"], "deny": ["bash(echo forbidden)"]}}));
    let mut daemon = home.start();
    let mut client = daemon.connect();
    client.ok("initialize", &json!({"client": {"name": "judge"}}));
    let session = client.session(&daemon.home.work());
    let turn = client.ok("turn/start", &json!({"sessionId": session, "input": "go"}))["turnId"].clone();
    client.ok("turn/wait", &json!({"sessionId": session, "until": "approval"}));
    let asked = client.ok("approval/list", &json!({}))["approvals"][0].clone();
    client.ok("approval/respond", &json!({"approvalId": asked["id"], "decision": "allow"}));
    client.ended(&session, &turn);
    daemon.kill();
    let daemon = daemon.restart();
    let mut client = daemon.connect();
    let whole = client.ok("approval/history", &json!({}))["decisions"].clone();
    let of = |summary: &str| {
        let mut all = whole.as_array().unwrap().iter();
        all.find(|record| record.to_string().contains(summary))
            .unwrap_or_else(|| panic!("{summary} in {whole}"))
            .clone()
    };
    assert_eq!(whole.as_array().unwrap().len(), 3, "{whole}");
    assert_eq!(of("echo ruled")["ground"], json!({"rule": "bash(echo ruled)"}));
    assert_eq!(of("echo forbidden")["outcome"], "denied");
    assert_eq!(of("echo forbidden")["ground"], json!({"rule": "bash(echo forbidden)"}));
    let answered = of("echo asked");
    assert_eq!(answered["approval"]["resolution"]["by"]["client"], "judge");
    assert!(answered["approval"]["resolution"]["by"]["uid"].is_number(), "{answered}");
    let history = client.history(&session);
    let started = history.iter().find(|event| event["data"]["toolUseId"] == asked["toolUseId"]);
    let started = started.filter(|event| event["type"] == "tool.started").or_else(|| {
        history.iter().find(|it| it["type"] == "tool.started" && it["data"]["toolUseId"] == asked["toolUseId"])
    });
    assert_eq!(started.unwrap()["data"]["allowedBy"], json!({"approvalId": asked["id"]}));
    // Page by page it is the same, of one session and of all.
    for scope in [json!({}), json!({"sessionId": session})] {
        let (mut paged, mut ask) = (Vec::new(), scope.clone());
        ask["limit"] = json!(1);
        loop {
            let page = client.ok("approval/history", &ask);
            paged.extend(page["decisions"].as_array().unwrap().clone());
            if page["nextCursor"].is_null() {
                break;
            }
            ask["cursor"] = page["nextCursor"].clone();
        }
        assert_eq!(json!(paged), whole, "{scope}");
    }
    assert_eq!(client.err("approval/history", &json!({"cursor": "x"})), "invalid_params");
    let shown = daemon.home.ctl(&["approvals", "--history"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    for words in ["allowed by judge (pid ", "denied by the rule bash(echo forbidden)", "(echo asked"] {
        assert!(shown.contains(words), "{words:?} in {shown}");
    }
}

#[test]
fn a_request_expires_by_the_daemons_clock_and_the_turn_goes_on_without_that_call() {
    let home = Home::new();
    home.settings(&json!({"model": "offline/rules", "approvals": {"expireAfterSecs": 1}}));
    let daemon = home.start();
    let mut client = daemon.connect();
    let session = client.session(&daemon.home.work());
    let turn = client.ok("turn/start", &json!({"sessionId": session, "input": "run touch made"}))["turnId"].clone();
    assert_eq!(client.ended(&session, &turn)["state"], "completed");
    assert!(!daemon.home.work().join("made").exists());
    let record = client.ok("approval/history", &json!({}))["decisions"][0].clone();
    assert_eq!(record["outcome"], "expired");
    assert!(record["approval"]["expiresAt"].is_string(), "{record}");
}

/// A daemon with ten sessions, each of which waits for consent to a command of its own.
fn ten_asking() -> (Daemon, Vec<String>) {
    let home = Home::new();
    let call = json!({"name": "bash", "input": {"description": "work", "command": "echo $$ >> ledger"}});
    home.script(&json!({"loop": true, "steps": [[{"toolCalls": [call]}], [{"text": "after"}]]}));
    let daemon = home.start();
    let mut client = daemon.connect();
    let sessions: Vec<String> = (0..10).map(|_| client.session(&daemon.home.work())).collect();
    for session in &sessions {
        client.ok("turn/start", &json!({"sessionId": session, "input": "go"}));
        client.ok("turn/wait", &json!({"sessionId": session, "until": "approval"}));
    }
    (daemon, sessions)
}

#[test]
fn ten_open_requests_outlive_twenty_crashes_and_every_client_sees_the_same_ten() {
    let (mut daemon, sessions) = ten_asking();
    let pending = |daemon: &Daemon| daemon.connect().ok("approval/list", &json!({}))["approvals"].clone();
    let before = pending(&daemon);
    assert_eq!(before.as_array().unwrap().len(), 10);
    for crash in 0..20 {
        daemon.kill();
        daemon = daemon.restart();
        for client in 0..3 {
            assert_eq!(pending(&daemon), before, "crash {crash}, client {client}");
        }
        // Somebody who attaches sees its session's request too, and looking answers nothing.
        let mut client = daemon.connect();
        let session = &sessions[crash % 10];
        client.subscribe(session, &json!({"kind": "snapshot"}));
        let asked = client.event_of("approval.requested")["data"]["approval"].clone();
        assert!(before.as_array().unwrap().contains(&asked), "crash {crash}: {asked}");
    }
    assert!(!daemon.home.work().join("ledger").exists(), "nothing ran");
    let mut client = daemon.connect();
    for approval in before.as_array().unwrap() {
        client.ok("approval/respond", &json!({"approvalId": approval["id"], "decision": "allow"}));
    }
    for session in &sessions {
        client.ok("turn/wait", &json!({"sessionId": session, "until": "idle"}));
    }
    assert_eq!(daemon.home.read("ledger").lines().count(), 10, "each ran once");
}

#[test]
fn of_eight_that_answer_at_once_one_wins_and_seven_are_told_who_a_hundred_times() {
    let home = Home::new();
    let call = json!({"name": "bash", "input": {"description": "work", "command": "echo ran >> ledger"}});
    let round = [json!([{"toolCalls": [call]}]), json!([{"text": "after"}])];
    let steps: Vec<Value> = round.iter().cycle().take(200).cloned().collect();
    home.script(&json!({"steps": steps}));
    let daemon = home.start();
    let mut owner = daemon.connect();
    let session = owner.session(&daemon.home.work());
    let mut clients: Vec<_> = (0..8).map(|_| daemon.connect()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.ok("initialize", &json!({"client": {"name": format!("client-{number}")}}));
    }
    let mut allowed = 0;
    for round in 0..100 {
        let turn = owner.ok("turn/start", &json!({"sessionId": session, "input": "go"}))["turnId"].clone();
        owner.ok("turn/wait", &json!({"sessionId": session, "until": "approval"}));
        let approval = owner.ok("approval/list", &json!({}))["approvals"][0]["id"].clone();
        let gate = std::sync::Barrier::new(clients.len());
        let answers: Vec<_> = std::thread::scope(|scope| {
            let runs: Vec<_> = clients
                .iter_mut()
                .enumerate()
                .map(|(number, client)| {
                    let decision = if number % 2 == 0 { "allow" } else { "deny" };
                    let answer = json!({"approvalId": approval, "decision": decision});
                    let gate = &gate;
                    scope.spawn(move || {
                        gate.wait();
                        client.call("approval/respond", &answer)
                    })
                })
                .collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        });
        let winners: Vec<_> = answers.iter().enumerate().filter(|(_, answer)| answer.is_ok()).collect();
        assert_eq!(winners.len(), 1, "round {round}: {answers:?}");
        let name = format!("client-{}", winners[0].0);
        allowed += usize::from(winners[0].0 % 2 == 0);
        for error in answers.iter().filter_map(|answer| answer.as_ref().err()) {
            assert_eq!(error["data"]["kind"], "approval_resolved", "round {round}");
            assert_eq!(error["data"]["resolution"]["by"]["client"], name.as_str(), "round {round}");
        }
        assert_eq!(owner.ended(&session, &turn)["state"], "completed");
    }
    assert_eq!(daemon.home.read("ledger").lines().count(), allowed, "it ran as often as a yes won");
}
