//! Hooks: their order, what they may change, and that none of them can hurt a run or miss its end.

use std::time::Duration;

use async_trait::async_trait;
use foundation::{ErrorCode, SystemText, Tool, ToolError, ToolOutcome, ToolOutput};

use super::*;
use crate::scripted::Bit::Stall;
use crate::scripted::Log;
use crate::{
    HookError, HookResult, Middleware, ModelContext, ModelEnd, ModelPatch, OnFailure, RunContext, StepEnd, ToolCall,
    ToolEnd, ToolGate,
};

/// Logs each hook.
#[derive(Debug)]
struct Witness(&'static str, Log);

impl Witness {
    fn saw(&self, what: impl std::fmt::Display) {
        self.1.push(format!("hook {}{what}", self.0));
    }
}

#[async_trait]
impl Middleware for Witness {
    fn name(&self) -> &'static str {
        "witness"
    }

    async fn before_run(&self, _: &RunContext) -> HookResult<Vec<Message>> {
        self.saw("run(");
        Ok(Vec::new())
    }

    async fn before_step(&self, _: &RunContext) -> HookResult<Vec<Message>> {
        self.saw("step(");
        Ok(Vec::new())
    }

    async fn before_model(&self, _: &RunContext, _: &ModelContext<'_>) -> HookResult<ModelPatch> {
        self.saw("model(");
        Ok(ModelPatch::default())
    }

    async fn before_tool(&self, _: &RunContext, call: &ToolCall, _: &Arc<dyn Tool>) -> HookResult<ToolGate> {
        self.saw(format!("{}(", call.id));
        Ok(ToolGate::Proceed)
    }

    async fn after_tool(
        &self,
        _: &RunContext,
        call: &ToolCall,
        end: ToolEnd,
        _: &ToolOutcome,
    ) -> HookResult<Option<ToolOutcome>> {
        self.saw(format!("){} {end:?}", call.id));
        Ok(None)
    }

    async fn after_model(&self, _: &RunContext, end: ModelEnd<'_>) -> HookResult<()> {
        let end = match end {
            ModelEnd::Answered(_) => "answered",
            ModelEnd::Interrupted => "interrupted",
            ModelEnd::Failed(_) => "failed",
        };
        self.saw(format!(")model {end}"));
        Ok(())
    }

    async fn after_step(&self, _: &RunContext, end: StepEnd) -> HookResult<()> {
        self.saw(format!(")step {end:?}"));
        Ok(())
    }

    async fn after_run(&self, _: &RunContext, end: &RunEnd) -> HookResult<()> {
        let end = format!("{end:?}");
        self.saw(format!(")run {}", end.split('(').next().unwrap_or_default()));
        Ok(())
    }
}

/// `expected` holds the hooks in order, apart by commas.
async fn check_hooks(stage: Stage, expected: &str) {
    let log = stage.log.clone();
    let ran = stage.with(Witness("", log)).run().await;
    let seen: Vec<_> = ran.only(&["hook"]).iter().map(|line| line.trim_start_matches("hook ")).collect();
    assert_eq!(seen.join(", "), expected);
}

#[tokio::test(start_paused = true)]
async fn each_end_hook_runs_exactly_once_when_the_run_completes() {
    check_hooks(
        Stage::new(vec![ask("a"), answer()]),
        "run(, step(, model(, )model answered, a(, )a Ran, )step Continues, \
         step(, model(, )model answered, )step Last, )run Completed",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn each_end_hook_runs_exactly_once_when_the_run_is_cancelled() {
    check_hooks(
        Stage::new(vec![vec![Text("x"), Stall]]).cancel_at("snapshot"),
        "run(, step(, model(, )model interrupted, )step Last, )run Interrupted",
    )
    .await;
    let two = vec![Call("a", "sleep", json!({"ms": 9})), Call("b", "sleep", json!({"ms": 9}))];
    check_hooks(
        Stage::new(vec![two]).cancel_at("hook a("),
        "run(, step(, model(, )model answered, a(, )a Skipped, )step Last, )run Interrupted",
    )
    .await;
    check_hooks(
        Stage::new(vec![ask("a")]).cancel_at("begin a"),
        "run(, step(, model(, )model answered, a(, )a Ran, )step Last, )run Interrupted",
    )
    .await;
    let stopped = Stage::new(vec![]);
    stopped.log.cancel.cancel();
    check_hooks(stopped, "run(, )run Interrupted").await;
}

#[tokio::test(start_paused = true)]
async fn each_end_hook_runs_exactly_once_when_the_run_fails_halts_or_hits_its_limit() {
    check_hooks(
        Stage::new(vec![vec![Fail(ModelErrorKind::Auth)]]),
        "run(, step(, model(, )model failed, )step Last, )run Failed",
    )
    .await;
    let mut halted = Stage::new(vec![ask("a")]);
    halted.log.refuse_at = Some("started");
    check_hooks(halted, "run(, step(, model(, )model answered, a(, )a Skipped, )step Last, )run Halted").await;
    let limits = Limits { max_steps: 1, ..Limits::default() };
    check_hooks(
        Stage { limits, ..Stage::new(vec![ask("a"), answer()]) },
        "run(, step(, model(, )model answered, )step Continues, step(, model(, )model answered, )step Last, )run Limit",
    )
    .await;
}

#[tokio::test]
async fn before_hooks_run_in_list_order_and_after_hooks_in_reverse() {
    let stage = Stage::new(vec![answer()]);
    let (one, two) = (Witness("1 ", stage.log.clone()), Witness("2 ", stage.log.clone()));
    let ran = stage.with(one).with(two).run().await;
    let runs: Vec<_> = ran.only(&["hook"]).into_iter().filter(|line| line.contains("run")).collect();
    assert_eq!(runs, ["hook 1 run(", "hook 2 run(", "hook 2 )run Completed", "hook 1 )run Completed"]);
}

#[derive(Clone, Debug)]
enum Does {
    Gate(ToolGate),
    Err,
    Panic,
    Hang,
    Replace(ToolOutcome),
    Patch(ModelPatch),
    Add(Vec<Message>),
}

/// Does one thing wherever it is asked.
#[derive(Debug)]
struct Actor(Does, OnFailure);

impl Actor {
    async fn act<T>(&self, value: Option<T>) -> HookResult<Option<T>> {
        match self.0 {
            Does::Err => Err(HookError("no luck".into())),
            Does::Panic => panic!("hook tripped"),
            Does::Hang => std::future::pending().await,
            Does::Gate(_) | Does::Replace(_) | Does::Patch(_) | Does::Add(_) => Ok(value),
        }
    }
}

#[async_trait]
impl Middleware for Actor {
    fn name(&self) -> &'static str {
        "actor"
    }

    fn on_failure(&self) -> OnFailure {
        self.1
    }

    async fn before_step(&self, _: &RunContext) -> HookResult<Vec<Message>> {
        match &self.0 {
            Does::Add(messages) => Ok(messages.clone()),
            _ => Ok(Vec::new()),
        }
    }

    async fn before_model(&self, _: &RunContext, _: &ModelContext<'_>) -> HookResult<ModelPatch> {
        match &self.0 {
            Does::Patch(patch) => Ok(patch.clone()),
            _ => Ok(ModelPatch::default()),
        }
    }

    async fn before_tool(&self, _: &RunContext, _: &ToolCall, _: &Arc<dyn Tool>) -> HookResult<ToolGate> {
        let gate = match &self.0 {
            Does::Gate(gate) => Some(gate.clone()),
            _ => None,
        };
        Ok(self.act(gate).await?.unwrap_or(ToolGate::Proceed))
    }

    async fn after_tool(
        &self,
        _: &RunContext,
        _: &ToolCall,
        _: ToolEnd,
        _: &ToolOutcome,
    ) -> HookResult<Option<ToolOutcome>> {
        let outcome = match &self.0 {
            Does::Replace(outcome) => Some(outcome.clone()),
            _ => None,
        };
        self.act(outcome).await
    }
}

async fn run(does: Does, on_failure: OnFailure) -> Ran {
    let stage = Stage::new(vec![ask("a"), answer()]).with(Actor(does, on_failure));
    let log = stage.log.clone();
    let ran = stage.with(Witness("", log)).run().await;
    assert_eq!(ran.outcome.end, RunEnd::Completed);
    ran
}

fn denied() -> ToolOutcome {
    Err(ToolError::new(ErrorCode::Denied, "the user said no", "Ask what to do instead."))
}

#[tokio::test]
async fn the_first_skip_stands_for_the_result_and_later_hooks_are_not_asked() {
    let ran = run(Does::Gate(ToolGate::Skip(denied())), OnFailure::Open).await;
    assert_eq!(ran.codes(), ["a DENIED"]);
    assert!(ran.only(&["started", "begin", "hook a("]).is_empty());
    assert_eq!(ran.only(&["hook )a"]), ["hook )a Skipped"]);
}

#[tokio::test]
async fn another_input_is_run_if_it_fits() {
    let ran = run(Does::Gate(ToolGate::ProceedWith(json!({"path": "/b"}))), OnFailure::Open).await;
    assert!(ran.results()[0].2.contains(r#"{"path":"/b"}"#));
    let ran = run(Does::Gate(ToolGate::ProceedWith(json!({"path": 1}))), OnFailure::Open).await;
    assert_eq!(ran.codes(), ["a INVALID_INPUT"]);
    assert!(ran.only(&["started", "begin"]).is_empty());
}

#[tokio::test]
async fn a_replaced_outcome_changes_what_the_model_gets_and_not_what_people_see() {
    let ran = run(Does::Replace(Ok(ToolOutput::summary("[hidden]"))), OnFailure::Open).await;
    assert_eq!(ran.results()[0].2, "[hidden]");
    let ran = run(Does::Replace(denied()), OnFailure::Open).await;
    assert_eq!((ran.codes(), ran.only(&["finished"])), (vec!["a DENIED".to_owned()], vec!["finished a"]));
}

#[tokio::test]
async fn a_failing_hook_says_so_and_the_call_goes_on_unless_it_is_closed() {
    for (does, why) in [(Does::Err, "no luck"), (Does::Panic, "hook tripped")] {
        let open = run(does.clone(), OnFailure::Open).await;
        assert_eq!(open.codes(), ["a"]);
        let notices = open.only(&["notice"]);
        assert!(notices.len() == 2 && notices.iter().all(|notice| notice.contains(why)), "{notices:?}");

        let closed = run(does, OnFailure::Closed).await;
        assert_eq!(closed.codes(), ["a DENIED"]);
        assert!(closed.only(&["begin"]).is_empty() && closed.results()[0].2.contains("`actor` could not decide"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_hangs_cannot_outlive_a_cancel() {
    let stage = Stage::new(vec![ask("a")]).with(Actor(Does::Hang, OnFailure::Open));
    let cancel = stage.log.cancel.clone();
    let (ran, ()) = tokio::join!(stage.run(), async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        cancel.cancel();
    });
    assert_eq!((ran.outcome.end.clone(), ran.codes()), (RunEnd::Interrupted, vec!["a CANCELLED".to_owned()]));
    assert!(ran.only(&["begin"]).is_empty());
}

#[tokio::test]
async fn a_patch_is_sent_and_not_kept() {
    let patch = ModelPatch {
        system: vec![SystemText { text: "today is Monday".into(), stable: false }],
        reminders: vec![Message::user_text("remember"), Message::tool_results(Vec::new())],
        hide_tools: vec!["echo".into()],
    };
    let ran = run(Does::Patch(patch), OnFailure::Open).await;
    let request = &ran.requests[0];
    assert_eq!(request.system.len(), 2);
    assert!(!request.tools.contains(&"echo"));
    let last = request.messages.last().unwrap();
    assert_eq!((last.text().as_str(), last.synthetic.as_deref()), ("remember", Some("reminder")));
    assert!(ran.transcript.iter().all(|message| message.text() != "remember"));
    let again = ran.requests[1].messages.iter().filter(|message| message.text() == "remember").count();
    assert_eq!(again, 1, "each request has only its own");
    assert_eq!(ran.codes(), ["a UNKNOWN_TOOL"], "a hidden tool cannot be called");
    assert!(ran.only(&["notice"])[0].contains("not a user's"));
}

#[tokio::test]
async fn added_context_is_kept_and_marked() {
    let ran = run(Does::Add(vec![Message::user_text("by the way")]), OnFailure::Open).await;
    let added: Vec<_> = ran.transcript.iter().filter(|message| message.synthetic.is_some()).collect();
    assert_eq!(added.len(), 2);
    assert!(added.iter().all(|message| message.synthetic.as_deref() == Some("context")));
    assert!(ran.requests[0].messages.contains(added[0]));
}
