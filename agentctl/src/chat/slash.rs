//! Commands inside a chat: a line that begins with `/`. Words without it are always for the model.

use clap::ValueEnum;
use protocol::api::ResumeAction;
use protocol::session::Mode;

use crate::args::ModeName;

/// What was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Slash {
    Help,
    Sessions,
    Attach(String),
    New,
    /// Shows it if nothing is named.
    Model(Option<String>),
    Mode(Option<Mode>),
    Approvals,
    Interrupt,
    /// Lets a turn go on that was cut off, or ends it.
    Resume(ResumeAction),
    /// Lists what waits, or takes one back.
    Queue(Option<String>),
    Status,
    Quit,
}

/// Names, arguments and meanings; also the help text.
const TABLE: [(&str, &str, &str); 13] = [
    ("/help", "", "this list"),
    ("/sessions", "", "list sessions"),
    ("/attach", "ID", "go to another session"),
    ("/new", "", "begin a new session here"),
    ("/model", "[NAME]", "show or change the model"),
    ("/mode", "[NAME]", "show or change the mode: plan, ask, accept-edits, auto, bypass"),
    ("/approvals", "", "show again what waits for you"),
    ("/interrupt", "", "stop the running turn"),
    ("/resume", "", "let a turn go on that was cut off"),
    ("/discard", "", "end a turn that was cut off"),
    ("/queue", "[drop N]", "show the messages that wait, or take one back"),
    ("/status", "", "session, model, mode, context"),
    ("/quit", "", "leave; what runs goes on"),
];

/// Understands a line that begins with `/`.
///
/// # Errors
/// A sentence with the nearest command.
pub(super) fn parse(line: &str) -> Result<Slash, String> {
    let (name, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
    let argument = Some(rest.trim().to_owned()).filter(|text| !text.is_empty());
    Ok(match name {
        "/help" | "/?" => Slash::Help,
        "/sessions" => Slash::Sessions,
        "/attach" => Slash::Attach(argument.ok_or("which session? (hint: /sessions lists them)")?),
        "/new" => Slash::New,
        "/model" => Slash::Model(argument),
        "/mode" => Slash::Mode(argument.map(|name| mode(&name)).transpose()?),
        "/approvals" => Slash::Approvals,
        "/interrupt" => Slash::Interrupt,
        "/resume" => Slash::Resume(ResumeAction::Continue),
        "/discard" => Slash::Resume(ResumeAction::Discard),
        "/queue" => Slash::Queue(argument.map(|rest| rest.trim_start_matches("drop").trim().to_owned())),
        "/status" => Slash::Status,
        "/quit" | "/exit" => Slash::Quit,
        other => return Err(unknown(other)),
    })
}

/// The list of commands, one a line.
pub(super) fn help() -> String {
    let lines =
        TABLE.iter().map(|(name, argument, about)| format!("  {:<18}  {about}\n", format!("{name} {argument}")));
    let lines: String = lines.collect();
    format!(
        "{lines}  Ctrl-C clears the line, then stops the turn, then leaves · Ctrl-D leaves · Alt-Enter begins a new line\n"
    )
}

fn mode(name: &str) -> Result<Mode, String> {
    ModeName::from_str(name, true)
        .map(Into::into)
        .map_err(|_| format!("no mode `{name}`: plan, ask, accept-edits, auto or bypass"))
}

fn unknown(typed: &str) -> String {
    let nearest = TABLE
        .iter()
        .map(|(name, ..)| (strsim::damerau_levenshtein(typed, name), *name))
        .min()
        .filter(|(distance, name)| *distance <= 3 && *distance < name.len() - 1)
        .map_or("/help", |(_, name)| name);
    format!("no command `{typed}` (hint: {nearest}; a blank before the / makes it a message)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Result<Slash, &str>) {
        match (parse(line), expected) {
            (Ok(got), Ok(expected)) => assert_eq!(got, expected),
            (Err(got), Err(part)) => assert!(got.contains(part), "{got}"),
            (got, expected) => panic!("{line}: {got:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn commands_are_understood_and_typing_errors_get_the_nearest() {
        check("/help", Ok(Slash::Help));
        check("/quit ", Ok(Slash::Quit));
        check("/attach  0194", Ok(Slash::Attach("0194".into())));
        check("/attach", Err("which session?"));
        check("/model", Ok(Slash::Model(None)));
        check("/model local/m", Ok(Slash::Model(Some("local/m".into()))));
        check("/mode accept-edits", Ok(Slash::Mode(Some(Mode::AcceptEdits))));
        check("/mode yolo", Err("no mode `yolo`"));
        check("/queue drop 2", Ok(Slash::Queue(Some("2".into()))));
        check("/resume", Ok(Slash::Resume(ResumeAction::Continue)));
        check("/qiut", Err("hint: /quit;"));
        check("/interupt", Err("hint: /interrupt;"));
        check("/etc/passwd is odd", Err("no command `/etc/passwd` (hint: /help; a blank before"));
    }

    #[test]
    fn the_help_lists_every_command_that_is_understood() {
        for (name, ..) in TABLE {
            let line = format!("{name} ask");
            assert!(parse(&line).is_ok(), "{name}");
            assert!(help().contains(name));
        }
    }
}
