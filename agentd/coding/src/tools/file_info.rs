//! The tool that says what stands at a path without giving its content.

use std::fs::Metadata;
use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};

use async_trait::async_trait;
use foundation::{
    Access, ResultPolicy, Tool, ToolClass, ToolContext, ToolError, ToolOutcome, ToolOutput, ToolSpec, parameters,
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::paths::{Target, io_error, not_found, open_file};
use crate::text::{self, Kind};
use crate::tools::place::{Place, check_running, parse};

/// Of a larger file the lines are not counted.
const MAX_COUNTED_BYTES: u64 = 64 << 20;
const PIECE: usize = 256 << 10;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Input {
    /// File or folder, relative to the workspace or absolute.
    path: String,
}

/// `file_info`.
#[derive(Debug)]
pub(crate) struct FileInfo {
    spec: ToolSpec,
    place: Place,
}

impl FileInfo {
    pub(crate) fn new(place: Place) -> Self {
        let spec = ToolSpec {
            name: "file_info",
            description: "Says what a path is: its kind, size, lines, line ends, encoding, mode, times, and where a link \
                          leads. Gives none of the content.",
            parameters: parameters::<Input>(),
            class: ToolClass::Read,
            policy: ResultPolicy::Head { max_bytes: 4 << 10 },
        };
        Self { spec, place }
    }
}

#[async_trait]
impl Tool for FileInfo {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn access(&self, input: &Value) -> Access {
        let path = parse::<Input>(input).and_then(|input| self.place.workspace.absolute(&input.path));
        path.map_or(Access::Nothing, |path| Access::Read(vec![path]))
    }

    async fn invoke(&self, input: Value, _: &ToolContext<'_>, cancel: &CancellationToken) -> ToolOutcome {
        let input: Input = parse(&input)?;
        self.place.blocking(cancel, move |place, cancel| info(place, &input, cancel)).await
    }
}

fn info(place: &Place, input: &Input, cancel: &CancellationToken) -> Result<ToolOutput, ToolError> {
    let (target, shown) = place.find(&input.path)?;
    let meta = match target.real.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(not_found(&target, &shown)),
        meta => meta.map_err(|error| io_error(&shown, &error))?,
    };
    let kind = kind_of(&meta);
    let mut lines = vec![format!("{shown}: {kind}")];
    if target.is_linked() {
        lines.push(format!("leads to: {}", target.real.display()));
    }
    if meta.is_file() {
        lines.push(format!("size: {}", text::count(meta.len(), "byte")));
        lines.extend(content(&target, &shown, cancel)?);
    } else if meta.is_dir() {
        let entries = target.real.read_dir().map_err(|error| io_error(&shown, &error))?.count();
        lines.push(format!("holds: {}", text::count(entries as u64, "name")));
    }
    lines.push(format!("mode: {:04o}", meta.permissions().mode() & 0o7777));
    if meta.is_file() && meta.nlink() > 1 {
        lines.push(format!("hard links: {} names in all", meta.nlink()));
    }
    lines.extend(time("modified", meta.modified()));
    lines.extend(time("created", meta.created()));
    let text = lines.join("\n") + "\n";
    Ok(ToolOutput { summary: format!("{shown} is {kind}"), text, ..ToolOutput::default() })
}

fn kind_of(meta: &Metadata) -> &'static str {
    let kind = meta.file_type();
    match () {
        () if kind.is_file() => "a file",
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a FIFO",
        () if kind.is_socket() => "a socket",
        () => "a device",
    }
}

/// Not every file system knows every time.
fn time(name: &str, time: std::io::Result<std::time::SystemTime>) -> Option<String> {
    let time = Timestamp::try_from(time.ok()?).ok()?;
    Some(format!("{name}: {}", time.strftime("%Y-%m-%d %H:%M:%S UTC")))
}

/// What the bytes are, as far as a tool that changes text must know it.
fn content(target: &Target, shown: &str, cancel: &CancellationToken) -> Result<Vec<String>, ToolError> {
    let mut opened = open_file(target, shown)?;
    let mut piece = vec![0; PIECE];
    let mut seen = Seen::default();
    loop {
        check_running(cancel)?;
        let read = opened.file.read(&mut piece).map_err(|error| io_error(shown, &error))?;
        let bytes = piece.get(..read).unwrap_or_default();
        if bytes.is_empty() {
            break;
        }
        if seen.bytes == 0 {
            match text::kind(bytes) {
                Kind::Text => {}
                Kind::Binary => return Ok(vec!["content: binary".to_owned()]),
                Kind::Utf16 { .. } => return Ok(vec!["content: UTF-16 text with BOM".to_owned()]),
            }
            seen.has_bom = bytes.starts_with(text::BOM);
        }
        seen.take(bytes);
        if seen.bytes > MAX_COUNTED_BYTES {
            return Ok(vec![format!("content: text; lines not counted over {} MiB", MAX_COUNTED_BYTES >> 20)]);
        }
    }
    Ok(seen.said())
}

#[derive(Default)]
struct Seen {
    bytes: u64,
    newlines: u64,
    crlf: u64,
    last: Option<u8>,
    has_bom: bool,
    /// The bytes of a character that a piece has cut off.
    cut: Vec<u8>,
    is_not_utf8: bool,
}

impl Seen {
    fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        for at in memchr::memchr_iter(b'\n', bytes) {
            self.newlines += 1;
            let before = if at == 0 { self.last } else { bytes.get(at - 1).copied() };
            self.crlf += u64::from(before == Some(b'\r'));
        }
        self.last = bytes.last().copied();
        self.cut.extend_from_slice(bytes);
        match std::str::from_utf8(&self.cut) {
            Ok(_) => self.cut.clear(),
            Err(error) if error.error_len().is_none() => drop(self.cut.drain(..error.valid_up_to())),
            Err(_) => {
                self.is_not_utf8 = true;
                self.cut.clear();
            }
        }
    }

    fn said(&self) -> Vec<String> {
        if self.bytes == 0 {
            return vec!["content: empty".to_owned()];
        }
        let encoding = match (self.is_not_utf8 || !self.cut.is_empty(), self.has_bom) {
            (true, _) => "text that is not UTF-8",
            (false, true) => "UTF-8 text with BOM",
            (false, false) => "UTF-8 text",
        };
        let ends = match (self.newlines, self.crlf) {
            (0, _) => "no line end",
            (all, crlf) if all == crlf => "CRLF",
            (_, 0) => "LF",
            _ => "LF and CRLF mixed",
        };
        let open = if self.last == Some(b'\n') { "" } else { ", the last one without an end" };
        let lines = self.newlines + u64::from(self.last != Some(b'\n'));
        vec![format!("content: {encoding}, {}, {ends}{open}", text::count(lines, "line"))]
    }
}

#[cfg(test)]
mod tests;
