//! The tool as a model meets it: directory, text, exit code.

use std::path::Path;

use foundation::CallId;
use serde_json::json;

use super::*;

struct Session {
    folder: tempfile::TempDir,
    bash: Bash,
    runtime: tokio::runtime::Runtime,
}

impl Session {
    fn new() -> Self {
        Self::with_timeout(Duration::from_secs(120))
    }

    fn with_timeout(timeout: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("sub/deep")).unwrap();
        let workspace = Arc::new(Workspace::open(folder.path()).unwrap());
        let directory = Arc::new(ShellDirectory::new(workspace.root().to_path_buf()));
        let env = ProcessEnv::new(std::env::vars_os(), &[]);
        let outputs = Arc::new(Outputs::new(folder.path().join("outputs")));
        let bash = Bash::new(workspace, directory, (env, outputs), timeout);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { folder, bash, runtime }
    }

    fn call(&self, mut input: Value) -> ToolOutcome {
        input["description"] = json!("test");
        let call = CallId("call_1".into());
        let context = ToolContext { call: &call, live: &() };
        self.runtime.block_on(self.bash.invoke(input, &context, &CancellationToken::new()))
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    #[track_caller]
    fn check(&self, command: &str, text: &str) {
        let output = self.call(json!({"command": command})).unwrap_or_else(|error| panic!("{command}: {error}"));
        assert_eq!(self.plain(&output.text), text, "{command}");
    }

    #[track_caller]
    fn check_error(&self, input: Value, code: ErrorCode, summary: &str, details: Option<&str>) -> ToolError {
        let error = self.call(input).unwrap_err();
        assert_eq!((error.code, self.plain(&error.summary).as_str()), (code, summary));
        assert_eq!(error.details.as_ref().map(|details| self.plain(details.as_str().unwrap())).as_deref(), details);
        error
    }

    /// Without the duration and the folder's name, which are new each time.
    fn plain(&self, text: &str) -> String {
        let text = text.replace(self.root().to_str().unwrap(), "ROOT");
        match text.rsplit_once(" · ") {
            Some((front, time)) if time.ends_with(" s") && !time.contains('\n') => format!("{front} · T"),
            _ => text,
        }
    }

    fn cwd(&self) -> PathBuf {
        let directory = self.bash.directory.get();
        directory.strip_prefix(self.root()).map(Path::to_path_buf).unwrap_or(directory)
    }
}

#[test]
fn output_and_exit_code_always_come() {
    let session = Session::new();
    session.check("echo a; echo b >&2", "a\nb\nexit code 0 · T");
    session.check("true", "(no output)\nexit code 0 · T");
    let command = |command: &str| json!({"command": command});
    session.check_error(command("echo a; exit 3"), ErrorCode::CommandFailed, "exit code 3 · T", Some("a"));
    session.check_error(command("exit 1"), ErrorCode::CommandFailed, "exit code 1 · T", None);
    session.check_error(command("kill -9 $$"), ErrorCode::CommandFailed, "ended by signal 9 (SIGKILL) · T", None);
    let nothing = "bash: line 1: no-such: command not found";
    session.check_error(command("no-such"), ErrorCode::CommandFailed, "exit code 127 · T", Some(nothing));
}

#[test]
fn notes_say_what_else_happened() {
    let session = Session::new();
    session.check("sleep 600 & echo a", "a\n[1 background process was ended with the call]\nexit code 0 · T");
    session.check(r"printf '\xff'", "\\xff\n[1 bytes that are not text are shown as \\xNN]\nexit code 0 · T");
}

#[test]
fn a_failing_command_keeps_start_and_end_of_its_output() {
    let session = Session::new();
    let error = session.call(json!({"command": "seq 1 100000; exit 1"})).unwrap_err();
    let text = agent::model_text(session.bash.spec.policy, &Err(error));
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("exit code 1 · ") && first.contains(" s · "), "{first}");
    assert!(text.contains("\n1\n2\n3\n"), "{text}");
    let kept = "\n100000\n[all 588895 bytes of output are kept: read_output with outputId o1]";
    assert!(text.contains("588895 bytes of output") && text.ends_with(kept), "{text}");
    assert!(text.len() <= SHORT_BYTES, "{}", text.len());
}

#[test]
fn a_time_out_says_so_and_keeps_the_output() {
    let session = Session::new();
    let input = json!({"command": "echo a; sleep 600", "timeoutSecs": 1});
    let error = session.check_error(input, ErrorCode::TimedOut, "timed out after 1 s and was ended · T", Some("a"));
    assert!(error.hint.contains("timeoutSecs"));
}

#[test]
fn a_time_out_that_no_clock_can_hold_is_the_longest_there_is() {
    let session = Session::with_timeout(Duration::from_secs(u64::MAX));
    session.check("echo a", "a\nexit code 0 · T");
    assert_eq!(session.bash.timeout, Duration::from_secs(MAX_TIMEOUT_SECS));
    let session = Session::with_timeout(Duration::ZERO);
    session.check("echo a", "a\nexit code 0 · T");
}

#[test]
fn cd_counts_for_the_next_call() {
    let session = Session::new();
    session.check("cd sub && pwd", "ROOT/sub\n[the next call runs in ROOT/sub]\nexit code 0 · T");
    session.check("pwd", "ROOT/sub\nexit code 0 · T");
    assert!(session.call(json!({"command": "cd deep; exit 3"})).is_err());
    assert_eq!(session.cwd(), Path::new("sub/deep"));
    session.check("set -Cx; cd ..", "+ cd ..\n[the next call runs in ROOT/sub]\nexit code 0 · T");
}

#[test]
fn a_subshell_a_killed_shell_and_an_own_trap_leave_the_directory_alone() {
    let session = Session::new();
    session.check("(cd sub)", "(no output)\nexit code 0 · T");
    assert!(session.call(json!({"command": "cd sub; kill -9 $$"})).is_err());
    session.check("trap 'echo bye' EXIT; cd sub", "bye\nexit code 0 · T");
    assert_eq!(session.cwd(), Path::new(""));
}

#[test]
fn a_directory_named_in_a_call_counts_for_that_call_alone() {
    let session = Session::new();
    let output = session.call(json!({"command": "pwd; cd deep", "cwd": "sub"})).unwrap();
    assert_eq!(session.plain(&output.text), "ROOT/sub\nexit code 0 · T");
    session.check("pwd", "ROOT\nexit code 0 · T");
    let input = json!({"command": "pwd", "cwd": "none"});
    session.check_error(input, ErrorCode::NotADirectory, "none is no directory", None);
}

#[test]
fn a_directory_that_is_gone_gives_way_to_the_root() {
    let session = Session::new();
    session.check("cd sub", "(no output)\n[the next call runs in ROOT/sub]\nexit code 0 · T");
    std::fs::remove_dir_all(session.folder.path().join("sub")).unwrap();
    let gone = "ROOT\n[ROOT/sub is no longer there; this ran in ROOT]\nexit code 0 · T";
    session.check("pwd", gone);
    session.check(
        "mkdir x; cd x; rmdir ../x",
        "(no output)\n[ROOT/sub is no longer there; this ran in ROOT]\nexit code 0 · T",
    );
}

#[test]
fn the_plan_shows_the_whole_command_in_one_piece_with_its_place() {
    let session = Session::new();
    let input = json!({"command": "echo a\nrm b", "cwd": "sub"});
    let plan = session.runtime.block_on(session.bash.plan(&input)).unwrap();
    assert_eq!(session.plain(&plan.detail), "echo a\nrm b\n(in ROOT/sub)");
    assert_eq!(plan.risks, ["`rm` deletes or overwrites files"]);
    let access = Access::Run { command: "echo a\nrm b".into(), cwd: session.root().join("sub") };
    assert_eq!(session.bash.access(&input), access);
    assert_eq!(session.bash.access(&json!({"cmd": 1})), Access::Nothing);
    let later = Access::Run { command: "ls".into(), cwd: session.root().join("later") };
    assert_eq!(session.bash.access(&json!({"command": "ls", "cwd": "later"})), later);
}

#[test]
fn what_cannot_be_started_says_why() {
    let session = Session::new();
    let zero = json!({"command": "echo \0"});
    assert_eq!(session.call(zero).unwrap_err().hint, "Send the command without zero bytes.");
    let long = json!({"command": "x".repeat(200_000)});
    assert_eq!(session.call(long).unwrap_err().hint, "Write the long part to a file, and run that.");
}
