//! Whole dialogues, from the events to the lines on the screen.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::*;
use crate::fake;

fn shown(events: &[Value]) -> String {
    let mut view = View::new(fake::session("01940000-0000-7000-8000-00000000aaaa", "/a", 1));
    let mut renderer = Renderer::new(Paint::Plain, Some(40));
    renderer.was_typed("typed here");
    let lines = events.iter().map(|event| {
        let event = fake::event(event.clone());
        view.apply(&event);
        renderer.event(&event, &view)
    });
    lines.collect()
}

fn message(role: &str, text: &str) -> Value {
    json!({"type": "message", "data": {"message": {
        "id": fake::MESSAGE, "role": role, "content": [{"type": "text", "text": text}],
    }}})
}

fn snapshot(text: &str) -> Value {
    let mut event = message("assistant", text);
    event["type"] = "snapshot".into();
    event["data"]["rev"] = 1.into();
    event
}

fn started(id: &str, title: &str) -> Value {
    json!({"type": "tool.started", "data": {
        "toolUseId": id, "name": "bash", "title": title, "input": {"timeout": 3, "command": "ls -la"},
    }})
}

fn finished(id: &str, is_error: bool, detail: Option<&str>) -> Value {
    json!({"type": "tool.finished", "data": {
        "toolUseId": id, "isError": is_error, "code": is_error.then_some("exit_1"), "durationMs": 1234,
        "summary": "3 lines", "detail": detail,
    }})
}

fn ended(state: &str, error: Option<&Value>) -> Value {
    json!({"type": "turn.ended", "data": {
        "state": state, "usage": {"inputTokens": 1200, "outputTokens": 34}, "error": error,
    }})
}

#[test]
fn a_turn_reads_like_a_dialogue() {
    assert_snapshot!(shown(&[
        message("user", "typed here"),
        snapshot("I will "),
        snapshot("I will look.\nThen"),
        message("assistant", "I will look.\nThen tell."),
        started("c1", "list files"),
        finished("c1", false, None),
        ended("completed", None),
    ]), @r"
    I will look.
    Then tell.
    ● bash  list files
      └ ok · 1.2 s · 3 lines
    ── 1200 tokens in, 34 out
    ");
}

#[test]
fn what_others_say_is_shown_and_what_the_daemon_adds_is_not() {
    let mut reminder = message("user", "remember your todos");
    reminder["data"]["message"]["synthetic"] = "reminder".into();
    assert_snapshot!(shown(&[message("user", "from another\nterminal"), reminder]), @r"

    > from another
    > terminal
    ");
}

#[test]
fn parallel_tools_are_named_when_they_end_and_changes_show_their_diff() {
    assert_snapshot!(shown(&[
        started("c1", "first"),
        started("c2", ""),
        finished("c2", true, None),
        finished("c1", false, Some("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y")),
    ]), @r"
    ● bash  first
    ● bash  ls -la
      └ bash · exit_1 · 1.2 s · 3 lines
      └ ok · 1.2 s · 3 lines
    --- a
    +++ b
    @@ -1 +1 @@
    -x
    +y
    ");
}

#[test]
fn a_refused_call_has_a_line_of_its_own_that_names_the_tool() {
    let mut calls = message("assistant", "I try.");
    let call = json!({"type": "tool_use", "id": "c2", "name": "write_file", "input": {}});
    calls["data"]["message"]["content"].as_array_mut().unwrap().push(call);
    assert_snapshot!(shown(&[
        calls,
        started("c1", "first"),
        finished("c2", true, None),
        finished("c3", true, None),
        finished("c1", false, None),
    ]), @r"
    I try.
    ● bash  first
      write_file · exit_1 · 1.2 s · 3 lines
      exit_1 · 1.2 s · 3 lines
      └ ok · 1.2 s · 3 lines
    ");
}

#[test]
fn a_change_that_was_shown_for_consent_is_not_shown_again() {
    let view = View::new(fake::session(fake::SESSION, "/a", 1));
    let mut renderer = Renderer::new(Paint::Plain, None);
    let event = fake::event(finished("c1", false, Some("+y")));
    renderer.was_asked(&CallId("c1".into()), "+y");
    assert!(!renderer.event(&event, &view).contains("+y"));
    renderer.was_asked(&CallId("c1".into()), "+x");
    assert!(renderer.event(&event, &view).contains("+y"), "what was done is not what was asked");
}

#[test]
fn every_end_says_what_it_was() {
    let error =
        json!({"message": "no key", "kind": "provider_error", "retryable": false, "hint": "set OPENAI_API_KEY"});
    assert_snapshot!(shown(&[
        ended("failed", Some(&error)),
        ended("interrupted", None),
        ended("limit", None),
        json!({"type": "notice", "data": {"level": "warning", "text": "settings.json\u{1b}[1m line 3"}}),
        json!({"type": "moon.rose", "data": {}}),
    ]), @r"
    ── the turn failed: no key (hint: set OPENAI_API_KEY)
    ── interrupted
    ── a limit ended the turn
    ! settings.json<U+001B>[1m line 3
    ");
}

#[test]
fn durations_are_read_at_a_glance() {
    assert_eq!([7, 999, 1_000, 59_999, 61_000].map(duration), ["7 ms", "999 ms", "1.0 s", "59.9 s", "1 min 1 s"]);
}
