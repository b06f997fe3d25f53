//! The tool that lists a folder, down to a depth.

use async_trait::async_trait;
use foundation::{
    Access, ResultPolicy, Tool, ToolClass, ToolContext, ToolError, ToolOutcome, ToolOutput, ToolSpec, parameters,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::place::{Place, parse};
use super::walk::{self, Clock, Hidden, Listing, MAX_BYTES};

const MAX_NAMED_ERRORS: usize = 3;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Input {
    /// Folder to list, relative to the workspace or absolute; `.` is the workspace itself.
    path: String,
    /// How many levels down. Default 1, the folder's own entries.
    #[serde(default)]
    depth: Option<usize>,
    /// Entries at most. Default and maximum 200.
    #[serde(default)]
    limit: Option<usize>,
}

/// `list`.
#[derive(Debug)]
pub(crate) struct List {
    spec: ToolSpec,
    place: Place,
}

impl List {
    pub(crate) fn new(place: Place) -> Self {
        let spec = ToolSpec {
            name: "list",
            description: "Lists a folder, hidden names included: one path per line, relative to the workspace, folders \
                          with a trailing /, links with their target. Leaves out what .gitignore names. At most 200 \
                          entries, then the total.",
            parameters: parameters::<Input>(),
            class: ToolClass::Read,
            policy: ResultPolicy::Head { max_bytes: MAX_BYTES },
        };
        Self { spec, place }
    }
}

#[async_trait]
impl Tool for List {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn access(&self, input: &Value) -> Access {
        let path = parse::<Input>(input).and_then(|input| self.place.workspace.absolute(&input.path));
        path.map_or(Access::Nothing, |path| Access::Read(vec![path]))
    }

    async fn invoke(&self, input: Value, _: &ToolContext<'_>, cancel: &CancellationToken) -> ToolOutcome {
        let input: Input = parse(&input)?;
        self.place.blocking(cancel, move |place, cancel| list(place, &input, cancel)).await
    }
}

fn list(place: &Place, input: &Input, cancel: &CancellationToken) -> Result<ToolOutput, ToolError> {
    let (target, shown) = place.find(&input.path)?;
    walk::check_directory(&target, &shown)?;
    // Read once by hand, because a walk only reports what it cannot enter below its start.
    target.real.read_dir().map_err(|error| crate::paths::io_error(&shown, &error))?;
    let clock = Clock::new(cancel);
    let mut listing = Listing::new(input.limit);
    let mut errors = Vec::new();
    let mut is_whole = true;
    for entry in walk::walk(&target.real, Hidden::Walk, Some(input.depth.unwrap_or(1).max(1))) {
        if !clock.goes_on()? {
            is_whole = false;
            break;
        }
        match entry {
            Ok(entry) if entry.depth() > 0 => listing.push(&line(place, &entry), 1),
            Ok(_) => {}
            Err(error) => errors.push(error.to_string()),
        }
    }
    let (line, mut text) = listing.finished("entry", "name a folder in it, or a smaller depth", is_whole);
    if text.starts_with('[') {
        text = format!("[{shown} is empty, or .gitignore leaves out all of it]\n");
    }
    for error in errors.iter().take(MAX_NAMED_ERRORS) {
        text.push_str(&format!("[not listed: {error}]\n"));
    }
    Ok(ToolOutput { summary: format!("listed {shown}: {line}"), text, ..ToolOutput::default() })
}

fn line(place: &Place, entry: &ignore::DirEntry) -> String {
    let path = entry.path();
    let shown = place.workspace.show(path).replace('\n', "\\n");
    let kind = entry.file_type();
    if kind.is_some_and(|kind| kind.is_symlink()) {
        let to = path.read_link().map_or_else(|_| "?".to_owned(), |to| to.display().to_string());
        return format!("{shown} -> {}\n", to.replace('\n', "\\n"));
    }
    let mark = if kind.is_some_and(|kind| kind.is_dir()) { "/" } else { "" };
    format!("{shown}{mark}\n")
}

#[cfg(test)]
mod tests;
