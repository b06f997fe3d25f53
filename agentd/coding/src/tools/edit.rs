//! The tool that changes part of a file: exact text for exact text.
//!
//! Byte for byte outside the edit, and nothing is guessed: no match and more than one are errors that show the way.

mod matching;
mod nearest;

use async_trait::async_trait;
use foundation::{
    Access, ErrorCode, FileMark, Plan, ResultPolicy, Tool, ToolClass, ToolContext, ToolError, ToolOutcome, ToolSpec,
    parameters,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::text;
use crate::tools::change::{After, Before, Change, Prepared};
use crate::tools::place::{Place, parse};

const MAX_SHOWN_MATCHES: usize = 10;
const MAX_SHOWN_BYTES: usize = 120;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Input {
    /// File to change, relative to the workspace or absolute.
    path: String,
    /// Exact text in the file, without line numbers. Must occur once, unless replaceAll. LF also matches CRLF.
    old_string: String,
    /// Text to put there, taken literally.
    new_string: String,
    /// Replace every occurrence. Default false.
    #[serde(default)]
    replace_all: Option<bool>,
}

/// `edit`.
#[derive(Debug)]
pub(crate) struct Edit {
    spec: ToolSpec,
    place: Place,
}

impl Edit {
    pub(crate) fn new(place: Place) -> Self {
        let spec = ToolSpec {
            name: "edit",
            description: "Replaces exact text in a file that this session has read. oldString must occur exactly once \
                          (give enough lines around it) unless replaceAll is set. No fuzzy matching. The file's line \
                          ends, byte order mark and mode are kept. To create a file or replace it whole, use write.",
            parameters: parameters::<Input>(),
            class: ToolClass::File,
            policy: ResultPolicy::Summary,
        };
        Self { spec, place }
    }
}

#[async_trait]
impl Tool for Edit {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn access(&self, input: &Value) -> Access {
        let path = parse::<Input>(input).and_then(|input| self.place.workspace.absolute(&input.path));
        path.map_or(Access::Nothing, |path| Access::Write(vec![path]))
    }

    async fn plan(&self, input: &Value) -> Result<Plan, ToolError> {
        self.place.plan_change(parse(input)?, prepare).await
    }

    async fn marks(&self, input: &Value) -> Vec<FileMark> {
        self.place.marks(parse(input), prepare).await
    }

    async fn invoke(&self, input: Value, _: &ToolContext<'_>, cancel: &CancellationToken) -> ToolOutcome {
        self.place.change(parse(&input)?, prepare, cancel).await
    }
}

fn prepare(place: &Place, input: &Input) -> Result<Prepared, ToolError> {
    check_texts(input)?;
    let (target, shown) = place.find(&input.path)?;
    let before = place.load_text(target, shown)?;
    let places = matching::places(&before.bytes, &input.old_string);
    let all = input.replace_all.unwrap_or(false);
    let chosen = match places.as_slice() {
        [] => return Err(no_match(&before, &input.old_string)),
        [_, _, ..] if !all => return Err(ambiguous(&before, &places)),
        _ => matching::apart(&places),
    };
    let bytes = matching::replaced(&before.bytes, &chosen, &input.old_string, &input.new_string);
    let line = chosen.first().map_or(1, |place| matching::line_of(&before.bytes, place.start));
    let summary = match chosen.len() {
        1 => format!("edited {}: 1 replacement at line {line}", before.shown),
        many => format!("edited {}: {}", before.shown, text::count(many as u64, "replacement")),
    };
    let after = After { target: before.target.clone(), shown: before.shown.clone(), bytes };
    Ok(Prepared { changes: vec![Change { before: Some(before), after: Some(after) }], summary, risks: Vec::new() })
}

fn check_texts(input: &Input) -> Result<(), ToolError> {
    let (summary, hint) = if input.old_string.is_empty() {
        ("oldString is empty", "Name the text to replace. To create a file or replace it whole, use write.")
    } else if input.old_string == input.new_string {
        ("oldString and newString are the same, so nothing would change", "Send the text as it should become.")
    } else {
        return Ok(());
    };
    Err(ToolError::new(ErrorCode::InvalidInput, summary, hint))
}

fn no_match(before: &Before, old: &str) -> ToolError {
    let near = nearest::nearest(&before.bytes, old);
    let hint = match near {
        Some(_) => "Copy the text exactly as the file has it, without line numbers.",
        None => "Nothing in the file is near it. Read the file again and copy the text from it.",
    };
    let mut error = ToolError::new(ErrorCode::NoMatch, format!("oldString does not occur in {}", before.shown), hint);
    error.details = near.map(Value::String);
    error
}

fn ambiguous(before: &Before, places: &[std::ops::Range<usize>]) -> ToolError {
    let content = String::from_utf8_lossy(&before.bytes);
    let mut shown = Vec::new();
    for place in places.iter().take(MAX_SHOWN_MATCHES) {
        let line = matching::line_of(&before.bytes, place.start);
        let has = content.split('\n').nth(line - 1).unwrap_or_default().trim_end_matches('\r');
        shown.push(format!("line {line}: {}", text::clip(has, MAX_SHOWN_BYTES)));
    }
    if places.len() > MAX_SHOWN_MATCHES {
        shown.push(format!("and {} more", places.len() - MAX_SHOWN_MATCHES));
    }
    let summary = format!("oldString occurs {} times in {}", places.len(), before.shown);
    let hint = "Add lines around it to oldString so that it is unique, or set replaceAll.";
    let mut error = ToolError::new(ErrorCode::Ambiguous, summary, hint);
    error.details = Some(Value::String(shown.join("\n")));
    error
}

#[cfg(test)]
mod tests;
