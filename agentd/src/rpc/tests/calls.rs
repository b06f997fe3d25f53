//! Requests, notifications and batches on one connection.

use serde_json::{Value, json};

use super::{Rig, check_error};

fn request(id: impl Into<Value>, method: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method}).to_string()
}

#[tokio::test]
async fn a_slow_call_does_not_hold_up_later_ones() {
    let rig = Rig::new();
    let mut peer = rig.connect();
    peer.send(&request(1, "wait")).await;
    assert_eq!(peer.call(&request(2, "get_data")).await["id"], 2);
    rig.house.gate.notify_one();
    assert_eq!(peer.line().await, json!({"jsonrpc": "2.0", "id": 1, "result": "waited"}));
}

#[tokio::test]
async fn quick_calls_are_answered_in_the_order_in_which_they_were_asked() {
    let rig = Rig::new();
    let mut peer = rig.connect();
    let lines: String = (0..200).map(|id| request(id, "get_data") + "\n").collect();
    peer.send_bytes(lines.as_bytes()).await;
    for id in 0..200 {
        assert_eq!(peer.line().await["id"], id);
    }
}

#[tokio::test]
async fn a_call_over_the_limit_in_flight_is_refused_and_the_others_are_answered() {
    let rig = Rig::new();
    let mut peer = rig.connect();
    for id in 0..64 {
        peer.send(&request(id, "wait")).await;
    }
    let refused = peer.call(&request(64, "get_data")).await;
    check_error(&refused, -32001, "overloaded");
    assert_eq!((&refused["id"], &refused["error"]["data"]["retryable"]), (&json!(64), &json!(true)));
    rig.house.gate.notify_waiters();
    let mut ids = Vec::new();
    for _ in 0..64 {
        ids.push(peer.line().await["id"].as_u64().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, (0..64).collect::<Vec<_>>());
    assert_eq!(peer.call(&request(65, "get_data")).await["id"], 65);
}

#[tokio::test]
async fn a_panicking_handler_is_an_internal_error_of_its_own_call() {
    let rig = Rig::new();
    let mut peer = rig.connect();
    check_error(&peer.call(&request(1, "crash")).await, -32603, "internal_error");
    assert_eq!(peer.call(&request(2, "get_data")).await["id"], 2);
}

#[tokio::test]
async fn errors_keep_their_own_data_and_those_of_the_library_get_ours() {
    let rig = Rig::new();
    let mut peer = rig.connect();
    let busy = peer.call(&request(1, "fail")).await;
    check_error(&busy, -32010, "session_busy");
    assert_eq!(busy["error"]["data"]["activeTurnId"], "t");
    check_error(&peer.call(&request(2, "theirs")).await, -32006, "frame_too_large");
}

#[tokio::test]
async fn wrong_parameters_name_the_field_and_what_is_wrong() {
    let rig = Rig::new();
    let mut peer = rig.connect();
    for (params, hint) in [
        (json!({"minuend": 1}), "missing field `subtrahend`"),
        (json!({"minuend": "x", "subtrahend": 2}), "minuend: invalid type: string \"x\", expected i64"),
        (json!([1]), "invalid length 1, expected struct Subtraction with 2 elements"),
        (json!([1, true]), "[1]: invalid type: boolean `true`, expected i64"),
    ] {
        let error = peer.ask("subtract", &params).await;
        assert_eq!(error["code"], -32602, "{params}");
        assert_eq!(error["message"], "Invalid params");
        assert_eq!(error["data"]["kind"], "invalid_params");
        assert_eq!(error["data"]["hint"], hint, "{params}");
    }
    assert_eq!(peer.ask("get_data", &Value::Null).await, json!(["hello", 5]));
    assert_eq!(peer.ask("get_data", &json!({"unknown": 1})).await, json!(["hello", 5]));
}

#[tokio::test]
async fn an_id_comes_back_as_it_was_sent() {
    let rig = Rig::new();
    let mut peer = rig.connect();
    for id in [json!(0), json!(-1), json!(1.5), json!(u64::MAX), json!(""), json!("\u{e9}\"\\"), Value::Null] {
        assert_eq!(peer.call(&request(id.clone(), "get_data")).await["id"], id);
        assert_eq!(peer.call(&request(id.clone(), "none")).await["id"], id);
    }
}

#[tokio::test]
async fn a_notification_does_its_work_and_is_never_answered() {
    let rig = Rig::new();
    let mut peer = rig.connect();
    peer.send(r#"{"jsonrpc":"2.0","method":"tell","params":["once"]}"#).await;
    peer.send(r#"{"jsonrpc":"2.0","method":"crash"}"#).await;
    peer.send(r#"{"jsonrpc":"2.0","method":"subtract","params":["wrong"]}"#).await;
    assert_eq!(peer.call(&request(1, "get_data")).await["id"], 1);
    assert_eq!(*rig.house.told.lock().unwrap(), [json!(["once"])]);
}

#[tokio::test]
async fn a_batch_runs_in_order_has_a_limit_and_cannot_subscribe() {
    let rig = Rig::new();
    let mut peer = rig.connect();
    let tell = |id: usize| json!({"jsonrpc": "2.0", "id": id, "method": "tell", "params": [id]});
    let answers = peer.call(&Value::from((1..=64).map(tell).collect::<Vec<_>>()).to_string()).await;
    assert!(answers.as_array().unwrap().iter().all(|answer| answer["id"] == answer["result"]), "{answers}");
    let refused = peer.call(&Value::from((1..=65).map(tell).collect::<Vec<_>>()).to_string()).await;
    check_error(&refused, -32600, "invalid_request");
    assert_eq!(rig.house.told.lock().unwrap().len(), 64);
    let session = rig.house.feed.session();
    let subscribe = json!({"jsonrpc": "2.0", "id": 1, "method": "session/subscribe", "params": {"sessionId": session}});
    let answers = peer.call(&json!([subscribe]).to_string()).await;
    check_error(&answers[0], -32600, "invalid_request");
}

#[tokio::test]
async fn a_half_closed_client_gets_all_its_answers_and_then_the_end() {
    let rig = Rig::new();
    let mut peer = rig.connect();
    peer.send(&request(1, "wait")).await;
    peer.send(&request(2, "get_data")).await;
    peer.close_writing().await;
    assert_eq!(peer.line().await["id"], 2);
    rig.house.gate.notify_one();
    assert_eq!(peer.line().await["id"], 1);
    assert_eq!(peer.rest().await, "");
}

#[tokio::test]
async fn a_client_that_reads_nothing_costs_a_bounded_number_of_answers() {
    let rig = Rig::new();
    let (mut stalled, mut other) = (rig.connect(), rig.connect());
    // As much as the socket takes: the daemon stops reading when its answers find no way out.
    let line = request(1, "get_data") + "\n";
    let flood = async {
        loop {
            stalled.send_bytes(line.as_bytes()).await;
        }
    };
    let stuck = tokio::time::timeout(std::time::Duration::from_millis(300), flood).await;
    assert!(stuck.is_err());
    assert_eq!(other.call(&request(1, "get_data")).await["id"], 1);
}

#[tokio::test]
async fn stopping_lets_answers_out_and_ends_every_connection() {
    let rig = Rig::new();
    let mut peer = rig.connect();
    peer.send(&request(1, "wait")).await;
    assert_eq!(peer.call(&request(2, "get_data")).await["id"], 2);
    rig.stop.closed.cancel();
    rig.house.gate.notify_one();
    assert_eq!(peer.line().await["id"], 1);
    assert_eq!(peer.rest().await, "");
    rig.tasks.close();
    tokio::time::timeout(super::PATIENCE, rig.tasks.wait()).await.expect("a task went on");
}
