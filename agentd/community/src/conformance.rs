//! One suite for all providers: the same scenarios, told in each wire format, must give the same answers.
//!
//! The bytes are cut at every place there is, in memory, and some of them go over a real loopback connection.

mod oddities;
mod offline;
mod play;
mod requests;
mod scenario;
mod server;
mod transport;

use foundation::ModelErrorKind;
use serde_json::json;

use play::{Wire, check};
use scenario::{End, Expected, Says, Scenario};

fn plain(text: &'static [&'static str]) -> Says {
    Says::Text(text)
}

fn call(name: &'static str, arguments: &'static [&'static str]) -> Says {
    Says::Call { name, arguments }
}

/// What every provider must be able to say.
fn scenarios() -> Vec<Scenario> {
    let whole = |stop: &'static str, content| Expected::Whole { stop, content };
    let said = |says, end, expected| Scenario { says, end, usage: None, expected };
    vec![
        said(vec![plain(&["Hel", "lo"])], End::Stop, whole("end", json!([{"text": "Hello"}]))),
        said(vec![plain(&["那个 ", "😀 é"])], End::Stop, whole("end", json!([{"text": "那个 😀 é"}]))),
        said(
            vec![Says::Thinking(&["Let me", " see"]), plain(&["Yes"])],
            End::Stop,
            whole("end", json!([{"thinking": "Let me see"}, {"text": "Yes"}])),
        ),
        said(
            vec![plain(&["I look."]), call("read", &["{\"pa", "th\":\"a.txt\"}"])],
            End::ToolUse,
            whole("tool_use", json!([{"text": "I look."}, {"call": "read", "input": {"path": "a.txt"}}])),
        ),
        said(
            vec![call("read", &["{\"path\":\"a\"}"]), call("read", &["{\"path\":", "\"b\"}"])],
            End::ToolUse,
            whole(
                "tool_use",
                json!([{"call": "read", "input": {"path": "a"}}, {"call": "read", "input": {"path": "b"}}]),
            ),
        ),
        said(vec![call("x", &[""])], End::ToolUse, whole("tool_use", json!([{"call": "x", "input": {}}]))),
        said(vec![call("x", &[])], End::ToolUse, whole("tool_use", json!([{"call": "x", "input": {}}]))),
        said(
            vec![call("x", &["{\"a\":", " oops"])],
            End::ToolUse,
            whole("tool_use", json!([{"call": "x", "input": {}, "raw": "{\"a\": oops"}])),
        ),
        said(vec![plain(&["and so"])], End::Length, whole("length", json!([{"text": "and so"}]))),
        said(
            vec![call("x", &["{\"a\":"])],
            End::Length,
            whole("length", json!([{"call": "x", "input": {}, "raw": "{\"a\":"}])),
        ),
        said(vec![call("x", &[])], End::Length, whole("length", json!([{"call": "x", "input": {}, "raw": ""}]))),
        said(vec![plain(&["a"])], End::Error, Expected::Error(ModelErrorKind::Overloaded)),
        said(vec![plain(&["a"])], End::Cut, Expected::Error(ModelErrorKind::Incomplete)),
        said(vec![call("x", &["{\"a\":"])], End::Cut, Expected::Error(ModelErrorKind::Incomplete)),
        Scenario {
            says: vec![plain(&["a"])],
            end: End::Stop,
            usage: Some([10, 5, 3]),
            expected: whole("end", json!([{"text": "a"}])),
        },
    ]
}

#[tokio::test]
async fn the_messages_api_tells_every_scenario_however_it_is_cut() {
    for scenario in scenarios() {
        check(Wire::Anthropic, &scenario).await;
    }
}

#[tokio::test]
async fn chat_completions_tell_every_scenario_however_they_are_cut() {
    for scenario in scenarios() {
        check(Wire::Openai, &scenario).await;
    }
}

#[tokio::test]
async fn a_script_tells_every_scenario() {
    for scenario in scenarios() {
        play::check_script(&scenario).await;
    }
}
