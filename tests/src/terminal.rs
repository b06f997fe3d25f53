//! A terminal with one of our programs in it, as a person has it.

use std::process::Stdio;

use rexpect::session::{PtySession, spawn_command};

use crate::PATIENCE;
use crate::daemon::Home;

/// A pseudo-terminal; `see` waits for text, `type_in` types.
#[expect(missing_debug_implementations, reason = "a pseudo-terminal has none")]
pub struct Terminal {
    pty: PtySession,
    /// All that was shown and asked for so far.
    pub shown: String,
}

impl Terminal {
    /// Starts `agentctl` with these arguments in the home's workspace.
    ///
    /// # Panics
    /// When there is no pseudo-terminal to be had.
    #[must_use]
    pub fn start(home: &Home, args: &[&str]) -> Self {
        let mut command = home.command("agentctl");
        // The pseudo-terminal becomes what is inherited.
        command.args(args).stdin(Stdio::inherit());
        let timeout = u64::try_from(PATIENCE.as_millis()).ok();
        let pty = spawn_command(command, timeout).expect("a pseudo-terminal");
        Self { pty, shown: String::new() }
    }

    /// Waits until this text has been shown, after all that was waited for before. Colours are no part of it.
    #[track_caller]
    pub fn see(&mut self, text: &str) -> &mut Self {
        // The library reads each byte as a character of its own.
        let bytes: String = text.bytes().map(char::from).collect();
        match self.pty.exp_string(&bytes) {
            Ok(before) => self.shown.extend([before, bytes]),
            Err(error) => panic!("`{text}` was not shown: {error}\nbefore that:\n{}", self.shown),
        }
        self
    }

    /// Types a line and Enter.
    #[track_caller]
    pub fn type_in(&mut self, line: &str) -> &mut Self {
        self.pty.send(line).and_then(|_| self.pty.send("\r")).and_then(|_| self.pty.flush()).expect("a line typed");
        self
    }

    /// Presses Ctrl and a letter.
    #[track_caller]
    pub fn ctrl(&mut self, letter: char) -> &mut Self {
        self.pty.send_control(letter).expect("a key pressed");
        self
    }

    /// Waits for the program's end: what it still showed.
    #[track_caller]
    pub fn end(&mut self) -> String {
        self.pty.exp_eof().expect("the program's end")
    }
}
