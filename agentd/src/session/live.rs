//! What is growing in a session right now: the answer of the model and the output of running tools.
//!
//! Growing costs what is new and nothing else. Bytes for the wire are made when somebody asks, once for a revision and
//! for everybody who asks soon enough.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use protocol::{CallId, Message, Part, SessionId, TurnId};
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

use super::tail::Ends;

/// How much of a running tool's output is shown, in bytes.
const OUTPUT_BYTES: usize = 64 << 10;

#[derive(Default, Debug)]
pub(crate) struct Live {
    /// Rises with every change of anything in here, for as long as the feed lives.
    rev: u64,
    message: Option<Growing<Message>>,
    tools: Vec<Growing<Output>>,
    /// The revision up to which drafts were taken.
    drafted: u64,
}

#[derive(Debug)]
struct Growing<T> {
    what: T,
    turn: TurnId,
    rev: u64,
    made: Option<Made>,
}

/// The event of one revision, ready to be sent.
#[derive(Debug)]
struct Made {
    rev: u64,
    at: Instant,
    json: Arc<str>,
}

#[derive(Debug)]
struct Output {
    call: CallId,
    tail: Vec<u8>,
    total_bytes: u64,
}

impl Live {
    /// Takes over what `message` has more than at the last call.
    pub(crate) fn message_updated(&mut self, message: &Message, turn: TurnId) -> u64 {
        self.rev += 1;
        match &mut self.message {
            Some(growing) if growing.what.id == message.id => {
                grow_message(&mut growing.what, message);
                growing.rev = self.rev;
            }
            _ => {
                let what = Message { streaming: true, ..message.clone() };
                self.message = Some(Growing { what, turn, rev: self.rev, made: None });
            }
        }
        self.rev
    }

    pub(crate) fn message_dropped(&mut self) {
        self.message = None;
    }

    pub(crate) fn tool_output(&mut self, call: &CallId, turn: TurnId, bytes: &[u8]) -> u64 {
        self.rev += 1;
        let found = self.tools.iter().position(|tool| tool.what.call == *call).unwrap_or_else(|| {
            let what = Output { call: call.clone(), tail: Vec::new(), total_bytes: 0 };
            self.tools.push(Growing { what, turn, rev: self.rev, made: None });
            self.tools.len() - 1
        });
        let tool = &mut self.tools[found];
        tool.rev = self.rev;
        tool.what.push(bytes);
        self.rev
    }

    /// What has changed since the last call: the words of the answer, the end of each call's output.
    pub(crate) fn drafts(&mut self) -> Vec<(String, String)> {
        let since = std::mem::replace(&mut self.drafted, self.rev);
        let message = self.message.iter().filter(|growing| growing.rev > since);
        let message = message.map(|growing| ("message".to_owned(), growing.what.text()));
        let tools = self.tools.iter().filter(|tool| tool.rev > since);
        let tools = tools.map(|tool| (tool.what.call.0.clone(), String::from_utf8_lossy(&tool.what.tail).into_owned()));
        message.chain(tools).collect()
    }

    /// Drops what a durable event has made final.
    pub(crate) fn end(&mut self, ends: &Ends) {
        match ends {
            Ends::Nothing => {}
            Ends::Message(id) => drop(self.message.take_if(|growing| growing.what.id == *id)),
            Ends::Tool(call) => self.tools.retain(|tool| tool.what.call != *call),
            Ends::Turn => {
                self.message = None;
                self.tools.clear();
            }
        }
    }

    /// The events of all that has changed since `want.seen`, in the order of their revisions.
    ///
    /// Bytes that were made for somebody else within `want.fresh_within` will do.
    pub(crate) fn changes(&mut self, session: SessionId, want: &Want) -> Changes {
        let mut changes = Changes { seen: self.rev, ..Changes::default() };
        if let Some(growing) = self.message.as_mut().filter(|growing| want.message && growing.rev > want.seen) {
            growing.add_to(&mut changes, want, |growing, rev| {
                Ephemeral::new("snapshot", SnapshotData { message: &growing.what, rev }, session, growing.turn).json()
            });
        }
        for tool in self.tools.iter_mut().filter(|tool| want.tools && tool.rev > want.seen) {
            tool.add_to(&mut changes, want, |tool, rev| {
                Ephemeral::new("tool.output", tool.what.data(rev), session, tool.turn).json()
            });
        }
        changes.events.sort_by_key(|(rev, _)| *rev);
        changes
    }
}

/// What has grown since a subscriber last looked.
#[derive(Default, Debug)]
pub(crate) struct Changes {
    pub(crate) events: Vec<(u64, Arc<str>)>,
    /// Nothing up to this revision is left out of `events`.
    pub(crate) seen: u64,
    /// How many of the events had to be serialised for this subscriber.
    pub(crate) serialised: u64,
}

/// What a subscriber asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    /// The newest revision it has been sent.
    pub(crate) seen: u64,
    /// How old bytes made for somebody else may be.
    pub(crate) fresh_within: Duration,
    pub(crate) message: bool,
    pub(crate) tools: bool,
}

impl<T> Growing<T> {
    fn add_to(&mut self, changes: &mut Changes, want: &Want, make: impl FnOnce(&Self, u64) -> Option<String>) {
        let now = Instant::now();
        let will_do = |made: &&Made| {
            made.rev == self.rev || (made.rev > want.seen && now.duration_since(made.at) < want.fresh_within)
        };
        if let Some(made) = self.made.as_ref().filter(will_do) {
            if made.rev < self.rev {
                changes.seen = changes.seen.min(made.rev);
            }
            changes.events.push((made.rev, made.json.clone()));
            return;
        }
        let Some(json) = make(self, self.rev).map(Arc::<str>::from) else { return };
        changes.serialised += 1;
        changes.events.push((self.rev, json.clone()));
        self.made = Some(Made { rev: self.rev, at: now, json });
    }
}

impl Output {
    fn push(&mut self, bytes: &[u8]) {
        self.total_bytes += bytes.len() as u64;
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(OUTPUT_BYTES)..]);
        if self.tail.len() > 2 * OUTPUT_BYTES {
            self.tail.drain(..self.tail.len() - OUTPUT_BYTES); // seldom, so that each byte moves once
        }
    }

    fn data(&self, rev: u64) -> OutputData<'_> {
        let mut shown = &self.tail[self.tail.len().saturating_sub(OUTPUT_BYTES)..];
        if shown.len() < usize::try_from(self.total_bytes).unwrap_or(usize::MAX) {
            let rest_of_a_character = shown.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
            shown = &shown[rest_of_a_character..];
        }
        if let Some(chunk) = shown.utf8_chunks().last()
            && std::str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none())
        {
            shown = &shown[..shown.len() - chunk.invalid().len()]; // the rest of this character is still to come
        }
        let text = String::from_utf8_lossy(shown).into_owned();
        OutputData { tool_use_id: &self.call, text, total_bytes: self.total_bytes, rev }
    }
}

/// An event without a place in the journal. Borrows, where `protocol::Event` owns.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Ephemeral<T> {
    r#type: &'static str,
    data: T,
    session_id: SessionId,
    ts: Timestamp,
    turn_id: TurnId,
}

#[derive(Serialize)]
struct SnapshotData<'a> {
    message: &'a Message,
    rev: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OutputData<'a> {
    tool_use_id: &'a CallId,
    text: String,
    total_bytes: u64,
    rev: u64,
}

impl<T: Serialize> Ephemeral<T> {
    fn new(kind: &'static str, data: T, session_id: SessionId, turn_id: TurnId) -> Self {
        Self { r#type: kind, data, session_id, ts: Timestamp::now(), turn_id }
    }

    fn json(&self) -> Option<String> {
        serde_json::to_string(self).inspect_err(|error| tracing::error!(%error, "event cannot be serialised")).ok()
    }
}

/// Brings `ours` up to `new`, of which it is an earlier state, by copying only what `new` has more.
fn grow_message(ours: &mut Message, new: &Message) {
    ours.content.truncate(new.content.len());
    for (ours, new) in ours.content.iter_mut().zip(&new.content) {
        grow_part(ours, new);
    }
    let known = ours.content.len();
    ours.content.extend_from_slice(&new.content[known..]);
    ours.usage = new.usage;
    ours.stop_reason = new.stop_reason;
    if ours.model != new.model {
        ours.model.clone_from(&new.model);
    }
}

fn grow_part(ours: &mut Part, new: &Part) {
    match (ours, new) {
        (Part::Text { text: ours }, Part::Text { text: new }) => grow_text(ours, new),
        (
            Part::Thinking { text: ours, signature: our_signature, redacted: our_redacted },
            Part::Thinking { text: new, signature, redacted },
        ) => {
            grow_text(ours, new);
            grow_option(our_signature, signature.as_ref());
            grow_option(our_redacted, redacted.as_ref());
        }
        (
            Part::ToolUse { id: our_id, name: our_name, input: our_input, raw_input: our_raw },
            Part::ToolUse { id, name, input, raw_input },
        ) => {
            if our_id != id || our_name != name {
                (*our_id, *our_name) = (id.clone(), name.clone());
            }
            // An input is `{}` until it is whole, and stays as it is from then on.
            if fields(our_input) != fields(input) || (our_raw.is_some() && raw_input.is_none()) {
                our_input.clone_from(input);
            }
            grow_option(our_raw, raw_input.as_ref());
        }
        // These come whole. Comparing the length would not be cheaper than knowing the kind.
        (Part::Image { .. }, Part::Image { .. })
        | (Part::ToolResult { .. }, Part::ToolResult { .. })
        | (Part::Other(_), Part::Other(_)) => {}
        (ours, new) => ours.clone_from(new),
    }
}

fn fields(input: &Value) -> Option<usize> {
    input.as_object().map(serde_json::Map::len)
}

fn grow_text(ours: &mut String, new: &str) {
    match new.get(ours.len()..) {
        Some(more) => ours.push_str(more),
        None => new.clone_into(ours),
    }
}

fn grow_option(ours: &mut Option<String>, new: Option<&String>) {
    match (ours.as_mut(), new) {
        (Some(ours), Some(new)) => grow_text(ours, new),
        _ => *ours = new.cloned(),
    }
}

#[cfg(test)]
mod tests;
