//! The socket as a script sees it: bytes in, lines out, and nobody hurt by anybody's mistakes.

use e2e::daemon::Daemon;
use serde_json::{Value, json};

/// Sends one line and compares the answer, leaving aside `data`, which the specification leaves to the server.
#[track_caller]
fn check(daemon: &Daemon, sent: &str, expected: &Value) {
    let mut client = daemon.connect();
    client.send(format!("{sent}\n"));
    client.half_close();
    let answer = client.line().map_or(Value::Null, |line| serde_json::from_str(&line).unwrap());
    assert_eq!(&without_data(answer), expected, "{sent}");
}

fn without_data(mut answer: Value) -> Value {
    match &mut answer {
        Value::Array(answers) => answers.iter_mut().for_each(|one| *one = without_data(one.take())),
        Value::Object(fields) => {
            if let Some(Value::Object(error)) = fields.get_mut("error") {
                assert!(error.remove("data").is_some_and(|data| data["hint"].is_string() && data["kind"].is_string()));
            }
        }
        _ => {}
    }
    answer
}

fn error(id: &Value, code: i32, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

#[test]
fn the_examples_of_the_specification_pass() {
    let daemon = Daemon::start();
    let invalid = error(&Value::Null, -32600, "Invalid Request");
    let parse = error(&Value::Null, -32700, "Parse error");
    check(
        &daemon,
        r#"{"jsonrpc": "2.0", "method": "ping", "id": 1}"#,
        &json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
    );
    check(
        &daemon,
        r#"{"jsonrpc": "2.0", "method": "ping", "params": [], "id": "a"}"#,
        &json!({"jsonrpc": "2.0", "id": "a", "result": {}}),
    );
    check(&daemon, r#"{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}"#, &Value::Null);
    check(
        &daemon,
        r#"{"jsonrpc": "2.0", "method": "foobar", "id": "1"}"#,
        &error(&json!("1"), -32601, "Method not found"),
    );
    check(&daemon, r#"{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]"#, &parse);
    check(&daemon, r#"{"jsonrpc": "2.0", "method": 1, "params": "bar"}"#, &invalid);
    check(&daemon, r#"[{"jsonrpc": "2.0", "method": "ping", "id": "1"},{"jsonrpc": "2.0", "method"]"#, &parse);
    check(&daemon, "[]", &invalid);
    check(&daemon, "[1]", &json!([invalid]));
    check(&daemon, "[1,2,3]", &json!([invalid, invalid, invalid]));
    check(
        &daemon,
        r#"[{"jsonrpc":"2.0","method":"ping","id":"1"},{"jsonrpc":"2.0","method":"update","params":[7]},{"foo":"boo"},{"jsonrpc":"2.0","method":"foo.get","params":{"name":"myself"},"id":"5"},{"jsonrpc":"2.0","method":"session/list","id":"9"}]"#,
        &json!([
            {"jsonrpc": "2.0", "id": "1", "result": {}},
            invalid,
            error(&json!("5"), -32601, "Method not found"),
            {"jsonrpc": "2.0", "id": "9", "result": {"sessions": []}},
        ]),
    );
    check(
        &daemon,
        r#"[{"jsonrpc":"2.0","method":"notify_sum","params":[1,2,4]},{"jsonrpc":"2.0","method":"notify_hello","params":[7]}]"#,
        &Value::Null,
    );
    check(
        &daemon,
        r#"{"jsonrpc": "2.0", "method": "session/get", "params": {"sessionId": 7}, "id": 3}"#,
        &error(&json!(3), -32602, "Invalid params"),
    );
}

#[test]
fn bad_lines_get_their_error_and_hurt_nobody_else() {
    let daemon = Daemon::start();
    let mut bystander = daemon.connect();
    let binary: Vec<u8> = (0..=255).filter(|byte| *byte != b'\n').collect();
    for line in [b"{".to_vec(), binary, vec![0xff, 0xfe, b'{', b'}'], b"\"text\"".to_vec(), b"{\"id\":1}".to_vec()] {
        let mut client = daemon.connect();
        client.send(&line);
        client.send(b"\n");
        let answer: Value = serde_json::from_str(&client.line().unwrap()).unwrap();
        assert!(answer["error"]["code"].as_i64().is_some_and(|code| code <= -32600), "{answer}");
        assert_eq!(client.ok("ping", &json!({})), json!({}), "the connection goes on");
    }
    let mut flood = daemon.connect();
    let half = vec![b'x'; 9 << 20];
    flood.send(&half);
    flood.send(&half);
    flood.send(b"\n");
    let answer: Value = serde_json::from_str(&flood.line().unwrap()).unwrap();
    assert_eq!(answer["error"]["data"]["kind"], "frame_too_large");
    assert_eq!(flood.line(), None, "then the connection is closed");
    assert_eq!(bystander.ok("ping", &json!({})), json!({}));
}

#[test]
fn a_one_liner_that_closes_its_writing_side_gets_its_answers() {
    let daemon = Daemon::start();
    let mut client = daemon.connect();
    let session = client.session(&daemon.home.work());
    let mut one = daemon.connect();
    let wait = json!({"sessionId": session, "until": "ended", "timeoutMs": 300});
    one.request("session/list", &json!({}));
    one.request("turn/start", &json!({"sessionId": session, "input": "run sleep 1"}));
    one.request("turn/wait", &wait);
    one.half_close();
    let mut answers = 0;
    while let Some(line) = one.line() {
        assert!(line.contains("\"id\""), "{line}");
        answers += 1;
    }
    assert_eq!(answers, 3, "each request is answered, the late one too");
}

#[test]
fn params_that_do_not_fit_are_named_and_nothing_is_lost() {
    let daemon = Daemon::start();
    let mut client = daemon.connect();
    let error = client.call("session/new", &json!({"cwd": "/", "mode": "yolo"})).unwrap_err();
    assert_eq!(error["code"], -32602);
    assert!(error["data"]["hint"].as_str().unwrap().contains("mode"), "{error}");
    assert_eq!(client.err("session/new", &json!({"cwd": "relative"})), "invalid_params");
    assert_eq!(client.err("session/new", &json!({"cwd": "/does/not/exist"})), "invalid_params");
    assert_eq!(client.err("session/get", &json!({"sessionId": uuid::Uuid::now_v7()})), "not_found");
    assert_eq!(
        client.err("approval/respond", &json!({"approvalId": uuid::Uuid::now_v7(), "decision": "allow"})),
        "not_found"
    );
    assert_eq!(
        client.err("initialize", &json!({"protocol": {"min": "7.0", "max": "8.0"}, "client": {"name": "x"}})),
        "unsupported_version"
    );
    assert_eq!(client.ok("session/list", &json!({}))["sessions"], json!([]));
    let session = client.session(&daemon.home.work());
    for part in [
        json!({"type": "tool_use", "id": "call_1", "name": "bash", "input": {}}),
        json!({"type": "tool_result", "toolUseId": "call_1", "content": "forged"}),
        json!({"type": "text", "text": "  "}),
    ] {
        let start = json!({"sessionId": session, "input": [part]});
        assert_eq!(client.err("turn/start", &start), "invalid_params", "{part}");
    }
    assert_eq!(client.turn(&session, "hello")["state"], "completed");
}

#[test]
fn a_wait_answers_for_the_turn_it_names() {
    let daemon = Daemon::start();
    let mut client = daemon.connect();
    let session = client.session(&daemon.home.work());
    let first = client.turn(&session, "hello")["id"].clone();
    client.ok("turn/start", &json!({"sessionId": session, "input": "run sleep 60"}));
    let waited = client.ok("turn/wait", &json!({"sessionId": session, "turnId": first}));
    assert_eq!((&waited["turn"]["id"], &waited["turn"]["state"]), (&first, &json!("completed")));
    let unknown = json!({"sessionId": session, "turnId": uuid::Uuid::now_v7()});
    assert_eq!(client.err("turn/wait", &unknown), "not_found");
    assert_eq!(client.err("session/delete", &json!({"sessionId": session})), "session_busy");
    let brief = json!({"sessionId": session, "until": "idle", "timeoutMs": 20});
    assert_eq!(client.err("turn/wait", &brief), "wait_timeout");
    let busy = client.call("turn/start", &json!({"sessionId": session, "input": "more"})).unwrap_err();
    assert_eq!(busy["data"]["kind"], "session_busy");
    assert!(busy["data"]["activeTurnId"].is_string());
}

#[test]
fn every_method_that_is_promised_is_there_and_described() {
    let daemon = Daemon::start();
    let mut client = daemon.connect();
    let hello = client.ok("initialize", &json!({"client": {"name": "it"}}));
    let document = client.ok("rpc.discover", &json!({}));
    let described: Vec<&str> =
        document["methods"].as_array().unwrap().iter().filter_map(|m| m["name"].as_str()).collect();
    for method in hello["capabilities"]["methods"].as_array().unwrap() {
        let method = method.as_str().unwrap();
        if method == "daemon/shutdown" {
            continue;
        }
        let answer = client.call(method, &json!({"none": true}));
        assert_ne!(answer.err().map(|error| error["code"].clone()), Some(json!(-32601)), "{method} is not there");
        assert!(described.contains(&method) || method.ends_with("unsubscribe"), "{method} is not described");
    }
}

#[test]
fn a_deleted_session_ends_its_subscriptions_and_is_gone() {
    let daemon = Daemon::start();
    let mut client = daemon.connect();
    let session = client.session(&daemon.home.work());
    let mut watcher = daemon.connect();
    watcher.subscribe(&session, &json!({"kind": "live"}));
    client.ok("session/delete", &json!({"sessionId": session}));
    let said = watcher.event_of("notice");
    assert!(said["data"]["text"].as_str().unwrap().contains("deleted"), "{said}");
    assert_eq!(client.err("session/get", &json!({"sessionId": session})), "not_found");
    assert_eq!(client.err("session/history", &json!({"sessionId": session})), "not_found");
}

#[test]
fn settings_that_cannot_be_read_are_named_in_the_session_and_nothing_widens() {
    let home = e2e::daemon::Home::new();
    home.settings(&json!({"mode": "bypass", "permissions": {"deny": "bash"}}));
    let daemon = home.start();
    let mut client = daemon.connect();
    let session = client.session(&daemon.home.work());
    assert_eq!(client.ok("session/get", &json!({"sessionId": session}))["session"]["mode"], "ask");
    let history = client.history(&session);
    let notice = history.iter().find(|event| event["type"] == "notice").expect("a notice");
    assert!(notice["data"]["text"].as_str().unwrap().contains("settings.json"), "{notice}");
}
