//! What only one wire format knows, and what servers of it have been seen to do.

use foundation::{ModelErrorKind, Part, StopReason};
use serde_json::{Value, json};

use super::play::{Wire, answer, content, pieces, read};
use crate::config::Timeouts;

async fn play(wire: Wire, events: &[Value]) -> Result<foundation::Message, foundation::ModelError> {
    let text: String = events
        .iter()
        .map(|event| match event.as_str() {
            Some(text) => format!("data: {text}\n\n"),
            None => format!("data: {event}\n\n"),
        })
        .collect();
    read(answer(wire, pieces(text.as_bytes(), &[]), Timeouts::default())).await
}

fn delta(delta: &Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn done() -> Value {
    json!("[DONE]")
}

async fn openai(events: &[Value], stop: StopReason, expected: Value) {
    let message = play(Wire::Openai, events).await.unwrap();
    assert_eq!(content(&message), expected);
    assert_eq!(message.stop_reason, Some(stop));
}

#[tokio::test]
async fn chat_completions_end_in_several_ways() {
    let text = || delta(&json!({"content": "a"}));
    let a = || json!([{"text": "a"}]);
    openai(&[text(), finish("stop")], StopReason::End, a()).await;
    openai(&[text(), done()], StopReason::End, a()).await;
    openai(&[text(), finish("length"), done()], StopReason::Length, a()).await;
    openai(&[text(), finish("content_filter"), done()], StopReason::Filter, a()).await;
    openai(&[text(), finish("tool_calls"), done()], StopReason::End, a()).await;
    let call = json!([{"id": "1", "function": {"name": "x", "arguments": "{}"}}]);
    let expected = json!([{"call": "x", "input": {}}]);
    openai(&[delta(&json!({"tool_calls": call})), finish("stop"), done()], StopReason::ToolUse, expected).await;
    openai(&[delta(&json!({"refusal": "no"})), finish("stop"), done()], StopReason::Filter, json!([{"text": "no"}]))
        .await;
    openai(&[finish("stop"), done()], StopReason::End, json!([])).await;
}

#[tokio::test]
async fn a_call_written_as_text_is_a_call() {
    let text = "<tool_call>{\"name\":\"read\",\"arguments\":{\"path\":\"a\"}}</tool_call>";
    let events = |finished| [delta(&json!({"content": text})), finish(finished), done()];
    let call = json!([{"text": text}, {"call": "read", "input": {"path": "a"}}]);
    openai(&events("stop"), StopReason::ToolUse, call).await;
    openai(&events("length"), StopReason::Length, json!([{"text": text}])).await;
}

#[tokio::test]
async fn chat_completions_hold_reasoning_in_several_forms() {
    let expected = json!([{"thinking": "why"}, {"text": "so"}]);
    let so = || delta(&json!({"content": "so", "reasoning_content": null}));
    for why in [
        json!({"content": null, "reasoning_content": "why"}),
        json!({"content": "", "reasoning": "why"}),
        json!({"reasoning_content": "why", "reasoning": "why"}),
        json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "why"}]}]}),
    ] {
        openai(&[delta(&why), so(), done()], StopReason::End, expected.clone()).await;
    }
}

#[tokio::test]
async fn chat_completions_count_in_several_places() {
    let text = || delta(&json!({"content": "a"}));
    let check = async |events: &[Value], expected: Option<[u64; 4]>| {
        let usage = play(Wire::Openai, events).await.unwrap().usage;
        let counts = |usage: foundation::Usage| {
            [usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.reasoning_tokens]
        };
        assert_eq!(usage.map(counts), expected);
    };
    check(&[text(), done()], None).await;
    let usage =
        json!({"prompt_tokens": 10, "completion_tokens": 4, "completion_tokens_details": {"reasoning_tokens": 2}});
    check(&[text(), json!({"usage": usage}), done()], Some([10, 4, 0, 2])).await;
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 4, "prompt_cache_hit_tokens": 8});
    let in_choice = json!({"choices": [{"delta": {}, "finish_reason": "stop", "usage": usage}], "usage": null});
    check(&[text(), in_choice, done()], Some([2, 4, 8, 0])).await;
}

#[tokio::test]
async fn errors_inside_a_stream_are_errors() {
    let check = async |wire, event: Value, kind, says: &str| {
        let error = play(wire, &[event]).await.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(says), "{error}");
    };
    use ModelErrorKind::{Incomplete, Overloaded, Protocol, RateLimit, Server};
    let quota = json!({"error": {"message": "quota exceeded", "code": 429}});
    check(Wire::Openai, quota.clone(), RateLimit, "quota exceeded").await;
    check(Wire::Anthropic, quota, RateLimit, "quota exceeded").await;
    check(Wire::Openai, json!({"error": "it broke", "choices": []}), Server, "it broke").await;
    check(Wire::Openai, json!({"object": "error", "message": "bad"}), Server, "bad").await;
    check(Wire::Openai, finish("error"), Server, "`error`").await;
    check(Wire::Openai, finish("insufficient_system_resource"), Overloaded, "insufficient").await;
    check(Wire::Openai, json!("<html>"), Protocol, "not of this API's format").await;
    check(Wire::Anthropic, json!({"type": "content_block_start"}), Protocol, "not of this API's format").await;
    check(Wire::Openai, json!(": nothing"), Protocol, "").await;
    check(Wire::Anthropic, json!({"type": "ping"}), Incomplete, "end marker").await;
}

async fn anthropic(events: &[Value]) -> foundation::Message {
    let mut events = events.to_vec();
    events.push(json!({"type": "message_stop"}));
    play(Wire::Anthropic, &events).await.unwrap()
}

fn start(index: usize, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn more(index: usize, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

#[tokio::test]
async fn reasoning_keeps_its_signature_and_redacted_blocks_their_place() {
    let message = anthropic(&[
        start(0, &json!({"type": "thinking", "thinking": "", "signature": ""})),
        more(0, &json!({"type": "thinking_delta", "thinking": "why"})),
        more(0, &json!({"type": "signature_delta", "signature": "ab"})),
        more(0, &json!({"type": "signature_delta", "signature": "cd"})),
        start(1, &json!({"type": "redacted_thinking", "data": "xyz"})),
        start(2, &json!({"type": "thinking", "thinking": ""})),
        more(2, &json!({"type": "signature_delta", "signature": "hidden"})),
        start(3, &json!({"type": "text", "text": "so"})),
    ])
    .await;
    let thinking = |text: &str, signature: Option<&str>, redacted: Option<&str>| Part::Thinking {
        text: text.into(),
        signature: signature.map(Into::into),
        redacted: redacted.map(Into::into),
    };
    let expected = [
        thinking("why", Some("abcd"), None),
        thinking("", None, Some("xyz")),
        thinking("", Some("hidden"), None),
        Part::Text { text: "so".into() },
    ];
    assert_eq!(message.content, expected);
}

#[tokio::test]
async fn unknown_blocks_and_events_are_left_out() {
    let message = anthropic(&[
        json!({"type": "something_new", "x": 1}),
        start(0, &json!({"type": "server_tool_use", "id": "s", "name": "web"})),
        more(0, &json!({"type": "input_json_delta", "partial_json": "{}"})),
        start(1, &json!({"type": "text", "text": ""})),
        more(1, &json!({"type": "citations_delta", "citation": {}})),
        more(1, &json!({"type": "text_delta", "text": "a"})),
        more(9, &json!({"type": "text_delta", "text": "from nowhere"})),
        start(2, &json!({"type": "text", "text": ""})),
        start(3, &json!({"type": "tool_use", "id": "t", "name": "x", "input": {"whole": true}})),
    ])
    .await;
    assert_eq!(content(&message), json!([{"text": "a"}, {"call": "x", "input": {"whole": true}}]));
    assert_eq!(message.stop_reason, Some(StopReason::ToolUse));
}

#[tokio::test]
async fn counts_and_price_give_the_cost() {
    let counts = json!({"input_tokens": 1000, "cache_read_input_tokens": 2000, "cache_creation_input_tokens": 500});
    let message = anthropic(&[
        json!({"type": "message_start", "message": {"usage": counts}}),
        start(0, &json!({"type": "text", "text": "a"})),
        json!({"type": "message_delta", "delta": {"stop_reason": "refusal"}, "usage": {"output_tokens": 50}}),
    ])
    .await;
    let usage = message.usage.unwrap();
    assert_eq!(usage.context_tokens(), 3550);
    assert!((usage.cost_usd.unwrap() - 0.0026).abs() < 1e-12, "{usage:?}");
    assert_eq!(message.stop_reason, Some(StopReason::Filter));
}
