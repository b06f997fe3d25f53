//! A whole turn over HTTP, in both wire forms, against a loopback server that plays exact bytes.

use e2e::daemon::{Daemon, Home};
use e2e::model::{FakeModel, Play, Request};
use serde_json::{Value, json};

const KEY: &str = "sk-canary-0123456789abcdef";

const ANTHROPIC_ASKS: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":10,"cache_read_input_tokens":3,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"a file, then"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2lnbmVk"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"read","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"description\":\"look\",\"pa"}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"th\":\"note.txt\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_2","name":"list","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"description\":\"look\",\"path\":\".\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":20}}

event: message_stop
data: {"type":"message_stop"}

"#;

const ANTHROPIC_ANSWERS: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_2","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":30,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"It says: 那个 😀 é"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}

event: message_stop
data: {"type":"message_stop"}

"#;

const OPENAI_ASKS: &str = r#"data: {"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"read","arguments":""}}]},"finish_reason":null}]}

data: {"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"description\":\"look\",\"path\":\"note.txt\"}"}}]},"finish_reason":null}]}

data: {"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_2","type":"function","function":{"name":"list","arguments":"{\"description\":\"look\",\"path\":\".\"}"}}]},"finish_reason":null}]}

data: {"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: {"id":"c1","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":13,"completion_tokens":20,"total_tokens":33}}

data: [DONE]

"#;

const OPENAI_ANSWERS: &str = r#"data: {"id":"c2","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"It says: "},"finish_reason":null}]}

data: {"id":"c2","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"那个 😀 é"},"finish_reason":null}]}

data: {"id":"c2","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: [DONE]

"#;

struct Played {
    daemon: Daemon,
    requests: Vec<Request>,
    answer: String,
}

/// A session with a model of that wire form; a turn; what was asked of the model.
fn play(api: &str, plays: Vec<Play>) -> Played {
    let model = FakeModel::start(plays);
    let base = if api == "openai" { format!("{}/v1", model.base) } else { model.base.clone() };
    let mut home = Home::new();
    home.env.push(("FAKE_KEY".into(), KEY.into()));
    home.settings(&json!({
        "model": "fake/m",
        "providers": {"fake": {"api": api, "baseUrl": base, "apiKey": {"env": "FAKE_KEY"}, "models": {"m": {"contextWindow": 200_000, "maxOutput": 4096}}}},
    }));
    home.write("note.txt", "那个 😀 é\n");
    let daemon = home.start();
    let mut client = daemon.connect();
    let session = client.session(&daemon.home.work());
    let turn = client.turn(&session, "what does note.txt say?");
    assert_eq!(turn["state"], "completed", "{turn}");
    let history = client.history(&session);
    let answer = history.iter().rfind(|event| event["type"] == "message").unwrap();
    let answer = answer["data"]["message"]["content"][0]["text"].as_str().unwrap().to_owned();
    let requests = model.requests();
    Played { daemon, requests, answer }
}

fn one_by_one(body: &str) -> Play {
    Play { pieces: body.bytes().map(|byte| vec![byte]).collect(), ..Play::sse("") }
}

/// No key in the database, the log or the events: all of them are under the state directory.
fn no_key_anywhere(daemon: &Daemon) {
    let mut files = 0;
    for entry in std::fs::read_dir(daemon.home.state()).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        let bytes = std::fs::read(entry.path()).unwrap();
        let found = bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes());
        assert!(!found, "the key is in {}", entry.path().display());
        files += 1;
    }
    assert!(files >= 2, "database and log were looked at");
}

#[test]
fn a_turn_over_anthropic_messages() {
    let played = play("anthropic", vec![Play::sse(ANTHROPIC_ASKS), one_by_one(ANTHROPIC_ANSWERS)]);
    assert_eq!(played.answer, "It says: 那个 😀 é");
    let [first, second] = &played.requests[..] else { panic!("{} requests", played.requests.len()) };
    assert_eq!(first.path, "/v1/messages");
    assert_eq!(first.header("x-api-key"), Some(KEY));
    assert!(first.header("anthropic-version").is_some());
    let tools = first.body["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "read" && tool["input_schema"]["properties"]["path"].is_object()));
    assert!(first.body["system"].to_string().contains("cache_control"), "the stable prefix is cached");
    assert_eq!(first.body["system"], second.body["system"], "and stays the same, byte for byte");
    assert_eq!(first.body["tools"], second.body["tools"]);
    let messages = second.body["messages"].as_array().unwrap();
    let [_, asks, answers] = &messages[..] else { panic!("{messages:?}") };
    assert_eq!(asks["content"][0]["signature"], "c2lnbmVk", "the signed thinking goes back unchanged");
    assert_eq!(asks["content"][0]["thinking"], "a file, then");
    assert_eq!(answers["role"], "user");
    let ids: Vec<&Value> = answers["content"].as_array().unwrap().iter().map(|part| &part["tool_use_id"]).collect();
    assert_eq!(ids, [&asks["content"][1]["id"], &asks["content"][2]["id"]], "each call once, directly, in order");
    assert!(answers["content"][0].to_string().contains("那个 😀 é"));
    no_key_anywhere(&played.daemon);
}

#[test]
fn a_turn_over_openai_chat_completions() {
    let played = play("openai", vec![Play::sse(OPENAI_ASKS), one_by_one(OPENAI_ANSWERS)]);
    assert_eq!(played.answer, "It says: 那个 😀 é");
    let [first, second] = &played.requests[..] else { panic!("{} requests", played.requests.len()) };
    assert_eq!(first.path, "/v1/chat/completions");
    assert_eq!(first.header("authorization"), Some(&*format!("Bearer {KEY}")));
    let tools = first.body["tools"].as_array().unwrap();
    assert!(
        tools.iter().any(|tool| tool["function"]["name"] == "read"
            && tool["function"]["parameters"]["properties"]["path"].is_object())
    );
    let messages = second.body["messages"].as_array().unwrap();
    let roles: Vec<&Value> = messages.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles[roles.len() - 4..], ["user", "assistant", "tool", "tool"]);
    let calls = &messages[messages.len() - 3]["tool_calls"];
    assert_eq!(messages[messages.len() - 2]["tool_call_id"], calls[0]["id"]);
    assert_eq!(messages[messages.len() - 1]["tool_call_id"], calls[1]["id"]);
    no_key_anywhere(&played.daemon);
}

#[test]
fn a_provider_that_refuses_leaves_a_session_that_goes_on() {
    let refusal = |status: u16, body: &str| Play {
        status,
        headers: vec![("content-type".into(), "application/json".into())],
        pieces: vec![body.as_bytes().to_vec()],
    };
    let cut = ANTHROPIC_ANSWERS.split("event: message_delta").next().unwrap();
    let failing = [
        (
            refusal(401, r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#),
            "auth",
        ),
        (refusal(529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#), "overloaded"),
        (
            Play::sse(
                "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
            ),
            "overloaded",
        ),
        (Play::sse(cut), "incomplete_stream"),
    ];
    for (play, cause) in failing {
        let model = FakeModel::start(vec![play, Play::sse(ANTHROPIC_ANSWERS)]);
        let home = Home::new();
        home.settings(&json!({"model": "fake/m", "providers": {"fake": {"api": "anthropic", "baseUrl": model.base, "retries": {"max": 0}}}}));
        let daemon = home.start();
        let mut client = daemon.connect();
        let session = client.session(&daemon.home.work());
        let turn = client.turn(&session, "hello");
        assert_eq!(turn["state"], "failed", "{cause}: {turn}");
        assert_eq!((&turn["error"]["kind"], &turn["error"]["cause"]), (&json!("provider_error"), &json!(cause)));
        assert!(turn["error"]["hint"].as_str().is_some_and(|hint| !hint.is_empty()));
        assert_eq!(client.turn(&session, "again")["state"], "completed", "{cause}");
    }
}
