//! What hides as well as a process can still ends. In a program of its own, because adopting concerns all of it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what fails here is a test")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agent::{Limits, TodoList};
use async_trait::async_trait;
use coding::permissions::{Approver, Asker, Consent, Grants, Protected, SharedMode, Unanswered, Verdict};
use coding::sandbox::{ProcessEnv, adopt_orphans};
use coding::{FileState, Outputs, Place, Setup, ShellDirectory, Standing, Workspace, lead_agent};
use foundation::{
    CallId, Model, ModelError, ModelErrorKind, ModelLimits, ModelRequest, ModelStream, Tool, ToolContext,
};
use jiff::civil::Date;
use protocol::{Answer, Mode, Question};
use serde_json::json;
use tokio_util::sync::CancellationToken;

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

fn bash_in(folder: &Path) -> Arc<dyn Tool> {
    let workspace = Arc::new(Workspace::open(folder).unwrap());
    let agent = lead_agent(Setup {
        model: Arc::new(Nobody),
        limits: Limits::default(),
        command_timeout: Duration::from_secs(60),
        today: Date::constant(2026, 12, 1),
        directory: Arc::new(ShellDirectory::new(workspace.root().into())),
        place: Place {
            workspace,
            home: None,
            config_home: None,
            env: ProcessEnv::new(std::env::vars_os(), &[]),
            web_hosts: [].into(),
        },
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
    });
    agent.tools.into_iter().find(|tool| tool.spec().name == "bash").unwrap()
}

async fn run(bash: &dyn Tool, command: &str) -> String {
    let input = json!({"description": "test", "command": command});
    let call = CallId("call_1".into());
    let context = ToolContext { call: &call, live: &() };
    bash.invoke(input, &context, &CancellationToken::new()).await.unwrap_or_else(|error| panic!("{error}")).text
}

/// Leaves parents, session and environment behind, and its number in `file`.
fn hide(file: &str) -> String {
    format!("env -i setsid sh -c 'sleep 300 >/dev/null 2>&1 & echo $! >{file}'")
}

/// Whether the process is there, if only to be collected.
fn is_there(folder: &Path, file: &str) -> bool {
    let pid = std::fs::read_to_string(folder.join(file)).unwrap();
    Path::new("/proc").join(pid.trim()).exists()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_hides_ends_with_the_last_call_that_may_have_left_it() {
    adopt_orphans().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let bash = bash_in(folder.path());

    let text = run(bash.as_ref(), &hide("alone")).await;
    assert!(text.contains("[1 background process was ended with the call]"), "{text}");
    assert!(!is_there(folder.path(), "alone"));

    // A second call runs all along. What it left itself, and what the first left, cannot be told apart.
    let long = format!("{}; touch ready; until [ -e go ]; do sleep 0.02; done; touch over", hide("of-long"));
    let short = format!("until [ -e ready ]; do sleep 0.02; done; {}", hide("of-short"));
    let short = async {
        run(bash.as_ref(), &short).await;
        let there = ["of-long", "of-short"].map(|file| is_there(folder.path(), file));
        let is_running = !at("over").exists();
        std::fs::write(at("go"), "").unwrap();
        (there, is_running)
    };
    let (text, (there, is_running)) = tokio::join!(run(bash.as_ref(), &long), short);
    assert_eq!((there, is_running), ([true, true], true));
    assert!(text.contains("[2 background processes were ended with the call]"), "{text}");
    assert_eq!(["of-long", "of-short"].map(|file| is_there(folder.path(), file)), [false, false]);
}
