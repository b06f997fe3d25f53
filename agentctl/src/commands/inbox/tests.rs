//! Answers that come to the wrong place or too late, against a daemon that plays a script.

use serde_json::json;

use super::*;
use crate::fake::{self, Script};

#[track_caller]
fn check(id: &str, failure: &Failure, expected: &str) {
    assert_eq!(failure.sentence(), expected, "{id}");
}

/// What a yes gets from a daemon with one waiting question, `q1`, and one approval that was allowed, `k3`.
async fn refused(id: &str) -> Failure {
    let dir = tempfile::tempdir().unwrap();
    let world = fake::world(dir.path());
    let mut question = json!(fake::question("q1"));
    question["questions"] = json!([{"question": "Which?", "header": "h", "options": []}]);
    let mut approval = json!(fake::approval("k3"));
    approval["state"] = "allowed".into();
    approval["resolution"] = json!({"decision": "allow", "scope": "once", "at": "2026-12-01T03:00:00Z",
        "by": {"client": "agentctl", "pid": 1, "uid": 1}});
    let _daemon = fake::daemon(&world, move |method, params| {
        let result = match (method, params["state"].as_str()) {
            ("approval/list", Some("allowed")) => json!({"approvals": [approval]}),
            ("approval/list", _) => json!({"approvals": []}),
            ("question/list", None) => json!({"questions": [question]}),
            other => panic!("{other:?} was called"),
        };
        Script { answer: json!({"result": result}), ..Script::default() }
    });
    allow(&world, id, Scope::Once).await.unwrap_err()
}

#[tokio::test]
async fn a_yes_that_cannot_count_says_why() {
    let to_question = "is a question, and no request for a yes (hint: agentctl answer q1 ANSWER)";
    check("q1", &refused("q1").await, &format!("`q1` {to_question}"));
    let id = fake::question("q1").id.to_string();
    check(&id, &refused(&id).await, &format!("`{id}` {to_question}"));
    let late = "[k3] already allowed by agentctl (pid 1) (hint: nothing to do, the first answer counts)";
    check("k3", &refused("k3").await, late);
    let unknown = "no waiting approval is called `zz` (hint: `agentctl approvals` lists them)";
    check("zz", &refused("zz").await, unknown);
}
