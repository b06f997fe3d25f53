//! The tool that creates a file or replaces it whole.
//!
//! The content is written byte for byte. A file that exists must have been read and be unchanged.

use async_trait::async_trait;
use foundation::{
    Access, FileMark, Plan, ResultPolicy, Tool, ToolClass, ToolContext, ToolError, ToolOutcome, ToolSpec, parameters,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::text;
use crate::tools::change::{After, Change, Prepared};
use crate::tools::place::{Place, parse};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Input {
    /// File to write, relative to the workspace or absolute. Missing folders are created.
    path: String,
    /// The whole content, written as it is. May be empty.
    content: String,
}

/// `write`.
#[derive(Debug)]
pub(crate) struct Write {
    spec: ToolSpec,
    place: Place,
}

impl Write {
    pub(crate) fn new(place: Place) -> Self {
        let spec = ToolSpec {
            name: "write",
            description: "Creates a file, with its folders, or replaces a whole file. An existing file must have been \
                          read in this session and be unchanged since. To change a part of a file, use edit.",
            parameters: parameters::<Input>(),
            class: ToolClass::File,
            policy: ResultPolicy::Summary,
        };
        Self { spec, place }
    }
}

#[async_trait]
impl Tool for Write {
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
    let (target, shown) = place.find(&input.path)?;
    let bytes = input.content.clone().into_bytes();
    let size = text::count(bytes.len() as u64, "byte");
    let exists = target.real.symlink_metadata().is_ok();
    let before = exists.then(|| place.load(target.clone(), shown.clone())).transpose()?;
    let mut risks = Vec::new();
    let summary = match &before {
        Some(before) => {
            risks.push(format!("replaces all {} of {shown}", text::count(before.bytes.len() as u64, "byte")));
            format!("wrote {shown}: {size}, replacing {}", text::thousands(before.bytes.len() as u64))
        }
        None => format!("created {shown}: {size}"),
    };
    let after = After { target, shown, bytes };
    Ok(Prepared { changes: vec![Change { before, after: Some(after) }], summary, risks })
}

#[cfg(test)]
mod tests;
