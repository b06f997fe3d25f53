//! A cancel at each stage: it is quick, nothing more starts, and every call still has its result.

use std::time::Duration;

use tokio::time::Instant;

use super::*;
use crate::scripted::Bit::Stall;

/// Runs a script and returns it with the time that passed.
async fn run(stage: Stage) -> (Ran, Duration) {
    let begin = Instant::now();
    let ran = stage.run().await;
    assert_eq!(ran.outcome.end, RunEnd::Interrupted);
    (ran, begin.elapsed())
}

#[tokio::test(start_paused = true)]
async fn in_an_answer_the_words_so_far_stay_and_nothing_else() {
    let script = vec![Think("hm"), Call("a", "echo", json!({})), Text("so far"), Stall];
    let (ran, time) = run(Stage::new(vec![script]).cancel_at("snapshot so far")).await;
    let answer = ran.transcript.last().unwrap();
    assert_eq!(answer.content, [Part::Text { text: "so far".into() }]);
    assert_eq!((answer.stop_reason, answer.streaming), (Some(StopReason::Interrupted), false));
    assert_eq!(time, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn before_the_first_word_nothing_is_kept() {
    let (ran, _) = run(Stage::new(vec![vec![Think("hm"), Stall]]).cancel_at("snapshot")).await;
    assert_eq!(ran.transcript.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn before_the_run_nothing_is_asked() {
    let stage = Stage::new(vec![]);
    stage.log.cancel.cancel();
    let (ran, _) = run(stage).await;
    assert!(ran.requests.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_never_waits_still_sees_the_cancel() {
    let (ran, _) = run(Stage::new(vec![vec![Text("x"); 10_000]]).cancel_at("snapshot xxx")).await;
    assert!(ran.lines.len() < 1000, "{}", ran.lines.len());
}

#[tokio::test(start_paused = true)]
async fn between_answer_and_tools_no_tool_starts() {
    let script = vec![Call("a", "echo", json!({})), Call("b", "echo", json!({}))];
    let (ran, _) = run(Stage::new(vec![script]).cancel_at("message Assistant")).await;
    assert!(ran.only(&["started", "begin"]).is_empty());
    assert_eq!(ran.codes(), ["a CANCELLED", "b CANCELLED"]);
    assert!(ran.results()[0].2.contains("Nothing of it happened"));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_told_but_not_begun_does_not_begin() {
    let (ran, _) = run(Stage::new(vec![ask("a")]).cancel_at("started a")).await;
    assert!(ran.only(&["begin"]).is_empty());
    assert_eq!(ran.codes(), ["a CANCELLED"]);
}

#[tokio::test(start_paused = true)]
async fn running_tools_stop_waiting_ones_never_start_and_finished_ones_keep_their_result() {
    let script = vec![
        Call("a", "sleep", json!({"ms": 10})),
        Call("b", "sleep", json!({"ms": 60_000})),
        Call("c", "write", json!({"path": "/x", "ms": 60_000})),
        Call("d", "write", json!({"path": "/x"})),
    ];
    let (ran, time) = run(Stage::new(vec![script]).cancel_at("finished a")).await;
    assert_eq!(ran.codes(), ["a", "b CANCELLED", "c CANCELLED", "d CANCELLED"]);
    assert_eq!(ran.only(&["begin"]), ["begin a", "begin b", "begin c"]);
    assert_eq!(ran.results()[1].2, "stopped half-way\ncode: CANCELLED\nLook at it.");
    assert!(ran.results()[3].2.contains("Nothing of it happened"));
    assert!(time < Duration::from_millis(20));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_does_not_stop_is_left_behind_with_an_honest_result() {
    let script = vec![Call("a", "stubborn", json!({})), Call("b", "echo", json!({}))];
    let (ran, time) = run(Stage::new(vec![script]).cancel_at("begin a")).await;
    assert_eq!(ran.codes()[0], "a UNKNOWN_OUTCOME");
    assert!(time < Duration::from_secs(2) && ran.only(&["end a"]).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_write_that_has_begun_is_over_before_the_interrupt_is_answered() {
    let script = vec![Call("a", "write", json!({"path": "/x", "deaf": true, "ms": 10_000}))];
    let (ran, time) = run(Stage::new(vec![script]).cancel_at("begin a")).await;
    assert_eq!(ran.codes(), ["a"]);
    assert_eq!(ran.only(&["end", "finished"]), ["end a", "finished a"]);
    assert_eq!(time, Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn after_the_tools_no_further_request_is_sent() {
    let (ran, _) = run(Stage::new(vec![ask("a")]).cancel_at("message Tool")).await;
    assert_eq!((ran.codes(), ran.requests.len()), (vec!["a".to_owned()], 1));
}
