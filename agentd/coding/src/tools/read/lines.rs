//! Collects a range of a text's lines as numbered text, in constant memory, from pieces of any size.
//!
//! Counts what it does not keep. A whole line over its cap is clipped, and never the reason to drop others.

use crate::text;

const MAX_LINE_BYTES: usize = 2_000;
/// What is kept of a line while it grows: enough to clip it on a character border.
const KEPT_LINE_BYTES: usize = MAX_LINE_BYTES + 8;

/// Lines `first..=last`, 1-based.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Range {
    pub(super) first: u64,
    pub(super) last: Option<u64>,
}

/// The collector.
#[derive(Debug)]
pub(super) struct Lines {
    range: Range,
    max_bytes: usize,
    line: Vec<u8>,
    line_bytes: usize,
    last_byte: u8,
    /// Complete lines so far, and then all of them.
    pub(super) total: u64,
    pub(super) text: String,
    /// The last line that is in `text`.
    pub(super) shown: Option<u64>,
    /// The first line of the range that `text` could not take.
    pub(super) left_from: Option<u64>,
    pub(super) crlf: u64,
    pub(super) clipped: u64,
    pub(super) damaged: u64,
    pub(super) has_mark: bool,
    pub(super) has_final_newline: bool,
}

impl Lines {
    pub(super) fn new(range: Range, max_bytes: usize) -> Self {
        Self {
            range,
            max_bytes,
            line: Vec::new(),
            line_bytes: 0,
            last_byte: 0,
            total: 0,
            text: String::new(),
            shown: None,
            left_from: None,
            crlf: 0,
            clipped: 0,
            damaged: 0,
            has_mark: false,
            has_final_newline: true,
        }
    }

    /// Takes the next piece of the file.
    pub(super) fn push(&mut self, piece: &[u8]) {
        let mut from = 0;
        for at in memchr::memchr_iter(b'\n', piece) {
            self.grow(piece.get(from..at).unwrap_or_default());
            if self.last_byte == b'\r' {
                self.crlf += 1;
            }
            self.end_line();
            from = at + 1;
        }
        self.grow(piece.get(from..).unwrap_or_default());
    }

    /// No more comes.
    pub(super) fn finish(&mut self) {
        if self.line_bytes > 0 {
            self.has_final_newline = false;
            self.last_byte = 0;
            self.end_line();
        }
    }

    /// Whether nothing after this can be shown.
    pub(super) fn is_past_range(&self) -> bool {
        self.left_from.is_some() || self.range.last.is_some_and(|last| self.total >= last)
    }

    fn grow(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        let room = KEPT_LINE_BYTES.saturating_sub(self.line.len()).min(bytes.len());
        self.line.extend_from_slice(bytes.get(..room).unwrap_or_default());
        self.line_bytes += bytes.len();
        self.last_byte = *last;
    }

    fn end_line(&mut self) {
        self.total += 1;
        let wanted = self.total >= self.range.first && self.range.last.is_none_or(|last| self.total <= last);
        if self.total == 1 && self.line.starts_with(text::BOM) {
            self.has_mark = true;
            self.line.drain(..text::BOM.len());
            self.line_bytes -= text::BOM.len();
        }
        if wanted && self.left_from.is_none() {
            self.show();
        }
        self.line.clear();
        self.line_bytes = 0;
        self.last_byte = 0;
    }

    fn show(&mut self) {
        let is_whole = self.line.len() == self.line_bytes;
        if self.last_byte == b'\r' && is_whole {
            self.line.pop();
            self.line_bytes -= 1;
        }
        let line = if is_whole { self.line.as_slice() } else { whole_characters(&self.line) };
        let is_damaged = std::str::from_utf8(line).is_err();
        let line = String::from_utf8_lossy(line);
        let kept = text::prefix(&line, MAX_LINE_BYTES);
        let mut shown = format!("{:>6}\t{kept}", self.total);
        let is_clipped = !is_whole || kept.len() < line.len();
        if is_clipped {
            shown.push_str(&format!(" [line clipped: {} bytes in all]", text::thousands(self.line_bytes as u64)));
        }
        shown.push('\n');
        if self.text.len() + shown.len() > self.max_bytes {
            self.left_from = Some(self.total);
            return;
        }
        self.damaged += u64::from(is_damaged);
        self.clipped += u64::from(is_clipped);
        self.text.push_str(&shown);
        self.shown = Some(self.total);
    }
}

/// Without the start of a character at the end that the cut fell into.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => bytes.get(..error.valid_up_to()).unwrap_or(bytes),
        _ => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_size_give_the_same_lines() {
        let long = "é".repeat(3_000);
        let content = format!("\u{feff}one\r\ntwo\n\n{long}\nlast \u{1f600}");
        let collect = |size: usize| {
            let mut lines = Lines::new(Range { first: 1, last: None }, 50_000);
            content.as_bytes().chunks(size).for_each(|piece| lines.push(piece));
            lines.finish();
            format!("{lines:?}")
        };
        let whole = collect(content.len());
        for size in [1, 2, 3, 7, 1_000] {
            assert_eq!(collect(size), whole, "{size}");
        }
    }

    #[test]
    fn a_clipped_line_does_not_drop_the_next() {
        let mut lines = Lines::new(Range { first: 1, last: None }, 50_000);
        lines.push(format!("{}\nnext\n", "é".repeat(3_000)).as_bytes());
        lines.finish();
        assert!(lines.text.contains("[line clipped: 6,000 bytes in all]\n     2\tnext\n"), "{}", lines.text);
        assert_eq!((lines.clipped, lines.damaged, lines.total), (1, 0, 2));
    }
}
