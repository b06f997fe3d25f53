//! Histories that providers would refuse, and what they are repaired to.

use serde_json::json;

use super::*;

/// `say` is a user message, `ask:a,b` an answer with calls, `done:a,b` a tool message with results.
fn history(lines: &[&str]) -> Vec<Message> {
    lines.iter().map(|line| message(line)).collect()
}

fn message(line: &str) -> Message {
    let (kind, ids) = line.split_once(':').unwrap_or((line, ""));
    let ids = ids.split(',').filter(|id| !id.is_empty()).map(|id| CallId(id.into()));
    match kind {
        "ask" => {
            let call = |id| Part::ToolUse { id, name: "t".into(), input: json!({}), raw_input: None };
            Message { content: ids.map(call).collect(), ..Message::draft("m") }
        }
        "done" => Message::tool_results(
            ids.map(|tool_use_id| Part::ToolResult { tool_use_id, content: "ok".into(), is_error: false, code: None })
                .collect(),
        ),
        _ => Message::user_text(line),
    }
}

/// Results as `done:a,!b`, with `!` before one that was made up.
fn shape(messages: &[Message]) -> Vec<String> {
    let ids = |message: &Message| {
        let id = |part: &Part| match part {
            Part::ToolUse { id, .. } => Some(id.to_string()),
            Part::ToolResult { tool_use_id, is_error, .. } => {
                Some(format!("{}{tool_use_id}", if *is_error { "!" } else { "" }))
            }
            _ => None,
        };
        message.content.iter().filter_map(id).collect::<Vec<_>>().join(",")
    };
    messages
        .iter()
        .map(|message| match message.role {
            Role::Assistant => format!("ask:{}", ids(message)),
            Role::Tool => format!("done:{}", ids(message)),
            _ => message.text(),
        })
        .collect()
}

#[track_caller]
fn check_repair(lines: &[&str], expected: &[&str]) {
    let broken = history(lines);
    assert!(check(&broken).is_err());
    let (repaired, notes) = repair(broken);
    assert_eq!(shape(&repaired), expected);
    assert_eq!(check(&repaired), Ok(()));
    assert!(!notes.is_empty());
}

#[test]
fn a_history_that_is_right_stays_as_it_is() {
    let right = history(&["hi", "ask:a,b", "done:b,a", "ask:", "go on", "ask:c", "done:c"]);
    assert_eq!(check(&right), Ok(()));
    assert_eq!(repair(right.clone()), (right, Vec::new()));
}

#[test]
fn a_call_without_result_gets_one() {
    check_repair(&["hi", "ask:a"], &["hi", "ask:a", "done:!a"]);
    check_repair(&["hi", "ask:a,b", "done:b", "go on"], &["hi", "ask:a,b", "done:!a,b", "go on"]);
    check_repair(&["ask:a", "ask:b", "done:b"], &["ask:a", "done:!a", "ask:b", "done:b"]);
}

#[test]
fn a_result_without_call_is_left_out() {
    check_repair(&["done:x", "hi", "ask:"], &["hi", "ask:"]);
    check_repair(&["ask:a", "done:a,x"], &["ask:a", "done:a"]);
    check_repair(&["ask:a", "done:a", "done:a"], &["ask:a", "done:a"]);
}

#[test]
fn results_stand_together_directly_behind_their_calls() {
    check_repair(&["ask:a,b", "done:a", "done:b"], &["ask:a,b", "done:a,b"]);
    check_repair(&["ask:a", "hi", "done:a"], &["ask:a", "done:a", "hi"]);
}

#[test]
fn an_id_that_comes_again_is_renamed_with_its_result() {
    let (repaired, _) = repair(history(&["ask:a", "done:a", "ask:a", "done:a"]));
    assert_eq!(check(&repaired), Ok(()));
    assert_eq!(shape(&repaired[..2]), ["ask:a", "done:a"]);
    assert!(shape(&repaired[3..])[0].starts_with("done:call_"), "the result is the real one");
}
