//! A terminal with one of our programs in it, as a person has it.

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
        command.args(args);
        let timeout = u64::try_from(PATIENCE.as_millis()).ok();
        let pty = spawn_command(command, timeout).expect("a pseudo-terminal");
        Self { pty, shown: String::new() }
    }

    /// Waits until this text has been shown, after all that was waited for before. Colours are no part of it.
    #[track_caller]
    pub fn see(&mut self, text: &str) -> &mut Self {
        match self.pty.exp_string(text) {
            Ok(before) => {
                self.shown.push_str(&before);
                self.shown.push_str(text);
            }
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
