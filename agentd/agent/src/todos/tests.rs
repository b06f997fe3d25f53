//! The list through its tool and its reminder.

use foundation::{Effect, ErrorCode, Tool, ToolContext};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::scripted::{Bit, Stage};

fn todo(id: &str, status: &str) -> Value {
    json!({"id": id, "content": format!("do {id}"), "status": status})
}

async fn write(list: &TodoList, todos: &[Value], merge: bool) -> foundation::ToolOutcome {
    let call = foundation::CallId("c".into());
    let context = ToolContext { call: &call, live: &() };
    let input = json!({"description": "plan", "todos": todos, "merge": merge});
    TodoWrite::new(list.clone()).invoke(input, &context, &CancellationToken::new()).await
}

fn shape(list: &TodoList) -> String {
    listing(&list.todos())
}

#[tokio::test]
async fn a_write_replaces_the_list_or_merges_by_id() {
    let list = TodoList::default();
    write(&list, &[todo("a", "in_progress"), todo("b", "pending")], false).await.unwrap();
    let output = write(&list, &[todo("a", "completed"), todo("c", "pending")], true).await.unwrap();
    assert_eq!(shape(&list), "- [completed] a: do a\n- [pending] b: do b\n- [pending] c: do c\n");
    assert_eq!(output.effect, Some(Effect::Todos(list.todos())));
    assert_eq!(output.text, format!("2 of 3 tasks open\n{}", shape(&list)));
    write(&list, &[todo("d", "pending")], false).await.unwrap();
    assert_eq!(shape(&list), "- [pending] d: do d\n");
}

#[tokio::test]
async fn a_list_that_breaks_a_rule_changes_nothing() {
    let list = TodoList::default();
    write(&list, &[todo("a", "in_progress")], false).await.unwrap();
    for (todos, merge, word) in [
        ([todo("b", "in_progress"), todo("c", "pending")], true, "in_progress (a, b)"),
        ([todo("b", "in_progress"), todo("c", "in_progress")], false, "in_progress (b, c)"),
        ([todo("b", "pending"), todo("b", "pending")], false, "the id `b`"),
    ] {
        let error = write(&list, &todos, merge).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidInput);
        assert!(error.summary.contains(word), "{error}");
        assert_eq!(shape(&list), "- [in_progress] a: do a\n");
    }
}

#[test]
fn the_tool_asks_for_a_description_first() {
    let tool = TodoWrite::new(TodoList::default());
    let properties = tool.spec().parameters["properties"].as_object().unwrap();
    assert_eq!(properties.keys().collect::<Vec<_>>(), ["description", "todos", "merge"]);
    jsonschema::draft202012::new(&tool.spec().parameters).unwrap();
}

/// The requests, of `steps` in one run, that end in a reminder.
async fn reminded(list: &TodoList, steps: usize) -> Vec<usize> {
    let ask = |_| vec![Bit::Call("", "echo", json!({}))];
    let script = (1..steps).map(ask).chain([vec![Bit::Text("done")]]).collect();
    let ran = Stage::new(script).with(TodoReminder::new(list.clone(), 10)).run().await;
    let is_reminder = |text: &str| text.contains("task list") && text.contains("- [pending] a: do a");
    let ends = ran.requests.iter().map(|request| request.messages.last().unwrap().text());
    ends.enumerate().filter(|(_, text)| is_reminder(text)).map(|(place, _)| place + 1).collect()
}

#[tokio::test]
async fn a_forgotten_list_is_shown_again_every_ten_steps_also_across_runs() {
    let todos = |status| vec![serde_json::from_value(todo("a", status)).unwrap()];
    let list = TodoList::new(todos("pending"));
    assert_eq!(reminded(&list, 25).await, [10, 20]);
    assert_eq!(reminded(&list, 6).await, [5]);
    assert_eq!(reminded(&TodoList::new(todos("completed")), 12).await, [0; 0]);
    assert_eq!(reminded(&TodoList::default(), 12).await, [0; 0]);
}
