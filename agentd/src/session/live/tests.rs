//! Growing in place gives what was handed in, and costs what is new.

use protocol::{MessageId, StopReason, Usage};
use serde_json::json;

use super::*;

const ALL: Want = Want { seen: 0, fresh_within: Duration::ZERO, message: true, tools: true };

fn only_event(live: &mut Live, want: &Want) -> Value {
    let changes = live.changes(SessionId::new(), want);
    assert_eq!(changes.events.len(), 1);
    serde_json::from_str(&changes.events[0].1).unwrap()
}

/// Whatever the states of a message are, the copy is the last of them.
#[track_caller]
fn check(states: &[Vec<Part>]) {
    let (mut live, mut message) = (Live::default(), Message::draft("offline/rules"));
    for content in states {
        message.content.clone_from(content);
        live.message_updated(&message, TurnId::new());
        let event = only_event(&mut live, &ALL);
        assert_eq!(event["data"]["message"], serde_json::to_value(&message).unwrap());
    }
}

fn text(text: &str) -> Part {
    Part::Text { text: text.into() }
}

fn thinking(text: &str, signature: Option<&str>) -> Part {
    Part::Thinking { text: text.into(), signature: signature.map(Into::into), redacted: None }
}

fn call(input: Value, raw: Option<&str>) -> Part {
    Part::ToolUse { id: CallId("call_1".into()), name: "bash".into(), input, raw_input: raw.map(Into::into) }
}

#[test]
fn a_grown_message_is_the_message() {
    check(&[vec![], vec![text("a")], vec![text("ab\u{e9}")], vec![text("ab\u{e9}"), text("c")]]);
    check(&[
        vec![thinking("so", None)],
        vec![thinking("so it", None)],
        vec![thinking("so it", Some("sig")), text("x")],
    ]);
    check(&[
        vec![call(json!({}), Some("{\"a\":"))],
        vec![call(json!({}), Some("{\"a\":1}"))],
        vec![call(json!({"a": 1}), None)],
        vec![call(json!({"a": 1}), None), text("after")],
    ]);
    check(&[vec![call(json!({}), None)], vec![call(json!([1, 2]), None)]]);
}

#[test]
fn a_message_that_starts_over_is_taken_as_it_is() {
    check(&[vec![text("long text")], vec![text("no")], vec![thinking("other", None)], vec![]]);
    check(&[vec![text("\u{e9}")], vec![text("a\u{e9}b")]]);
    let mut live = Live::default();
    let first = Message { content: vec![text("first")], ..Message::draft("m") };
    live.message_updated(&first, TurnId::new());
    let second = Message { content: vec![text("2")], ..Message::draft("m") };
    live.message_updated(&second, TurnId::new());
    assert_eq!(only_event(&mut live, &ALL)["data"]["message"]["id"], json!(second.id));
}

#[test]
fn what_a_message_costs_and_why_it_stopped_are_shown_as_they_come() {
    let mut live = Live::default();
    let mut message = Message::draft("m");
    live.message_updated(&message, TurnId::new());
    message.usage = Some(Usage { output_tokens: 7, ..Usage::default() });
    message.stop_reason = Some(StopReason::End);
    live.message_updated(&message, TurnId::new());
    assert_eq!(only_event(&mut live, &ALL)["data"]["message"], serde_json::to_value(&message).unwrap());
}

#[test]
fn what_has_ended_is_shown_no_more() {
    let call = |name: &str| CallId(name.into());
    let mut live = Live::default();
    let message = Message::draft("m");
    let grow = |live: &mut Live| {
        live.message_updated(&message, TurnId::new());
        live.tool_output(&call("one"), TurnId::new(), b"1");
        live.tool_output(&call("two"), TurnId::new(), b"2");
    };
    let shown = |live: &mut Live| live.changes(SessionId::new(), &ALL).events.len();
    for (ends, left) in [
        (Ends::Nothing, 3),
        (Ends::Message(MessageId::new()), 3),
        (Ends::Message(message.id), 2),
        (Ends::Tool(call("one")), 2),
        (Ends::Turn, 0),
    ] {
        grow(&mut live);
        live.end(&ends);
        assert_eq!(shown(&mut live), left, "{ends:?}");
    }
}

#[test]
fn output_is_its_last_64_kib_and_never_cut_within_a_character() {
    let (id, turn) = (CallId("call_1".into()), TurnId::new());
    let mut live = Live::default();
    let euro = "\u{20ac}".repeat(100_000);
    for piece in euro.as_bytes().chunks(1000) {
        live.tool_output(&id, turn, piece);
        let data = &only_event(&mut live, &ALL)["data"];
        let text = data["text"].as_str().unwrap();
        assert!(text.chars().all(|c| c == '\u{20ac}') && text.len() <= OUTPUT_BYTES, "{} bytes", text.len());
        let total = usize::try_from(data["totalBytes"].as_u64().unwrap()).unwrap();
        assert!(text.len() + 4 >= total.min(OUTPUT_BYTES));
    }
    assert!(live.tools[0].what.tail.capacity() <= 4 * OUTPUT_BYTES);
    live.tool_output(&id, turn, b"\xff\xfeend");
    assert!(only_event(&mut live, &ALL)["data"]["text"].as_str().unwrap().ends_with("\u{fffd}\u{fffd}end"));
}

#[test]
fn bytes_are_shared_by_those_who_ask_soon_and_the_rest_is_not_taken_for_seen() {
    let mut live = Live::default();
    let mut message = Message::draft("m");
    let session = SessionId::new();
    live.message_updated(&message, TurnId::new());
    let first = live.changes(session, &ALL);
    message.content.push(text("more"));
    live.message_updated(&message, TurnId::new());
    let patient = Want { fresh_within: Duration::from_secs(60), ..ALL };
    let shared = live.changes(session, &patient);
    assert!(Arc::ptr_eq(&first.events[0].1, &shared.events[0].1));
    assert_eq!((first.seen, shared.seen, shared.serialised), (1, 1, 0));
    let fresh = live.changes(session, &Want { seen: 1, ..patient });
    assert_eq!((fresh.seen, fresh.serialised), (2, 1));
}
