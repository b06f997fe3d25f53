//! Runs from the outside: what is told, kept and sent, in which order, however a run ends.

mod cancel;
mod hooks;
mod resume;
mod tools;

use std::sync::Arc;

use foundation::{CallId, Message, ModelErrorKind, Part, Role, StopReason, ToolChoice};
use serde_json::json;

use crate::scripted::Bit::{Call, Fail, Panic, Raw, Stop, Text, Think, Vanish};
use crate::scripted::{Bit, Ran, Stage};
use crate::{Limits, RunEnd};

fn answer() -> Vec<Bit> {
    vec![Text("done")]
}

#[tokio::test]
async fn an_answer_without_calls_ends_the_run() {
    let ran = Stage::new(vec![vec![Text("Hel"), Text("lo")]]).run().await;
    assert_eq!(ran.outcome.end, RunEnd::Completed);
    assert_eq!(ran.outcome.usage.input_tokens, 10);
    assert_eq!(ran.lines, ["snapshot Hel", "snapshot Hello", "message Assistant Hello"]);
}

#[tokio::test]
async fn an_answer_is_kept_before_its_calls_start_and_their_results_before_the_next_request() {
    let ran = Stage::new(vec![vec![Text("look"), Call("a", "echo", json!({}))], answer()]).run().await;
    assert_eq!(ran.outcome.end, RunEnd::Completed);
    assert_eq!(ran.outcome.usage.input_tokens, 20);
    assert_eq!(
        ran.only(&["message", "started", "begin", "output", "end", "finished"]),
        [
            "message Assistant look",
            "started a",
            "begin a",
            "output a working",
            "end a",
            "finished a",
            "message Tool ",
            "message Assistant done"
        ]
    );
    assert_eq!(ran.requests[1].messages, ran.transcript[..3], "what is sent is what is kept");
}

#[track_caller]
fn check_failed(ran: &Ran, kind: ModelErrorKind, kept: &[&str]) {
    assert!(matches!(&ran.outcome.end, RunEnd::Failed(error) if error.kind == kind), "{:?}", ran.outcome.end);
    let answers = ran.transcript.iter().filter(|message| message.role == Role::Assistant);
    assert_eq!(answers.map(Message::text).collect::<Vec<_>>(), kept);
}

#[tokio::test]
async fn a_failed_answer_leaves_its_words_and_never_its_calls() {
    let call = || Call("a", "echo", json!({}));
    let cases = [
        (vec![Fail(ModelErrorKind::Auth)], ModelErrorKind::Auth, vec![]),
        (vec![Text("so"), Fail(ModelErrorKind::Network)], ModelErrorKind::Network, vec!["so"]),
        (vec![Think("hm"), Text("so"), call(), Fail(ModelErrorKind::Server)], ModelErrorKind::Server, vec!["so"]),
        (vec![Think("hm"), call(), Vanish], ModelErrorKind::Incomplete, vec![]),
        (vec![Text("so"), Panic], ModelErrorKind::Protocol, vec!["so"]),
    ];
    for (script, kind, kept) in cases {
        let ran = Stage::new(vec![script]).run().await;
        check_failed(&ran, kind, &kept);
        let answers: Vec<_> = ran.transcript.iter().filter(|message| message.role == Role::Assistant).collect();
        assert!(answers.iter().all(|answer| answer.stop_reason == Some(StopReason::Error)));
        assert!(answers.iter().all(|answer| matches!(answer.content[..], [Part::Text { .. }])));
    }
}

#[tokio::test]
async fn a_filtered_answer_is_kept_with_its_calls_answered_and_fails_the_run() {
    let script = vec![Text("so"), Call("a", "echo", json!({})), Stop(StopReason::Filter)];
    let ran = Stage::new(vec![script]).run().await;
    check_failed(&ran, ModelErrorKind::Filter, &["so"]);
    assert_eq!(ran.codes(), ["a CANCELLED"]);
    assert!(ran.only(&["started", "begin"]).is_empty());
}

#[tokio::test]
async fn an_answer_cut_at_the_output_limit_runs_all_calls_but_the_last() {
    let script = vec![Call("a", "echo", json!({})), Call("b", "echo", json!({})), Stop(StopReason::Length)];
    let ran = Stage::new(vec![script, answer()]).run().await;
    assert_eq!(ran.outcome.end, RunEnd::Completed);
    assert_eq!(ran.codes(), ["a", "b INVALID_INPUT"]);
    assert!(ran.results()[1].2.contains("cut at the output limit") && ran.results()[1].2.contains("smaller calls"));
    assert_eq!(ran.only(&["begin"]), ["begin a"]);
}

#[tokio::test]
async fn words_cut_at_the_output_limit_end_the_run_with_a_notice() {
    let ran = Stage::new(vec![vec![Text("so"), Stop(StopReason::Length)]]).run().await;
    assert_eq!(ran.outcome.end, RunEnd::Completed);
    assert!(ran.only(&["notice"])[0].contains("output limit"));
}

#[tokio::test]
async fn an_empty_answer_is_not_kept() {
    let ran = Stage::new(vec![vec![]]).run().await;
    assert_eq!(ran.outcome.end, RunEnd::Completed);
    assert_eq!(ran.lines, ["notice the model gave an empty answer"]);
}

fn limited(script: Vec<Vec<Bit>>) -> Stage {
    Stage { limits: Limits { max_steps: 2, ..Limits::default() }, ..Stage::new(script) }
}

fn ask(id: &'static str) -> Vec<Bit> {
    vec![Call(id, "echo", json!({}))]
}

#[tokio::test]
async fn at_the_step_limit_the_model_sums_up_without_tools() {
    let ran = limited(vec![ask("a"), ask("b"), vec![Text("half is done")]]).run().await;
    assert_eq!(ran.outcome.end, RunEnd::Limit);
    assert_eq!(ran.codes(), ["a", "b CANCELLED"]);
    assert_eq!(ran.only(&["begin"]), ["begin a"]);
    let choices: Vec<_> = ran.requests.iter().map(|request| request.tool_choice).collect();
    assert_eq!(choices, [ToolChoice::Auto, ToolChoice::Auto, ToolChoice::None]);
    assert_eq!(ran.requests[0].tools, ran.requests[2].tools, "the cached prefix stays");
    let [.., reminder, summary] = &ran.transcript[..] else { panic!() };
    assert_eq!((reminder.role, reminder.synthetic.as_deref()), (Role::User, Some("reminder")));
    assert_eq!((summary.text().as_str(), &summary.synthetic), ("half is done", &None));
}

#[tokio::test]
async fn a_closing_summary_that_fails_or_calls_still_ends_at_the_limit() {
    let ran = limited(vec![ask("a"), ask("b"), vec![Fail(ModelErrorKind::Network)]]).run().await;
    assert_eq!(ran.outcome.end, RunEnd::Limit);
    let last = ran.transcript.last().unwrap();
    assert_eq!((last.role, last.synthetic.as_deref()), (Role::Assistant, Some("limit")));
    assert!(last.text().contains("limit of 2 steps"));

    let ran = limited(vec![ask("a"), ask("b"), ask("c")]).run().await;
    assert_eq!(ran.outcome.end, RunEnd::Limit);
    assert_eq!(ran.codes(), ["a", "b CANCELLED", "c CANCELLED"]);
}

#[tokio::test]
async fn the_last_allowed_step_may_still_answer() {
    let ran = limited(vec![ask("a"), answer()]).run().await;
    assert_eq!(ran.outcome.end, RunEnd::Completed);
}

#[tokio::test]
async fn call_ids_that_come_again_are_made_unique() {
    let ran = Stage::new(vec![ask("a"), ask("a"), ask(""), answer()]).run().await;
    assert_eq!(ran.outcome.end, RunEnd::Completed);
    let ids: Vec<_> = ran.results().into_iter().map(|(id, ..)| id).collect();
    assert!(ids[0] == "a" && ids[1].starts_with("call_") && ids[2].starts_with("call_") && ids[1] != ids[2]);
}

#[tokio::test]
async fn a_broken_history_is_sent_repaired() {
    let open = Part::ToolUse { id: CallId("x".into()), name: "echo".into(), input: json!({}), raw_input: None };
    let broken = Message { content: vec![open], streaming: false, ..Message::draft("m") };
    let stage = Stage { history: vec![broken, Message::user_text("go on")], ..Stage::new(vec![answer()]) };
    let ran = stage.run().await;
    assert_eq!(ran.outcome.end, RunEnd::Completed);
    assert!(ran.only(&["notice"])[0].contains("the call `x`"));
    assert_eq!(ran.requests[0].messages.len(), 3);
}

#[tokio::test]
async fn a_refused_event_stops_the_run_and_nothing_more_starts_or_is_told() {
    let cases = [
        ("message Assistant", vec!["message Assistant "]),
        ("started a", vec!["message Assistant ", "started a"]),
        ("finished a", vec!["message Assistant ", "started a", "begin a", "end a", "finished a"]),
        ("message Tool", vec!["message Assistant ", "started a", "begin a", "end a", "finished a", "message Tool "]),
    ];
    for (cue, lines) in cases {
        let mut stage = Stage::new(vec![ask("a"), answer()]);
        stage.log.refuse_at = Some(cue);
        let ran = stage.run().await;
        assert!(matches!(&ran.outcome.end, RunEnd::Halted(halt) if halt.0 == "the disk is full"));
        assert_eq!(ran.only(&["message", "started", "begin", "end", "finished", "notice"]), lines);
    }
}

#[tokio::test]
async fn a_run_can_move_between_threads() {
    fn check<T: Send>(_: &T) {}
    let stage = Stage::new(vec![answer()]);
    let run = stage.run();
    check(&run);
    assert_eq!(run.await.outcome.end, RunEnd::Completed);
}
