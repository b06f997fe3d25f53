//! The registry: every tool by name, in an order that never changes, so that a provider's prompt cache holds.
//!
//! No tool's name stands anywhere but in its own file, here and in the tests.

use std::sync::Arc;

use foundation::Tool;

use crate::file_state::FileState;
use crate::paths::Workspace;

/// The tools that work on files.
#[must_use]
pub fn file_tools(workspace: Arc<Workspace>, files: Arc<FileState>) -> Vec<Arc<dyn Tool>> {
    let _place = Place { workspace, files };
    Vec::new()
}

/// What every file tool works with.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) files: Arc<FileState>,
}
