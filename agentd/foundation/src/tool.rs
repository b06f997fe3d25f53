//! What acts: a value with a name, a schema, and declarations of what others need to know about it.
//!
//! What the loop, the permission engine, the recovery and the client need to know of a tool, the tool declares here.
//! So no tool's name stands anywhere but in its own file, the registry and the tests.

use std::fmt;
use std::path::PathBuf;

use async_trait::async_trait;
use protocol::{CallId, Todo};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::error::ToolError;

/// Something that a model can call.
#[async_trait]
pub trait Tool: Send + Sync + fmt::Debug {
    /// What the model is told, and how others should treat a call.
    fn spec(&self) -> &ToolSpec;

    /// What a call with this input would touch. Cheap, and never fails: an input it cannot read touches nothing,
    /// because [`Tool::invoke`] will refuse it.
    fn access(&self, input: &Value) -> Access;

    /// What a person must see before saying yes: the whole command, the whole diff. Asked for only when a person will
    /// be asked. Changes nothing.
    ///
    /// # Errors
    /// The same error that `invoke` would give, so that nobody is asked for what cannot work.
    async fn plan(&self, input: &Value) -> Result<Plan, ToolError> {
        Ok(Plan { detail: format!("{input:#}"), risks: Vec::new() })
    }

    /// What a call with this input would make of files, as they are now: kept before it begins, so that a crash in
    /// between can be settled by looking. Empty when it cannot be told, or for a call that will be refused.
    async fn marks(&self, _input: &Value) -> Vec<FileMark> {
        Vec::new()
    }

    /// Does it. `input` has passed the schema. Returns within a second of `cancel`, with nothing of the call alive; one
    /// of [`ToolClass::File`] first finishes a write that has begun, and is waited for however long that takes.
    async fn invoke(&self, input: Value, context: &ToolContext<'_>, cancel: &CancellationToken) -> ToolOutcome;
}

/// What a tool is.
#[derive(Clone, PartialEq, Debug)]
pub struct ToolSpec {
    pub name: &'static str,
    /// For the model.
    pub description: &'static str,
    /// JSON Schema of the input; its first property is always `description`.
    pub parameters: Value,
    pub class: ToolClass,
    pub policy: ResultPolicy,
}

/// What may be done with a call whose outcome is not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ToolClass {
    /// Reads only: may be run again.
    Read,
    /// Changes files: settled by comparing content.
    File,
    /// Gets something from the web: may be run again, once.
    Get,
    /// May do anything: never run again by itself.
    Effect,
}

impl ToolClass {
    /// The letter used on the wire and in the journal.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Self::Read => 'R',
            Self::File => 'H',
            Self::Get => 'G',
            Self::Effect => 'X',
        }
    }
}

/// How much of a result the model gets. All caps count bytes of UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultPolicy {
    /// The summary alone: the model knows what it wrote.
    Summary,
    /// The text from its start, up to a line's end within the cap.
    Head { max_bytes: usize },
    /// Two thirds of the cap from the start and one third from the end, with the omitted amount between them.
    HeadAndTail { max_bytes: usize },
}

/// What a call would touch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Access {
    /// Nothing outside the session itself.
    Nothing,
    /// Absolute paths, links not yet resolved.
    Read(Vec<PathBuf>),
    /// Absolute paths, links not yet resolved. Calls that write the same path run one after the other, in call order.
    Write(Vec<PathBuf>),
    Run {
        command: String,
        cwd: PathBuf,
    },
    Fetch {
        url: String,
    },
}

/// A file before a call and after it. Content is named by its BLAKE3 hash in hex; `None` is no file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileMark {
    /// Absolute, without links, and UTF-8.
    pub path: PathBuf,
    pub before: Option<String>,
    pub after: Option<String>,
}

/// What a person is shown before a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Whole, never cut.
    pub detail: String,
    /// What to know before saying yes, in plain words.
    pub risks: Vec<String>,
}

/// What a running call has beside its input.
#[derive(Clone, Copy)]
pub struct ToolContext<'a> {
    pub call: &'a CallId,
    pub live: &'a dyn LiveOutput,
}

impl fmt::Debug for ToolContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext").field("call", self.call).finish_non_exhaustive()
    }
}

/// Where a running tool's output goes while people watch. Never waits, may be ignored.
pub trait LiveOutput: Send + Sync {
    /// More output of this call, in order.
    fn append(&self, call: &CallId, bytes: &[u8]);
}

/// Nobody watches.
impl LiveOutput for () {
    fn append(&self, _: &CallId, _: &[u8]) {}
}

/// What came of a call.
pub type ToolOutcome = Result<ToolOutput, ToolError>;

/// A call that did what was asked.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct ToolOutput {
    /// One line, for people and for [`ResultPolicy::Summary`].
    pub summary: String,
    /// For the model, before the policy is applied.
    pub text: String,
    /// For people alone: the diff of what changed.
    pub detail: Option<String>,
    /// What the session must take note of.
    pub effect: Option<Effect>,
}

/// A change to the session itself that a tool makes by returning it.
#[derive(Clone, PartialEq, Debug)]
pub enum Effect {
    Todos(Vec<Todo>),
}

impl ToolOutput {
    /// One line that is all there is to say.
    #[must_use]
    pub fn summary(summary: impl Into<String>) -> Self {
        Self { summary: summary.into(), ..Self::default() }
    }
}
