//! The tool that creates a folder, with the folders above it.

use async_trait::async_trait;
use foundation::{
    Access, ErrorCode, FileMark, Plan, ResultPolicy, Tool, ToolClass, ToolContext, ToolError, ToolOutcome, ToolOutput,
    ToolSpec, parameters,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::atomic;
use crate::paths::{Target, io_error};
use crate::settle;
use crate::tools::place::{Place, check_running, parse};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Input {
    /// Folder to create, relative to the workspace or absolute. Missing folders above it are created too.
    path: String,
}

/// `mkdir`.
#[derive(Debug)]
pub(crate) struct Mkdir {
    spec: ToolSpec,
    place: Place,
}

impl Mkdir {
    pub(crate) fn new(place: Place) -> Self {
        let spec = ToolSpec {
            name: "mkdir",
            description: "Creates a folder and those above it. One that is there already is fine. Writing a file creates \
                          its folders by itself.",
            parameters: parameters::<Input>(),
            class: ToolClass::File,
            policy: ResultPolicy::Summary,
        };
        Self { spec, place }
    }
}

#[async_trait]
impl Tool for Mkdir {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn access(&self, input: &Value) -> Access {
        let path = parse::<Input>(input).and_then(|input| self.place.workspace.absolute(&input.path));
        path.map_or(Access::Nothing, |path| Access::Write(vec![path]))
    }

    async fn plan(&self, input: &Value) -> Result<Plan, ToolError> {
        let input = parse(input)?;
        let plan = move |place: &Place, _: &CancellationToken| {
            let (_, shown) = check(place, &input)?;
            Ok(Plan { detail: format!("create the folder {shown}\n"), risks: Vec::new() })
        };
        self.place.blocking(&CancellationToken::new(), plan).await
    }

    async fn marks(&self, input: &Value) -> Vec<FileMark> {
        let Ok(input) = parse::<Input>(input) else { return Vec::new() };
        let marks = move |place: &Place, _: &CancellationToken| {
            let (target, _) = check(place, &input)?;
            let before = target.real.is_dir().then(settle::folder);
            Ok(vec![FileMark { path: target.real, before, after: Some(settle::folder()) }])
        };
        self.place.blocking(&CancellationToken::new(), marks).await.unwrap_or_default()
    }

    async fn invoke(&self, input: Value, _: &ToolContext<'_>, cancel: &CancellationToken) -> ToolOutcome {
        let input = parse(&input)?;
        self.place.blocking(cancel, move |place, cancel| make(place, &input, cancel)).await
    }
}

/// Where the folder will be; nothing but a folder may be there.
fn check(place: &Place, input: &Input) -> Result<(Target, String), ToolError> {
    let (target, shown) = place.find(&input.path)?;
    match target.real.symlink_metadata() {
        Ok(meta) if !meta.is_dir() => {
            let fact = format!("{shown} exists already and is not a folder");
            Err(ToolError::new(ErrorCode::AlreadyExists, fact, "Choose another name."))
        }
        Ok(_) => Ok((target, shown)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok((target, shown)),
        Err(error) => Err(io_error(&shown, &error)),
    }
}

fn make(place: &Place, input: &Input, cancel: &CancellationToken) -> ToolOutcome {
    let _alone = place.files.exclusive();
    let (target, shown) = check(place, input)?;
    check_running(cancel)?;
    // All folders above a name in it are the folder and those above it.
    let created = atomic::create_parents(&target.real.join("_")).map_err(|error| io_error(&shown, &error))?;
    Ok(ToolOutput::summary(match created.len() {
        0 => format!("{shown} is there already"),
        1 => format!("created the folder {shown}"),
        many => format!("created the folder {shown} and {} above it", many - 1),
    }))
}

#[cfg(test)]
mod tests;
