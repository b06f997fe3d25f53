//! Sockets, refusals, silence and size: what is the same for every wire format.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use foundation::{Message, Model, ModelError, ModelErrorKind, Part};
use futures_util::{StreamExt, stream};
use secrecy::SecretString;
use tokio::time::{Instant, sleep};

use super::play::{Wire, answer, content, read, request};
use super::scenarios;
use super::server::{Reply, Server};
use crate::config::{Api, ProviderConfig, Timeouts};
use crate::registry::Providers;

const KEY: &str = "sk-very-secret-key";

/// A model at this address, with a key.
pub(super) fn model(wire: Wire, origin: &str, model: &str) -> Arc<dyn Model> {
    let (api, base_url) = match wire {
        Wire::Anthropic => (Api::Anthropic, origin.to_owned()),
        Wire::Openai => (Api::Openai, format!("{origin}/v1/")),
    };
    let entry = ProviderConfig {
        name: "local".into(),
        api: Some(api),
        base_url: Some(base_url),
        key: Some(SecretString::from(KEY)),
        ..ProviderConfig::default()
    };
    Providers::new(vec![entry], None).model(&format!("local/{model}")).unwrap()
}

async fn ask(wire: Wire, origin: &str) -> Result<Message, ModelError> {
    let messages = [Message::user_text("hi")];
    read(model(wire, origin, "m").stream(request(&messages)).await?).await
}

#[tokio::test]
async fn a_socket_makes_no_difference_however_it_cuts() {
    let scenario = scenarios().swap_remove(1);
    for (wire, text) in [(Wire::Anthropic, scenario.anthropic()), (Wire::Openai, scenario.openai())] {
        let bytewise = Reply { step: 1, ..Reply::events(&text) };
        let replies = vec![Reply::events(&text), Reply::events(&text.replace('\n', "\r\n")), bytewise];
        let count = replies.len();
        let server = Server::play(replies).await;
        for _ in 0..count {
            let message = ask(wire, &server.origin).await.unwrap();
            assert_eq!(content(&message), serde_json::json!([{"text": "那个 😀 é"}]));
            assert_eq!(message.model.as_deref(), Some("local/m"));
        }
        assert_eq!(server.requests().await.len(), count);
    }
}

#[tokio::test]
async fn the_key_is_in_its_header_and_nowhere_else() {
    for (wire, header, line) in [
        (Wire::Anthropic, format!("x-api-key: {KEY}"), "POST /v1/messages HTTP/1.1"),
        (Wire::Openai, format!("authorization: Bearer {KEY}"), "POST /v1/chat/completions HTTP/1.1"),
    ] {
        let echo = format!(r#"{{"error":{{"message":"bad key {KEY}"}}}}"#);
        let headers = "content-type: application/json\r\nrequest-id: req_7\r\n";
        let server = Server::play(vec![Reply::with_status("401 Unauthorized", headers, &echo)]).await;
        let error = ask(wire, &server.origin).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Auth);
        assert_eq!(error.message, "local: HTTP 401: bad key [key] (request-id req_7)");

        let request = server.requests().await.remove(0);
        assert_eq!(request.head.lines().next(), Some(line));
        assert_eq!(request.head.matches(KEY).count(), 1, "{}", request.head);
        assert!(request.head.lines().any(|sent| sent == header), "{}", request.head);
        assert!(!request.body.contains(KEY));
        let version = request.head.lines().any(|sent| sent == "anthropic-version: 2023-06-01");
        assert_eq!(version, wire == Wire::Anthropic);
    }
}

async fn refused(reply: Reply) -> ModelError {
    let server = Server::play(vec![reply]).await;
    let error = ask(Wire::Openai, &server.origin).await.unwrap_err();
    server.requests().await;
    error
}

#[tokio::test]
async fn a_refusal_keeps_the_providers_words_and_wish() {
    let error = refused(Reply::with_status("429 Slow", "retry-after: 3\r\n", r#"{"error":{"message":"later"}}"#)).await;
    assert_eq!((error.kind, error.retry_after), (ModelErrorKind::RateLimit, Some(Duration::from_secs(3))));
    assert!(error.message.contains("later"), "{error}");

    let error = refused(Reply::with_status("500 Oops", "", &"x".repeat(1 << 20))).await;
    assert_eq!(error.kind, ModelErrorKind::Server);
    assert!(error.message.len() < 400, "{} bytes", error.message.len());

    let json = "content-type: application/json\r\n";
    let error = refused(Reply::with_status("200 OK", json, r#"{"error":{"message":"no credit balance"}}"#)).await;
    assert_eq!(error.kind, ModelErrorKind::Quota);
    let error = refused(Reply::with_status("200 OK", json, r#"{"choices":[]}"#)).await;
    assert_eq!(error.kind, ModelErrorKind::Protocol);
    let error = refused(Reply::with_status("302 Found", "location: http://elsewhere/\r\n", "")).await;
    assert!(error.hint.contains("baseUrl"), "{error}");
}

#[tokio::test]
async fn a_cut_connection_is_never_a_whole_answer() {
    let half = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    let chunked = format!("{:x}\r\n{half}\r\n", half.len());
    let headers = "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n";
    let error = refused(Reply::with_status("200 OK", headers, &chunked)).await;
    assert_eq!(error.kind, ModelErrorKind::Network, "{error}");
    let error = refused(Reply::events(half)).await;
    assert_eq!(error.kind, ModelErrorKind::Incomplete, "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let server = Server::play(Vec::new()).await;
    let origin = server.origin.clone();
    server.requests().await;
    let error = ask(Wire::Openai, &origin).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Network);
    assert!(error.message.contains(&origin) && error.message.contains("refused"), "{error}");
    assert!(error.hint.contains("baseUrl"), "{error}");
}

#[tokio::test]
async fn dropping_an_answer_ends_the_request() {
    let server = Server::hold("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n").await;
    let messages = [Message::user_text("hi")];
    let mut stream = model(Wire::Openai, &server.origin, "m").stream(request(&messages)).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap().text(), "a");
    drop(stream);
    server.requests().await;
}

/// Keep-alives every 2 s for `seconds`, then the answer if there is one.
async fn after_keep_alives(seconds: u64, text: &'static str) -> (Result<Message, ModelError>, u64) {
    let first = Bytes::from("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n");
    let pings = stream::iter(0..seconds / 2).then(|_| async {
        sleep(Duration::from_secs(2)).await;
        Ok(Bytes::from(": ping\n\n"))
    });
    let rest = stream::iter([Ok(Bytes::from(text))]);
    let bytes = stream::iter([Ok(first)]).chain(pings).chain(rest).chain(stream::pending()).boxed();
    let timeouts =
        Timeouts { idle: Duration::from_secs(10), first_byte: Duration::from_secs(90), ..Timeouts::default() };
    let started = Instant::now();
    (read(answer(Wire::Openai, bytes, timeouts)).await, started.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn keep_alives_bridge_long_thinking_but_not_for_ever() {
    let (result, _) = after_keep_alives(60, "data: [DONE]\n\n").await;
    assert_eq!(content(&result.unwrap()), serde_json::json!([{"text": "a"}]));
    let (result, seconds) = after_keep_alives(10_000, "data: [DONE]\n\n").await;
    assert_eq!((result.unwrap_err().kind, seconds), (ModelErrorKind::Network, 90));
    let (result, seconds) = after_keep_alives(0, "").await;
    assert_eq!((result.unwrap_err().kind, seconds), (ModelErrorKind::Network, 10));
}

#[tokio::test(start_paused = true)]
async fn a_healthy_stream_may_take_any_time() {
    let word = |_| async {
        sleep(Duration::from_secs(9)).await;
        Ok(Bytes::from("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"))
    };
    let end = stream::iter([Ok(Bytes::from("data: [DONE]\n\n"))]);
    let bytes = stream::iter(0..1000).then(word).chain(end).boxed();
    let ten = Duration::from_secs(10);
    let message =
        read(answer(Wire::Openai, bytes, Timeouts { connect: ten, first_byte: ten, idle: ten })).await.unwrap();
    assert_eq!(message.text().len(), 1000);
}

/// Follows an answer without copying it: where it stood, and how often what grows was moved.
async fn moves(wire: Wire, text: String) -> (usize, usize) {
    let bytes = stream::iter([Ok(Bytes::from(text))]).boxed();
    let mut stream = answer(wire, bytes, Timeouts::default());
    let (mut moves, mut length, mut at) = (0, 0, None);
    while let Some(snapshot) = stream.next().await {
        let (Some(Part::Text { text }) | Some(Part::ToolUse { raw_input: Some(text), .. })) =
            snapshot.unwrap().content.first()
        else {
            continue;
        };
        moves += usize::from(at.replace(text.as_ptr()) != Some(text.as_ptr()));
        length = text.len();
    }
    (moves, length)
}

#[tokio::test]
async fn an_answer_grows_in_place() {
    let piece = "x".repeat(100);
    let stream = |event: String, count| event.repeat(count) + "data: [DONE]\n\n";
    let event = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{piece}\"}}}}]}}\n\n");
    let (moves_text, length) = moves(Wire::Openai, stream(event, 10_000)).await;
    assert_eq!(length, 1_000_000);
    assert!(moves_text < 25, "{moves_text} moves: the text was copied");

    let start = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":\
                 {\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"x\"}}\n\n";
    let delta = format!(
        "data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":\
         {{\"type\":\"input_json_delta\",\"partial_json\":\"{piece}\"}}}}\n\n"
    );
    let wire = start.to_owned() + &delta.repeat(10_000) + "data: {\"type\":\"message_stop\"}\n\n";
    let (moves_arguments, length) = moves(Wire::Anthropic, wire).await;
    assert_eq!(length, 1_000_000);
    assert!(moves_arguments < 25, "{moves_arguments} moves: the arguments were copied");
}
