//! Transcripts, and the next step that the rules take.

use foundation::{ResultPolicy, ToolClass, ToolSpec};

use super::*;

fn tool(name: &'static str) -> ToolSpec {
    let policy = ResultPolicy::Summary;
    ToolSpec { name, description: "", parameters: json!({}), class: ToolClass::Read, policy }
}

fn tools() -> Vec<ToolSpec> {
    ["read", "list", "grep", "bash", "write", "edit"].map(tool).into()
}

fn called(id: &str, name: &str, input: Value) -> Message {
    let call = Part::ToolUse { id: CallId(id.into()), name: name.into(), input, raw_input: None };
    let mut message = Message::draft("offline/rules");
    message.content.push(call);
    message
}

fn result(id: &str, content: &str, code: Option<&str>) -> Message {
    let (tool_use_id, code) = (CallId(id.into()), code.map(Into::into));
    Message::tool_results(vec![Part::ToolResult {
        tool_use_id,
        content: content.into(),
        is_error: code.is_some(),
        code,
    }])
}

/// The words, and the call if there is one.
fn next(messages: &[Message], tools: &[ToolSpec], tool_choice: ToolChoice) -> (String, Option<(String, Value)>) {
    let (mut text, mut call) = (String::new(), None);
    for action in answer(&ModelRequest { system: &[], messages, tools, tool_choice, max_output: None }) {
        match action {
            Action::Say(piece) => text += &piece,
            Action::Call { name, arguments, .. } => call = Some((name, serde_json::from_str(&arguments).unwrap())),
            other => panic!("{other:?}"),
        }
    }
    (text, call)
}

#[track_caller]
fn calls(messages: &[Message], name: &str, input: &Value) {
    let (_, call) = next(messages, &tools(), ToolChoice::Auto);
    let (called, arguments) = call.expect("a call");
    assert_eq!((called.as_str(), &arguments), (name, input));
    assert_eq!(arguments.as_object().unwrap().keys().next().unwrap(), "description");
}

#[track_caller]
fn says(messages: &[Message], expected: &str) {
    let (text, call) = next(messages, &tools(), ToolChoice::Auto);
    assert_eq!(call, None);
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("offline model"), "{text}");
}

#[test]
fn each_intent_calls_its_tool() {
    let check = |text, name, input: &Value| calls(&[Message::user_text(text)], name, input);
    check("read a.txt", "read", &json!({"description": "Read a.txt", "path": "a.txt"}));
    check("读 a.txt", "read", &json!({"description": "Read a.txt", "path": "a.txt"}));
    check("list", "list", &json!({"description": "List .", "path": "."}));
    check("grep x in src/", "grep", &json!({"description": "Search x in src/", "pattern": "x", "path": "src/"}));
    check("run ls", "bash", &json!({"description": "Run ls", "command": "ls"}));
    check("write a.txt: hi", "write", &json!({"description": "Write a.txt", "path": "a.txt", "content": "hi"}));
}

#[test]
fn an_edit_reads_first_and_sums_up_last() {
    let edit = json!({"description": "Replace text in a.txt", "path": "a.txt", "oldString": "x", "newString": "y"});
    let mut messages = vec![Message::user_text("replace x with y in a.txt")];
    let read = json!({"description": "Read a.txt before the edit", "path": "a.txt"});
    calls(&messages, "read", &read);
    messages.extend([called("1", "read", read), result("1", "1\tx", None)]);
    calls(&messages, "edit", &edit);
    messages.extend([called("2", "edit", edit), result("2", "edited a.txt: 1 line", None)]);
    says(&messages, "I edited a.txt:\n\nedited a.txt: 1 line");
}

#[test]
fn a_result_is_summed_up_with_its_content() {
    let read = |content: &str| {
        let call = called("1", "read", json!({"path": "a.txt"}));
        vec![Message::user_text("read a.txt"), call, result("1", content, None)]
    };
    says(&read("1\thello\n2\tworld"), "Here is a.txt:\n\n1\thello\n2\tworld");
    let long = (1..=100).map(|line| format!("line {line}\n")).collect::<String>();
    says(&read(&long), "line 60\n… and 40 more lines");
    assert!(!next(&read(&long), &tools(), ToolChoice::Auto).0.contains("line 61"));
}

#[test]
fn a_failure_is_said_and_not_tried_again() {
    let write = |code| {
        let call = called("1", "write", json!({"path": "a.txt"}));
        [Message::user_text("write a.txt: x"), call, result("1", "the reason", Some(code))]
    };
    says(&write("DENIED"), "Writing a.txt was not allowed, so nothing was done:\n\nthe reason");
    says(&write("IO_ERROR"), "Writing a.txt did not work:\n\nthe reason");
    let call = called("1", "read", json!({"path": "a"}));
    says(
        &[Message::user_text("replace x with y in a"), call, result("1", "no such file", Some("NOT_FOUND"))],
        "Reading a did not work",
    );
}

#[test]
fn only_the_last_request_counts() {
    let first = [Message::user_text("read a.txt"), called("1", "read", json!({})), result("1", "x", None)];
    let mut messages = first.to_vec();
    messages.push(Message::user_text("hello"));
    says(&messages, "I understand requests like these");
    messages.pop();
    messages.push(Message::user_text("remember the list").synthetic("reminder"));
    says(&messages, "Here is it:\n\nx");
    says(&[], "I understand requests like these");
    says(&[Message::user_text("read")], "I understand");
    says(&[Message::user_text("打开")], "Which file?");
}

#[test]
fn no_tool_is_called_that_is_not_offered() {
    let messages = [Message::user_text("run ls")];
    let (text, call) = next(&messages, &[tool("read")], ToolChoice::Auto);
    assert_eq!(call, None);
    assert!(text.contains("`bash`"), "{text}");
    let (text, call) = next(&messages, &tools(), ToolChoice::None);
    assert_eq!(call, None);
    assert!(text.contains("no more tools may be called"), "{text}");
}

#[test]
fn the_answer_comes_word_by_word_and_whole() {
    let text = "  one two\n\n  three 四\n";
    let pieces: Vec<_> =
        say(text).into_iter().map(|piece| if let Action::Say(piece) = piece { piece } else { panic!() }).collect();
    assert_eq!(pieces.concat(), text);
    assert_eq!(pieces, ["  ", "one ", "two\n\n  ", "three ", "四\n"]);
}
