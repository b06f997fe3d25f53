//! Where a chat's lines come from and go to: a terminal with a live input line, or two pipes.
//!
//! Owns the threads that block on them, so that nothing else ever waits for a keyboard or a screen. All output of a
//! chat goes through here; on a terminal it appears above the line that is being typed.

mod editor;

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;
use std::sync::mpsc as std_mpsc;
use std::time::Duration;

use rustix::termios::{OptionalActions, Termios};
use tokio::sync::{mpsc, oneshot};

use crate::exit::Failure;

/// How long output that is still on its way gets at the end.
const FLUSH_LIMIT: Duration = Duration::from_millis(500);

/// What a person did.
#[derive(Debug)]
pub(super) enum Typed {
    /// `begun_after`: the number of the newest ask that was on the screen when the line was begun.
    Line { text: String, begun_after: u64 },
    /// Ctrl-C on an empty line.
    Interrupt,
    /// Ctrl-C on a line with text in it, which is gone now.
    Cleared,
    /// Ctrl-D, or the end of a pipe.
    End,
    /// The input cannot be read.
    Broken(String),
}

/// What is to be printed.
enum Print {
    Text(String),
    /// With its number, to be noted once it is drawn; `None` once nothing is asked.
    Ask(String, u64),
    NothingAsked,
}

/// Both ends of the conversation with a person.
pub(super) struct Console {
    typed: mpsc::UnboundedReceiver<Typed>,
    /// One unit lets the input thread read one more line.
    go: Option<std_mpsc::Sender<()>>,
    print: Option<std_mpsc::Sender<Print>>,
    printed: oneshot::Receiver<Result<(), Failure>>,
    is_reading: bool,
    before: Option<Before>,
}

/// The terminal's settings as we found them: given back whatever happens.
struct Before(Termios);

impl Console {
    /// Takes stdin and stdout over. `history`: where typed lines are remembered.
    pub(super) fn open(history: &Path) -> Result<Self, Failure> {
        let (typed_in, typed) = mpsc::unbounded_channel();
        let (go, may_go) = std_mpsc::channel();
        let (print, to_print) = std_mpsc::channel();
        let (done, printed) = oneshot::channel();
        let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let before = rustix::termios::tcgetattr(std::io::stdin()).ok().filter(|_| is_terminal).map(Before);
        if is_terminal {
            editor::start(history.to_path_buf(), typed_in, may_go, (to_print, done))?;
        } else {
            std::thread::spawn(move || read_pipe(&typed_in, &may_go));
            std::thread::spawn(move || {
                let outcome = print_pipe(&to_print);
                drop(to_print);
                let _nobody_waits = done.send(outcome);
            });
        }
        Ok(Self { typed, go: Some(go), print: Some(print), printed, is_reading: false, before })
    }

    pub(super) fn is_terminal(&self) -> bool {
        self.before.is_some()
    }

    /// Lets one more line be read, if none is being read.
    pub(super) fn read_on(&mut self) {
        if !self.is_reading
            && let Some(go) = &self.go
        {
            self.is_reading = go.send(()).is_ok();
        }
    }

    /// What is done next. Can be dropped and called again.
    pub(super) async fn next(&mut self) -> Typed {
        let typed = self.typed.recv().await.unwrap_or(Typed::End);
        self.is_reading = false;
        typed
    }

    /// Prints lines. What has no newline at its end gets one.
    pub(super) fn print(&self, text: String) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        self.send(Print::Text(text))
    }

    /// Prints a request; lines begun from then on may answer it.
    pub(super) fn ask(&self, text: String, number: u64) -> Result<(), Failure> {
        self.send(Print::Ask(text, number))
    }

    /// Nothing waits for an answer any more.
    pub(super) fn nothing_asked(&self) -> Result<(), Failure> {
        self.send(Print::NothingAsked)
    }

    fn send(&self, print: Print) -> Result<(), Failure> {
        let sent = self.print.as_ref().map(|queue| queue.send(print));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => Err(Failure::Output(std::io::ErrorKind::BrokenPipe.into())),
        }
    }

    /// Ends: no more lines are read, and what is on its way to the screen gets there.
    pub(super) async fn close(mut self) -> Result<(), Failure> {
        self.go = None;
        self.print = None;
        match tokio::time::timeout(FLUSH_LIMIT, &mut self.printed).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) | Err(_) => Ok(()),
        }
    }
}

impl Drop for Before {
    fn drop(&mut self) {
        let _ignored = rustix::termios::tcsetattr(std::io::stdin(), OptionalActions::Drain, &self.0);
    }
}

/// Lines from a pipe, each when it is asked for.
fn read_pipe(typed: &mpsc::UnboundedSender<Typed>, may_go: &std_mpsc::Receiver<()>) {
    let mut lines = std::io::stdin().lock().lines();
    while may_go.recv().is_ok() {
        let next = match lines.next() {
            Some(Ok(text)) => Typed::Line { text, begun_after: u64::MAX },
            Some(Err(error)) => Typed::Broken(error.to_string()),
            None => Typed::End,
        };
        if typed.send(next).is_err() {
            return;
        }
    }
}

fn print_pipe(to_print: &std_mpsc::Receiver<Print>) -> Result<(), Failure> {
    let mut stdout = std::io::stdout();
    for print in to_print {
        let mut text = match print {
            Print::Text(text) | Print::Ask(text, _) => text,
            Print::NothingAsked => continue,
        };
        if !text.ends_with('\n') {
            text.push('\n');
        }
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(Failure::Output)?;
    }
    Ok(())
}
