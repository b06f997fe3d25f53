//! The tool that reads a text file as numbered lines.
//!
//! Streams, so that a huge file costs no memory, and never waits: what is no regular file is said to be so at once.
//! Takes note of the whole content's hash, so that the file may be changed afterwards.

mod lines;

use std::fs::File;
use std::io::Read as _;

use async_trait::async_trait;
use foundation::{
    Access, ErrorCode, ResultPolicy, Tool, ToolClass, ToolContext, ToolError, ToolOutcome, ToolOutput, ToolSpec,
    parameters,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::paths::{io_error, open_file};
use crate::text::{self, Kind};
use crate::tools::change::MAX_CHANGE_BYTES;
use crate::tools::place::{Place, check_running, parse};
use lines::{Lines, Range};

const MAX_BYTES: usize = 12_000;
/// For the header and for how to read on.
const FRAME_BYTES: usize = 600;
/// Without a range nobody wants more than this.
const MAX_UNASKED_BYTES: u64 = 10 * 1024 * 1024;
const PIECE_BYTES: usize = 64 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Input {
    /// File to read, relative to the workspace or absolute.
    path: String,
    /// First line, counted from 1. Default 1.
    #[serde(default)]
    #[schemars(range(min = 1))]
    start_line: Option<u64>,
    /// Last line, included. Default the last of the file.
    #[serde(default)]
    #[schemars(range(min = 1))]
    end_line: Option<u64>,
}

/// `read`.
#[derive(Debug)]
pub(crate) struct Read {
    spec: ToolSpec,
    place: Place,
}

impl Read {
    pub(crate) fn new(place: Place) -> Self {
        let spec = ToolSpec {
            name: "read",
            description: "Reads a text file as numbered lines (number, tab, text; the number is not part of the file). \
                          Gives at most 12,000 bytes, cut at a line end, and says how to read on. Files over 10 MiB \
                          need startLine or endLine. Not for directories or binary files.",
            parameters: parameters::<Input>(),
            class: ToolClass::Read,
            policy: ResultPolicy::Head { max_bytes: MAX_BYTES },
        };
        Self { spec, place }
    }
}

#[async_trait]
impl Tool for Read {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn access(&self, input: &Value) -> Access {
        let path = parse::<Input>(input).and_then(|input| self.place.workspace.absolute(&input.path));
        path.map_or(Access::Nothing, |path| Access::Read(vec![path]))
    }

    async fn invoke(&self, input: Value, _: &ToolContext<'_>, cancel: &CancellationToken) -> ToolOutcome {
        let input: Input = parse(&input)?;
        self.place.blocking(cancel, move |place, cancel| read(place, &input, cancel)).await
    }
}

fn read(place: &Place, input: &Input, cancel: &CancellationToken) -> ToolOutcome {
    let range = Range { first: input.start_line.unwrap_or(1), last: input.end_line };
    if range.first == 0 || range.last.is_some_and(|last| last < range.first) {
        let summary = format!("lines {} to {} are no range", range.first, range.last.unwrap_or(0));
        return Err(ToolError::new(
            ErrorCode::RangeInvalid,
            summary,
            "Lines count from 1; endLine is not before startLine.",
        ));
    }
    let (target, shown) = place.find(&input.path)?;
    let opened = open_file(&target, &shown)?;
    let is_asked = input.start_line.is_some() || input.end_line.is_some();
    if !is_asked && opened.meta.len() > MAX_UNASKED_BYTES {
        return Err(too_large(&shown, opened.meta.len()));
    }
    let max_bytes = MAX_BYTES.saturating_sub(FRAME_BYTES + 2 * shown.len());
    let mut pass = Pass { file: opened.file, shown: &shown, cancel, is_asked, lines: Lines::new(range, max_bytes) };
    let read = pass.run()?;
    let lines = pass.lines;
    if let Some(hash) = read.hash {
        place.files.note(&target.real, hash);
    }
    if read.is_whole && range.first > lines.total.max(1) {
        let summary =
            format!("{shown} has {}, so startLine {} is past its end", text::count(lines.total, "line"), range.first);
        return Err(ToolError::new(ErrorCode::RangeInvalid, summary, "Choose a startLine within the file."));
    }
    Ok(output(&shown, range, &lines, &read))
}

/// What one pass over a file found.
struct Passed {
    is_utf16: bool,
    is_whole: bool,
    /// Of the whole content, where that was read.
    hash: Option<blake3::Hash>,
}

/// One pass over a file.
struct Pass<'a> {
    file: File,
    shown: &'a str,
    cancel: &'a CancellationToken,
    is_asked: bool,
    lines: Lines,
}

impl Pass<'_> {
    fn run(&mut self) -> Result<Passed, ToolError> {
        let mut hasher = blake3::Hasher::new();
        let mut bytes: u64 = 0;
        let mut is_whole = true;
        let mut wide: Option<(Vec<u8>, bool)> = None;
        loop {
            check_running(self.cancel)?;
            let piece = self.piece()?;
            if piece.is_empty() {
                break;
            }
            if bytes == 0 {
                wide = self.wide_start(&piece)?;
            }
            bytes += piece.len() as u64;
            if bytes > MAX_UNASKED_BYTES && (!self.is_asked || wide.is_some()) {
                return Err(too_large(self.shown, bytes));
            }
            if bytes <= MAX_CHANGE_BYTES {
                hasher.update(&piece);
            } else if self.lines.is_past_range() {
                is_whole = false;
                break;
            }
            match &mut wide {
                Some((kept, _)) => kept.extend_from_slice(&piece),
                None => self.lines.push(&piece),
            }
        }
        if let Some((kept, big_endian)) = &wide {
            self.lines.push(decoded(kept, *big_endian).as_bytes());
        }
        self.lines.finish();
        let hash = (bytes <= MAX_CHANGE_BYTES).then(|| hasher.finalize());
        Ok(Passed { is_utf16: wide.is_some(), is_whole, hash })
    }

    /// A full piece unless the file ends: some files give their content in crumbs.
    fn piece(&mut self) -> Result<Vec<u8>, ToolError> {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        let read = (&mut self.file).take(PIECE_BYTES as u64).read_to_end(&mut piece);
        read.map_err(|error| io_error(self.shown, &error))?;
        Ok(piece)
    }

    fn wide_start(&self, piece: &[u8]) -> Result<Option<(Vec<u8>, bool)>, ToolError> {
        match text::kind(piece) {
            Kind::Text => Ok(None),
            Kind::Utf16 { big_endian } => Ok(Some((Vec::new(), big_endian))),
            Kind::Binary => Err(ToolError::new(
                ErrorCode::Binary,
                format!("{} is a binary file", self.shown),
                "It cannot be read as text. Use a command that knows the format.",
            )),
        }
    }
}

fn decoded(bytes: &[u8], big_endian: bool) -> String {
    let (pairs, _) = bytes.as_chunks::<2>();
    let units =
        pairs.iter().skip(1).map(|pair| if big_endian { u16::from_be_bytes(*pair) } else { u16::from_le_bytes(*pair) });
    char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

fn too_large(shown: &str, bytes: u64) -> ToolError {
    ToolError::new(
        ErrorCode::TooLarge,
        format!("{shown} is at least {} MiB, too large to read whole", bytes >> 20),
        "Search it for what you need, or name startLine and endLine.",
    )
}

fn output(shown: &str, range: Range, lines: &Lines, read: &Passed) -> ToolOutput {
    let total = if read.is_whole { text::thousands(lines.total) } else { "an uncounted number".to_owned() };
    if lines.total == 0 {
        let line = format!("{shown} is empty (0 bytes)");
        return ToolOutput { summary: line.clone(), text: line, ..ToolOutput::default() };
    }
    let header = match lines.shown {
        Some(last) => format!("{shown}: lines {}-{last} of {total}", range.first),
        None => format!("{shown}: no line shown of {total}"),
    };
    let notes = notes(lines, read).join("; ");
    let notes = if notes.is_empty() { notes } else { format!(" ({notes})") };
    let mut text = format!("{header}{notes}\n{}", lines.text);
    if let Some(next) = lines.left_from {
        text.push_str(&format!("[cut at {} bytes: go on with startLine {next}]\n", text::thousands(MAX_BYTES as u64)));
    }
    if lines.clipped > 0 {
        text.push_str("[a clipped line cannot be read further here: search it, or cut it with a command]\n");
    }
    ToolOutput { summary: format!("read {header}"), text, ..ToolOutput::default() }
}

/// What the text itself does not show and an edit must not lose.
fn notes(lines: &Lines, read: &Passed) -> Vec<String> {
    let mut notes = Vec::new();
    if read.is_utf16 {
        notes.push("UTF-16, which edits cannot change".to_owned());
    }
    if lines.has_mark {
        notes.push("UTF-8 byte order mark".to_owned());
    }
    let ended = lines.total - u64::from(!lines.has_final_newline);
    if lines.crlf > 0 && lines.crlf == ended {
        notes.push("CRLF line ends".to_owned());
    } else if lines.crlf > 0 {
        notes.push("mixed line ends, LF and CRLF".to_owned());
    }
    if !lines.has_final_newline && read.is_whole {
        notes.push("no newline at the end".to_owned());
    }
    if lines.damaged > 0 {
        let lines = text::count(lines.damaged, "line");
        notes.push(format!("{lines} with bytes that are not UTF-8, shown as U+FFFD"));
    }
    notes
}

#[cfg(test)]
mod tests;
