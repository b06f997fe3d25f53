//! The registry: every tool by name, in an order that never changes, so that a provider's prompt cache holds.
//!
//! No tool's name stands anywhere but in its own file, here and in the tests.

mod apply_patch;
mod ask_user_question;
mod bash;
mod change;
mod edit;
mod file_info;
mod glob;
mod grep;
mod list;
mod mkdir;
mod move_path;
mod place;
mod read;
mod read_output;
mod walk;
mod web_fetch;
mod write;

use std::sync::Arc;

use foundation::Tool;

use crate::file_state::FileState;
use crate::paths::Workspace;
pub(crate) use ask_user_question::AskUserQuestion;
pub(crate) use bash::Bash;
pub use bash::ShellDirectory;
use place::Place;
pub(crate) use read_output::ReadOutput;
pub(crate) use web_fetch::WebFetch;

/// The tools that work on files.
#[must_use]
pub fn file_tools(workspace: Arc<Workspace>, files: Arc<FileState>) -> Vec<Arc<dyn Tool>> {
    let place = Place { workspace, files };
    vec![
        Arc::new(read::Read::new(place.clone())),
        Arc::new(list::List::new(place.clone())),
        Arc::new(glob::Glob::new(place.clone())),
        Arc::new(grep::Grep::new(place.clone())),
        Arc::new(file_info::FileInfo::new(place.clone())),
        Arc::new(edit::Edit::new(place.clone())),
        Arc::new(write::Write::new(place.clone())),
        Arc::new(apply_patch::ApplyPatch::new(place.clone())),
        Arc::new(mkdir::Mkdir::new(place.clone())),
        Arc::new(move_path::Move::new(place)),
    ]
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
