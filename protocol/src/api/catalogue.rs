//! What can be chosen and what is in force: models, tools, settings.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::SessionId;

params! {
    ModelListed {
        models: Vec<ModelInfo>,
    }
    ModelInfo {
        /// `provider/model`.
        name: String,
        /// The wire format: `anthropic`, `openai`, `offline`.
        api: String,
        context_window: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_output: Option<u64>,
        /// Whether it can be called now: its key is there, or it needs none.
        ready: bool,
        /// True for the one that a new session gets.
        default: bool,
    }
    ToolList {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<SessionId>,
    }
    ToolListed {
        tools: Vec<ToolInfo>,
    }
    ToolInfo {
        name: String,
        description: String,
        /// `R` reads only, `H` changes a file, `G` fetches from the web, `X` may do anything.
        class: String,
        /// JSON Schema of its parameters.
        parameters: Value,
    }
    ConfigExplain {
        /// One key, such as `limits.maxSteps`; all if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// Explains the settings that a session in this directory would get.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<PathBuf>,
    }
    ConfigExplained {
        values: Vec<ConfigValue>,
        /// Files that were looked for, and what became of each.
        files: Vec<ConfigFile>,
    }
    ConfigValue {
        key: String,
        value: Value,
        /// `default`, `user`, `project`, `local`, `environment`.
        layer: String,
        /// What was ignored, and why.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ignored: Vec<String>,
    }
    ConfigFile {
        path: PathBuf,
        layer: String,
        /// `loaded`, `absent`, or what is wrong with it, with line and column.
        state: String,
    }
}
