//! Puts hunks onto a file's bytes, exactly at their place.
//!
//! Lines that stay keep their bytes, the end included; a line that comes takes the end of the line it replaces or of
//! its neighbour. A patch in LF fits a file in CRLF; one that has a `\r` itself is taken literally throughout. A byte
//! order mark is no part of the first line.

mod locate;

use super::{Hunk, HunkLine, LineKind};
use locate::locate;

const MARK: &[u8] = b"\xef\xbb\xbf";

/// Why a hunk does not fit.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("hunk {hunk} (patch line {patch_line}): {fact}")]
pub(crate) struct Mismatch {
    /// 1-based within the file.
    pub(crate) hunk: usize,
    pub(crate) patch_line: usize,
    pub(crate) fact: String,
}

/// A line of a file: its bytes, and its end, which only the last line may lack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Line<'a> {
    body: &'a [u8],
    end: &'a [u8],
}

/// A line of the result.
struct Out<'a> {
    body: &'a [u8],
    /// Empty where it is not settled yet.
    end: &'a [u8],
    /// What the patch says of the line's end, if it brings the line.
    added: Option<AddedEnd>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AddedEnd {
    /// No newline follows, by the patch's own words.
    None,
    /// Nothing said, in the place of a last line that had no newline.
    AsBefore,
    Newline,
}

/// The content after the hunks, which are in order and do not overlap.
///
/// # Errors
/// Names the hunk, the line, what was expected and what is there.
pub(crate) fn apply(content: &[u8], hunks: &[Hunk]) -> Result<Vec<u8>, Mismatch> {
    let names_mark = hunks.iter().flat_map(|hunk| &hunk.lines).any(|line| line.text.starts_with('\u{feff}'));
    let (mark, content) = match content.strip_prefix(MARK) {
        Some(rest) if !names_mark => (MARK, rest),
        Some(_) | None => (&[][..], content),
    };
    let names_returns = hunks.iter().flat_map(|hunk| &hunk.lines).any(|line| line.text.ends_with('\r'));
    let lines = split(content, if names_returns { b"\n" } else { b"\r\n" });
    let mut out: Vec<Out<'_>> = Vec::with_capacity(lines.len());
    let mut from = 0;
    for (number, hunk) in hunks.iter().enumerate() {
        let named = |fact| Mismatch { hunk: number + 1, patch_line: hunk.patch_line, fact };
        let at = locate(&lines, from, hunk).map_err(named)?;
        out.extend(kept(lines.get(from..at)));
        put(&mut out, &lines, at, hunk);
        from = at + hunk.old().count();
    }
    out.extend(kept(lines.get(from..)));
    let fallback = lines.first().map(|line| line.end).filter(|end| !end.is_empty()).unwrap_or(b"\n");
    joined(mark, &out, fallback).ok_or_else(|| {
        let hunk = hunks.last();
        let fact = "`\\ No newline at end of file` stands at a line that is not the last".to_owned();
        Mismatch { hunk: hunks.len(), patch_line: hunk.map_or(0, |hunk| hunk.patch_line), fact }
    })
}

/// `long_end` is what else than a single `\n` is taken for the end of a line.
fn split<'a>(content: &'a [u8], long_end: &[u8]) -> Vec<Line<'a>> {
    content
        .split_inclusive(|byte| *byte == b'\n')
        .map(|line| {
            let body = line.strip_suffix(long_end).or_else(|| line.strip_suffix(b"\n")).unwrap_or(line);
            Line { body, end: line.get(body.len()..).unwrap_or_default() }
        })
        .collect()
}

fn kept<'a>(lines: Option<&[Line<'a>]>) -> impl Iterator<Item = Out<'a>> {
    lines.unwrap_or_default().iter().map(|line| Out { body: line.body, end: line.end, added: None })
}

fn put<'a>(out: &mut Vec<Out<'a>>, lines: &[Line<'a>], at: usize, hunk: &'a Hunk) {
    let mut old = lines.get(at..).unwrap_or_default().iter();
    // The ends of removed lines, for the lines that take their place.
    let mut freed: std::collections::VecDeque<&'a [u8]> = std::collections::VecDeque::new();
    let mut was_unterminated = false;
    for line in &hunk.lines {
        match line.kind {
            LineKind::Kept => {
                out.extend(old.next().map(|line| Out { body: line.body, end: line.end, added: None }));
                freed.clear();
                was_unterminated = false;
            }
            LineKind::Removed => {
                let end = old.next().map_or(&b"\n"[..], |line| line.end);
                was_unterminated = end.is_empty() && !line.is_unterminated;
                freed.push_back(end);
            }
            LineKind::Added => {
                let end = freed.pop_front().unwrap_or_default();
                out.push(added(line, end, was_unterminated));
            }
        }
    }
}

fn added<'a>(line: &'a HunkLine, end: &'a [u8], was_unterminated: bool) -> Out<'a> {
    let said = match () {
        () if line.is_unterminated => AddedEnd::None,
        () if was_unterminated => AddedEnd::AsBefore,
        () => AddedEnd::Newline,
    };
    Out { body: line.text.as_bytes(), end, added: Some(said) }
}

/// `None` when a line in the middle is said to have no newline.
fn joined(mark: &[u8], out: &[Out<'_>], fallback: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = mark.to_vec();
    let mut style = fallback;
    for (at, line) in out.iter().enumerate() {
        let is_last = at + 1 == out.len();
        bytes.extend_from_slice(line.body);
        let end = match line.added {
            Some(AddedEnd::None) if !is_last => return None,
            Some(AddedEnd::None | AddedEnd::AsBefore) if is_last => &[][..],
            None if is_last => line.end,
            Some(_) | None if line.end.is_empty() => style,
            Some(_) | None => line.end,
        };
        bytes.extend_from_slice(end);
        if !end.is_empty() {
            style = end;
        }
    }
    Some(bytes)
}
