//! Runs one command in bash.
//!
//! The command gets no more than it needs: no input, no terminal, a short environment. What it says comes back whole
//! up to a cap, with its exit code, always.

mod directory;
mod report;
mod script;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use foundation::{
    Access, ErrorCode, Plan, ResultPolicy, Tool, ToolClass, ToolContext, ToolError, ToolOutcome, ToolSpec, parameters,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::outputs::{Outputs, SHORT_BYTES};
use crate::paths::Workspace;
use crate::permissions::risks;
use crate::sandbox::{Command, ProcessEnv, run};

pub use directory::ShellDirectory;
use report::{Report, outcome};
use script::Script;

/// The longest that a call may ask for.
const MAX_TIMEOUT_SECS: u64 = 600;

const DESCRIPTION: &str = "Runs one command with `bash -c` and returns its output (stdout and stderr together) and exit \
code. `cd` counts for the calls after it. Input is empty and there is no terminal, so pass what a program would ask for \
as arguments. Every process ends with the call, those in the background too. For reading, searching and changing files, \
prefer the tools made for it.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Input {
    /// The command line, as typed in a terminal. May have several lines.
    command: String,
    /// Seconds until it is ended; 120 if absent, at most 600.
    #[schemars(range(min = 1, max = 600))]
    timeout_secs: Option<u64>,
    /// Directory for this call alone; without it, where the last call's `cd` led.
    cwd: Option<String>,
}

/// The tool.
#[derive(Debug)]
pub(crate) struct Bash {
    spec: ToolSpec,
    workspace: Arc<Workspace>,
    directory: Arc<ShellDirectory>,
    env: ProcessEnv,
    outputs: Arc<Outputs>,
    timeout: Duration,
}

impl Bash {
    /// `timeout` counts for calls that name none; like theirs, it is held between one second and the longest there is.
    pub(crate) fn new(
        workspace: Arc<Workspace>,
        directory: Arc<ShellDirectory>,
        (env, outputs): (ProcessEnv, Arc<Outputs>),
        timeout: Duration,
    ) -> Self {
        let spec = ToolSpec {
            name: "bash",
            description: DESCRIPTION,
            parameters: parameters::<Input>(),
            class: ToolClass::Effect,
            policy: ResultPolicy::HeadAndTail { max_bytes: SHORT_BYTES },
        };
        Self { spec, workspace, directory, env, outputs, timeout: held(timeout) }
    }

    /// Where a call runs. Looks at the disk, so on a thread that may block.
    async fn place(&self, input: &Input) -> Result<Place, ToolError> {
        let (workspace, directory) = (Arc::clone(&self.workspace), Arc::clone(&self.directory));
        let named = input.cwd.clone();
        let found = tokio::task::spawn_blocking(move || place(named.as_deref(), &workspace, &directory)).await;
        found.unwrap_or_else(|error| {
            let fact = format!("the directory could not be looked up: {error}");
            Err(ToolError::new(ErrorCode::Internal, fact, "This is a defect of agentd. Nothing ran."))
        })
    }
}

/// A directory that the call names must be there; one that is remembered and gone is replaced.
fn place(named: Option<&str>, workspace: &Workspace, directory: &ShellDirectory) -> Result<Place, ToolError> {
    let Some(named) = named else {
        let (cwd, gone) = directory.usable(workspace.root());
        return Ok(Place { cwd, gone, remembered: true });
    };
    let cwd = workspace.resolve(named)?.real;
    if !cwd.is_dir() {
        let fact = format!("{named} is no directory");
        return Err(ToolError::new(ErrorCode::NotADirectory, fact, "Name one that exists, or leave `cwd` out."));
    }
    Ok(Place { cwd, gone: None, remembered: false })
}

/// A deadline beyond what the clock can hold would be no deadline but a panic.
fn held(timeout: Duration) -> Duration {
    timeout.clamp(Duration::from_secs(1), Duration::from_secs(MAX_TIMEOUT_SECS))
}

struct Place {
    cwd: PathBuf,
    /// The remembered directory, where it is no more.
    gone: Option<PathBuf>,
    /// Whether `cd` in this call counts for the next.
    remembered: bool,
}

#[async_trait]
impl Tool for Bash {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn access(&self, input: &Value) -> Access {
        let Ok(input) = Input::deserialize(input) else { return Access::Nothing };
        // Not looked up here: a directory that is not there now may be there when the call runs, and whoever judges
        // follows the links. A remembered one that is gone is judged too; the root, which stands in for it, is safer.
        let cwd = input.cwd.as_deref().map_or_else(|| self.directory.get(), |named| self.workspace.root().join(named));
        Access::Run { command: input.command, cwd }
    }

    async fn plan(&self, input: &Value) -> Result<Plan, ToolError> {
        let input = read(input)?;
        let place = self.place(&input).await?;
        let risks = risks(&input.command);
        Ok(Plan { detail: format!("{}\n(in {})", input.command, place.cwd.display()), risks })
    }

    async fn invoke(&self, input: Value, context: &ToolContext<'_>, cancel: &CancellationToken) -> ToolOutcome {
        let input = read(&input)?;
        let place = self.place(&input).await?;
        let timeout = input.timeout_secs.map_or(self.timeout, |secs| held(Duration::from_secs(secs)));
        let script = Script::new(&input.command).map_err(|error| not_started(&error))?;
        let (env, outputs) = (&self.env, &self.outputs);
        let command = Command { script: script.text(), cwd: &place.cwd, env, timeout, call: context.call, outputs };
        let run = run(command, context.live, cancel).await.map_err(|error| not_started(&error))?;
        let ended_in = tokio::task::spawn_blocking(move || script.ended_in()).await.ok().flatten();
        let moved = ended_in.filter(|ended_in| place.remembered && *ended_in != place.cwd);
        if let Some(moved) = &moved {
            self.directory.set(moved.clone());
        }
        outcome(Report { run, timeout, ran_in: &place.cwd, gone: place.gone.as_deref(), moved: moved.as_deref() })
    }
}

fn read(input: &Value) -> Result<Input, ToolError> {
    Input::deserialize(input).map_err(|error| {
        ToolError::new(ErrorCode::InvalidInput, format!("bash: {error}"), "Send `command` as one string.")
    })
}

fn not_started(error: &std::io::Error) -> ToolError {
    let hint = match error.kind() {
        std::io::ErrorKind::ArgumentListTooLong => "Write the long part to a file, and run that.",
        std::io::ErrorKind::InvalidInput => "Send the command without zero bytes.",
        _ => "Nothing ran. Tell the person, since no command can run before this is put right.",
    };
    ToolError::new(ErrorCode::IoError, format!("bash could not be started: {error}"), hint)
}

#[cfg(test)]
mod tests;
