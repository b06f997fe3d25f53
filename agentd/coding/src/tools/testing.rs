//! A folder and the file tools on it, for tests: called by name, as the loop does.

use std::path::PathBuf;
use std::sync::Arc;

use foundation::{CallId, ErrorCode, Plan, Tool, ToolContext, ToolError, ToolOutcome};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::file_tools;
use crate::file_state::FileState;
use crate::paths::Workspace;

pub(super) struct Bench {
    _dir: tempfile::TempDir,
    pub(super) base: PathBuf,
    pub(super) root: PathBuf,
    pub(super) files: Arc<FileState>,
    pub(super) tools: Vec<Arc<dyn Tool>>,
    pub(super) cancel: CancellationToken,
    runtime: tokio::runtime::Runtime,
}

/// An empty workspace inside a folder of its own.
pub(super) fn bench() -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let root = base.join("work");
    std::fs::create_dir(&root).unwrap();
    let files = Arc::new(FileState::new());
    let tools = file_tools(Arc::new(Workspace::open(&root).unwrap()), Arc::clone(&files));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    Bench { _dir: dir, base, root, files, tools, cancel: CancellationToken::new(), runtime }
}

impl Bench {
    pub(super) fn put(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    /// As `put`, and the session has read it.
    pub(super) fn seen(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        self.put(path, content.as_ref());
        let real = self.root.join(path).canonicalize().unwrap();
        self.files.note(&real, blake3::hash(content.as_ref()));
        self
    }

    #[track_caller]
    pub(super) fn has(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        let bytes = std::fs::read(self.root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(String::from_utf8_lossy(&bytes), String::from_utf8_lossy(content.as_ref()), "{path}");
        assert_eq!(bytes, content.as_ref(), "{path}");
        self
    }

    /// Every name in the workspace, folders with `/`, so that litter shows.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut open = vec![self.root.clone()];
        while let Some(dir) = open.pop() {
            for entry in dir.read_dir().unwrap() {
                let path = entry.unwrap().path();
                let is_dir = path.symlink_metadata().unwrap().is_dir();
                let name = path.strip_prefix(&self.root).unwrap().display().to_string();
                names.push(if is_dir { format!("{name}/") } else { name });
                if is_dir {
                    open.push(path);
                }
            }
        }
        names.sort();
        names
    }

    pub(super) fn tool(&self, name: &str) -> &Arc<dyn Tool> {
        self.tools.iter().find(|tool| tool.spec().name == name).unwrap()
    }

    pub(super) fn call(&self, name: &str, mut input: Value) -> ToolOutcome {
        input["description"] = json!("a test");
        let call = CallId("call".to_owned());
        let context = ToolContext { call: &call, live: &() };
        self.runtime.block_on(self.tool(name).invoke(input, &context, &self.cancel))
    }

    pub(super) fn plan(&self, name: &str, mut input: Value) -> Result<Plan, ToolError> {
        input["description"] = json!("a test");
        self.runtime.block_on(self.tool(name).plan(&input))
    }

    /// The error of a call, which says what to do next and is the plan's as well.
    #[track_caller]
    pub(super) fn refused(&self, name: &str, input: Value, code: ErrorCode) -> ToolError {
        let planned = self.plan(name, input.clone());
        let error = self.call(name, input).unwrap_err();
        assert_eq!(error.code, code, "{error}");
        assert!(!error.hint.is_empty());
        if self.tool(name).spec().class == foundation::ToolClass::File {
            assert_eq!(planned.unwrap_err(), error);
        }
        error
    }
}
