//! What is sent, to the byte: the transcript of a tool round, as each wire format wants it.

use foundation::{CallId, Message, ModelRequest, Part, ResultPolicy, SystemText, ToolChoice, ToolClass, ToolSpec};
use serde_json::{Value, json};

use super::play::{self, Wire, read};
use super::scenarios;
use super::server::{Reply, Server};
use super::transport::model;
use crate::config::{Api, ModelConfig, ProviderConfig};
use crate::registry::Providers;

fn tool(name: &'static str) -> ToolSpec {
    let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let policy = ResultPolicy::Summary;
    ToolSpec { name, description: "Does it.", parameters, class: ToolClass::Read, policy }
}

fn text(text: &str) -> Part {
    Part::Text { text: text.into() }
}

fn thinking(text: &str, signature: Option<&str>) -> Part {
    Part::Thinking { text: text.into(), signature: signature.map(Into::into), redacted: None }
}

fn call(id: &str, name: &str, input: Value, raw: Option<&str>) -> Part {
    Part::ToolUse { id: CallId(id.into()), name: name.into(), input, raw_input: raw.map(Into::into) }
}

fn result(id: &str, content: &str, is_error: bool) -> Part {
    Part::ToolResult { tool_use_id: CallId(id.into()), content: content.into(), is_error, code: None }
}

fn answered(by: &str, content: Vec<Part>) -> Message {
    Message { content, streaming: false, ..Message::draft(by) }
}

/// A round with two calls, and an older one by another model.
fn transcript() -> Vec<Message> {
    vec![
        Message::user_text("hello"),
        answered("other/m", vec![thinking("foreign", Some("f")), text("hi")]),
        Message::user(vec![text("read both"), Part::Image { media_type: "image/png".into(), data: "AAAA".into() }]),
        answered(
            "local/m",
            vec![
                thinking("two files", Some("c2ln")),
                Part::Thinking { text: String::new(), signature: None, redacted: Some("xyz".into()) },
                text(""),
                text("I read."),
                call("a", "read", json!({"path": "a.txt"}), None),
                call("b", "read", json!({}), Some("{\"path\": oops")),
            ],
        ),
        Message::tool_results(vec![result("a", "", false), result("b", "not JSON at 10", true)]),
        Message::user_text("and?"),
        answered("local/m", vec![thinking("cut off", None)]),
        answered("local/m", vec![thinking("cut later", Some("c2ln"))]),
    ]
}

/// The body that is sent for a transcript, in the order and form in which it is sent: a line for each field, or for
/// each element of one.
async fn sent(wire: Wire, request: ModelRequest<'_>) -> String {
    let scenario = scenarios().swap_remove(0);
    let answer = if wire == Wire::Anthropic { scenario.anthropic() } else { scenario.openai() };
    let server = Server::play(vec![Reply::events(&answer)]).await;
    read(model(wire, &server.origin, "m").stream(request).await.unwrap()).await.unwrap();
    let body = server.requests().await.remove(0).body;
    let value: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(serde_json::to_string(&value).unwrap(), body, "compact, and no field twice");
    let mut lines = String::new();
    for (name, field) in value.as_object().unwrap() {
        match field {
            Value::Array(elements) => lines.extend(elements.iter().map(|element| format!("{name}[] {element}\n"))),
            other => lines += &format!("{name} {other}\n"),
        }
    }
    lines
}

fn system() -> Vec<SystemText> {
    let system = |text: &str, stable| SystemText { text: text.into(), stable };
    vec![system("You help.", true), system("", true), system("Today is Monday.", false)]
}

#[tokio::test]
async fn messages_request_of_a_tool_round() {
    let (system, messages, tools) = (system(), transcript(), [tool("read"), tool("list")]);
    let request = ModelRequest {
        system: &system,
        messages: &messages,
        tools: &tools,
        tool_choice: ToolChoice::Auto,
        max_output: None,
    };
    insta::assert_snapshot!(sent(Wire::Anthropic, request).await, @r#"
    model "m"
    max_tokens 8192
    stream true
    tools[] {"name":"read","description":"Does it.","input_schema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}
    tools[] {"name":"list","description":"Does it.","input_schema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]},"cache_control":{"type":"ephemeral"}}
    system[] {"type":"text","text":"You help.","cache_control":{"type":"ephemeral"}}
    system[] {"type":"text","text":"Today is Monday."}
    messages[] {"role":"user","content":[{"type":"text","text":"hello"}]}
    messages[] {"role":"assistant","content":[{"type":"text","text":"hi"}]}
    messages[] {"role":"user","content":[{"type":"text","text":"read both"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"},"cache_control":{"type":"ephemeral"}}]}
    messages[] {"role":"assistant","content":[{"type":"thinking","thinking":"two files","signature":"c2ln"},{"type":"redacted_thinking","data":"xyz"},{"type":"text","text":"I read."},{"type":"tool_use","id":"a","name":"read","input":{"path":"a.txt"}},{"type":"tool_use","id":"b","name":"read","input":{}}]}
    messages[] {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"(no output)"},{"type":"tool_result","tool_use_id":"b","content":"not JSON at 10","is_error":true},{"type":"text","text":"and?","cache_control":{"type":"ephemeral"}}]}
    "#);
}

#[tokio::test]
async fn chat_completions_request_of_a_tool_round() {
    let (system, messages, tools) = (system(), transcript(), [tool("read")]);
    let request = ModelRequest {
        system: &system,
        messages: &messages,
        tools: &tools,
        tool_choice: ToolChoice::None,
        max_output: Some(50),
    };
    insta::assert_snapshot!(sent(Wire::Openai, request).await, @r#"
    model "m"
    stream true
    stream_options {"include_usage":true}
    messages[] {"role":"system","content":"You help.\n\nToday is Monday."}
    messages[] {"role":"user","content":"hello"}
    messages[] {"role":"assistant","content":"hi"}
    messages[] {"role":"user","content":[{"type":"text","text":"read both"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}
    messages[] {"role":"assistant","content":"I read.","tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"path\":\"a.txt\"}"}},{"id":"b","type":"function","function":{"name":"read","arguments":"{}"}}]}
    messages[] {"role":"tool","tool_call_id":"a","content":"(no output)"}
    messages[] {"role":"tool","tool_call_id":"b","content":"not JSON at 10"}
    messages[] {"role":"user","content":"and?"}
    tools[] {"type":"function","function":{"name":"read","description":"Does it.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}
    tool_choice "none"
    max_tokens 50
    "#);
}

/// The request for one model of a provider with these quirks.
async fn quirky(quirks: Value, messages: &[Message]) -> Value {
    let server = Server::play(vec![Reply::events("data: [DONE]\n\n")]).await;
    let quirks = serde_json::from_value(quirks).unwrap();
    let config = ModelConfig { quirks, max_output: Some(40), ..ModelConfig::default() };
    let entry = ProviderConfig {
        name: "local".into(),
        api: Some(Api::Openai),
        base_url: Some(server.origin.clone()),
        models: [("m".into(), config)].into(),
        ..ProviderConfig::default()
    };
    let model = Providers::new(vec![entry], None).model("local/m").unwrap();
    let request = ModelRequest { max_output: Some(50), ..play::request(messages) };
    read(model.stream(request).await.unwrap()).await.unwrap();
    let request = server.requests().await.remove(0);
    assert!(!request.head.contains("authorization"), "no key, no header");
    serde_json::from_str(&request.body).unwrap()
}

#[tokio::test]
async fn quirks_change_the_request() {
    let body = quirky(json!({}), &transcript()).await;
    assert_eq!(body["max_tokens"], 40, "never more than the model can write");
    assert!(!body.to_string().contains("reasoning_content"));
    let quirks = json!({"maxTokensField": "max_completion_tokens", "streamOptions": false, "body": {"temperature": 0}});
    let body = quirky(quirks, &transcript()).await;
    assert_eq!((&body["max_completion_tokens"], &body["temperature"]), (&json!(40), &json!(0)));
    assert_eq!((body.get("max_tokens"), body.get("stream_options")), (None, None));
}

#[tokio::test]
async fn reasoning_is_echoed_with_calls_and_to_its_own_model_only() {
    let think = |by: &str, part: Part| answered(by, vec![thinking("why", None), part]);
    let calling = |by: &str| think(by, call("a", "read", json!({}), None));
    let messages = [calling("local/m"), calling("other/m"), think("local/m", text("so"))];
    let body = quirky(json!({"echoReasoning": true}), &messages).await;
    let echoed: Vec<_> = (0..3).map(|place| body["messages"][place].get("reasoning_content").is_some()).collect();
    assert_eq!(echoed, [true, false, false], "{body}");
}

#[tokio::test]
async fn short_ids_pair_calls_and_results() {
    let calls = ["toolu_0123", "abcDEF123"].map(|id| call(id, "read", json!({}), None));
    let results = ["toolu_0123", "abcDEF123"].map(|id| result(id, "x", false));
    let messages = [answered("other/m", calls.into()), Message::tool_results(results.into())];
    let body = quirky(json!({"shortCallIds": true}), &messages).await;
    let [first, second] = [0, 1].map(|place| body["messages"][0]["tool_calls"][place]["id"].as_str().unwrap());
    assert!(first.len() == 9 && first.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{first}");
    assert_eq!(second, "abcDEF123", "the server's own id stays");
    assert_eq!(
        (&body["messages"][1]["tool_call_id"], &body["messages"][2]["tool_call_id"]),
        (&json!(first), &json!(second))
    );
}
