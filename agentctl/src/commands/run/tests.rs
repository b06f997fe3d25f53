//! Whole runs against a daemon that plays a script; the exit code is what counts.

use serde_json::{Value, json};

use super::*;
use crate::fake::{self, Script};

fn args(prompt: &str) -> Run {
    Run {
        session: None,
        model: None,
        mode: None,
        json: false,
        max_steps: None,
        timeout: None,
        cwd: None,
        prompt: prompt.into(),
    }
}

/// Plays `events` after the turn has started, each in the turn.
async fn outcome(args: Run, events: Vec<Value>) -> Result<Exit, Failure> {
    let dir = tempfile::tempdir().unwrap();
    let world = fake::world(dir.path());
    let _daemon = fake::daemon(&world, move |method, params| match method {
        "session/new" => {
            assert_eq!(params["cwd"], "/a");
            Script {
                answer: json!({"result": {"session": fake::session(fake::SESSION, "/a", 1)}}),
                ..Script::default()
            }
        }
        "session/subscribe" => Script { answer: json!({"result": "s1"}), ..Script::default() },
        "turn/start" => {
            let events = events.iter().cloned().map(|mut event| {
                event["turnId"] = fake::TURN.into();
                event
            });
            Script {
                answer: json!({"result": {"turnId": fake::TURN, "state": "running", "seq": 2}}),
                events: events.collect(),
                hang_up: false,
            }
        }
        other => panic!("{other} was called"),
    });
    run(&world, args).await
}

fn ended(state: &str) -> Value {
    json!({"type": "turn.ended", "data": {"state": state, "usage": {}}})
}

#[track_caller]
fn check(outcome: &Result<Exit, Failure>, expected: Exit) {
    assert_eq!(outcome.as_ref().unwrap(), &expected);
}

#[tokio::test]
async fn the_turns_end_is_the_runs_end() {
    check(&outcome(args("x"), vec![ended("completed")]).await, Exit::Done);
    check(&outcome(args("x"), vec![ended("failed")]).await, Exit::Failed);
    check(&outcome(args("x"), vec![ended("limit")]).await, Exit::Limit);
    check(&outcome(Run { json: true, ..args("x") }, vec![ended("interrupted")]).await, Exit::Interrupted);
}

#[tokio::test]
async fn a_turn_that_policy_cut_short_is_not_a_success() {
    let mut approval = serde_json::to_value(fake::approval("k3")).unwrap();
    approval["state"] = "denied".into();
    approval["resolution"] =
        json!({"decision": "deny", "scope": "once", "by": {"policy": "deny"}, "at": "2026-12-01T03:00:00Z"});
    let resolved = json!({"type": "approval.resolved", "data": {"approval": approval}});
    check(&outcome(args("x"), vec![resolved.clone(), ended("completed")]).await, Exit::Denied);
    check(&outcome(args("x"), vec![resolved, ended("failed")]).await, Exit::Failed);
}

#[tokio::test]
async fn when_time_is_up_the_turn_goes_on_without_us() {
    check(&outcome(Run { timeout: Some(0), ..args("x") }, Vec::new()).await, Exit::TimedOut);
}

#[tokio::test]
async fn an_empty_prompt_is_a_usage_error_before_anything_is_started() {
    let dir = tempfile::tempdir().unwrap();
    let failure = run(&fake::world(dir.path()), args("  ")).await.unwrap_err();
    assert_eq!(failure.exit(), Exit::Usage);
}

#[test]
fn a_run_that_waits_for_a_person_says_so_once_with_the_way_out() {
    let mut view = View::new(fake::session(fake::SESSION, "/a", 1));
    let asked = json!({"type": "approval.requested", "data": {"approval": fake::approval("k3")}});
    let asked = fake::event(asked);
    assert_eq!(
        screen::waits_for(&asked, &view).as_deref(),
        Some(
            "waiting for an answer (bash wants a yes): agentctl allow k3 | agentctl deny k3   (Ctrl-C stops the turn)"
        )
    );
    view.apply(&asked);
    assert_eq!(screen::waits_for(&asked, &view), None, "said once");
    let question = json!({"type": "question.requested", "data": {"question": fake::question("q1")}});
    let question = fake::event(question);
    assert!(screen::waits_for(&question, &view).unwrap().contains("agentctl answer q1"));
    view.session.no_client_policy = protocol::session::NoClientPolicy::Deny;
    assert_eq!(screen::waits_for(&question, &view), None, "policy answers");
}
