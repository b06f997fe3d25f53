//! Events to lines of text: prints only what is new, and nothing that moves the cursor.
//!
//! Pure but for what it remembers of messages and tools it has shown. Everything it prints ends in a newline, so it can
//! stand above a line that somebody types on.

mod diff;
mod paint;
mod text;

use std::collections::HashMap;

use protocol::event::{Event, EventBody, NoticeLevel, QueueChange};
use protocol::ids::{CallId, MessageId};
use protocol::message::{Message, Role, Usage};
use protocol::session::{Session, Todo, TodoStatus, Turn, TurnError, TurnState};
use serde_json::Value;

pub(crate) use diff::diff;
pub(crate) use paint::Paint;
pub(crate) use text::Growing;

use crate::exit::in_commands;
use crate::untrusted::Untrusted;
use crate::view::View;
use crate::{approve, question};

/// How many lines of a diff are shown once the change is made; the request for consent had all of it.
const DIFF_LINES: usize = 40;

/// What was shown of a session.
#[derive(Debug)]
pub(crate) struct Renderer {
    paint: Paint,
    columns: Option<usize>,
    growing: HashMap<MessageId, Growing>,
    tools: HashMap<CallId, String>,
    /// Calls that the model made and that have not begun; a refused one never does.
    called: HashMap<CallId, String>,
    /// What was typed here and stands on the screen already.
    typed: Vec<String>,
    /// Changes that stand on the screen already, since consent was asked for them.
    asked: HashMap<CallId, String>,
    known: Option<(String, protocol::session::Mode)>,
}

impl Renderer {
    /// `columns`: where prose is broken; `None` leaves lines as they are.
    pub(crate) fn new(paint: Paint, columns: Option<usize>) -> Self {
        Self {
            paint,
            columns,
            growing: HashMap::new(),
            tools: HashMap::new(),
            called: HashMap::new(),
            typed: Vec::new(),
            asked: HashMap::new(),
            known: None,
        }
    }

    /// The terminal has another width now.
    pub(crate) fn set_columns(&mut self, columns: Option<usize>) {
        self.columns = columns;
    }

    /// A message that the terminal shows already, since it was typed there.
    pub(crate) fn was_typed(&mut self, text: &str) {
        self.typed.push(text.to_owned());
    }

    /// The call's command or diff is on the screen, since consent is asked for it there.
    pub(crate) fn was_asked(&mut self, call: &CallId, detail: &str) {
        self.asked.insert(call.clone(), detail.to_owned());
    }

    /// Remembers the names of the calls in an answer, also one that is shown elsewhere.
    pub(crate) fn was_called(&mut self, message: &Message) {
        let calls = message.tool_uses().map(|(id, name, _)| (id.clone(), Untrusted::new(name).one_line(60)));
        self.called.extend(calls);
    }

    /// It was not sent after all.
    pub(crate) fn was_not_sent(&mut self, text: &str) {
        if let Some(at) = self.typed.iter().rposition(|typed| typed == text) {
            self.typed.remove(at);
        }
    }

    /// The new lines that an event makes. `view` has taken the event in already.
    pub(crate) fn event(&mut self, event: &Event, view: &View) -> String {
        match &event.body {
            EventBody::SessionCreated { session } | EventBody::SessionUpdated { session } => self.session(session),
            EventBody::Snapshot { message, .. } => self.assistant(message, false),
            EventBody::Message { message } => self.message(message),
            EventBody::ToolStarted { tool_use_id, name, title, input, .. } => {
                self.tool_started(tool_use_id, name, title, input)
            }
            EventBody::ToolFinished { tool_use_id, is_error, code, duration_ms, summary, detail, .. } => {
                let outcome = if *is_error { code.as_deref().unwrap_or("error") } else { "" };
                let line = self.tool_finished(tool_use_id, outcome, *duration_ms, summary);
                let asked = self.asked.remove(tool_use_id);
                let change = detail.as_deref().filter(|detail| asked.as_deref() != Some(*detail));
                line + &change.map(|text| diff(text, self.paint, Some(DIFF_LINES))).unwrap_or_default()
            }
            EventBody::TurnEnded { state, usage, error } => {
                self.called.clear();
                self.turn_ended(*state, usage, error.as_ref(), view)
            }
            EventBody::ApprovalResolved { approval } => self.dim(&approve::settled(approval)),
            EventBody::QuestionResolved { question } => self.dim(&question::settled(question)),
            EventBody::TodosUpdated { todos } => self.todos(todos),
            EventBody::Notice { level, text } => self.notice(*level, text),
            EventBody::DaemonDraining { .. } => self.dim("the daemon is going down"),
            EventBody::TurnResumed { .. } => self.dim("the turn goes on"),
            EventBody::TurnQueued { turn } => self.queued("waits", turn),
            EventBody::QueueChanged { change, turn } => match change {
                QueueChange::Updated => self.queued("waits, changed", turn),
                QueueChange::Deleted => self.queued("taken back", turn),
                QueueChange::Steered => String::new(),
            },
            EventBody::TurnRecoverable { .. }
            | EventBody::ApprovalRequested { .. }
            | EventBody::QuestionRequested { .. }
            | EventBody::SessionStatus { .. }
            | EventBody::TurnStarted { .. }
            | EventBody::ToolOutput { .. }
            | EventBody::SessionAttached { .. }
            | EventBody::StreamSynced { .. }
            | EventBody::Other { .. } => String::new(),
        }
    }

    fn queued(&self, what: &str, turn: &Turn) -> String {
        let text = turn.input.iter().find_map(|part| part.as_text()).unwrap_or("(no text)");
        self.dim(&format!("{what}: {}", Untrusted::new(text).one_line(80)))
    }

    fn session(&mut self, session: &Session) -> String {
        let now = (session.model.clone(), session.mode);
        let before = self.known.replace(now.clone());
        match before {
            Some(before) if before != now => self.dim(&format!(
                "model {} · mode {}",
                Untrusted::new(&session.model).one_line(80),
                mode_name(session.mode)
            )),
            _ => String::new(),
        }
    }

    fn message(&mut self, message: &Message) -> String {
        match message.role {
            Role::Assistant => self.assistant(message, true),
            Role::User if message.synthetic.is_none() => self.user(message),
            Role::User | Role::System | Role::Tool => String::new(),
        }
    }

    fn user(&mut self, message: &Message) -> String {
        let text = message.text();
        if let Some(at) = self.typed.iter().position(|typed| *typed == text) {
            self.typed.remove(at);
            return String::new();
        }
        let lines: Vec<String> = Untrusted::new(&text).escaped().lines().map(|line| format!("> {line}")).collect();
        format!("\n{}\n", self.paint.bold(&lines.join("\n")))
    }

    fn assistant(&mut self, message: &Message, is_done: bool) -> String {
        let text = message.text();
        if is_done {
            self.was_called(message);
        }
        let rows = self.growing.entry(message.id).or_default().rows(&text, self.columns, is_done);
        if is_done {
            self.growing.remove(&message.id);
        }
        rows
    }

    fn tool_started(&mut self, id: &CallId, name: &str, title: &str, input: &Value) -> String {
        let name = Untrusted::new(name).one_line(60);
        let title = if title.trim().is_empty() { first_argument(input) } else { title.to_owned() };
        let title = Untrusted::new(&title).one_line(160);
        self.called.remove(id);
        self.tools.insert(id.clone(), name.clone());
        format!("{} {}  {title}\n", self.paint.cyan("●"), self.paint.bold(&name))
    }

    fn tool_finished(&mut self, id: &CallId, outcome: &str, duration_ms: u64, summary: &str) -> String {
        let head = match self.tools.remove(id) {
            Some(name) if !self.tools.is_empty() => format!("  └ {name} · "),
            Some(_) => "  └ ".to_owned(),
            // It never began, so there is no line above that it could hang on.
            None => self.called.remove(id).map(|name| format!("  {name} · ")).unwrap_or_else(|| "  ".to_owned()),
        };
        let summary = Untrusted::new(summary).one_line(200);
        let summary = if summary.is_empty() { summary } else { format!(" · {summary}") };
        let time = duration(duration_ms);
        if outcome.is_empty() {
            self.dim(&format!("{head}ok · {time}{summary}"))
        } else {
            let outcome = Untrusted::new(outcome).one_line(60);
            format!("{}\n", self.paint.red(&format!("{head}{outcome} · {time}{summary}")))
        }
    }

    fn turn_ended(&self, state: TurnState, usage: &Usage, error: Option<&TurnError>, view: &View) -> String {
        let read = usage.context_tokens() - usage.output_tokens;
        let tokens = match (read, usage.output_tokens) {
            (0, 0) => "done".to_owned(), // a model that counts none
            (read, written) => format!("{read} tokens in, {written} out"),
        };
        let context = view.context_percent().map(|percent| format!(" · context {percent} %")).unwrap_or_default();
        let why = error.map(|error| {
            let hint = in_commands(&error.data.hint);
            let hint = if hint.is_empty() { hint } else { format!(" (hint: {hint})") };
            format!(": {}", Untrusted::new(&format!("{}{hint}", error.message)).one_line(500))
        });
        let why = why.unwrap_or_default();
        match state {
            TurnState::Completed => self.dim(&format!("── {tokens}{context}")),
            TurnState::Interrupted | TurnState::Recoverable => {
                format!("{}\n", self.paint.yellow(&format!("── interrupted{why}{context}")))
            }
            TurnState::Limit => {
                format!("{}\n", self.paint.yellow(&format!("── a limit ended the turn{why}{context}")))
            }
            TurnState::Failed => format!("{}\n", self.paint.red(&format!("── the turn failed{why}"))),
            TurnState::Queued | TurnState::Running => String::new(),
        }
    }

    fn todos(&self, todos: &[Todo]) -> String {
        let lines = todos.iter().map(|todo| {
            let mark = match todo.status {
                TodoStatus::Pending => "[ ]",
                TodoStatus::InProgress => "[>]",
                TodoStatus::Completed => "[x]",
                TodoStatus::Cancelled => "[-]",
            };
            self.dim(&format!("  {mark} {}", Untrusted::new(&todo.content).one_line(160)))
        });
        lines.collect()
    }

    fn notice(&self, level: NoticeLevel, text: &str) -> String {
        let text = format!("! {}", Untrusted::new(text).escaped());
        match level {
            NoticeLevel::Info => self.dim(&text),
            NoticeLevel::Warning => format!("{}\n", self.paint.yellow(&text)),
            NoticeLevel::Error => format!("{}\n", self.paint.red(&text)),
        }
    }

    fn dim(&self, line: &str) -> String {
        format!("{}\n", self.paint.dim(line))
    }
}

/// The mode as it is typed.
pub(crate) fn mode_name(mode: protocol::session::Mode) -> String {
    wire_name(&mode)
}

/// The wire's word for a value of one of the protocol's enums.
pub(crate) fn wire_name(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// What a call without a title is about: its first argument that is a text.
fn first_argument(input: &Value) -> String {
    let arguments = input.as_object().into_iter().flat_map(|object| object.values());
    arguments.filter_map(Value::as_str).next().unwrap_or_default().to_owned()
}

/// A time that a person reads at a glance.
fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
    }
}

#[cfg(test)]
mod tests;
