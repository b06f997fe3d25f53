//! Tools of one answer: parallel where they can, in order where they must, each with exactly one result.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use async_trait::async_trait;
use foundation::{Access, ErrorCode, ResultPolicy, Tool, ToolClass, ToolContext, ToolOutcome, ToolOutput, ToolSpec};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::*;

async fn run(calls: Vec<Bit>) -> Ran {
    let ran = Stage::new(vec![calls, answer()]).run().await;
    assert_eq!(ran.outcome.end, RunEnd::Completed);
    ran
}

#[tokio::test(start_paused = true)]
async fn results_are_told_as_they_finish_and_stored_in_call_order() {
    let begin = Instant::now();
    let ran = run(vec![Call("slow", "sleep", json!({"ms": 2000})), Call("fast", "echo", json!({}))]).await;
    assert_eq!(ran.only(&["finished"]), ["finished fast", "finished slow"]);
    assert_eq!(ran.codes(), ["slow", "fast"]);
    assert!(begin.elapsed() < Duration::from_millis(2010));
}

#[tokio::test(start_paused = true)]
async fn no_more_than_the_cap_run_at_once() {
    let calls = ["a", "b", "c"].map(|id| Call(id, "sleep", json!({"ms": 10})));
    let limits = Limits { parallel_tools: 2, ..Limits::default() };
    let ran = Stage { limits, ..Stage::new(vec![calls.into(), answer()]) }.run().await;
    assert_eq!(ran.only(&["begin", "end"])[..3], ["begin a", "begin b", "end a"]);
    assert_eq!(ran.codes(), ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn writers_of_one_path_run_in_call_order_beside_others() {
    let ran = run(vec![
        Call("a", "write", json!({"path": "/x", "ms": 50})),
        Call("b", "write", json!({"path": "/x", "ms": 10})),
        Call("c", "write", json!({"path": "/y", "ms": 10})),
        Call("d", "read", json!({"path": "/x"})),
    ])
    .await;
    assert_eq!(
        ran.only(&["begin", "end"]),
        ["begin a", "begin c", "end c", "end a", "begin b", "end b", "begin d", "end d"]
    );
}

#[tokio::test]
async fn one_bad_call_hurts_neither_the_turn_nor_its_siblings() {
    let ran = run(vec![
        Call("a", "echo", json!({})),
        Call("b", "fails", json!({})),
        Call("c", "panics", json!({})),
        Call("d", "nope", json!({})),
        Call("e", "echo", json!({"path": 1})),
        Raw("f", "echo", "{\"path\": "),
        Call("g", "echo", json!({})),
    ])
    .await;
    let codes = ["a", "b COMMAND_FAILED", "c INTERNAL", "d UNKNOWN_TOOL", "e INVALID_INPUT", "f INVALID_INPUT", "g"];
    assert_eq!(ran.codes(), codes);
    assert_eq!(ran.only(&["started"]), ["started a", "started b", "started c", "started g"]);
    let mut finished = ran.only(&["finished"]);
    finished.sort_unstable();
    assert_eq!(finished, codes.map(|code| format!("finished {code}")));
}

#[track_caller]
fn check_says(ran: &Ran, words: &[&str]) {
    let text = &ran.results()[0].2;
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}

#[tokio::test]
async fn a_bad_call_is_told_what_to_do_next() {
    let ran = run(vec![Call("a", "reed", json!({}))]).await;
    check_says(&ran, &["no tool `reed`", "Did you mean `read`?", "echo, sleep, stubborn"]);
    let ran = run(vec![Call("a", "zzz", json!({}))]).await;
    check_says(&ran, &["no tool `zzz`", "available tools: echo"]);
    let ran = run(vec![Call("a", "echo", json!({"path": 1, "colour": "red"}))]).await;
    check_says(&ran, &["colour: no such parameter", "path: expected string, got number 1", "was not run"]);
    let ran = run(vec![Raw("a", "echo", "{\"path\": ")]).await;
    check_says(&ran, &["not valid JSON", "line 1 column 9"]);
    let ran = run(vec![Call("a", "panics", json!({}))]).await;
    check_says(&ran, &["the tool tripped", "not known how much"]);
}

#[tokio::test]
async fn a_number_in_a_string_is_set_right_for_readers_alone() {
    let ran = run(vec![Call("a", "read", json!({"ms": "1"})), Call("b", "echo", json!({"ms": "1"}))]).await;
    assert_eq!(ran.codes(), ["a", "b INVALID_INPUT"]);
    assert!(ran.results()[0].2.contains(r#"{"ms":1}"#));
}

#[tokio::test]
async fn calls_run_whatever_reason_the_provider_gives_for_stopping() {
    let ran = run(vec![Call("a", "echo", json!({})), Stop(StopReason::End)]).await;
    assert_eq!(ran.codes(), ["a"]);
}

#[tokio::test]
async fn a_result_is_marked_as_an_error_with_its_code() {
    let ran = run(vec![Call("a", "fails", json!({}))]).await;
    let Part::ToolResult { is_error, code, content, .. } = &ran.transcript[2].content[0] else { panic!() };
    assert!(is_error);
    assert_eq!(code.as_deref(), Some(ErrorCode::CommandFailed.as_str()));
    assert_eq!(content, "exit code 1\ncode: COMMAND_FAILED\nRead the output.");
}

/// Blocks its thread until its sibling has run.
#[derive(Debug)]
struct Blocks(ToolSpec, Mutex<Receiver<()>>);

#[derive(Debug)]
struct Frees(ToolSpec, Sender<()>);

fn spec(name: &'static str) -> ToolSpec {
    let policy = ResultPolicy::Summary;
    ToolSpec { name, description: "", parameters: json!({"type": "object"}), class: ToolClass::Effect, policy }
}

#[async_trait]
impl Tool for Blocks {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn access(&self, _: &Value) -> Access {
        Access::Nothing
    }

    async fn invoke(&self, _: Value, _: &ToolContext<'_>, _: &CancellationToken) -> ToolOutcome {
        self.1.lock().unwrap().recv().unwrap();
        Ok(ToolOutput::summary("free"))
    }
}

#[async_trait]
impl Tool for Frees {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn access(&self, _: &Value) -> Access {
        panic!("this tool does not know")
    }

    async fn invoke(&self, _: Value, _: &ToolContext<'_>, _: &CancellationToken) -> ToolOutcome {
        self.1.send(()).unwrap();
        Ok(ToolOutput::summary("freed"))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_blocks_its_thread_does_not_hold_up_its_siblings() {
    let (free, wait) = channel();
    let mut stage = Stage::new(vec![vec![Call("a", "blocks", json!({})), Call("b", "frees", json!({}))], answer()]);
    stage.more_tools = vec![Arc::new(Blocks(spec("blocks"), Mutex::new(wait))), Arc::new(Frees(spec("frees"), free))];
    let ran = stage.run().await;
    assert_eq!(ran.codes(), ["a", "b"]);
}
