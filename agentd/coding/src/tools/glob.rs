//! The tool that finds files by the shape of their path.

use std::path::Path;

use async_trait::async_trait;
use foundation::{
    Access, ErrorCode, ResultPolicy, Tool, ToolClass, ToolContext, ToolError, ToolOutcome, ToolOutput, ToolSpec,
    parameters,
};
use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::place::{Place, parse};
use super::walk::{self, Clock, Hidden, Listing, MAX_BYTES};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Input {
    /// Shape of the path below `path`: `*` and `?` stay within one name, `**` crosses folders, `{a,b}` and `[a-z]` choose.
    pattern: String,
    /// Folder to search. Default the workspace.
    #[serde(default)]
    path: Option<String>,
    /// Paths at most. Default and maximum 200.
    #[serde(default)]
    limit: Option<usize>,
}

/// `glob`.
#[derive(Debug)]
pub(crate) struct Glob {
    spec: ToolSpec,
    place: Place,
}

impl Glob {
    pub(crate) fn new(place: Place) -> Self {
        let spec = ToolSpec {
            name: "glob",
            description: "Finds files by path pattern, such as `**/*.rs` (all below) or `src/*.rs` (one folder). Gives \
                          paths relative to the workspace, sorted, at most 200, then the total. Leaves out what \
                          .gitignore names, and hidden names unless the pattern names them. Files only.",
            parameters: parameters::<Input>(),
            class: ToolClass::Read,
            policy: ResultPolicy::Head { max_bytes: MAX_BYTES },
        };
        Self { spec, place }
    }
}

#[async_trait]
impl Tool for Glob {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn access(&self, input: &Value) -> Access {
        let path =
            parse::<Input>(input).and_then(|input| self.place.workspace.absolute(input.path.as_deref().unwrap_or(".")));
        path.map_or(Access::Nothing, |path| Access::Read(vec![path]))
    }

    async fn invoke(&self, input: Value, _: &ToolContext<'_>, cancel: &CancellationToken) -> ToolOutcome {
        let input: Input = parse(&input)?;
        self.place.blocking(cancel, move |place, cancel| glob(place, &input, cancel)).await
    }
}

fn glob(place: &Place, input: &Input, cancel: &CancellationToken) -> Result<ToolOutput, ToolError> {
    let (target, shown) = place.find(input.path.as_deref().unwrap_or("."))?;
    walk::check_directory(&target, &shown)?;
    let pattern = input.pattern.strip_prefix("./").unwrap_or(&input.pattern);
    let matcher = matcher(pattern)?;
    // Tells a model that wrote `*.rs` how many `**/*.rs` would have found.
    let deeper = (!pattern.contains('/')).then(|| self::matcher(&format!("**/{pattern}"))).transpose()?;
    let clock = Clock::new(cancel);
    let mut listing = Listing::new(input.limit);
    let mut below = 0_u64;
    let mut is_whole = true;
    for entry in walk::walk(&target.real, hidden(pattern), None).filter_map(Result::ok) {
        if !clock.goes_on()? {
            is_whole = false;
            break;
        }
        if entry.depth() == 0 || entry.file_type().is_none_or(|kind| kind.is_dir()) {
            continue;
        }
        let own = entry.path().strip_prefix(&target.real).unwrap_or(entry.path());
        if matcher.is_match(own) {
            let shown = place.workspace.show(entry.path()).replace('\n', "\\n");
            listing.push(&format!("{shown}\n"), 1);
        } else if deeper.as_ref().is_some_and(|deeper| deeper.is_match(own)) {
            below += 1;
        }
    }
    let (line, mut text) = listing.finished("file", "use a narrower pattern or path", is_whole);
    if text.starts_with('[') && is_whole {
        text = format!("[no files match {pattern} in {shown}]\n");
    }
    if below > 0 {
        text.push_str(&format!(
            "[`**/{pattern}` would also match {} further down]\n",
            crate::text::count(below, "file")
        ));
    }
    Ok(ToolOutput { summary: format!("{pattern} in {shown}: {line}"), text, ..ToolOutput::default() })
}

/// Compiles a pattern in which `*` does not cross folders.
///
/// # Errors
/// `PatternInvalid` with the place of the fault; also for patterns that lead out of their folder.
fn matcher(pattern: &str) -> Result<GlobMatcher, ToolError> {
    if pattern.is_empty() || pattern.starts_with('/') || pattern.split('/').any(|part| part == "..") {
        return Err(ToolError::new(
            ErrorCode::PatternInvalid,
            format!("`{pattern}` is no pattern below a folder"),
            "Name the folder in path, and in pattern only what is below it.",
        ));
    }
    compiled(pattern)
}

/// Compiles any pattern.
pub(super) fn compiled(pattern: &str) -> Result<GlobMatcher, ToolError> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| {
        ToolError::new(
            ErrorCode::PatternInvalid,
            format!("`{pattern}`: {}", error.kind()),
            "Correct the pattern; put a backslash before a character that is meant literally.",
        )
    })
}

/// Hidden names are walked when the pattern names one.
pub(super) fn hidden(pattern: &str) -> Hidden {
    let names_hidden =
        |part: &str| part.starts_with('.') || part.contains("{.") || part.contains(",.") || part.starts_with("[.");
    let mut parts = Path::new(pattern).iter().filter_map(|part| part.to_str());
    if parts.any(names_hidden) { Hidden::Walk } else { Hidden::Skip }
}

#[cfg(test)]
mod tests;
