//! Two that belong together and are not: an old side and a new one, a peer that is silent or gone, a daemon that was put
//! aside.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::Stdio;

use e2e::daemon::{Daemon, Home};
use e2e::model::read_request;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Something that listens where the daemon should, and answers every request the same.
fn pretender(home: &Home, answer: Value) {
    let dir = home.socket().parent().unwrap().to_owned();
    fs::create_dir_all(&dir).unwrap();
    let listener = UnixListener::bind(home.socket()).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(&stream).lines();
            while let Some(Ok(line)) = lines.next() {
                let request: Value = serde_json::from_str(&line).unwrap();
                let mut answer = answer.clone();
                answer["jsonrpc"] = "2.0".into();
                answer["id"] = request["id"].clone();
                let _client_has_gone = writeln!(&stream, "{answer}");
            }
        }
    });
}

#[track_caller]
fn check_apart(answer: &Value, told: &[&str]) {
    let home = Home::new();
    pretender(&home, answer.clone());
    for args in [&["ls"][..], &["run", "hello"], &["daemon", "status"], &["daemon", "stop"], &["chat"]] {
        let ended = home.ctl(args);
        let said = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(9), "{args:?}, {answer}: {said}");
        assert!(told.iter().all(|words| said.contains(words)), "{args:?}, {answer} should say {told:?}: {said}");
    }
    // The home would wait for the end of what listens there.
    fs::remove_file(home.socket()).unwrap();
}

#[test]
fn a_client_says_which_side_is_the_old_one_and_what_to_do() {
    let own = format!("(pid {})", std::process::id());
    let kill = format!("`kill {}`", std::process::id());
    let (older, newer) =
        ([&*own, "the daemon is the older one", &kill], [&*own, "agentctl is the older one", "update"]);
    let error = |code: i32, kind: &str, more: Value| {
        let mut data = json!({"kind": kind, "retryable": false, "hint": "update the older of the two"});
        data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"error": {"code": code, "message": "no", "data": data}})
    };
    check_apart(&json!({"result": {"protocol": "0.9", "daemon": {"version": "0.0.1"}}}), &older);
    check_apart(&json!({"result": {"daemon": {"version": "0.0.1"}}}), &older);
    check_apart(&json!({"result": "hello"}), &older);
    check_apart(&json!({"error": {"code": -32601, "message": "Method not found"}}), &older);
    check_apart(&error(-32004, "unsupported_version", json!({"supported": "0.9"})), &older);
    check_apart(&json!({"result": {"protocol": "2.0", "daemon": {"version": "9.0.0"}, "unheard": [1]}}), &newer);
    check_apart(&error(-32004, "unsupported_version", json!({"supported": "2.1"})), &newer);
}

/// A session whose model begins to answer and then says nothing any more, on a connection that stays open.
fn half_an_answer(idle_secs: u64) -> (Daemon, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for mut stream in listener.incoming().flatten() {
            read_request(&stream).unwrap();
            let events = [
                json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant",
                    "model": "m", "content": [], "stop_reason": null, "usage": {"input_tokens": 1, "output_tokens": 1}}}),
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "half of"}}),
            ];
            let mut response = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_owned();
            for event in events {
                response.push_str(&format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()));
            }
            stream.write_all(response.as_bytes()).unwrap();
            kept.push(stream);
        }
    });
    let mut home = Home::new();
    home.env.push(("FAKE_KEY".into(), "k".into()));
    home.settings(&json!({"model": "fake/m", "providers": {"fake": {
        "api": "anthropic", "baseUrl": base, "apiKey": {"env": "FAKE_KEY"}, "timeouts": {"idleSecs": idle_secs},
        "models": {"m": {"contextWindow": 200_000, "maxOutput": 4096}},
    }}}));
    let daemon = home.start();
    let session = daemon.connect().session(&daemon.home.work());
    (daemon, session)
}

#[test]
fn a_provider_that_falls_silent_in_mid_answer_is_an_error_after_the_idle_limit() {
    let (daemon, session) = half_an_answer(1);
    let mut client = daemon.connect();
    let turn = client.turn(&session, "go");
    assert_eq!((&turn["state"], &turn["error"]["kind"]), (&json!("failed"), &json!("provider_error")), "{turn}");
    assert!(turn["error"].to_string().contains("timeouts"), "it names the limit's setting: {turn}");
    let shown = client.ok("session/get", &json!({"sessionId": session}));
    assert_ne!(shown["session"]["status"], "running", "the session can go on");
}

#[test]
fn a_turn_on_a_silent_provider_is_interrupted_without_waiting_for_the_limit() {
    let (daemon, session) = half_an_answer(3600);
    let mut client = daemon.connect();
    client.subscribe(&session, &json!({"kind": "live"}));
    let turn = client.ok("turn/start", &json!({"sessionId": session, "input": "go"}))["turnId"].clone();
    client.events_until(|event| event.to_string().contains("half of"));
    client.ok("turn/interrupt", &json!({"sessionId": session}));
    assert_eq!(client.ended(&session, &turn)["state"], "interrupted");
}

#[test]
fn a_client_whose_terminal_or_input_is_gone_ends_and_costs_the_daemon_nothing() {
    let home = Home::new();
    home.script(&json!({"loop": true, "steps": [[{"text": "a"}, {"stallMs": 60_000}]]}));
    let daemon = home.start();
    let work = daemon.home.work();
    let mut client = daemon.connect();
    let session = client.session(&work);
    // Input that is at its end from the start.
    assert!(daemon.home.ctl(&["attach", &session]).status.success());
    let turn = client.ok("turn/start", &json!({"sessionId": session, "input": "go"}))["turnId"].clone();
    let alone = e2e::running_in(&work);
    // A terminal that goes away under a client to which nobody says so. `script` is that terminal.
    for command in ["chat", "attach"] {
        let ctl = daemon.home.command("agentctl");
        let line = format!("trap '' HUP; exec {} {command} {session}", ctl.get_program().display());
        let line = if command == "chat" { line.replace(&format!(" {session}"), "") } else { line };
        let mut script = e2e::command("script");
        script.args(["-qefc", &line, "/dev/null"]).current_dir("/").env_clear().envs(daemon.home.environment());
        script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        script.current_dir(&work);
        let mut terminal = script.spawn().unwrap();
        // What it shows first names the model: by then it has found a terminal.
        let (mut shown, mut byte) = (Vec::new(), [0]);
        while !shown.ends_with(b"offline") {
            terminal.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
            shown.extend(byte);
        }
        terminal.kill().unwrap();
        terminal.wait().unwrap();
        e2e::eventually(&format!("the end of {command}"), || (e2e::running_in(&work) == alone).then_some(()));
    }
    // The daemon waits; a loop over a dead peer would use all of that time.
    let cpu = |client: &mut e2e::client::Client| client.ok("daemon/status", &json!({}))["cpuMs"].as_u64().unwrap();
    let before = cpu(&mut client);
    assert_eq!(
        client.err("turn/wait", &json!({"sessionId": session, "turnId": turn, "timeoutMs": 1500})),
        "wait_timeout"
    );
    let used = cpu(&mut client) - before;
    assert!(used < 300, "{used} ms of processor time in 1500 ms of waiting");
}

#[test]
fn subscribers_that_vanish_leave_nothing_behind() {
    let home = Home::new();
    home.script(&json!({"steps": [[{"repeat": {"text": "0123456789", "count": 1_000_000, "delayMs": 1}}]]}));
    let daemon = home.start();
    let mut client = daemon.connect();
    let session = client.session(&daemon.home.work());
    client.ok("turn/start", &json!({"sessionId": session, "input": "go"}));
    // Not readable for everybody: the daemon keeps its own to itself.
    let descriptors = || fs::read_dir(format!("/proc/{}/fd", daemon.pid())).map(Iterator::count).ok();
    let vanish = |round: usize| {
        let mut one = daemon.connect();
        one.subscribe(&session, &json!({"kind": "live"}));
        if round.is_multiple_of(2) {
            one.half_close();
        }
    };
    let mut clients = || client.ok("daemon/status", &json!({}))["clients"].as_u64().unwrap();
    (0..20).for_each(vanish);
    e2e::eventually("the first to be forgotten", || (clients() == 1).then_some(()));
    let before = descriptors();
    (0..500).for_each(vanish);
    e2e::eventually("all to be forgotten", || (clients() == 1).then_some(()));
    let after = descriptors();
    assert!(after <= before, "{before:?} descriptors before, {after:?} after");
    let listed = client.ok("session/get", &json!({"sessionId": session}));
    assert_eq!((&listed["session"]["status"], &listed["session"]["attached"]), (&json!("running"), &json!(0)));
}

/// What a database holds, read by nobody of ours.
fn sessions_in(database: &std::path::Path) -> Vec<String> {
    let db = rusqlite::Connection::open(database).unwrap();
    let mut rows = db.prepare("SELECT DISTINCT session_id FROM event ORDER BY 1").unwrap();
    rows.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn a_daemon_that_wakes_up_beside_its_successor_writes_into_neither_database() {
    let mut old = Daemon::start();
    let mut client = old.connect();
    let session = client.session(&old.home.work());
    let pid = Pid::from_raw(old.pid()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    // Handed in while it sleeps: it will read this first.
    let late = client.request("session/new", &json!({"cwd": old.home.work()}));
    let (state, aside) = (old.home.state(), old.home.work().join("aside"));
    fs::create_dir(&aside).unwrap();
    for name in ["agentd.db", "agentd.db-wal", "agentd.db-shm"] {
        fs::rename(state.join(name), aside.join(name)).unwrap();
        if !name.ends_with("shm") {
            fs::copy(aside.join(name), state.join(name)).unwrap();
        }
    }
    fs::remove_file(state.join("agentd.lock")).unwrap();
    fs::remove_file(old.home.socket()).unwrap();
    let started = old.home.ctl(&["daemon", "start"]);
    assert!(started.status.success(), "{}", text(&started.stderr));
    let mut successor = old.home.connect();
    let second = successor.session(&old.home.work());
    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(client.answer(late).unwrap_err()["data"]["kind"], "storage_error");
    assert_eq!(old.ended(), Some(74));
    assert_eq!(sessions_in(&aside.join("agentd.db")), std::slice::from_ref(&session));
    assert_eq!(sessions_in(&state.join("agentd.db")), [session, second]);
    assert_eq!(successor.ok("ping", &json!({})), json!({}), "the successor and its socket are left alone");
    assert!(old.home.socket().exists());
}
