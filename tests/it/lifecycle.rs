//! One daemon, started and stopped in order, and what a crash leaves.

use std::os::unix::net::UnixListener;

use e2e::daemon::{Daemon, Home};
use serde_json::{Value, json};

#[test]
fn a_second_daemon_leaves_the_first_alone() {
    let daemon = Daemon::start();
    let second = daemon.home.command("agentd").output().unwrap();
    assert_eq!(second.status.code(), Some(75));
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains("agentctl daemon stop"), "{said}");
    assert_eq!(daemon.connect().ok("ping", &json!({})), json!({}));
}

#[test]
fn a_socket_that_a_crash_left_is_replaced_and_a_foreign_file_is_not() {
    let mut daemon = Daemon::start();
    daemon.kill();
    assert!(daemon.home.socket().exists(), "the crash left its socket");
    let daemon = daemon.restart();
    assert_eq!(daemon.connect().ok("ping", &json!({})), json!({}));

    let home = Home::new();
    std::fs::create_dir_all(home.socket().parent().unwrap()).unwrap();
    std::fs::set_permissions(home.socket().parent().unwrap(), std::os::unix::fs::PermissionsExt::from_mode(0o700))
        .unwrap();
    std::fs::write(home.socket(), "precious").unwrap();
    let refused = home.command("agentd").output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(std::fs::read_to_string(home.socket()).unwrap(), "precious");
    std::fs::remove_file(home.socket()).unwrap();
    drop(UnixListener::bind(home.socket()).unwrap());
}

#[test]
fn sigterm_ends_the_turn_honestly_and_removes_the_socket() {
    let mut daemon = Home::new().start();
    let mut client = daemon.connect();
    let session = client.session(&daemon.home.work());
    client.ok("turn/start", &json!({"sessionId": session, "input": "run sleep 60"}));
    client.ok("turn/wait", &json!({"sessionId": session, "until": "approval"}));
    assert_eq!(daemon.terminate(), Some(0));
    assert!(!daemon.home.socket().exists());
    let daemon = daemon.restart();
    let history = daemon.connect().history(&session);
    ended_once(&history);
}

#[test]
fn a_turn_cut_by_a_crash_is_ended_once_and_its_call_is_said_to_be_unknown() {
    let home = Home::new();
    home.script(&json!({"steps": [
        [{"toolCalls": [{"name": "bash", "input": {"description": "count", "command": "(setsid sleep 60 &); echo ran >> ledger; sleep 60"}}]}],
        [{"text": "after"}],
    ]}));
    let mut daemon = home.start();
    let mut client = daemon.connect();
    let session = client.session(&daemon.home.work());
    client.subscribe(&session, &json!({"kind": "live"}));
    client.ok("turn/start", &json!({"sessionId": session, "input": "go"}));
    let approval = client.event_of("approval.requested")["data"]["approval"]["id"].clone();
    daemon.connect().ok("approval/respond", &json!({"approvalId": approval, "decision": "allow"}));
    client.event_of("tool.started");
    e2e::eventually("the command's effect", || daemon.home.work().join("ledger").exists().then_some(()));
    daemon.kill();
    let daemon = daemon.restart();
    let mut client = daemon.connect();
    let history = client.history(&session);
    ended_once(&history);
    let result = history.iter().find(|event| event["data"]["message"]["role"] == "tool").unwrap();
    assert!(result.to_string().contains("UNKNOWN_OUTCOME"), "{result}");
    assert_eq!(e2e::running_in(&daemon.home.work()), 1, "the daemon alone: what the crash left was ended first");
    assert_eq!(client.turn(&session, "and now?")["state"], "completed", "the session goes on");
    assert_eq!(daemon.home.read("ledger"), "ran\n", "nothing was run again");
}

/// Every turn that started has ended, once.
#[track_caller]
fn ended_once(history: &[Value]) {
    let turns = |kind: &str| -> Vec<&Value> {
        history.iter().filter(|event| event["type"] == kind).map(|event| &event["turnId"]).collect()
    };
    assert!(!turns("turn.started").is_empty());
    assert_eq!(turns("turn.started"), turns("turn.ended"));
}

#[test]
fn what_was_acknowledged_is_there_after_a_crash() {
    let mut daemon = Daemon::start();
    let mut client = daemon.connect();
    let session = client.session(&daemon.home.work());
    let start = json!({"sessionId": session, "input": "hello", "clientMessageId": "m-1"});
    let receipt = client.ok("turn/start", &start);
    daemon.kill();
    let daemon = daemon.restart();
    let mut client = daemon.connect();
    assert_eq!(client.ok("turn/start", &start)["turnId"], receipt["turnId"], "a retry gets the same receipt");
    let said = client.history(&session).iter().filter(|event| event["data"]["message"]["role"] == "user").count();
    assert_eq!(said, 1);
    let other = json!({"sessionId": session, "input": "other", "clientMessageId": "m-1"});
    assert_eq!(client.err("turn/start", &other), "idempotency_conflict");
}

#[test]
fn a_database_that_was_deleted_is_noticed_and_nothing_is_acknowledged_into_it() {
    let mut daemon = Daemon::start();
    let mut client = daemon.connect();
    client.session(&daemon.home.work());
    std::fs::remove_file(daemon.home.state().join("agentd.db")).unwrap();
    assert_eq!(client.err("session/new", &json!({"cwd": daemon.home.work()})), "storage_error");
    assert_eq!(daemon.ended(), Some(74), "it ends by itself, so that it is started again on a database that is there");
}
