//! Data goes to stdout, everything for people to stderr.
//!
//! A stdout that cannot take data is an error for the caller; a closed stderr is nobody's business.

use std::io::{self, Write};

use serde::Serialize;

use crate::exit::Failure;

/// Writes text to stdout as it is, at once.
pub(crate) fn text(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(Failure::Output)
}

/// Writes one line to stdout.
pub(crate) fn line(line: &str) -> Result<(), Failure> {
    text(&format!("{line}\n"))
}

/// Writes a value as readable JSON to stdout.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::other(error.to_string()))?;
    line(&text)
}

/// Says one thing on stderr.
pub(crate) fn note(line: &str) {
    let mut stderr = io::stderr().lock();
    let _ignored = writeln!(stderr, "{line}");
}
