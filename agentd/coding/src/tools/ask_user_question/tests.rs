//! What is asked, what comes back, and what is no question.

use std::sync::Mutex;

use foundation::CallId;
use serde_json::json;

use super::*;

#[derive(Debug)]
struct Person {
    answers: Mutex<Option<Result<Vec<Answer>, Unanswered>>>,
}

#[async_trait]
impl Asker for Person {
    async fn ask(
        &self,
        call: &CallId,
        title: &str,
        _: Vec<Question>,
        _: &CancellationToken,
    ) -> Result<Vec<Answer>, Unanswered> {
        assert_eq!((call.0.as_str(), title), ("call_1", "to know"));
        self.answers.lock().unwrap().take().unwrap()
    }
}

fn question(header: &str, labels: &[&str]) -> Value {
    let options: Vec<_> = labels.iter().map(|label| json!({"label": label})).collect();
    json!({"question": format!("{header}?"), "header": header, "options": options})
}

fn ask(questions: &Value, answers: Option<Result<Vec<Answer>, Unanswered>>) -> ToolOutcome {
    let tool = AskUserQuestion::new(Arc::new(Person { answers: Mutex::new(answers) }));
    let call = CallId("call_1".into());
    let context = ToolContext { call: &call, live: &() };
    let input = json!({"description": "to know", "questions": questions});
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(tool.invoke(input, &context, &CancellationToken::new()))
}

#[test]
fn each_question_comes_back_with_its_answer() {
    let answers = vec![
        Answer { selected: vec!["a".into(), "b".into()], text: None },
        Answer { selected: vec![], text: Some("neither".into()) },
        Answer::default(),
    ];
    let labels = ["a", "b"];
    let questions = json!([question("One", &labels), question("Two", &labels), question("Three", &labels)]);
    let output = ask(&questions, Some(Ok(answers))).unwrap();
    assert_eq!(output.text, "One?\n→ a; b\nTwo?\n→ in their words: neither\nThree?\n→ (none of the options)\n");
    assert_eq!(output.summary, "3 answers");
}

#[track_caller]
fn check_invalid(questions: &Value, summary: &str) {
    let error = ask(questions, None).unwrap_err();
    assert_eq!((error.code, error.summary.as_str()), (ErrorCode::InvalidInput, summary));
}

#[test]
fn what_is_no_question_reaches_nobody() {
    check_invalid(&json!([]), "there are 0 questions; 1 to 4 can be asked at once");
    check_invalid(&json!([question("A", &["x"])]), "the question `A` has 1 options; it needs 2 to 4");
    check_invalid(&json!([question("A", &["x", "x"])]), "two options of `A` are both called `x`");
    check_invalid(&json!([question("A", &["x", " "])]), "option 2 of `A` has no label");
    check_invalid(
        &json!([question("A long header", &["x", "y"])]),
        "the header `A long header` must have 1 to 12 characters",
    );
}

#[test]
fn no_answer_tells_the_model_how_to_go_on() {
    for (why, code) in [
        (Unanswered::Declined, ErrorCode::Denied),
        (Unanswered::Expired, ErrorCode::TimedOut),
        (Unanswered::Cancelled, ErrorCode::Cancelled),
    ] {
        let error = ask(&json!([question("A", &["x", "y"])]), Some(Err(why))).unwrap_err();
        assert_eq!(error.code, code);
        assert!(!error.hint.is_empty());
    }
}
