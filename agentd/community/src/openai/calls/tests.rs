//! Every way of cutting and numbering calls that servers have been seen to use.

use foundation::{ModelLimits, ModelRequest, Part, StopReason, ToolChoice};
use serde_json::json;

use super::*;
use crate::config::{Profile, Quirks};

fn draft() -> Draft {
    let limits = ModelLimits { context_window: 1, max_output: None };
    let profile = Profile { name: "p/m".into(), model: "m".into(), limits, price: None, quirks: Quirks::default() };
    let request =
        ModelRequest { system: &[], messages: &[], tools: &[], tool_choice: ToolChoice::Auto, max_output: None };
    Draft::new(&profile, &request)
}

/// `expected` holds each call's name and input; the ids are unique whatever came.
#[track_caller]
fn check(pieces: Value, expected: &Value) {
    let mut draft = draft();
    let mut calls = Calls::default();
    for piece in serde_json::from_value::<Vec<CallDelta>>(pieces).unwrap() {
        calls.add(piece, &mut draft);
    }
    draft.finish(StopReason::End);
    let seen: Vec<_> = draft.message().tool_uses().map(|(_, name, input)| json!([name, input])).collect();
    assert_eq!(&Value::from(seen), expected);
    let ids: std::collections::HashSet<_> = draft.message().tool_uses().map(|(id, ..)| id.clone()).collect();
    assert_eq!(ids.len(), draft.message().content.len(), "ids are unique");
    assert!(!draft.message().content.iter().any(|part| matches!(part, Part::ToolUse { raw_input: Some(_), .. })));
}

fn two() -> Value {
    json!([["read", {"path": "a"}], ["read", {"path": "b"}]])
}

#[test]
fn calls_without_index_stay_apart() {
    check(
        json!([
            {"id": "1", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}},
            {"id": "2", "function": {"name": "read", "arguments": "{\"path\":\"b\"}"}},
        ]),
        &two(),
    );
    check(
        json!([
            {"function": {"name": "read", "arguments": "{\"path\":\"a\"}"}},
            {"function": {"name": "read", "arguments": "{\"path\":\"b\"}"}},
        ]),
        &two(),
    );
}

#[test]
fn calls_under_one_index_stay_apart() {
    check(
        json!([
            {"index": 0, "id": "1", "function": {"name": "read", "arguments": "{\"path\""}},
            {"index": 0, "function": {"arguments": ":\"a\"}"}},
            {"index": 0, "id": 2, "function": {"name": "read", "arguments": ""}},
            {"index": 0, "id": null, "function": {"arguments": "{\"path\":\"b\"}"}},
        ]),
        &two(),
    );
    check(
        json!([
            {"index": 0, "id": "", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}},
            {"index": 0, "id": "", "function": {"name": "read", "arguments": "{\"path\":\"b\"}"}},
        ]),
        &two(),
    );
}

#[test]
fn a_call_without_id_is_one_call() {
    check(
        json!([
            {"index": 0, "function": {"name": "read", "arguments": "{\"pa"}},
            {"index": 0, "function": {"arguments": "th\":\"a.txt\"}"}},
        ]),
        &json!([["read", {"path": "a.txt"}]]),
    );
}

#[test]
fn pieces_of_several_calls_may_interleave() {
    check(
        json!([
            {"index": 0, "id": "1", "function": {"name": "read"}},
            {"index": 1, "id": "2", "function": {"name": "read"}},
            {"index": 1, "function": {"arguments": "{\"path\":\"b\"}"}},
            {"index": 0, "function": {"arguments": "{\"path\":\"a\"}"}},
        ]),
        &two(),
    );
}

#[test]
fn id_and_name_may_come_again_with_every_piece() {
    let piece = |text: &str| json!({"index": 0, "id": "1", "function": {"name": "read", "arguments": text}});
    let call = json!([["read", {"path": "a}\""}]]);
    check(json!([piece("{\"path\":"), piece("\"a}"), piece("\\\"\""), piece("}"), piece("")]), &call);
    let piece = |text: &str| json!({"id": "1", "function": {"arguments": text}});
    let first = json!({"id": "1", "function": {"name": "read", "arguments": "{\"path\":"}});
    check(json!([first, piece("\"a}\\\"\""), piece("}")]), &call);
}

#[test]
fn a_repeated_id_does_not_join_two_calls() {
    check(
        json!([
            {"index": 0, "id": "x", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}},
            {"index": 1, "id": "x", "function": {"name": "read", "arguments": "{\"path\":\"b\"}"}},
        ]),
        &two(),
    );
}

#[test]
fn no_arguments_are_an_empty_object() {
    let call = |arguments: Value| json!([{"index": 0, "id": "1", "function": {"name": "x", "arguments": arguments}}]);
    for arguments in [json!(""), json!("  "), json!(null), json!("{}"), json!({})] {
        check(call(arguments), &json!([["x", {}]]));
    }
    check(json!([{"index": 0, "id": "1", "function": {"name": "x"}}]), &json!([["x", {}]]));
}

#[test]
fn arguments_may_be_the_object_itself() {
    check(json!([{"function": {"name": "x", "arguments": {"a": [1]}}}]), &json!([["x", {"a": [1]}]]));
}
