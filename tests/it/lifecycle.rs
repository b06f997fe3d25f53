//! One daemon, started and stopped in order, and what a crash leaves.

use std::os::unix::net::{UnixListener, UnixStream};

use e2e::client::Client;
use e2e::daemon::{Daemon, Home};
use serde_json::json;

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
fn a_second_signal_does_not_wait_for_what_runs() {
    let home = Home::new();
    home.script(&json!({"steps": [[{"toolCalls": [
        {"name": "bash", "input": {"description": "wait", "command": "echo on > began; sleep 60"}},
    ]}], [{"text": "after"}]]}));
    let mut daemon = home.start();
    let mut client = daemon.connect();
    let new = json!({"cwd": daemon.home.work(), "mode": "bypass"});
    let session = client.ok("session/new", &new)["session"]["id"].clone();
    client.ok("turn/start", &json!({"sessionId": session, "input": "go"}));
    e2e::eventually("the command", || daemon.home.work().join("began").exists().then_some(()));
    client.subscribe(session.as_str().unwrap(), &json!({"kind": "live"}));
    daemon.signal();
    client.event_of("daemon.draining");
    daemon.signal();
    assert_eq!(daemon.ended(), Some(0));
    assert!(!daemon.home.socket().exists());
    assert_eq!(e2e::running_in(&daemon.home.work()), 0, "nothing is left running");
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

#[test]
fn a_session_that_ends_the_daemon_each_time_is_left_alone_after_the_third() {
    let home = Home::new();
    home.script(&json!({"loop": true, "steps": [[{"text": "a"}, {"stallMs": 60_000}]]}));
    let mut daemon = home.start();
    let mut client = daemon.connect();
    let (poison, other) = (client.session(&daemon.home.work()), client.session(&daemon.home.work()));
    for session in [&poison, &other] {
        client.ok("turn/start", &json!({"sessionId": session, "input": "go"}));
    }
    daemon.kill();
    daemon.home.env.push(("AGENTD_FAILPOINTS".into(), format!("recover.of.{poison}=1*kill")));
    for _ in 0..3 {
        let ended = daemon.home.command("agentd").output().unwrap();
        assert_eq!(ended.status.code(), None, "it was ended by that session");
    }
    let daemon = daemon.restart();
    let mut client = daemon.connect();
    assert_eq!(client.ok("session/get", &json!({"sessionId": other}))["session"]["status"], "interrupted");
    let error = client.call("session/get", &json!({"sessionId": poison})).unwrap_err();
    assert_eq!(error["data"]["kind"], "invalid_state", "{error}");
    let listed = client.ok("session/list", &json!({}))["sessions"].clone();
    let listed = listed.as_array().unwrap().iter().find(|it| it["id"] == poison.as_str()).unwrap().clone();
    assert_eq!(listed["status"], "error");
    let history = client.history(&poison);
    assert!(history.iter().any(|event| event.to_string().contains("ended agentd 3 times")), "{history:?}");
    assert!(daemon.home.ctl(&["doctor"]).status.success());
    client.ok("session/delete", &json!({"sessionId": poison}));
    assert_eq!(client.err("session/get", &json!({"sessionId": poison})), "not_found");
}

#[test]
fn a_log_that_cannot_be_written_ends_nothing() {
    let home = Home::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut child = home.command("agentd").stderr(full).spawn().unwrap();
    let mut client = Client::new(e2e::eventually("it listens", || UnixStream::connect(home.socket()).ok()));
    let session = client.session(&home.work());
    assert_eq!(client.turn(&session, "hello")["state"], "completed");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_message_whose_acknowledgement_was_lost_is_handed_in_again_and_taken_once() {
    let mut home = Home::new();
    home.env.push(("AGENTD_FAILPOINTS".into(), "reply.before.turn/start=1*kill".into()));
    let mut daemon = home.start();
    let session = daemon.connect().session(&daemon.home.work());
    // So that the daemon which agentctl then starts does not die of it too.
    daemon.home.env.clear();
    let sent = daemon.home.ctl(&["send", &session, "hello"]);
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    let mut client = daemon.connect();
    let said = client.history(&session);
    assert_eq!(said.iter().filter(|event| event["data"]["message"]["role"] == "user").count(), 1);
}
