//! Walks a folder as people see it: what `.gitignore` names is left out, links are not followed, order is by path.
//!
//! And collects what was found under caps that hold while collecting, so that memory stays small; the total goes on
//! being counted, because it says how much to narrow.

use std::path::Path;
use std::time::{Duration, Instant};

use foundation::{ErrorCode, ToolError};
use ignore::{Walk, WalkBuilder};
use tokio_util::sync::CancellationToken;

use super::place::check_running;
use crate::paths::{Target, io_error, not_found};
use crate::text;

/// What the model gets at most of any listing.
pub(super) const MAX_BYTES: usize = 12_000;
pub(super) const MAX_ENTRIES: usize = 200;
pub(super) const MAX_LINES: usize = 250;
/// For the line that gives the total and says how to narrow.
const FOOTER_BYTES: usize = 400;
const MAX_TIME: Duration = Duration::from_secs(30);

/// Whether names that begin with a dot are walked. `.git` itself never is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hidden {
    Skip,
    Walk,
}

/// The walk below a real path, itself not included if it is a folder.
pub(super) fn walk(real: &Path, hidden: Hidden, max_depth: Option<usize>) -> Walk {
    WalkBuilder::new(real)
        .hidden(hidden == Hidden::Skip)
        .require_git(false)
        .follow_links(false)
        .max_depth(max_depth)
        .sort_by_file_name(std::ffi::OsStr::cmp)
        .filter_entry(|entry| {
            // Its name is worth a line, its inside is not the project.
            entry.depth() <= 1 || entry.path().parent().and_then(Path::file_name).is_none_or(|name| name != ".git")
        })
        .build()
}

/// Refuses what cannot be walked.
pub(super) fn check_directory(target: &Target, shown: &str) -> Result<(), ToolError> {
    match target.real.metadata() {
        Ok(meta) if meta.is_dir() => Ok(()),
        Ok(_) => Err(ToolError::new(
            ErrorCode::NotADirectory,
            format!("{shown} is not a directory"),
            "Name the directory it is in, or read it.",
        )),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(not_found(target, shown)),
        Err(error) => Err(io_error(shown, &error)),
    }
}

/// Ends a walk that was cancelled or takes too long.
#[derive(Debug)]
pub(super) struct Clock<'a> {
    cancel: &'a CancellationToken,
    end: Instant,
}

impl<'a> Clock<'a> {
    pub(super) fn new(cancel: &'a CancellationToken) -> Self {
        Self { cancel, end: Instant::now() + MAX_TIME }
    }

    /// False once time is up: what was found until then is still an answer.
    ///
    /// # Errors
    /// `Cancelled`.
    pub(super) fn goes_on(&self) -> Result<bool, ToolError> {
        check_running(self.cancel)?;
        Ok(Instant::now() < self.end)
    }
}

/// Lines under all caps at once.
#[derive(Debug)]
pub(super) struct Listing {
    max_entries: usize,
    lines: usize,
    entries: usize,
    /// Everything found, also what the caps left out.
    pub(super) total: u64,
    pub(super) text: String,
    is_full: bool,
}

impl Listing {
    /// At most `limit` entries, and never over [`MAX_ENTRIES`].
    pub(super) fn new(limit: Option<usize>) -> Self {
        let max_entries = limit.unwrap_or(MAX_ENTRIES).clamp(1, MAX_ENTRIES);
        Self { max_entries, lines: 0, entries: 0, total: 0, text: String::new(), is_full: false }
    }

    /// Takes `block`, whole lines that hold `entries` entries, or counts it when it does not fit. Once one did not
    /// fit nothing more is taken, so that what is shown is what comes first.
    pub(super) fn push(&mut self, block: &str, entries: usize) {
        self.total += entries as u64;
        let lines = block.bytes().filter(|byte| *byte == b'\n').count();
        let fits = self.entries + entries <= self.max_entries
            && self.lines + lines <= MAX_LINES
            && self.text.len() + block.len() + FOOTER_BYTES <= MAX_BYTES;
        self.is_full |= !fits;
        if !self.is_full {
            self.entries += entries;
            self.lines += lines;
            self.text.push_str(block);
        }
    }

    /// Counts what was found and not even put into lines.
    pub(super) fn count(&mut self, entries: u64) {
        self.total += entries;
        self.is_full |= entries > 0;
    }

    /// Whether another entry could be shown.
    pub(super) fn has_room(&self) -> bool {
        !self.is_full && self.entries < self.max_entries
    }

    /// The text with its total, and how to narrow when not all is there.
    pub(super) fn finished(mut self, noun: &str, narrow: &str, is_whole: bool) -> (String, String) {
        let total = text::count(self.total, noun);
        let total = if is_whole { total } else { format!("at least {total} (stopped after {} s)", MAX_TIME.as_secs()) };
        let is_cut = self.total > self.entries as u64;
        let line = if is_cut { format!("{} of {total} shown", self.entries) } else { total };
        let narrow = if is_cut || !is_whole { format!(": {narrow}") } else { String::new() };
        self.text.push_str(&format!("[{line}{narrow}]\n"));
        (line, self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cap_holds_and_the_total_goes_on() {
        for (block, limit, expected) in
            [("x\n", None, 200), ("x\n", Some(3), 3), ("x\n", Some(900), 200), ("a\nb\n", None, 125)]
        {
            let mut listing = Listing::new(limit);
            (0..1_000).for_each(|_| listing.push(block, 1));
            let (line, text) = listing.finished("entry", "name a folder", true);
            assert_eq!(line, format!("{expected} of 1,000 entries shown"));
            assert!(text.ends_with(&format!("[{line}: name a folder]\n")));
        }
        let mut listing = Listing::new(None);
        (0..1_000).for_each(|_| listing.push(&format!("{}\n", "é".repeat(100)), 1));
        let (_, text) = listing.finished("entry", "", true);
        assert!(text.len() <= MAX_BYTES && text.len() > MAX_BYTES - FOOTER_BYTES - 202);
    }
}
