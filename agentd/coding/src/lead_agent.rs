//! Puts the agent of a session together: the prompt, the tools and the middleware, each in its right order.
//!
//! The order of tools is the order in which the model is told of them and never changes within a session, so that the
//! provider's cache holds. Decides nothing else.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent::{Agent, Limits, Middleware, TodoList, TodoReminder, TodoWrite};
use foundation::{Model, Tool};
use jiff::civil::Date;
use protocol::api::ToolInfo;

use crate::file_state::FileState;
use crate::outputs::Outputs;
use crate::paths::Workspace;
use crate::permissions::{Approver, Asker, Grants, Permissions, Protected, Rules, SharedMode};
use crate::prompt::{instructions, system_prompt};
use crate::sandbox::ProcessEnv;
use crate::tools::{AskUserQuestion, Bash, ReadOutput, ShellDirectory, WebFetch, file_tools};

/// Everything that a session's agent is made of.
#[derive(Clone, Debug)]
pub struct Setup {
    pub model: Arc<dyn Model>,
    pub limits: Limits,
    /// For commands that name no time-out.
    pub command_timeout: Duration,
    pub today: Date,
    pub place: Place,
    pub standing: Standing,
    /// Files that the session has seen.
    pub files: Arc<FileState>,
    pub directory: Arc<ShellDirectory>,
    /// What its commands have said at length.
    pub outputs: Arc<Outputs>,
    pub todos: TodoList,
    /// Model calls without a change to an open task list until the model is reminded of it.
    pub remind_after: u32,
    pub approver: Arc<dyn Approver>,
    pub asker: Arc<dyn Asker>,
}

/// Where a session works.
#[derive(Clone, Debug)]
pub struct Place {
    pub workspace: Arc<Workspace>,
    pub home: Option<PathBuf>,
    /// The folder of the user's own settings.
    pub config_home: Option<PathBuf>,
    /// What commands see of the environment.
    pub env: ProcessEnv,
    /// Hosts that may be fetched from though they are not on the open internet.
    pub web_hosts: Arc<[String]>,
}

/// What a session may do without asking.
#[derive(Clone, Debug)]
pub struct Standing {
    pub mode: SharedMode,
    pub rules: Arc<Rules>,
    pub grants: Grants,
    /// What is written only with consent in every mode: the daemon's settings and state.
    pub protected: Protected,
}

/// Makes the agent. Reads the project's instructions from disk.
#[must_use]
pub fn lead_agent(setup: Setup) -> Agent {
    let root = setup.place.workspace.root();
    let instructions = instructions(root, setup.place.home.as_deref(), setup.place.config_home.as_deref());
    let system = system_prompt(root, setup.today, &instructions);
    let tools = tools(&setup);
    let permissions = Permissions {
        mode: setup.standing.mode,
        rules: setup.standing.rules,
        grants: setup.standing.grants,
        protected: setup.standing.protected,
        workspace: setup.place.workspace,
        approver: setup.approver,
    };
    // Permissions stand last before the tool: what they judge is the input that runs.
    let middleware: Vec<Arc<dyn Middleware>> =
        vec![Arc::new(TodoReminder::new(setup.todos, setup.remind_after)), Arc::new(permissions)];
    Agent { model: setup.model, system, tools, middleware, limits: setup.limits }
}

/// Every tool that a session has, for listing.
#[must_use]
pub fn tool_infos(agent: &Agent) -> Vec<ToolInfo> {
    agent.tools.iter().map(|tool| info(tool.as_ref())).collect()
}

fn info(tool: &dyn Tool) -> ToolInfo {
    let spec = tool.spec();
    ToolInfo {
        name: spec.name.into(),
        description: spec.description.into(),
        class: spec.class.letter().into(),
        parameters: spec.parameters.clone(),
    }
}

fn tools(setup: &Setup) -> Vec<Arc<dyn Tool>> {
    let workspace = &setup.place.workspace;
    let env = setup.place.env.clone();
    let kept = (env, Arc::clone(&setup.outputs));
    let bash = Bash::new(Arc::clone(workspace), Arc::clone(&setup.directory), kept, setup.command_timeout);
    let mut tools = file_tools(Arc::clone(workspace), Arc::clone(&setup.files));
    tools.push(Arc::new(bash));
    tools.push(Arc::new(ReadOutput::new(Arc::clone(&setup.outputs))));
    tools.push(Arc::new(WebFetch::new(Arc::clone(&setup.outputs), Arc::clone(&setup.place.web_hosts))));
    tools.push(Arc::new(TodoWrite::new(setup.todos.clone())));
    tools.push(Arc::new(AskUserQuestion::new(Arc::clone(&setup.asker))));
    tools
}

#[cfg(test)]
mod tests;
