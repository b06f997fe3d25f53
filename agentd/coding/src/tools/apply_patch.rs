//! The tool that changes several files by one patch: all of them, or none.
//!
//! Every file is loaded, checked and changed in memory before the first is written.

use std::collections::HashSet;
use std::path::PathBuf;

use async_trait::async_trait;
use foundation::{
    Access, ErrorCode, FileMark, Plan, ResultPolicy, Tool, ToolClass, ToolContext, ToolError, ToolOutcome, ToolSpec,
    parameters,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::change::{After, Before, Change, Prepared, exists};
use super::place::{Place, parse};
use crate::patch::{self, FilePatch, Hunk};
use crate::paths::Target;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Input {
    /// The whole patch: a unified diff, or from `*** Begin Patch` to `*** End Patch`.
    patch: String,
}

/// `apply_patch`.
#[derive(Debug)]
pub(crate) struct ApplyPatch {
    spec: ToolSpec,
    place: Place,
}

impl ApplyPatch {
    pub(crate) fn new(place: Place) -> Self {
        let spec = ToolSpec {
            name: "apply_patch",
            description: "Applies a patch to several files, all or none: change, add, delete, move. Existing files must \
                          have been read. Context must match exactly: in a unified diff at the stated lines, with \
                          right counts; in the `*** Begin Patch` form (`*** Update File: path`, `*** Move to:`, \
                          `*** Add File:`, `*** Delete File:`, hunks under `@@`) at its only place, or the first one \
                          behind a unique `@@ line`.",
            parameters: parameters::<Input>(),
            class: ToolClass::File,
            policy: ResultPolicy::Summary,
        };
        Self { spec, place }
    }

    fn paths(&self, input: &Value) -> Result<Vec<PathBuf>, ToolError> {
        let input: Input = parse(input)?;
        let files = read_patch(&input.patch)?;
        let paths = files.iter().flat_map(FilePatch::paths);
        paths.map(|path| self.place.workspace.absolute(path)).collect()
    }
}

#[async_trait]
impl Tool for ApplyPatch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn access(&self, input: &Value) -> Access {
        self.paths(input).map_or(Access::Nothing, Access::Write)
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

fn read_patch(text: &str) -> Result<Vec<FilePatch>, ToolError> {
    patch::parse(text).map_err(|error| invalid(error.to_string()))
}

fn invalid(fact: String) -> ToolError {
    ToolError::new(ErrorCode::PatchInvalid, fact, "Nothing was written. Send the whole patch again, corrected.")
}

fn prepare(place: &Place, input: &Input) -> Result<Prepared, ToolError> {
    let mut seen = HashSet::new();
    let mut changes = Vec::new();
    let mut done = Vec::new();
    for file in read_patch(&input.patch)? {
        for path in file.paths() {
            let (target, shown) = place.find(path)?;
            if !seen.insert(target.real) {
                return Err(invalid(format!("{shown} is named twice; put all its changes under one header")));
            }
        }
        let (change, what) = match file {
            FilePatch::Add { path, content } => add(place, &path, content)?,
            FilePatch::Delete { path, hunks } => delete(place, &path, &hunks)?,
            FilePatch::Change { from, to, hunks } => change(place, &from, &to, &hunks)?,
        };
        changes.push(change);
        done.push(what);
    }
    Ok(Prepared { changes, summary: format!("applied the patch: {}", done.join(", ")), risks: Vec::new() })
}

fn add(place: &Place, path: &str, content: String) -> Result<(Change, String), ToolError> {
    let (target, shown) = free(place, path)?;
    let what = format!("{shown} added");
    let after = After { target, shown, bytes: content.into_bytes() };
    Ok((Change { before: None, after: Some(after) }, what))
}

fn delete(place: &Place, path: &str, hunks: &[Hunk]) -> Result<(Change, String), ToolError> {
    let before = movable(place, path)?;
    if !hunks.is_empty() && !applied(&before, hunks)?.is_empty() {
        return Err(mismatch(&before.shown, "the patch deletes the file but does not remove all its lines"));
    }
    let what = format!("{} deleted", before.shown);
    Ok((Change { before: Some(before), after: None }, what))
}

fn change(place: &Place, from: &str, to: &str, hunks: &[Hunk]) -> Result<(Change, String), ToolError> {
    if from == to {
        let (target, shown) = place.find(from)?;
        let before = place.load_text(target, shown)?;
        let bytes = applied(&before, hunks)?;
        let what = format!("{} changed", before.shown);
        let after = After { target: before.target.clone(), shown: before.shown.clone(), bytes };
        return Ok((Change { before: Some(before), after: Some(after) }, what));
    }
    let (target, shown) = free(place, to)?;
    let before = movable(place, from)?;
    if !hunks.is_empty() {
        before.check_text()?;
    }
    let bytes = applied(&before, hunks)?;
    let what = format!("{} moved to {shown}", before.shown);
    Ok((Change { before: Some(before), after: Some(After { target, shown, bytes }) }, what))
}

fn applied(before: &Before, hunks: &[Hunk]) -> Result<Vec<u8>, ToolError> {
    patch::apply(&before.bytes, hunks).map_err(|error| mismatch(&before.shown, &error.to_string()))
}

fn mismatch(shown: &str, fact: &str) -> ToolError {
    ToolError::new(
        ErrorCode::PatchMismatch,
        format!("{shown}, {fact}"),
        "Nothing was written. Read the file again, then send a new patch for all files.",
    )
}

/// A place where nothing stands.
fn free(place: &Place, path: &str) -> Result<(Target, String), ToolError> {
    let (target, shown) = place.find(path)?;
    if target.real.symlink_metadata().is_ok() {
        return Err(exists(&shown));
    }
    Ok((target, shown))
}

/// A file that can be taken away: of a link it would be unclear which of the two is meant.
fn movable(place: &Place, path: &str) -> Result<Before, ToolError> {
    let (target, shown) = place.find(path)?;
    if target.absolute.is_symlink() {
        return Err(ToolError::new(
            ErrorCode::NotAFile,
            format!("{shown} is a link to {}", target.real.display()),
            "Name the file itself, or remove the link with a command.",
        ));
    }
    place.load(target, shown)
}

#[cfg(test)]
mod tests;
