//! A message that grows: knows what of it has been shown, and gives only what is new.
//!
//! Snapshots may skip and repeat; each byte of the text comes out once. Knows nothing about events.

use unicode_width::UnicodeWidthChar;

use crate::untrusted::Untrusted;

/// Progress through one message's text.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    /// The text whose showing is over.
    shown: String,
    is_in_fence: bool,
    /// The shown text ends inside a line: its first rows are out.
    is_mid_line: bool,
}

/// A message that was shown and then changed by its author.
const REVISED: &str = "(what was shown above was revised; from its beginning:)\n";

impl Growing {
    /// What is new, as it is: for a pipe or a terminal that nobody types on.
    pub(crate) fn raw(&mut self, whole: &str) -> String {
        let mut out = self.check_revision(whole);
        out.push_str(&whole[self.shown.len()..]);
        whole.clone_into(&mut self.shown);
        out
    }

    /// True when the text shown so far does not end a line.
    pub(crate) fn needs_newline(&self) -> bool {
        !self.shown.is_empty() && !self.shown.ends_with('\n')
    }

    /// What is new, in whole rows: to be printed above a line that somebody types on.
    ///
    /// Prose is broken between words at `columns`; code, tables and everything without `columns` is not. The unfinished
    /// last row stays back until `is_done`.
    pub(crate) fn rows(&mut self, whole: &str, columns: Option<usize>, is_done: bool) -> String {
        let mut out = self.check_revision(whole);
        while let Some(length) = whole[self.shown.len()..].find('\n') {
            self.line(&whole[self.shown.len()..][..length], columns, &mut out);
            self.take(whole, length + 1);
            out.push('\n');
            self.is_mid_line = false;
        }
        let rest = &whole[self.shown.len()..];
        if is_done && !rest.is_empty() {
            self.line(rest, columns, &mut out);
            self.take(whole, rest.len());
            out.push('\n');
        } else if let Some(columns) = columns.filter(|_| self.may_wrap(rest)) {
            let mut rest = rest;
            while let Some((keep, skip)) = row_end(rest, columns) {
                out.push_str(&Untrusted::new(&rest[..keep]).escaped());
                out.push('\n');
                self.take(whole, skip);
                self.is_mid_line = true;
                rest = &rest[skip..];
            }
        }
        out
    }

    fn check_revision(&mut self, whole: &str) -> String {
        if whole.starts_with(&self.shown) {
            return String::new();
        }
        let newline = if self.needs_newline() && !self.is_mid_line { "\n" } else { "" };
        *self = Self::default();
        format!("{newline}{REVISED}")
    }

    fn take(&mut self, whole: &str, bytes: usize) {
        let from = self.shown.len();
        self.shown.push_str(&whole[from..from + bytes]);
    }

    /// One complete line, or what is left of it, without its newline.
    fn line(&mut self, line: &str, columns: Option<usize>, out: &mut String) {
        let mut rest = line;
        if let Some(columns) = columns.filter(|_| self.may_wrap(line)) {
            while let Some((keep, skip)) = row_end(rest, columns) {
                out.push_str(&Untrusted::new(&rest[..keep]).escaped());
                out.push('\n');
                rest = &rest[skip..];
            }
        }
        out.push_str(&Untrusted::new(rest).escaped());
        if !self.is_mid_line && (line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~")) {
            self.is_in_fence = !self.is_in_fence;
        }
    }

    fn may_wrap(&self, line: &str) -> bool {
        !self.is_in_fence
            && (self.is_mid_line || !["    ", "\t", "|", "```", "~~~"].iter().any(|start| line.starts_with(start)))
    }
}

/// Where the first row of a line ends and where the second begins, in bytes; `None` if it all fits, or cannot be broken.
fn row_end(line: &str, columns: usize) -> Option<(usize, usize)> {
    let mut width = 0;
    let mut last_blank = None;
    for (at, c) in line.char_indices() {
        if c == ' ' && width > 0 {
            last_blank = Some(at);
        }
        width += c.width().unwrap_or(8);
        if width > columns
            && let Some(blank) = last_blank
        {
            let rest = &line[blank..];
            let begin = blank + (rest.len() - rest.trim_start_matches(' ').len());
            let kept = line[..blank].trim_end_matches(' ').len();
            // Nothing but blanks follows yet: what comes next decides.
            return (begin < line.len() && kept > 0).then_some((kept, begin));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds every prefix, or just the whole, and expects the same rows.
    #[track_caller]
    fn check(text: &str, columns: Option<usize>, expected: &str) {
        let whole = Growing::default().rows(text, columns, true);
        assert_eq!(whole, expected);
        let mut growing = Growing::default();
        let mut pieces = String::new();
        for (at, _) in text.char_indices() {
            pieces.push_str(&growing.rows(&text[..at], columns, false));
            assert!(pieces.is_empty() || pieces.ends_with('\n'), "only whole rows are printed");
        }
        pieces.push_str(&growing.rows(text, columns, true));
        assert_eq!(pieces, expected, "letter by letter");
        assert_eq!(growing.rows(text, columns, true), "", "nothing is shown twice");
    }

    #[test]
    fn rows_do_not_depend_on_how_the_snapshots_came() {
        check("", Some(10), "");
        check("one\ntwo", None, "one\ntwo\n");
        check("one\n\ntwo\n", Some(10), "one\n\ntwo\n");
        check("the quick brown fox jumps", Some(10), "the quick\nbrown fox\njumps\n");
        check("漢字 漢字 漢字", Some(9), "漢字 漢字\n漢字\n");
        check("averyveryverylongword and more", Some(10), "averyveryverylongword\nand more\n");
        check(
            "```\nlet a_long_line = in a fence\n```\nand some more prose",
            Some(10),
            "```\nlet a_long_line = in a fence\n```\nand some\nmore prose\n",
        );
        check("| a table | is not | broken |", Some(10), "| a table | is not | broken |\n");
        check("a\u{1b}[2Jb", Some(80), "a<U+001B>[2Jb\n");
    }

    #[test]
    fn a_long_line_is_shown_before_it_ends() {
        let mut growing = Growing::default();
        assert_eq!(growing.rows("the quick brown", Some(10), false), "the quick\n");
        assert_eq!(growing.rows("the quick brown fox jumps", Some(10), false), "brown fox\n");
    }

    #[test]
    fn a_revised_message_is_shown_again_and_says_so() {
        let mut growing = Growing::default();
        growing.rows("one\ntwo\n", None, false);
        assert_eq!(growing.rows("won\n", None, true), format!("{REVISED}won\n"));
        let mut growing = Growing::default();
        assert_eq!(growing.raw("ab"), "ab");
        assert_eq!(growing.raw("abc"), "c");
        assert!(growing.needs_newline());
        assert_eq!(growing.raw("x"), format!("\n{REVISED}x"));
    }
}
