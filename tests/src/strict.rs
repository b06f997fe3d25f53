//! A loopback model that trusts nobody: every request is checked against the rules that a provider would refuse it by.
//!
//! Speaks the Anthropic wire form. What it answers is the caller's; what it was asked, and what was wrong with that, is
//! kept. Each connection has a thread of its own, so that several sessions may think at once.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::model::read_request;

/// One block of an answer.
#[derive(Clone, Debug)]
pub enum Say {
    Text(String),
    /// Reasoning, signed by the model that was asked.
    Thinking(String),
    Call {
        id: String,
        name: &'static str,
        input: Value,
    },
    /// Silence for as long as the daemon listens. The block before it has begun, and never ends.
    Hold,
    /// The end of the connection in the same place.
    Cut,
}

/// What came in so far.
#[derive(Clone, Default, Debug)]
pub struct Seen {
    pub requests: usize,
    /// The messages of the newest one.
    pub last: Vec<Value>,
    /// What was wrong with them.
    pub violations: Vec<String>,
    /// Calls that a request said to be of unknown outcome.
    pub unknown: BTreeSet<String>,
}

#[derive(Debug)]
pub struct StrictModel {
    pub base: String,
    seen: Arc<Mutex<Seen>>,
}

impl StrictModel {
    /// Answers each request with what `answer` makes of its messages.
    ///
    /// # Panics
    /// When no loopback port can be had.
    #[must_use]
    pub fn start(answer: impl Fn(&[Value]) -> Vec<Say> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
        let base = format!("http://{}", listener.local_addr().expect("its address"));
        let (seen, answer) = (Arc::new(Mutex::new(Seen::default())), Arc::new(answer));
        let kept = Arc::clone(&seen);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                std::thread::spawn(move || {
                    let Some(request) = read_request(&stream) else { return };
                    let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
                    let said = {
                        let mut seen = kept.lock().unwrap_or_else(PoisonError::into_inner);
                        seen.requests += 1;
                        seen.violations.extend(violations(&messages));
                        seen.violations.extend(foreign(&messages, &request.body["model"]));
                        seen.unknown.extend(unknown(&messages));
                        seen.last.clone_from(&messages);
                        answer(&messages)
                    };
                    // A daemon that was killed does not read it.
                    let _gone = stream.write_all(response(&said, &request.body["model"]).as_bytes());
                    if matches!(said.last(), Some(Say::Hold)) {
                        hold(&stream);
                    }
                });
            }
        });
        Self { base, seen }
    }

    #[must_use]
    pub fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Says nothing until the other side is gone.
fn hold(mut stream: &TcpStream) {
    let mut nothing = [0; 64];
    while stream.read(&mut nothing).is_ok_and(|count| count > 0) {}
}

fn blocks<'a>(message: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    message["content"].as_array().into_iter().flatten().filter(move |block| block["type"] == kind)
}

fn ids(message: &Value, kind: &str, field: &str) -> Vec<String> {
    blocks(message, kind).map(|block| block[field].as_str().unwrap_or_default().to_owned()).collect()
}

/// What a strict provider would refuse these messages for.
#[must_use]
pub fn violations(messages: &[Value]) -> Vec<String> {
    let mut wrong = Vec::new();
    if messages.first().is_none_or(|first| first["role"] != "user") {
        wrong.push("the first message is not the user's".to_owned());
    }
    let (mut open, mut used) = (Vec::<String>::new(), BTreeSet::new());
    for (place, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        let (calls, mut results) = (ids(message, "tool_use", "id"), ids(message, "tool_result", "tool_use_id"));
        if !matches!(role, "user" | "assistant") {
            wrong.push(format!("message {place} has the role {role:?}"));
        }
        let is_empty = match &message["content"] {
            Value::String(text) => text.is_empty(),
            content => content.as_array().is_none_or(Vec::is_empty),
        };
        if is_empty {
            wrong.push(format!("message {place} is empty"));
        }
        for id in &calls {
            if !used.insert(id.clone()) {
                wrong.push(format!("message {place} has a call id that was used before: {id}"));
            }
        }
        if (role == "user" && !calls.is_empty()) || (role == "assistant" && !results.is_empty()) {
            wrong.push(format!("message {place} of the {role} has what only the other has"));
        }
        results.sort();
        open.sort();
        if open != results {
            wrong.push(format!("message {place} answers {results:?}, asked before it was {open:?}"));
        }
        open = calls;
    }
    if !open.is_empty() {
        wrong.push(format!("the last message asks {open:?}, and nothing answers"));
    }
    if messages.last().is_some_and(|last| last["role"] != "user") {
        wrong.push("the last message is not the user's".to_owned());
    }
    wrong
}

/// Reasoning that this model did not write, or not to its end.
fn foreign<'a>(messages: &'a [Value], model: &'a Value) -> impl Iterator<Item = String> {
    let thinking = messages.iter().flat_map(|message| blocks(message, "thinking"));
    let foreign = thinking.filter(|block| block["signature"] != signature(model).as_str());
    foreign.map(move |block| format!("{model} gets reasoning that is not its own: {block}"))
}

fn signature(model: &Value) -> String {
    format!("signed by {}", model.as_str().unwrap_or_default())
}

fn unknown(messages: &[Value]) -> impl Iterator<Item = String> {
    let results = messages.iter().flat_map(|message| blocks(message, "tool_result"));
    let unknown = results.filter(|result| result["content"].to_string().contains("UNKNOWN_OUTCOME"));
    unknown.filter_map(|result| result["tool_use_id"].as_str().map(str::to_owned))
}

/// The whole HTTP response: the blocks as server-sent events, the connection's end as its own.
fn response(said: &[Say], model: &Value) -> String {
    let mut body = String::from("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n");
    let mut event = |data: Value| {
        let name = data["type"].as_str().unwrap_or_default().to_owned();
        body.push_str(&format!("event: {name}\ndata: {data}\n\n"));
    };
    event(json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "m",
        "content": [], "stop_reason": null, "usage": {"input_tokens": 10, "output_tokens": 1}}}));
    for (index, block) in said.iter().enumerate() {
        let breaks_off = matches!(said.get(index + 1), Some(Say::Hold | Say::Cut));
        let (start, delta) = match block {
            Say::Text(text) => (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text})),
            Say::Thinking(text) => (
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                json!({"type": "thinking_delta", "thinking": text}),
            ),
            Say::Call { id, name, input } => {
                let written = input.to_string();
                let written = if breaks_off { &written[..written.len() / 2] } else { &written };
                (
                    json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                    json!({"type": "input_json_delta", "partial_json": written}),
                )
            }
            Say::Hold | Say::Cut => return body,
        };
        event(json!({"type": "content_block_start", "index": index, "content_block": start}));
        event(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        if breaks_off {
            continue;
        }
        if matches!(block, Say::Thinking(_)) {
            let delta = json!({"type": "signature_delta", "signature": signature(model)});
            event(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        event(json!({"type": "content_block_stop", "index": index}));
    }
    let calls = said.iter().any(|block| matches!(block, Say::Call { .. }));
    let reason = if calls { "tool_use" } else { "end_turn" };
    event(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 20}}));
    event(json!({"type": "message_stop"}));
    body
}
