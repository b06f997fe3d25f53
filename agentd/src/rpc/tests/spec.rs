//! The examples of the JSON-RPC 2.0 specification, section 7, in its order.

use serde_json::Value;

use super::{Rig, check_error};

const EXAMPLES: &[(&str, &str, &str)] = &[
    (
        "positional",
        r#"{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}"#,
        r#"{"jsonrpc": "2.0", "result": 19, "id": 1}"#,
    ),
    (
        "positional, turned",
        r#"{"jsonrpc": "2.0", "method": "subtract", "params": [23, 42], "id": 2}"#,
        r#"{"jsonrpc": "2.0", "result": -19, "id": 2}"#,
    ),
    (
        "named",
        r#"{"jsonrpc": "2.0", "method": "subtract", "params": {"subtrahend": 23, "minuend": 42}, "id": 3}"#,
        r#"{"jsonrpc": "2.0", "result": 19, "id": 3}"#,
    ),
    (
        "named, turned",
        r#"{"jsonrpc": "2.0", "method": "subtract", "params": {"minuend": 42, "subtrahend": 23}, "id": 4}"#,
        r#"{"jsonrpc": "2.0", "result": 19, "id": 4}"#,
    ),
    ("a notification", r#"{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}"#, ""),
    ("a notification without params", r#"{"jsonrpc": "2.0", "method": "foobar"}"#, ""),
    (
        "no such method",
        r#"{"jsonrpc": "2.0", "method": "foobar", "id": "1"}"#,
        r#"{"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}, "id": "1"}"#,
    ),
    (
        "invalid JSON",
        r#"{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]"#,
        r#"{"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}, "id": null}"#,
    ),
    (
        "invalid request",
        r#"{"jsonrpc": "2.0", "method": 1, "params": "bar"}"#,
        r#"{"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}"#,
    ),
    (
        "a batch of invalid JSON",
        r#"[ {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"}, {"jsonrpc": "2.0", "method" ]"#,
        r#"{"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}, "id": null}"#,
    ),
    (
        "an empty batch",
        "[]",
        r#"{"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}"#,
    ),
    (
        "a batch that is not empty, but invalid",
        "[1]",
        r#"[ {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null} ]"#,
    ),
    (
        "an invalid batch",
        "[1,2,3]",
        r#"[ {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}, {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}, {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null} ]"#,
    ),
    (
        "a batch",
        r#"[ {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"}, {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}, {"jsonrpc": "2.0", "method": "subtract", "params": [42,23], "id": "2"}, {"foo": "boo"}, {"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"}, {"jsonrpc": "2.0", "method": "get_data", "id": "9"} ]"#,
        r#"[ {"jsonrpc": "2.0", "result": 7, "id": "1"}, {"jsonrpc": "2.0", "result": 19, "id": "2"}, {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}, {"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}, "id": "5"}, {"jsonrpc": "2.0", "result": ["hello", 5], "id": "9"} ]"#,
    ),
    (
        "a batch of notifications",
        r#"[ {"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]}, {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]} ]"#,
        "",
    ),
];

#[tokio::test]
async fn the_examples_of_the_specification_get_the_answers_of_the_specification() {
    let rig = Rig::new();
    let mut peer = rig.connect();
    for (name, sent, expected) in EXAMPLES {
        peer.send(sent).await;
        // What gets no answer is seen by the next answer being that of the next call.
        peer.send(r#"{"jsonrpc":"2.0","method":"sum","params":[],"id":"next"}"#).await;
        if !expected.is_empty() {
            let mut answer = peer.line().await;
            without_data(&mut answer);
            assert_eq!(answer, serde_json::from_str::<Value>(expected).unwrap(), "{name}");
        }
        assert_eq!(peer.line().await["id"], "next", "{name}");
    }
}

/// Takes the data out of every error, after a look at it: the specification's examples have none.
#[track_caller]
fn without_data(answer: &mut Value) {
    let kinds = [(-32700, "parse_error"), (-32600, "invalid_request"), (-32601, "method_not_found")];
    match answer {
        Value::Array(answers) => answers.iter_mut().for_each(without_data),
        one if one.get("error").is_some() => {
            let (code, kind) = kinds.into_iter().find(|(code, _)| one["error"]["code"] == *code).unwrap();
            check_error(one, code, kind);
            one["error"].as_object_mut().unwrap().remove("data");
        }
        _ => {}
    }
}
