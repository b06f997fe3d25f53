//! Calls that a model wrote as text, because its server's template did not turn them into calls.
//!
//! Taken for a call only when it is the answer's last word, stands outside any code fence, and names a tool that was
//! offered. The text stays as it is; a call found in it passes the same approval as any other.

use serde::Deserialize;
use serde_json::{Map, Value};

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";

/// A call found in text.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub(super) struct Written {
    pub(super) name: String,
    #[serde(default, alias = "parameters")]
    pub(super) arguments: Map<String, Value>,
}

/// The calls that end this text; none if any of them is not whole.
pub(super) fn calls(text: &str, offered: &[&'static str]) -> Vec<Written> {
    let Some(start) = text.find(OPEN).filter(|_| text.trim_end().ends_with(CLOSE)) else { return Vec::new() };
    let fences = text[..start].lines().filter(|line| line.trim_start().starts_with("```")).count();
    let in_prose = !text[..start].trim_end_matches([' ', '\t']).ends_with('\n') && !text[..start].trim().is_empty();
    if fences % 2 == 1 || in_prose {
        return Vec::new();
    }
    let mut calls = Vec::new();
    let mut rest = text[start..].trim();
    while !rest.is_empty() {
        let inner = rest.strip_prefix(OPEN).and_then(|rest| rest.split_once(CLOSE));
        let Some((inner, after)) = inner else { return Vec::new() };
        match serde_json::from_str::<Written>(inner) {
            Ok(call) if offered.contains(&call.name.as_str()) => calls.push(call),
            _ => return Vec::new(),
        }
        rest = after.trim_start();
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let calls = calls(text, &["read", "list"]);
        let seen: Vec<_> =
            calls.iter().map(|call| format!("{} {}", call.name, Value::from(call.arguments.clone()))).collect();
        assert_eq!(seen, expected, "{text}");
    }

    #[test]
    fn a_call_as_the_last_word_is_a_call() {
        let read = r#"<tool_call>{"name":"read","arguments":{"path":"a.txt"}}</tool_call>"#;
        let call = r#"read {"path":"a.txt"}"#;
        check(read, &[call]);
        check(&format!("I look.\n{read}\n"), &[call]);
        check(&format!("{read}\n<tool_call>\n{{\"name\": \"list\"}}\n</tool_call>"), &[call, "list {}"]);
    }

    #[test]
    fn talk_about_calls_is_no_call() {
        let read = r#"<tool_call>{"name":"read","arguments":{}}</tool_call>"#;
        check(&format!("```\n{read}\n```"), &[]);
        check(&format!("```\n{read}"), &[]);
        check(&format!("Models write {read}"), &[]);
        check(&format!("{read}\nis how it looks"), &[]);
        check(r#"<tool_call>{"name":"unknown"}</tool_call>"#, &[]);
        check(r#"<tool_call>{"name":"read","arguments":{"#, &[]);
        check("<tool_call>no JSON</tool_call>", &[]);
        check("</tool_call>", &[]);
    }
}
