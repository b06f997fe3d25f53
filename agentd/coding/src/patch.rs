//! Patches, strictly: what a patch says is what happens, at the place it says, or nothing does.
//!
//! Pure: text and bytes in, bytes or an error out. Two forms are read, the unified diff (of `diff -u` and git) and
//! `*** Begin Patch`. There is no fuzz, because a wrong byte is worse than another round.

mod apply;
mod begin;
mod unified;

pub(crate) use apply::apply;

/// What a patch does to one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum FilePatch {
    Add {
        path: String,
        content: String,
    },
    /// With hunks, they must be the whole file.
    Delete {
        path: String,
        hunks: Vec<Hunk>,
    },
    /// A change in place where both paths are the same, else a move, which may change nothing.
    Change {
        from: String,
        to: String,
        hunks: Vec<Hunk>,
    },
}

impl FilePatch {
    /// Every path that it reads or writes.
    pub(crate) fn paths(&self) -> Vec<&str> {
        match self {
            Self::Add { path, .. } | Self::Delete { path, .. } => vec![path],
            Self::Change { from, to, .. } if from == to => vec![from],
            Self::Change { from, to, .. } => vec![from, to],
        }
    }
}

/// Lines that stand together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Hunk {
    /// Where it begins in the patch, 1-based.
    pub(crate) patch_line: usize,
    pub(crate) place: Place,
    pub(crate) lines: Vec<HunkLine>,
}

/// Where a hunk belongs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// Its old lines begin at this 1-based line; without old lines, it goes behind it.
    At(usize),
    /// The only place where its old lines stand; behind `anchors`, found one after the other, the first such place.
    Found { anchors: Vec<String>, at_end: bool },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct HunkLine {
    pub(crate) kind: LineKind,
    /// Without its end; a `\r` that the patch has is kept.
    pub(crate) text: String,
    /// The patch says that no newline follows.
    pub(crate) is_unterminated: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LineKind {
    Kept,
    Removed,
    Added,
}

impl Hunk {
    pub(crate) fn old(&self) -> impl Iterator<Item = &HunkLine> {
        self.lines.iter().filter(|line| line.kind != LineKind::Added)
    }
}

/// A patch that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("patch line {line}: {fact}")]
pub(crate) struct ParseError {
    pub(crate) line: usize,
    pub(crate) fact: String,
}

/// Reads either form.
pub(crate) fn parse(text: &str) -> Result<Vec<FilePatch>, ParseError> {
    let mut lines = Lines::new(text);
    lines.skip_blank();
    let files = match lines.peek() {
        Some(line) if line.trim_end() == begin::BEGIN => begin::parse(&mut lines)?,
        Some(_) => unified::parse(&mut lines)?,
        None => return Err(lines.error("the patch is empty")),
    };
    if files.is_empty() {
        return Err(lines.error("the patch names no file"));
    }
    Ok(files)
}

/// A patch, line by line.
struct Lines<'a> {
    lines: Vec<&'a str>,
    at: usize,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let mut lines: Vec<&str> = text.split('\n').collect();
        if lines.last().is_some_and(|last| last.is_empty()) {
            lines.pop();
        }
        Self { lines, at: 0 }
    }

    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    fn peek_second(&self) -> Option<&'a str> {
        self.lines.get(self.at + 1).copied()
    }

    /// The 1-based number of the line that `peek` gives.
    fn number(&self) -> usize {
        self.at + 1
    }

    fn skip(&mut self) {
        self.at += 1;
    }

    /// The rest of a line that starts with `start`, which is then behind.
    fn take(&mut self, start: &str) -> Option<&'a str> {
        let rest = self.peek()?.strip_prefix(start)?;
        self.at += 1;
        Some(rest.strip_suffix('\r').unwrap_or(rest))
    }

    fn skip_blank(&mut self) {
        while self.peek().is_some_and(|line| line.trim().is_empty()) {
            self.at += 1;
        }
    }

    /// An error at the line that `peek` gives.
    fn error(&self, fact: impl Into<String>) -> ParseError {
        ParseError { line: self.number(), fact: fact.into() }
    }

    /// Takes one line of a hunk's body. `None` when it is none; an empty line is a blank line of context whose
    /// leading space got lost.
    fn body_line(&mut self) -> Option<HunkLine> {
        let line = self.peek()?;
        let kind = match line.bytes().next() {
            Some(b' ') | None => LineKind::Kept,
            Some(b'\r') if line.len() == 1 => LineKind::Kept,
            Some(b'-') => LineKind::Removed,
            Some(b'+') => LineKind::Added,
            Some(_) => return None,
        };
        self.at += 1;
        let text = line.get(1..).filter(|_| line != "\r").unwrap_or(line).to_owned();
        let is_unterminated = self.take("\\ ").is_some();
        Some(HunkLine { kind, text, is_unterminated })
    }
}

fn check_changes(lines: &[HunkLine], patch_line: usize) -> Result<(), ParseError> {
    if lines.iter().all(|line| line.kind == LineKind::Kept) {
        return Err(ParseError { line: patch_line, fact: "the hunk neither removes nor adds a line".into() });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
