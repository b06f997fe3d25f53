//! The offline model through the front door: whole turns of rules, and the clock of a script.

use std::time::Duration;

use foundation::{CallId, Message, ModelError, ModelErrorKind, ModelRequest, Part, ResultPolicy, ToolClass, ToolSpec};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::play::{content, read, request};
use crate::registry::Providers;

fn tools() -> Vec<ToolSpec> {
    let parameters = json!({"type": "object"});
    let policy = ResultPolicy::Summary;
    let tool =
        |name| ToolSpec { name, description: "", parameters: parameters.clone(), class: ToolClass::Read, policy };
    ["read", "edit"].map(tool).into()
}

async fn rules(messages: &[Message]) -> Message {
    let model = Providers::new(Vec::new(), None).model("offline/rules").unwrap();
    let tools = tools();
    let stream = model.stream(ModelRequest { tools: &tools, ..request(messages) }).await.unwrap();
    read(stream).await.unwrap()
}

fn result(answer: &Message, content: &str) -> Message {
    let (id, ..) = answer.tool_uses().next().expect("a call");
    let result = Part::ToolResult { tool_use_id: id.clone(), content: content.into(), is_error: false, code: None };
    Message::tool_results(vec![result])
}

#[tokio::test]
async fn a_file_is_read_and_told_in_one_round() {
    let mut messages = vec![Message::user_text("read package.json")];
    let answer = rules(&messages).await;
    let input = json!({"description": "Read package.json", "path": "package.json"});
    assert_eq!(content(&answer), json!([{"text": "Read package.json."}, {"call": "read", "input": input}]));
    assert_eq!(json!(answer.stop_reason), "tool_use");
    let result = result(&answer, "{\"name\": \"demo\"}");
    messages.extend([answer, result]);
    let answer = rules(&messages).await;
    assert!(answer.text().starts_with("Here is package.json:\n\n{\"name\": \"demo\"}"), "{}", answer.text());
    assert_eq!(json!(answer.stop_reason), "end");
    assert_eq!(answer.model.as_deref(), Some("offline/rules"));
}

#[tokio::test]
async fn the_same_call_in_another_turn_has_another_id() {
    let mut messages = Vec::new();
    let mut ids: Vec<CallId> = Vec::new();
    for _ in 0..3 {
        messages.push(Message::user_text("read a.txt"));
        let answer = rules(&messages).await;
        ids.extend(answer.tool_uses().map(|(id, ..)| id.clone()));
        let result = result(&answer, "x");
        messages.extend([answer, result]);
    }
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

/// Plays step after step: each answer joins the transcript, as far as there is one.
async fn script(script: Value, calls: usize) -> Vec<(Result<Value, ModelError>, u64)> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), script.to_string()).unwrap();
    let name = format!("offline/script:{}", file.path().display());
    let model = Providers::new(Vec::new(), None).model(&name).unwrap();
    let (mut messages, mut seen) = (vec![Message::user_text("go")], Vec::new());
    for _ in 0..calls {
        let started = Instant::now();
        let answer = match model.stream(request(&messages)).await {
            Ok(stream) => read(stream).await,
            Err(error) => Err(error),
        };
        let seconds = started.elapsed().as_secs();
        seen.push((answer.as_ref().map(content).map_err(Clone::clone), seconds));
        messages.extend(answer.ok());
    }
    seen
}

#[tokio::test(start_paused = true)]
async fn a_script_keeps_its_own_time() {
    let steps = json!([[
        {"delayMs": 1000}, {"text": "a"}, {"delayMs": 2000},
        {"repeat": {"text": "b", "count": 3, "delayMs": 1000}},
    ]]);
    let seen = script(json!({"steps": steps}), 1).await;
    assert_eq!(seen, [(Ok(json!([{"text": "abbb"}])), 6)]);
    let seen = script(json!({"steps": [[{"text": "a"}, {"stallMs": 60_000}]]}), 1).await;
    assert!(matches!(&seen[0], (Err(error), 60) if error.kind == ModelErrorKind::Network), "{seen:?}");
}

#[tokio::test]
async fn a_script_answers_by_its_place_in_the_transcript() {
    let steps = json!([[{"text": "one"}], [{"text": "two"}]]);
    let one_two = [json!([{"text": "one"}]), json!([{"text": "two"}])];
    let seen = script(json!({"steps": steps.clone(), "loop": true}), 3).await;
    let texts: Vec<_> = seen.into_iter().map(|(answer, _)| answer.unwrap()).collect();
    assert_eq!(texts, [one_two[0].clone(), one_two[1].clone(), one_two[1].clone()]);
    let seen = script(json!({"steps": steps}), 3).await;
    let error = seen[2].0.as_ref().unwrap_err();
    assert!(error.message.contains("2 steps and the transcript asks for step 3"), "{error}");
}

#[tokio::test]
async fn a_script_can_call_several_tools_and_fail_by_status() {
    let calls = json!([{"id": "a", "name": "x", "input": {"n": 1}}, {"id": "a", "name": "x"}]);
    let error = json!({"message": "slow down", "status": 429, "retryAfterSecs": 3});
    let seen = script(json!({"steps": [[{"toolCalls": calls}], [{"error": error}]]}), 2).await;
    assert_eq!(seen[0].0, Ok(json!([{"call": "x", "input": {"n": 1}}, {"call": "x", "input": {}}])));
    let error = seen[1].0.as_ref().unwrap_err();
    assert_eq!((error.kind, error.retry_after), (ModelErrorKind::RateLimit, Some(Duration::from_secs(3))));
}

#[tokio::test]
async fn a_script_that_is_not_there_is_named() {
    let model = Providers::new(Vec::new(), None).model("offline/script:/no/such/file.json").unwrap();
    let error = model.stream(request(&[])).await.err().expect("an error");
    assert_eq!(error.kind, ModelErrorKind::BadRequest);
    assert!(error.message.contains("/no/such/file.json"), "{error}");
}
