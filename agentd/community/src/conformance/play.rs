//! Plays a scenario to a provider and checks every snapshot on the way.

use bytes::Bytes;
use foundation::{Message, ModelError, ModelLimits, ModelRequest, ModelStream, Part, ToolChoice};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::scenario::{Expected, Scenario};
use crate::answer::{Answer, Response};
use crate::anthropic::Messages;
use crate::config::{Price, Profile, Quirks, Timeouts};
use crate::draft::Draft;
use crate::openai::Chunks;
use crate::registry::Providers;
use crate::sse::{ByteStream, Events};

/// A wire format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wire {
    Anthropic,
    Openai,
}

pub(super) fn profile() -> Profile {
    let limits = ModelLimits { context_window: 1000, max_output: Some(100) };
    Profile { name: "p/m".into(), model: "m".into(), limits, price: None, quirks: Quirks::default() }
}

pub(super) fn request(messages: &[Message]) -> ModelRequest<'_> {
    ModelRequest { system: &[], messages, tools: &[], tool_choice: ToolChoice::Auto, max_output: None }
}

pub(super) fn pieces(wire: &[u8], cuts: &[usize]) -> ByteStream {
    let mut rest = Bytes::copy_from_slice(wire);
    let mut pieces = Vec::new();
    let mut done = 0;
    for cut in cuts {
        pieces.push(Ok(rest.split_to(cut - done)));
        done = *cut;
    }
    pieces.push(Ok(rest));
    stream::iter(pieces).boxed()
}

/// The answer that a provider makes of these bytes.
pub(super) fn answer(wire: Wire, bytes: ByteStream, timeouts: Timeouts) -> Box<dyn ModelStream> {
    let price = Price { input: 1.0, output: 2.0, cache_read: Some(0.5), cache_write: None };
    let draft = Draft::new(&Profile { price: Some(price), ..profile() }, &request(&[]));
    let response = Response { provider: "p".into(), bytes, timeouts, asked: Instant::now() };
    match wire {
        Wire::Anthropic => Box::new(Answer::new(response, Messages::new("p".into()), draft)),
        Wire::Openai => Box::new(Answer::new(response, Chunks::new("p".into(), vec!["read"]), draft)),
    }
}

/// Reads an answer to its end. Each snapshot must hold the one before it, and only the last may be whole.
pub(super) async fn read(mut stream: Box<dyn ModelStream>) -> Result<Message, ModelError> {
    let mut before: Option<Message> = None;
    while let Some(snapshot) = stream.next().await {
        let snapshot = match snapshot {
            Ok(snapshot) => snapshot,
            Err(error) => {
                assert!(stream.next().await.is_none(), "after an error the stream is over");
                return Err(error);
            }
        };
        if let Some(before) = &before {
            assert!(before.streaming, "nothing comes after the whole answer");
            assert_eq!(before.id, snapshot.id);
            assert!(grew(before, snapshot), "{before:?} is not in {snapshot:?}");
        }
        before = Some(snapshot.clone());
    }
    let whole = before.expect("at least one snapshot");
    assert!(!whole.streaming && whole.stop_reason.is_some());
    Ok(whole)
}

fn grew(before: &Message, after: &Message) -> bool {
    let pairs = before.content.iter().zip(&after.content);
    before.content.len() <= after.content.len()
        && pairs.into_iter().all(|(before, after)| match (before, after) {
            (Part::Text { text: before }, Part::Text { text: after })
            | (Part::Thinking { text: before, .. }, Part::Thinking { text: after, .. }) => after.starts_with(before),
            (
                Part::ToolUse { id, name, raw_input: Some(before), .. },
                Part::ToolUse { id: same_id, name: same_name, raw_input: Some(after), .. },
            ) => id == same_id && name == same_name && after.starts_with(before),
            (Part::ToolUse { id: before, .. }, Part::ToolUse { id: after, raw_input: None, .. }) => before == after,
            _ => false,
        })
}

/// An answer's content without what differs from run to run.
pub(super) fn content(message: &Message) -> Value {
    message.content.iter().map(part).collect()
}

fn part(part: &Part) -> Value {
    match part {
        Part::Text { text } => json!({"text": text}),
        Part::Thinking { redacted: Some(data), .. } => json!({"redacted": data}),
        Part::Thinking { text, .. } => json!({"thinking": text}),
        Part::ToolUse { name, input, raw_input: None, .. } => json!({"call": name, "input": input}),
        Part::ToolUse { name, input, raw_input: Some(raw), .. } => json!({"call": name, "input": input, "raw": raw}),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_understood(scenario: &Scenario, result: &Result<Message, ModelError>, how: &str) {
    match (&scenario.expected, result) {
        (Expected::Whole { stop, content: expected }, Ok(message)) => {
            assert_eq!(&content(message), expected, "{how}");
            assert_eq!(json!(message.stop_reason), json!(stop), "{how}");
            if let Some([input, output, cached]) = scenario.usage {
                let usage = message.usage.expect("usage");
                assert_eq!([usage.input_tokens, usage.output_tokens, usage.cache_read_tokens], [input, output, cached]);
            }
        }
        (Expected::Error(kind), Err(error)) => assert_eq!(error.kind, *kind, "{how}: {error}"),
        (expected, got) => panic!("{how}: {expected:?}, but {got:?}"),
    }
}

/// Plays a scenario whole, with CRLF, byte by byte and cut at every place.
pub(super) async fn check(wire: Wire, scenario: &Scenario) {
    let text = match wire {
        Wire::Anthropic => scenario.anthropic(),
        Wire::Openai => scenario.openai(),
    };
    let play = async |text: &str, cuts: &[usize], how: &str| {
        let stream = answer(wire, pieces(text.as_bytes(), cuts), Timeouts::default());
        assert_understood(scenario, &read(stream).await, &format!("{wire:?}, {how}: {text}"));
    };
    play(&text, &[], "whole").await;
    play(&text.replace('\n', "\r\n"), &[], "with CRLF").await;
    play(&text, &(1..text.len()).collect::<Vec<_>>(), "byte by byte").await;
    // A decoder sees events, not bytes: cut anywhere, they must be the same events.
    let whole = events(&text, &[]).await;
    for cut in 1..text.len() {
        assert_eq!(events(&text, &[cut]).await, whole, "{wire:?}, cut at {cut}: {text}");
    }
}

async fn events(text: &str, cuts: &[usize]) -> Vec<String> {
    let mut events = Events::new(pieces(text.as_bytes(), cuts), Timeouts::default());
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        seen.push(event.unwrap());
    }
    seen
}

/// Plays the same scenario as a script.
pub(super) async fn check_script(scenario: &Scenario) {
    let file = tempfile::NamedTempFile::new().unwrap();
    tokio::fs::write(file.path(), scenario.script()).await.unwrap();
    let name = format!("offline/script:{}", file.path().display());
    let model = Providers::new(Vec::new(), None).model(&name).unwrap();
    let result = match model.stream(request(&[])).await {
        Ok(stream) => read(stream).await,
        Err(error) => Err(error),
    };
    assert_understood(scenario, &result, &scenario.script());
}
