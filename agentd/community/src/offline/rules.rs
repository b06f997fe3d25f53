//! The next step of a simple coding agent, decided by rules from the transcript alone.
//!
//! Calls only tools that the request offers, then says in words what came of them. Never pretends to think: each
//! closing answer names the offline model.

use foundation::{CallId, Message, ModelRequest, Part, Role, ToolChoice};
use serde_json::{Value, json};

use super::Action;
use super::intent::{Intent, parse};

/// How much of a result the answer repeats.
const MAX_LINES: usize = 60;

const CLOSING: &str = "\n\n(This was the offline model, which follows rules. Set a key such as ANTHROPIC_API_KEY or \
                       OPENAI_API_KEY for a model that thinks.)";

const HELP: &str = "I am the offline model: I follow rules and do not think. I understand requests like these:\n\n\
                    - read src/main.rs (读, 打开)\n\
                    - list src (列出)\n\
                    - search TODO in src (搜索)\n\
                    - run cargo test (执行, 运行)\n\
                    - write notes.txt: some text (写)\n\
                    - replace old with new in notes.txt (把 … 中的 … 替换为 …)";

/// A finished call.
struct Outcome<'a> {
    tool: &'a str,
    input: &'a Value,
    content: &'a str,
    is_error: bool,
    code: Option<&'a str>,
}

/// What to say or do next.
pub(super) fn answer(request: &ModelRequest<'_>) -> Vec<Action> {
    let (asked, since) = last_request(request.messages);
    let outcomes = outcomes(since);
    let last = outcomes.last();
    if request.tool_choice == ToolChoice::None {
        let so_far =
            last.map(|outcome| format!(" The last thing that happened: {}", sum_up(outcome))).unwrap_or_default();
        return say(&format!("I stop here, because no more tools may be called.{so_far}{CLOSING}"));
    }
    let intent = parse(&asked);
    match (last, &intent) {
        (None, Intent::Other) => say(&format!("{HELP}{CLOSING}")),
        (None, Intent::WhichFile) => say(&format!("Which file? Name it, as in `read Cargo.toml`.{CLOSING}")),
        (None, _) => call(request, first_call(&intent)),
        // A file must have been read before it may be edited.
        (Some(Outcome { tool: "read", is_error: false, .. }), Intent::Edit { path, old, new }) => {
            let input = json!({"path": path, "oldString": old, "newString": new});
            call(request, ("edit", format!("Replace text in {path}"), input))
        }
        (Some(outcome), _) => say(&format!("{}{CLOSING}", sum_up(outcome))),
    }
}

/// The words of the last message from a person, and what came after it.
fn last_request(messages: &[Message]) -> (String, &[Message]) {
    let is_request = |message: &Message| message.role == Role::User && !message.text().trim().is_empty();
    let place = messages
        .iter()
        .rposition(|message| is_request(message) && message.synthetic.is_none())
        .or_else(|| messages.iter().rposition(is_request));
    place.map_or((String::new(), messages), |place| (messages[place].text(), &messages[place + 1..]))
}

fn outcomes(messages: &[Message]) -> Vec<Outcome<'_>> {
    let call_of = |wanted: &CallId| messages.iter().flat_map(Message::tool_uses).find(|(id, ..)| *id == wanted);
    messages
        .iter()
        .flat_map(|message| &message.content)
        .filter_map(|part| {
            let Part::ToolResult { tool_use_id, content, is_error, code } = part else { return None };
            let (_, tool, input) = call_of(tool_use_id)?;
            Some(Outcome { tool, input, content, is_error: *is_error, code: code.as_deref() })
        })
        .collect()
}

type Call = (&'static str, String, Value);

fn first_call(intent: &Intent) -> Call {
    match intent {
        Intent::Read { path } => ("read", format!("Read {path}"), json!({"path": path})),
        Intent::Edit { path, .. } => ("read", format!("Read {path} before the edit"), json!({"path": path})),
        Intent::List { path } => {
            let path = path.as_deref().unwrap_or(".");
            ("list", format!("List {path}"), json!({"path": path}))
        }
        Intent::Search { pattern, path: None } => ("grep", format!("Search {pattern}"), json!({"pattern": pattern})),
        Intent::Search { pattern, path: Some(path) } => {
            ("grep", format!("Search {pattern} in {path}"), json!({"pattern": pattern, "path": path}))
        }
        Intent::Run { command } => ("bash", format!("Run {command}"), json!({"command": command})),
        Intent::Write { path, content } => {
            ("write", format!("Write {path}"), json!({"path": path, "content": content}))
        }
        Intent::WhichFile | Intent::Other => ("", String::new(), json!({})),
    }
}

/// Says what it does and calls the tool, if there is such a tool.
fn call(request: &ModelRequest<'_>, (name, description, input): Call) -> Vec<Action> {
    if !request.tools.iter().any(|tool| tool.name == name) {
        return say(&format!("I would call the tool `{name}` for that, but this session does not offer it.{CLOSING}"));
    }
    let mut arguments = serde_json::Map::from_iter([("description".to_owned(), json!(description))]);
    if let Value::Object(input) = input {
        arguments.extend(input);
    }
    let mut actions = say(&format!("{description}."));
    actions.push(Action::Call { id: None, name: name.into(), arguments: Value::Object(arguments).to_string() });
    actions
}

/// The text in pieces of a word each.
fn say(text: &str) -> Vec<Action> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let word = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let gap = rest[word..].find(|c: char| !c.is_whitespace()).unwrap_or(rest.len() - word);
        let (piece, after) = rest.split_at(word + gap);
        pieces.push(Action::Say(piece.into()));
        rest = after;
    }
    pieces
}

fn sum_up(outcome: &Outcome<'_>) -> String {
    let field = |name: &str| outcome.input.get(name).and_then(Value::as_str).unwrap_or("it");
    let (done, failed) = match outcome.tool {
        "read" => (format!("Here is {}", field("path")), format!("reading {}", field("path"))),
        "list" => (format!("Here is what {} holds", field("path")), format!("listing {}", field("path"))),
        "grep" => (format!("Matches for {}", field("pattern")), format!("searching {}", field("pattern"))),
        "bash" => (format!("Output of `{}`", field("command")), format!("running `{}`", field("command"))),
        "write" => (format!("I wrote {}", field("path")), format!("writing {}", field("path"))),
        "edit" => (format!("I edited {}", field("path")), format!("editing {}", field("path"))),
        other => (format!("`{other}` answered"), format!("calling `{other}`")),
    };
    if !outcome.is_error {
        return format!("{done}:\n\n{}", head(outcome.content));
    }
    let fact = match outcome.code {
        Some("DENIED" | "PERMISSION_DENIED") => "was not allowed, so nothing was done",
        Some("CANCELLED") => "was cancelled",
        Some("TIMED_OUT") => "took too long",
        Some("UNKNOWN_OUTCOME") => "was interrupted, and whether it happened is not known",
        _ => "did not work",
    };
    let mut failed = failed;
    if let Some(first) = failed.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    format!("{failed} {fact}:\n\n{}", head(outcome.content))
}

/// The first lines, and how many more there are.
fn head(content: &str) -> String {
    let total = content.lines().count();
    if total <= MAX_LINES {
        return content.trim_end().into();
    }
    let lines: Vec<_> = content.lines().take(MAX_LINES).collect();
    format!("{}\n… and {} more lines", lines.join("\n"), total - MAX_LINES)
}

#[cfg(test)]
mod tests;
