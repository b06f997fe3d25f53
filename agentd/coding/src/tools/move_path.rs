//! The tool that moves or renames a file or a folder.
//!
//! Nothing is lost by it: what stands at the new path stays, unless the call says otherwise and the session has seen it.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use foundation::{
    Access, ErrorCode, FileMark, Plan, ResultPolicy, Tool, ToolClass, ToolContext, ToolError, ToolOutcome, ToolOutput,
    ToolSpec, parameters,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::atomic::{self, WriteError};
use crate::paths::{Target, io_error, not_found};
use crate::settle;
use crate::text;
use crate::tools::change::{Before, exists};
use crate::tools::place::{Place, check_running, parse};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Input {
    /// File or folder to move, relative to the workspace or absolute.
    from: String,
    /// Its new path, with its name; not the folder to put it into. Missing folders are created.
    to: String,
    /// Replaces a file at the new path, which must have been read. Default false.
    #[serde(default)]
    overwrite: bool,
}

/// `move`.
#[derive(Debug)]
pub(crate) struct Move {
    spec: ToolSpec,
    place: Place,
}

impl Move {
    pub(crate) fn new(place: Place) -> Self {
        let spec = ToolSpec {
            name: "move",
            description: "Moves or renames a file or a folder; its content stays as it is. Refuses a new path at which \
                          something stands, unless overwrite is set and it is a file that was read.",
            parameters: parameters::<Input>(),
            class: ToolClass::File,
            policy: ResultPolicy::Summary,
        };
        Self { spec, place }
    }
}

#[async_trait]
impl Tool for Move {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn access(&self, input: &Value) -> Access {
        let paths = || -> Result<Vec<PathBuf>, ToolError> {
            let input: Input = parse(input)?;
            Ok(vec![self.place.workspace.absolute(&input.from)?, self.place.workspace.absolute(&input.to)?])
        };
        paths().map_or(Access::Nothing, Access::Write)
    }

    async fn plan(&self, input: &Value) -> Result<Plan, ToolError> {
        let input = parse(input)?;
        let plan = move |place: &Place, _: &CancellationToken| Ok(Moving::prepare(place, &input)?.plan());
        self.place.blocking(&CancellationToken::new(), plan).await
    }

    async fn marks(&self, input: &Value) -> Vec<FileMark> {
        let Ok(input) = parse(input) else { return Vec::new() };
        let marks = move |place: &Place, _: &CancellationToken| Moving::prepare(place, &input)?.marks();
        self.place.blocking(&CancellationToken::new(), marks).await.unwrap_or_default()
    }

    async fn invoke(&self, input: Value, _: &ToolContext<'_>, cancel: &CancellationToken) -> ToolOutcome {
        let input = parse(&input)?;
        let run = move |place: &Place, cancel: &CancellationToken| {
            let _alone = place.files.exclusive();
            let moving = Moving::prepare(place, &input)?;
            check_running(cancel)?;
            moving.commit(place)
        };
        self.place.blocking(cancel, run).await
    }
}

/// A move that can be made.
#[derive(Debug)]
struct Moving {
    from: (Target, String),
    meta: Metadata,
    to: (Target, String),
    /// The file that it replaces.
    replaced: Option<Before>,
}

impl Moving {
    fn prepare(place: &Place, input: &Input) -> Result<Self, ToolError> {
        let (from, to) = (place.find(&input.from)?, place.find(&input.to)?);
        let meta = match from.0.real.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(not_found(&from.0, &from.1)),
            meta => meta.map_err(|error| io_error(&from.1, &error))?,
        };
        check_movable(&from, &meta)?;
        if to.0.real == from.0.real || (meta.is_dir() && to.0.real.starts_with(&from.0.real)) {
            let fact = format!("{} cannot be moved to {}: that is the same place, or inside it", from.1, to.1);
            return Err(ToolError::new(ErrorCode::InvalidPath, fact, "Name a place outside it."));
        }
        let replaced = match to.0.real.symlink_metadata() {
            Ok(there) if there.is_dir() => return Err(is_folder(&from.1, &to.1)),
            Ok(_) if input.overwrite && meta.is_file() => Some(place.load(to.0.clone(), to.1.clone())?),
            Ok(_) => return Err(exists(&to.1)),
            Err(_) => None,
        };
        Ok(Self { from, meta, to, replaced })
    }

    fn detail(&self) -> String {
        format!("rename from {}\nrename to {}\n", self.from.1, self.to.1)
    }

    fn plan(&self) -> Plan {
        let replaced = self.replaced.as_ref();
        let lost = replaced
            .map(|file| format!("replaces {}, which has {}", file.shown, text::count(file.bytes.len() as u64, "byte")));
        Plan { detail: self.detail(), risks: lost.into_iter().collect() }
    }

    fn marks(&self) -> Result<Vec<FileMark>, ToolError> {
        let what = match self.meta.is_dir() {
            true => Some(settle::folder()),
            false => settle::content(&self.from.0.real).unwrap_or_default(),
        };
        let replaced = self.replaced.as_ref().map(|file| blake3::hash(&file.bytes).to_hex().to_string());
        let (from, to) = (self.from.0.real.clone(), self.to.0.real.clone());
        Ok(vec![
            FileMark { path: from, before: what.clone(), after: None },
            FileMark { path: to, before: replaced, after: what },
        ])
    }

    fn commit(self, place: &Place) -> ToolOutcome {
        let (from, to) = (&self.from.0.real, &self.to.0.real);
        let created = atomic::create_parents(to).map_err(|error| io_error(&self.to.1, &error))?;
        let moved = atomic::rename(from, to, self.replaced.as_ref().map(|file| &file.meta));
        if let Err(error) = moved {
            atomic::remove_created(&created);
            return Err(self.failed(error));
        }
        place.files.moved(from, to);
        let replaced = if self.replaced.is_some() { ", replacing what was there" } else { "" };
        let summary = format!("moved {} to {}{replaced}", self.from.1, self.to.1);
        Ok(ToolOutput { summary, text: String::new(), detail: Some(self.detail()), effect: None })
    }

    fn failed(&self, error: WriteError) -> ToolError {
        match error {
            WriteError::Changed => exists(&self.to.1),
            WriteError::Io(error) if error.kind() == io::ErrorKind::CrossesDevices => ToolError::new(
                ErrorCode::IoError,
                format!("{} and {} are on two file systems; nothing was moved", self.from.1, self.to.1),
                "Copy it with a command, look that the copy is whole, then delete the old one.",
            ),
            WriteError::Io(error) => io_error(&self.from.1, &error),
        }
    }
}

/// A file or a folder itself: of a link it would be unclear which of the two is meant.
fn check_movable((target, shown): &(Target, String), meta: &Metadata) -> Result<(), ToolError> {
    if target.absolute.is_symlink() {
        return Err(ToolError::new(
            ErrorCode::NotAFile,
            format!("{shown} is a link to {}", target.real.display()),
            "Name the file itself, or move the link with a command.",
        ));
    }
    if meta.is_file() || meta.is_dir() {
        return Ok(());
    }
    let fact = format!("{shown} is neither a file nor a folder");
    Err(ToolError::new(ErrorCode::NotAFile, fact, "Find the file that is meant."))
}

fn is_folder(from: &str, to: &str) -> ToolError {
    let name = Path::new(from).file_name().map_or_else(String::new, |name| name.display().to_string());
    ToolError::new(
        ErrorCode::AlreadyExists,
        format!("{to} is a folder that exists already; nothing was moved"),
        format!("To put it into that folder, name the new path whole: {to}/{name}."),
    )
}

#[cfg(test)]
mod tests;
