//! Settings as the daemon sees them.
//!
//! `model` says what can be set, `keys` by whom, `file` reads one file, `layers` puts the files together, `source`
//! answers for a directory, `watch` follows the user's file, `environment` and `providers` add what the daemon was
//! started with. The invariant of all of them: a file that is broken, or that a stranger wrote, never permits anything.

mod environment;
mod file;
mod keys;
mod layers;
pub mod model;
mod providers;
mod source;
mod watch;

pub use environment::{Environment, PresetVariables};
pub use model::Settings;
pub use providers::{KeySource, ProviderConfig, ProviderTimeouts};
pub use source::{Loaded, SettingsSource, project_root};
pub use watch::SettingsWatch;
