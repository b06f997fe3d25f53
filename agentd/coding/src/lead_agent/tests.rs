//! What a session's agent has, and in which order.

use std::path::Path;

use async_trait::async_trait;
use foundation::{CallId, ModelError, ModelErrorKind, ModelLimits, ModelRequest, ModelStream};
use protocol::{Answer, Mode, Question};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::permissions::{Consent, Unanswered, Verdict};

#[derive(Debug)]
struct Nobody;

#[async_trait]
impl Model for Nobody {
    fn name(&self) -> &str {
        "test/nobody"
    }

    fn limits(&self) -> ModelLimits {
        ModelLimits { context_window: 1, max_output: None }
    }

    async fn stream(&self, _: ModelRequest<'_>) -> Result<Box<dyn ModelStream>, ModelError> {
        Err(ModelError::new(ModelErrorKind::BadRequest, "nobody", "none"))
    }
}

#[async_trait]
impl Approver for Nobody {
    async fn ask(&self, _: Consent, _: &CancellationToken) -> Verdict {
        Verdict::Cancelled
    }
}

#[async_trait]
impl Asker for Nobody {
    async fn ask(
        &self,
        _: &CallId,
        _: &str,
        _: Vec<Question>,
        _: &CancellationToken,
    ) -> Result<Vec<Answer>, Unanswered> {
        Err(Unanswered::Expired)
    }
}

fn agent_in(folder: &Path) -> Agent {
    let workspace = Arc::new(Workspace::open(folder).unwrap());
    lead_agent(Setup {
        model: Arc::new(Nobody),
        limits: Limits::default(),
        command_timeout: Duration::from_secs(120),
        today: Date::constant(2026, 12, 1),
        directory: Arc::new(ShellDirectory::new(workspace.root().into())),
        place: Place { workspace, home: None, config_home: None, env: ProcessEnv::new([], &[]), web_hosts: [].into() },
        standing: Standing {
            mode: SharedMode::new(Mode::Ask),
            rules: Arc::default(),
            grants: Grants::default(),
            protected: Protected::default(),
        },
        outputs: Arc::new(Outputs::new(folder.join("outputs"))),
        files: Arc::new(FileState::new()),
        todos: TodoList::default(),
        remind_after: 10,
        approver: Arc::new(Nobody),
        asker: Arc::new(Nobody),
    })
}

#[test]
fn tools_stand_in_the_order_of_the_manual_and_say_why_first() {
    let folder = tempfile::tempdir().unwrap();
    let tools = tool_infos(&agent_in(folder.path()));
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let manual = [
        "read",
        "list",
        "glob",
        "grep",
        "file_info",
        "edit",
        "write",
        "apply_patch",
        "mkdir",
        "move",
        "bash",
        "read_output",
        "web_fetch",
        "todo_write",
        "ask_user_question",
    ];
    let expected: Vec<_> = manual.into_iter().filter(|name| names.contains(name)).collect();
    assert_eq!(names, expected);
    for tool in &tools {
        let first = tool.parameters["properties"].as_object().unwrap().keys().next().unwrap();
        assert_eq!((first.as_str(), &tool.parameters["required"][0]), ("description", &"description".into()));
        assert!(!tool.parameters.to_string().contains("$ref"), "{}", tool.name);
    }
}

#[test]
fn the_project_speaks_before_the_date_and_permissions_stand_next_to_the_tools() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("AGENTS.md"), "Use tabs.").unwrap();
    let agent = agent_in(folder.path());
    let [_, project, date] = &agent.system[..] else { panic!("{:?}", agent.system) };
    assert!(project.text.ends_with("AGENTS.md (project instructions)\n\nUse tabs.") && project.stable);
    assert!(!date.stable);
    assert_eq!(agent.middleware.last().unwrap().name(), "permissions");
}
