//! The live input line: rustyline in a thread of its own, and a second thread that prints above it.
//!
//! rustyline's printer can block while no line is being read, so it must never be called by anybody who is needed to
//! get the next line read. Hence the second thread.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::mpsc as std_mpsc;
use std::sync::{Arc, Mutex, PoisonError};

use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::{
    Cmd, ColorMode, Completer, Config, Context, Editor, ExternalPrinter, Helper, KeyCode, KeyEvent, Modifiers,
    Validator,
};
use tokio::sync::{mpsc, oneshot};

use crate::chat::console::{Print, Typed};
use crate::exit::Failure;

/// The prompt, and what stands in its place (as wide) while an answer is waited for.
const PROMPT: &str = "> ";
const ASKING: &str = "? ";
const HISTORY_LINES: usize = 1000;

/// What the two threads know of the line that is being typed.
#[derive(Default, Debug)]
struct Draft {
    text: String,
    /// Number of the newest ask on the screen.
    drawn: u64,
    /// The same, when the line was last empty.
    begun_after: u64,
    is_asking: bool,
}

type Shared = Arc<Mutex<Draft>>;

/// Sees every change of the line, and lends the prompt its other face.
#[derive(Helper, Completer, Validator)]
struct Observer(Shared);

impl Hinter for Observer {
    type Hint = String;

    fn hint(&self, line: &str, _: usize, _: &Context<'_>) -> Option<String> {
        with(&self.0, |draft| {
            line.clone_into(&mut draft.text);
            if line.is_empty() {
                draft.begun_after = draft.drawn;
            }
        });
        None
    }
}

impl Highlighter for Observer {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        if with(&self.0, |draft| draft.is_asking) { Cow::Borrowed(ASKING) } else { Cow::Borrowed(prompt) }
    }
}

fn with<T>(shared: &Shared, f: impl FnOnce(&mut Draft) -> T) -> T {
    f(&mut shared.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Starts both threads. `output` is what to print, and where to say that all of it is printed.
pub(super) fn start(
    history: PathBuf,
    typed: mpsc::UnboundedSender<Typed>,
    may_go: std_mpsc::Receiver<()>,
    output: (std_mpsc::Receiver<Print>, oneshot::Sender<Result<(), Failure>>),
) -> Result<(), Failure> {
    let trouble = |error: ReadlineError| Failure::other(format!("the terminal cannot be used: {error}"));
    let config = Config::builder().max_history_size(HISTORY_LINES).map_err(trouble)?;
    // Our only highlighting is the asking prompt, which has no colour: `NO_COLOR` must not hide what Enter means.
    let config = config.color_mode(ColorMode::Forced).build();
    let mut editor: Editor<Observer, FileHistory> = Editor::with_config(config).map_err(trouble)?;
    editor.enable_bracketed_paste(true);
    editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
    let _none_yet = editor.load_history(&history);
    let shared = Shared::default();
    editor.set_helper(Some(Observer(Arc::clone(&shared))));
    let printer = editor.create_external_printer().map_err(trouble)?;
    let shared_too = Arc::clone(&shared);
    std::thread::spawn(move || {
        let (to_print, done) = output;
        print(printer, &to_print, &shared_too);
        let _nobody_waits = done.send(Ok(()));
    });
    std::thread::spawn(move || read(editor, &history, &typed, &may_go, &shared));
    Ok(())
}

fn read(
    mut editor: Editor<Observer, FileHistory>,
    history: &Path,
    typed: &mpsc::UnboundedSender<Typed>,
    may_go: &std_mpsc::Receiver<()>,
    shared: &Shared,
) {
    while may_go.recv().is_ok() {
        let line = editor.readline(PROMPT);
        let (draft, drawn, begun_after, was_asked) =
            with(shared, |draft| (std::mem::take(&mut draft.text), draft.drawn, draft.begun_after, draft.is_asking));
        let next = match line {
            Ok(text) => {
                // Enter alone was pressed after whatever stood there then.
                let begun_after = if text.is_empty() { drawn } else { begun_after };
                let is_answer = was_asked && begun_after == drawn && text.len() < 5;
                if !text.trim().is_empty() && !is_answer {
                    let _not_kept = editor.add_history_entry(text.as_str());
                }
                Typed::Line { text, begun_after }
            }
            Err(ReadlineError::Interrupted) if draft.is_empty() => Typed::Interrupt,
            Err(ReadlineError::Interrupted) => Typed::Cleared,
            Err(ReadlineError::Eof) => Typed::End,
            Err(error) => Typed::Broken(error.to_string()),
        };
        let is_over = matches!(next, Typed::Broken(_));
        if typed.send(next).is_err() || is_over {
            break;
        }
    }
    let _not_kept = editor.append_history(history);
}

fn print(mut printer: impl ExternalPrinter, to_print: &std_mpsc::Receiver<Print>, shared: &Shared) {
    for print in to_print {
        let (mut text, number) = match print {
            Print::Text(text) => (text, None),
            Print::Ask(text, number) => (text, Some(number)),
            Print::NothingAsked => {
                with(shared, |draft| draft.is_asking = false);
                continue;
            }
        };
        if !text.ends_with('\n') {
            text.push('\n');
        }
        // Before it is drawn, so that the prompt below it is the asking one; what is being typed is not its answer.
        if let Some(number) = number {
            with(shared, |draft| {
                draft.is_asking = true;
                draft.drawn = number;
                if draft.text.is_empty() {
                    draft.begun_after = number;
                }
            });
        }
        if printer.print(text).is_err() {
            return;
        }
    }
}
