//! Runs that go on from where they were cut off, and runs that people speak into.

use std::collections::HashMap;

use super::*;
use crate::Resumption;

/// A run that was cut off after an answer with these calls.
fn cut_off(calls: &[(&str, &str)], script: Vec<Vec<Bit>>) -> Stage {
    let content = calls.iter().map(|(id, name)| {
        let id = CallId((*id).into());
        Part::ToolUse { id, name: (*name).into(), input: json!({}), raw_input: None }
    });
    let answer = Message { role: Role::Assistant, content: content.collect(), ..Message::user_text("") };
    let mut stage = Stage::new(script);
    stage.history.push(Message { stop_reason: Some(StopReason::ToolUse), ..answer });
    stage.so_far.steps = 1;
    stage
}

fn result(id: &str, text: &str) -> (CallId, Part) {
    let id = CallId(id.into());
    (id.clone(), Part::ToolResult { tool_use_id: id, content: text.into(), is_error: false, code: None })
}

#[tokio::test]
async fn what_is_settled_stays_so_and_the_rest_is_run_once() {
    let mut stage = cut_off(&[("a", "echo"), ("b", "read"), ("c", "echo")], vec![answer()]);
    stage.so_far.settled = HashMap::from([result("a", "kept")]);
    stage.so_far.again = HashMap::from([(CallId("b".into()), "run again".into())]);
    let ran = stage.run().await;
    assert_eq!(ran.outcome.end, RunEnd::Completed);
    assert_eq!(ran.only(&["started"]).len(), 2, "{:?}", ran.lines);
    assert!(!ran.lines.iter().any(|line| line.ends_with(" a")), "{:?}", ran.lines);
    assert_eq!(ran.codes(), ["a", "b", "c"]);
    let texts: Vec<String> = ran.results().into_iter().map(|(.., text)| text).collect();
    assert_eq!(texts[0], "kept");
    assert!(texts[1].starts_with("(run again)\n"), "{texts:?}");
    assert_eq!(ran.requests.len(), 1, "the answer that was kept is not asked for again");
}

#[tokio::test]
async fn steps_that_were_made_count() {
    let mut stage = cut_off(&[("a", "echo")], vec![answer()]);
    stage.limits = Limits { max_steps: 1, ..Limits::default() };
    let ran = stage.run().await;
    assert_eq!(ran.outcome.end, RunEnd::Limit);
    assert_eq!(ran.codes(), ["a CANCELLED"], "at the limit no tool runs");
}

#[tokio::test]
async fn without_an_open_answer_it_asks_again() {
    let mut stage = Stage::new(vec![answer()]);
    stage.so_far = Resumption { steps: 3, ..Resumption::default() };
    let ran = stage.run().await;
    assert_eq!((ran.outcome.end, ran.requests.len()), (RunEnd::Completed, 1));
}

#[tokio::test]
async fn what_people_say_goes_in_behind_the_results_or_keeps_a_run_from_its_end() {
    for script in [vec![ask("a"), answer()], vec![answer(), answer()]] {
        let mut stage = Stage::new(script);
        stage.said = vec![Message::user_text("more")];
        let ran = stage.run().await;
        assert_eq!(ran.outcome.end, RunEnd::Completed);
        assert_eq!(ran.requests.len(), 2);
        assert_eq!(ran.requests[1].messages.last().unwrap().text(), "more");
    }
}
