//! What reaches the person, and what reaches the model when the answer is no.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use foundation::{Access, CallId, Plan, ResultPolicy, ToolClass, ToolContext, ToolOutcome, ToolOutput, ToolSpec};
use protocol::{ApprovalId, Mode};
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

impl Probe {
    fn new(access: Vec<Access>, plan: Result<(), ToolError>) -> Self {
        let spec = ToolSpec {
            name: "probe",
            description: "",
            parameters: json!({}),
            class: ToolClass::Effect,
            policy: ResultPolicy::Summary,
        };
        Self { spec, access: Mutex::new(access), plan }
    }
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

/// Answers from a list, while something else happens.
#[derive(Debug)]
struct Person {
    mode: SharedMode,
    verdicts: Mutex<Vec<Verdict>>,
    asked: Mutex<Vec<Consent>>,
    meanwhile: Option<Meanwhile>,
}

/// What happens before the answer.
#[derive(Clone, Debug)]
enum Meanwhile {
    Mode(Mode),
    /// The first leads to the second from now on.
    Link(PathBuf, PathBuf),
}

#[async_trait]
impl Approver for Person {
    async fn ask(&self, consent: Consent, _: &CancellationToken) -> Verdict {
        self.asked.lock().unwrap().push(consent);
        match &self.meanwhile {
            None => {}
            Some(Meanwhile::Mode(mode)) => self.mode.set(*mode),
            Some(Meanwhile::Link(link, to)) => turn(link, to),
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
    meanwhile: Option<Meanwhile>,
}

fn turn(link: &Path, to: &Path) {
    drop(std::fs::remove_file(link));
    std::os::unix::fs::symlink(to, link).unwrap();
}

fn call() -> ToolCall {
    ToolCall { id: CallId("call_1".into()), name: "probe".into(), input: json!({"description": "why"}) }
}

fn case(access: Vec<Access>, verdicts: Vec<Verdict>) -> Case {
    Case { mode: Mode::Ask, rules: Rules::default(), access, plan: Ok(()), verdicts, meanwhile: None }
}

impl Case {
    /// What the model gets instead of the tool, if anything, and what the person was asked.
    fn run(self) -> (Option<ToolError>, Vec<Consent>) {
        let folder = tempfile::tempdir().unwrap();
        let mode = SharedMode::new(self.mode);
        let person = Arc::new(Person {
            mode: mode.clone(),
            verdicts: Mutex::new(self.verdicts),
            asked: Mutex::default(),
            meanwhile: self.meanwhile,
        });
        let permissions = Permissions {
            mode,
            rules: Arc::new(self.rules),
            grants: Grants::default(),
            protected: Protected::default(),
            workspace: Arc::new(Workspace::open(folder.path()).unwrap()),
            approver: Arc::clone(&person) as Arc<dyn Approver>,
        };
        let tool: Arc<dyn Tool> = Arc::new(Probe::new(self.access, self.plan));
        let call = call();
        let run = RunContext { step: 1, cancel: CancellationToken::new() };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let gate = runtime.block_on(permissions.before_tool(&run, &call, &tool)).unwrap();
        let refusal = match gate {
            ToolGate::Proceed | ToolGate::Allowed(_) => None,
            ToolGate::Denied(error, _) => Some(error),
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
    Verdict::Denied { message: message.map(Into::into), by: "a person".into(), approval: Some(ApprovalId::new()) }
}

#[test]
fn what_needs_no_consent_asks_nobody() {
    case(vec![Access::Nothing], vec![]).check(None, 0);
}

#[test]
fn a_person_sees_the_whole_plan_and_a_yes_lets_it_run() {
    let (refusal, asked) = case(vec![outside("/etc/a")], vec![Verdict::Allowed(ApprovalId::new())]).run();
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
    case(vec![outside("/etc/a")], vec![Verdict::Expired(ApprovalId::new())])
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
    Case {
        meanwhile: Some(Meanwhile::Mode(Mode::Plan)),
        ..case(vec![outside("/etc/a")], vec![Verdict::Allowed(ApprovalId::new())])
    }
    .check(refused, 1);
}

#[test]
fn a_yes_covers_only_what_was_shown() {
    let moved = vec![outside("/etc/a"), outside("/etc/b")];
    case(moved, vec![Verdict::Allowed(ApprovalId::new()), denied_by_a_person(None)])
        .check(Some((ErrorCode::Denied, "denied by a person")), 2);
}

#[test]
fn a_link_that_was_turned_while_a_person_was_asked_is_asked_about_anew() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
    for access in [
        Access::Read(vec![at("link/notes")]),
        Access::Write(vec![at("link/notes")]),
        Access::Run { command: "ls".into(), cwd: at("link") },
    ] {
        turn(&at("link"), &at("shown"));
        let meanwhile = Some(Meanwhile::Link(at("link"), at("other")));
        let (refusal, asked) = Case {
            meanwhile,
            ..case(vec![access.clone()], vec![Verdict::Allowed(ApprovalId::new()), denied_by_a_person(None)])
        }
        .run();
        assert_eq!(refusal.map(|refusal| refusal.code), Some(ErrorCode::Denied), "{access:?}");
        let shows = |name: &str| asked.iter().map(|consent| consent.risks[0].contains(name)).collect::<Vec<_>>();
        assert_eq!((shows("/shown"), shows("/other")), (vec![true, false], vec![false, true]), "{access:?}");
    }
}

/// A tool on a file system that answers only when it is told to.
#[derive(Debug)]
struct Hung {
    probe: Probe,
    looking: tokio::sync::Notify,
    answers: Mutex<std::sync::mpsc::Receiver<()>>,
}

#[async_trait]
impl Tool for Hung {
    fn spec(&self) -> &ToolSpec {
        &self.probe.spec
    }

    fn access(&self, input: &Value) -> Access {
        self.looking.notify_one();
        self.answers.lock().unwrap().recv_timeout(std::time::Duration::from_secs(10)).expect("others go on");
        self.probe.access(input)
    }

    async fn invoke(&self, _: Value, _: &ToolContext<'_>, _: &CancellationToken) -> ToolOutcome {
        Ok(ToolOutput::default())
    }
}

/// What becomes of a call whose judging hangs until `meanwhile`, on one thread, has run.
fn hung(meanwhile: impl FnOnce(&CancellationToken, &std::sync::mpsc::Sender<()>)) -> Option<ErrorCode> {
    let folder = tempfile::tempdir().unwrap();
    let mode = SharedMode::new(Mode::Ask);
    let nobody = Person { mode: mode.clone(), verdicts: Mutex::default(), asked: Mutex::default(), meanwhile: None };
    let permissions = Permissions {
        mode,
        rules: Arc::default(),
        grants: Grants::default(),
        protected: Protected::default(),
        workspace: Arc::new(Workspace::open(folder.path()).unwrap()),
        approver: Arc::new(nobody),
    };
    let (answer, answers) = std::sync::mpsc::channel();
    let probe = Probe::new(vec![Access::Nothing], Ok(()));
    let hung = Arc::new(Hung { probe, looking: tokio::sync::Notify::new(), answers: Mutex::new(answers) });
    let tool: Arc<dyn Tool> = Arc::<Hung>::clone(&hung);
    let (run, call) = (RunContext { step: 1, cancel: CancellationToken::new() }, call());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let gate = runtime.block_on(async {
        let others = async {
            hung.looking.notified().await;
            meanwhile(&run.cancel, &answer);
        };
        tokio::join!(permissions.before_tool(&run, &call, &tool), others).0.unwrap()
    });
    // Lets the thread go, if nobody did.
    let _ = answer.send(());
    match gate {
        ToolGate::Skip(outcome) => Some(outcome.unwrap_err().code),
        ToolGate::Proceed | ToolGate::Allowed(_) => None,
        ToolGate::Denied(error, _) => Some(error.code),
        ToolGate::ProceedWith(input) => panic!("{input}"),
    }
}

#[test]
fn a_file_system_that_hangs_holds_up_nobody_else() {
    assert_eq!(hung(|_, answer| answer.send(()).unwrap()), None);
    assert_eq!(hung(|cancel, _| cancel.cancel()), Some(ErrorCode::Cancelled));
}
