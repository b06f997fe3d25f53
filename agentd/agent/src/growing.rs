//! What a broken-off answer leaves behind.
//!
//! Follows snapshots by taking over what is new in each, so that a long answer costs what it is long and not the sum of
//! all its snapshots.

use foundation::{Message, Part, StopReason};
use serde_json::Value;

/// A copy of an answer that grows with it. Calls stand in it by place and name alone: half of one is of no use.
#[derive(Default, Debug)]
pub(crate) struct Growing(Option<Message>);

impl Growing {
    /// Takes over what `snapshot` has more than the one before it.
    pub(crate) fn follow(&mut self, snapshot: &Message) {
        let Some(ours) = self.0.as_mut().filter(|ours| ours.id == snapshot.id) else {
            self.0 = Some(Message { content: snapshot.content.iter().map(begun).collect(), ..bare(snapshot) });
            return;
        };
        ours.usage = snapshot.usage;
        ours.content.truncate(snapshot.content.len());
        for (ours, new) in ours.content.iter_mut().zip(&snapshot.content) {
            grow(ours, new);
        }
        let known = ours.content.len();
        ours.content.extend(snapshot.content[known..].iter().map(begun));
    }

    /// The answer as it stays in the transcript: without its calls, which nobody runs, and without reasoning that the
    /// provider has not signed, which it would not take back. `None` when no words were said.
    pub(crate) fn broken_off(self, stop: StopReason) -> Option<Message> {
        let mut message = self.0?;
        message.content.retain(|part| match part {
            Part::ToolUse { .. } | Part::ToolResult { .. } => false,
            Part::Thinking { signature, redacted, .. } => signature.is_some() || redacted.is_some(),
            Part::Text { text } => !text.trim().is_empty(),
            Part::Image { .. } | Part::Other(_) => true,
        });
        message.stop_reason = Some(stop);
        message.streaming = false;
        message.content.iter().any(|part| part.as_text().is_some()).then_some(message)
    }
}

/// The message without its content.
fn bare(message: &Message) -> Message {
    Message {
        id: message.id,
        role: message.role,
        content: Vec::new(),
        model: message.model.clone(),
        usage: message.usage,
        stop_reason: message.stop_reason,
        streaming: message.streaming,
        synthetic: message.synthetic.clone(),
    }
}

fn begun(part: &Part) -> Part {
    match part {
        Part::ToolUse { id, name, .. } => {
            Part::ToolUse { id: id.clone(), name: name.clone(), input: Value::Null, raw_input: None }
        }
        Part::Text { .. } | Part::Image { .. } | Part::Thinking { .. } | Part::ToolResult { .. } | Part::Other(_) => {
            part.clone()
        }
    }
}

fn grow(ours: &mut Part, new: &Part) {
    match (ours, new) {
        (Part::Text { text: ours }, Part::Text { text: new }) => grow_text(ours, new),
        (
            Part::Thinking { text: ours, signature: our_signature, redacted: our_redacted },
            Part::Thinking { text: new, signature, redacted },
        ) => {
            grow_text(ours, new);
            // These come whole.
            if our_signature.is_some() != signature.is_some() {
                our_signature.clone_from(signature);
            }
            if our_redacted.is_some() != redacted.is_some() {
                our_redacted.clone_from(redacted);
            }
        }
        (Part::ToolUse { .. }, Part::ToolUse { .. })
        | (Part::Image { .. }, Part::Image { .. })
        | (Part::Other(_), Part::Other(_)) => {}
        (ours, new) => *ours = begun(new),
    }
}

/// Text only ever grows at its end.
fn grow_text(ours: &mut String, new: &str) {
    match new.get(ours.len()..) {
        Some(more) => ours.push_str(more),
        None => new.clone_into(ours),
    }
}

#[cfg(test)]
mod tests {
    use foundation::CallId;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(snapshots: Vec<Vec<Part>>, expected: Option<&[Part]>) {
        let draft = Message::draft("test/model");
        let mut growing = Growing::default();
        for content in snapshots {
            growing.follow(&Message { content, ..draft.clone() });
        }
        let left = growing.broken_off(StopReason::Interrupted);
        assert!(left.iter().all(|left| !left.streaming && left.stop_reason == Some(StopReason::Interrupted)));
        assert_eq!(left.as_ref().map(|left| &left.content[..]), expected);
    }

    fn text(text: &str) -> Part {
        Part::Text { text: text.into() }
    }

    fn thinking(text: &str, signature: Option<&str>) -> Part {
        Part::Thinking { text: text.into(), signature: signature.map(Into::into), redacted: None }
    }

    fn call() -> Part {
        Part::ToolUse { id: CallId("c".into()), name: "bash".into(), input: json!({}), raw_input: Some("{\"a".into()) }
    }

    #[test]
    fn only_words_and_signed_reasoning_stay() {
        check(vec![], None);
        check(vec![vec![]], None);
        check(vec![vec![text(" \n")]], None);
        check(vec![vec![thinking("hm", None)], vec![thinking("hmm", None)]], None);
        check(vec![vec![thinking("hm", Some("s"))]], None);
        check(vec![vec![text("Hel")], vec![text("Hello")]], Some(&[text("Hello")]));
        check(vec![vec![text("Hel")], vec![text("Hello"), call()]], Some(&[text("Hello")]));
        check(
            vec![
                vec![thinking("h", None)],
                vec![thinking("hm", Some("s")), text("ä")],
                vec![thinking("hm", Some("s")), text("äö")],
            ],
            Some(&[thinking("hm", Some("s")), text("äö")]),
        );
        check(vec![vec![thinking("h", None), text("a")], vec![thinking("h", None), text("ab")]], Some(&[text("ab")]));
    }
}
