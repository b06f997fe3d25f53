//! What one file's search found: lines as the model gets them, clipped round the match.
//!
//! Holds no more than can be shown; the rest is counted. A file that turns out to be binary has found nothing.

use std::io;

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};

use crate::text;
use crate::tools::walk::{Listing, MAX_LINES};

const MAX_LINE_BYTES: usize = 400;
/// Kept before the match when its line is too long to show.
const LEAD_BYTES: usize = 120;

#[derive(Debug)]
pub(super) struct Found<'a> {
    matcher: &'a RegexMatcher,
    shown: &'a str,
    /// Lines of one match, or of context alone.
    blocks: Vec<Block>,
    uncounted: u64,
    has_room: bool,
    pub(super) is_binary: bool,
}

#[derive(Debug)]
struct Block {
    text: String,
    matches: usize,
}

impl<'a> Found<'a> {
    /// `has_room`: whether anything will be shown, or all is only to be counted.
    pub(super) fn new(matcher: &'a RegexMatcher, shown: &'a str, has_room: bool) -> Self {
        Self { matcher, shown, blocks: Vec::new(), uncounted: 0, has_room, is_binary: false }
    }

    pub(super) fn put_into(self, listing: &mut Listing) {
        if self.is_binary {
            return;
        }
        self.blocks.iter().for_each(|block| listing.push(&block.text, block.matches));
        listing.count(self.uncounted);
    }

    fn add(&mut self, text: String, matches: usize) {
        if self.has_room && self.blocks.len() <= MAX_LINES {
            self.blocks.push(Block { text, matches });
        } else {
            self.uncounted += matches as u64;
        }
    }
}

impl Sink for Found<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if !self.has_room {
            self.uncounted += 1;
            return Ok(true);
        }
        let line = trimmed(found.bytes());
        let place = self.matcher.find(line).ok().flatten();
        let (start, end) = place.map_or((0, 0), |place| (place.start(), place.end()));
        let text = clipped(line, start, end);
        self.add(format!("{}:{}:{text}\n", self.shown, found.line_number().unwrap_or(0)), 1);
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        let text = clipped(trimmed(context.bytes()), 0, 0);
        self.add(format!("{}-{}-{text}\n", self.shown, context.line_number().unwrap_or(0)), 0);
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        self.add("--\n".to_owned(), 0);
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.is_binary = true;
        Ok(false)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> Result<(), io::Error> {
        self.is_binary |= finish.binary_byte_offset().is_some();
        Ok(())
    }
}

fn trimmed(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A line as it is, or the part of it round `start..end`, with the bytes left out before and after.
fn clipped(line: &[u8], start: usize, end: usize) -> String {
    if line.len() <= MAX_LINE_BYTES {
        return String::from_utf8_lossy(line).into_owned();
    }
    let from = border(line, start.saturating_sub(LEAD_BYTES));
    // The match itself comes first; what follows it fills the rest.
    let to = border(line, (from + MAX_LINE_BYTES).min(line.len()));
    let part = String::from_utf8_lossy(line.get(from..to).unwrap_or_default());
    let before = if from > 0 { format!("[+{from} bytes] ") } else { String::new() };
    let more = if end > to { ", the match goes on" } else { "" };
    let after = if to < line.len() { format!(" [+{} bytes{more}]", line.len() - to) } else { String::new() };
    format!("{before}{}{after}", text::prefix(&part, 2 * MAX_LINE_BYTES))
}

/// The nearest border of a UTF-8 character at or before `at`.
fn border(line: &[u8], at: usize) -> usize {
    let is_inside = |at: usize| line.get(at).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000);
    (at.saturating_sub(3)..=at).rev().find(|at| !is_inside(*at)).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_clipped_round_the_match_on_character_borders() {
        let line = format!("{}needle{}", "é".repeat(1_000), "é".repeat(1_000));
        let shown = clipped(line.as_bytes(), 2_000, 2_006);
        assert!(shown.starts_with("[+1880 bytes] é") && shown.contains("éneedleé"), "{shown}");
        assert!(shown.ends_with("é [+1726 bytes]") && !shown.contains('\u{fffd}'), "{shown}");
        assert_eq!(clipped(b"short", 0, 1), "short");
    }
}
