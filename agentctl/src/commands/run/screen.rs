//! What `run` prints: text on stdout and the rest on stderr, or events as JSON.

use std::collections::HashMap;
use std::io::IsTerminal;

use protocol::approval::{Approval, ApprovalState, DecidedBy};
use protocol::event::{Event, EventBody};
use protocol::ids::MessageId;
use protocol::message::{Message, Role};
use protocol::session::NoClientPolicy;
use serde_json::value::RawValue;

use crate::commands::inbox;
use crate::exit::Failure;
use crate::output;
use crate::render::{Growing, Paint, Renderer};
use crate::untrusted::Untrusted;
use crate::view::View;
use crate::world::World;

/// Where a turn's events go.
pub(super) enum Screen {
    /// Every event as it came.
    Json,
    Text(Box<Text>),
}

/// The answer on stdout; tools, requests and the end on stderr.
pub(super) struct Text {
    growing: HashMap<MessageId, Growing>,
    others: Renderer,
    paint: Paint,
    /// A terminal gets no raw control characters; a pipe gets the answer as it is.
    to_terminal: bool,
    /// The answer on the terminal stands in the middle of a line.
    is_mid_line: bool,
}

impl Screen {
    pub(super) fn text(world: &World) -> Self {
        let to_terminal = std::io::stdout().is_terminal();
        let paint = if std::io::stderr().is_terminal() { world.paint } else { Paint::Plain };
        let others = Renderer::new(paint, None);
        Self::Text(Box::new(Text { growing: HashMap::new(), others, paint, to_terminal, is_mid_line: false }))
    }

    pub(super) fn show(&mut self, raw: &RawValue, event: Option<&Event>, view: &View) -> Result<(), Failure> {
        match (self, event) {
            (Self::Json, _) => output::line(raw.get()),
            (Self::Text(text), Some(event)) => text.show(event, view),
            (Self::Text(_), None) => Ok(()),
        }
    }
}

impl Screen {
    /// Tells a person what the daemon had to say before the turn.
    pub(super) fn recall(&mut self, event: &Event, view: &View) -> Result<(), Failure> {
        match (self, &event.body) {
            (Self::Text(text), EventBody::Notice { .. }) => text.show(event, view),
            _ => Ok(()),
        }
    }
}

impl Text {
    fn show(&mut self, event: &Event, view: &View) -> Result<(), Failure> {
        match &event.body {
            EventBody::Snapshot { message, .. } => self.answer(message, false),
            EventBody::Message { message } if message.role == Role::Assistant => {
                self.others.was_called(message);
                self.answer(message, true)
            }
            // What was asked stands in the command line.
            EventBody::Message { .. } => Ok(()),
            EventBody::ApprovalRequested { approval } => {
                self.others.was_asked(&approval.tool_use_id, &approval.detail);
                self.aside(&inbox::waiting(approval, self.paint))
            }
            EventBody::QuestionRequested { question } => self.aside(&inbox::asked(question, self.paint)),
            _ => {
                let lines = self.others.event(event, view);
                self.aside(&lines)
            }
        }
    }

    fn answer(&mut self, message: &Message, is_done: bool) -> Result<(), Failure> {
        let growing = self.growing.entry(message.id).or_default();
        let mut new = growing.raw(&message.text());
        if is_done {
            if growing.needs_newline() {
                new.push('\n');
            }
            self.growing.remove(&message.id);
        }
        if new.is_empty() {
            return Ok(());
        }
        self.is_mid_line = !new.ends_with('\n');
        output::text(&if self.to_terminal { Untrusted::new(&new).escaped() } else { new })
    }

    fn aside(&mut self, lines: &str) -> Result<(), Failure> {
        if lines.is_empty() {
            return Ok(());
        }
        if self.to_terminal && std::mem::take(&mut self.is_mid_line) {
            output::text("\n")?;
        }
        output::note(lines.trim_end_matches('\n'));
        Ok(())
    }
}

/// What a turn waits for that nobody here can give, and how to give it from elsewhere. `None` for what was asked
/// before, and where the session does not wait for people to come.
pub(super) fn waits_for(event: &Event, before: &View) -> Option<String> {
    if before.session.no_client_policy != NoClientPolicy::Park {
        return None; // its policy answers
    }
    let (what, how) = match &event.body {
        EventBody::ApprovalRequested { approval } if !before.approvals.iter().any(|other| other.id == approval.id) => {
            let id = &approval.short_id;
            let tool = Untrusted::new(&approval.tool).one_line(60);
            (format!("{tool} wants a yes"), format!("agentctl allow {id} | agentctl deny {id}"))
        }
        EventBody::QuestionRequested { question } if !before.questions.iter().any(|other| other.id == question.id) => {
            ("the model has a question".to_owned(), format!("agentctl answer {} …", question.short_id))
        }
        _ => return None,
    };
    Some(format!("waiting for an answer ({what}): {how}   (Ctrl-C stops the turn)"))
}

/// True when nobody said no, but the session's rule for absent people did.
pub(super) fn is_denied_by_policy(approval: &Approval) -> bool {
    let by_policy =
        approval.resolution.as_ref().is_some_and(|resolution| matches!(resolution.by, DecidedBy::Policy { .. }));
    by_policy && matches!(approval.state, ApprovalState::Denied | ApprovalState::Expired)
}
