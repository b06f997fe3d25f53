//! What reaches the person, and what reaches the model when the answer is no.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use foundation::{Access, CallId, Plan, ResultPolicy, ToolClass, ToolContext, ToolOutcome, ToolOutput, ToolSpec};
use protocol::Mode;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::permissions::Rule;

/// Touches whatever `access` says, each time the next.
#[derive(Debug)]
struct Probe {
    spec: ToolSpec,
    access: Mutex<Vec<Access>>,
    plan: Result<(), ToolError>,
}

#[async_trait]
impl Tool for Probe {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn access(&self, _: &Value) -> Access {
        let mut access = self.access.lock().unwrap();
        if access.len() > 1 { access.remove(0) } else { access[0].clone() }
    }

    async fn plan(&self, _: &Value) -> Result<Plan, ToolError> {
        self.plan.clone().map(|()| Plan { detail: "the whole of it".into(), risks: vec!["a risk".into()] })
    }

    async fn invoke(&self, _: Value, _: &ToolContext<'_>, _: &CancellationToken) -> ToolOutcome {
        Ok(ToolOutput::default())
    }
}

/// Answers from a list and does what a session would do beside.
#[derive(Debug)]
struct Person {
    verdicts: Mutex<Vec<Verdict>>,
    asked: Mutex<Vec<Consent>>,
    then: Option<(SharedMode, Mode)>,
}

#[async_trait]
impl Approver for Person {
    async fn ask(&self, consent: Consent, _: &CancellationToken) -> Verdict {
        self.asked.lock().unwrap().push(consent);
        if let Some((mode, to)) = &self.then {
            mode.set(*to);
        }
        self.verdicts.lock().unwrap().remove(0)
    }
}

struct Case {
    mode: Mode,
    rules: Rules,
    access: Vec<Access>,
    plan: Result<(), ToolError>,
    verdicts: Vec<Verdict>,
    then: Option<Mode>,
}

fn case(access: Vec<Access>, verdicts: Vec<Verdict>) -> Case {
    Case { mode: Mode::Ask, rules: Rules::default(), access, plan: Ok(()), verdicts, then: None }
}

impl Case {
    /// What the model gets instead of the tool, if anything, and what the person was asked.
    fn run(self) -> (Option<ToolError>, Vec<Consent>) {
        let folder = tempfile::tempdir().unwrap();
        let mode = SharedMode::new(self.mode);
        let person = Arc::new(Person {
            verdicts: Mutex::new(self.verdicts),
            asked: Mutex::default(),
            then: self.then.map(|to| (mode.clone(), to)),
        });
        let permissions = Permissions {
            mode,
            rules: Arc::new(self.rules),
            grants: Grants::default(),
            protected: Protected::default(),
            workspace: Arc::new(Workspace::open(folder.path()).unwrap()),
            approver: Arc::clone(&person) as Arc<dyn Approver>,
        };
        let spec = ToolSpec {
            name: "probe",
            description: "",
            parameters: json!({}),
            class: ToolClass::Effect,
            policy: ResultPolicy::Summary,
        };
        let tool: Arc<dyn Tool> = Arc::new(Probe { spec, access: Mutex::new(self.access), plan: self.plan });
        let call = ToolCall { id: CallId("call_1".into()), name: "probe".into(), input: json!({"description": "why"}) };
        let run = RunContext { step: 1, cancel: CancellationToken::new() };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let gate = runtime.block_on(permissions.before_tool(&run, &call, &tool)).unwrap();
        let refusal = match gate {
            ToolGate::Proceed => None,
            ToolGate::Skip(outcome) => Some(outcome.unwrap_err()),
            ToolGate::ProceedWith(input) => panic!("{input}"),
        };
        let asked = person.asked.lock().unwrap().clone();
        (refusal, asked)
    }

    #[track_caller]
    fn check(self, refusal: Option<(ErrorCode, &str)>, asked: usize) {
        let (found, consents) = self.run();
        let found = found.as_ref().map(|error| (error.code, error.summary.as_str()));
        assert_eq!((found, consents.len()), (refusal, asked));
    }
}

fn outside(path: &str) -> Access {
    Access::Read(vec![PathBuf::from(path)])
}

fn denied_by_a_person(message: Option<&str>) -> Verdict {
    Verdict::Denied { message: message.map(Into::into), by: "a person".into() }
}

#[test]
fn what_needs_no_consent_asks_nobody() {
    case(vec![Access::Nothing], vec![]).check(None, 0);
}

#[test]
fn a_person_sees_the_whole_plan_and_a_yes_lets_it_run() {
    let (refusal, asked) = case(vec![outside("/etc/a")], vec![Verdict::Allowed]).run();
    assert_eq!(refusal, None);
    let [consent] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((consent.tool.as_str(), consent.title.as_str()), ("probe", "why"));
    assert_eq!(consent.detail, "the whole of it");
    assert_eq!(consent.risks, ["/etc/a is outside the workspace", "a risk"]);
    assert_eq!(consent.options.len(), 3);
}

#[test]
fn a_denied_call_tells_the_model_what_the_person_said_and_what_to_do() {
    let (refusal, _) = case(vec![outside("/etc/a")], vec![denied_by_a_person(Some(" use b "))]).run();
    let refusal = refusal.unwrap();
    assert_eq!(refusal.summary, "denied by a person, who said: use b");
    assert!(refusal.hint.contains("Do what they say instead"), "{}", refusal.hint);
    case(vec![outside("/etc/a")], vec![denied_by_a_person(None)])
        .check(Some((ErrorCode::Denied, "denied by a person")), 1);
    case(vec![outside("/etc/a")], vec![Verdict::Expired])
        .check(Some((ErrorCode::Denied, "denied: nobody answered in time")), 1);
    case(vec![outside("/etc/a")], vec![Verdict::Cancelled])
        .check(Some((ErrorCode::Cancelled, "the call was cancelled while it waited for consent")), 1);
}

#[test]
fn what_is_forbidden_is_refused_without_asking() {
    let deny = Rules { deny: vec![Rule::parse("probe", None::<&Path>).unwrap()], ..Rules::default() };
    let refused = Some((ErrorCode::Denied, "denied: the rule `probe` forbids this call"));
    Case { rules: deny, ..case(vec![outside("/etc/a")], vec![]) }.check(refused, 0);
}

#[test]
fn nobody_is_asked_for_what_cannot_work() {
    let error = ToolError::new(ErrorCode::NotFound, "no such file", "");
    Case { plan: Err(error), ..case(vec![outside("/etc/a")], vec![]) }
        .check(Some((ErrorCode::NotFound, "no such file")), 0);
}

#[test]
fn a_mode_that_changed_while_a_person_was_asked_counts() {
    let refused = Some((ErrorCode::Denied, "denied: mode `plan` allows nothing but reading in the workspace"));
    Case { then: Some(Mode::Plan), ..case(vec![outside("/etc/a")], vec![Verdict::Allowed]) }.check(refused, 1);
}

#[test]
fn a_yes_covers_only_what_was_shown() {
    let moved = |to: &str| vec![outside("/etc/a"), outside("/etc/a"), outside(to)];
    // Looked at twice a round: once to remember, once to judge.
    case(moved("/etc/b"), vec![Verdict::Allowed, denied_by_a_person(None)])
        .check(Some((ErrorCode::Denied, "denied by a person")), 2);
}
