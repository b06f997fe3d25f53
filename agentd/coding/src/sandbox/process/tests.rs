//! Commands of the nasty kind. After each, no process of it is there; that is counted here in its own way.

use std::sync::Mutex;

use super::*;

/// Runs `script` and returns what came of it, after checking that nothing of it is left.
///
/// The script's first line of output is its mark, which is taken off.
#[track_caller]
fn run_for(timeout: Duration, script: &str, cancel_on: &str) -> (Run, String) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let cancel = CancellationToken::new();
    let live = Watching::new(cancel_on, &cancel);
    let env = ProcessEnv::new(std::env::vars_os(), &[]).owned_by("test");
    let script = format!("echo $AGENTD_CALL\n{script}");
    let call = CallId("call_1".into());
    let cwd = tempfile::tempdir().unwrap();
    let kept = tempfile::tempdir().unwrap();
    let outputs = Arc::new(Outputs::new(kept.path().into()));
    let command = Command { script: &script, cwd: cwd.path(), env: &env, timeout, call: &call, outputs: &outputs };
    let run = runtime.block_on(run(command, &live, &cancel)).unwrap();
    if let Some(cancelled) = *live.cancelled.lock().unwrap() {
        // A second is the promise; the other is for a machine that does much else.
        assert!(cancelled.elapsed() < Duration::from_secs(2), "{script}: {:?}", cancelled.elapsed());
    }
    let (mark, output) = run.output.text.split_once('\n').unwrap();
    assert!(mark.starts_with("test.call_"), "{mark}");
    assert_eq!(alive(mark), Vec::<String>::new(), "processes are left of: {script}");
    let output = output.to_owned();
    (run, output)
}

#[track_caller]
fn check(script: &str, ending: Ending, output: &str) -> Run {
    let (run, text) = run_for(Duration::from_secs(60), script, "");
    assert_eq!((run.ending, text.as_str(), run.unkillable), (ending, output, 0), "{script}");
    assert!(run.duration < Duration::from_secs(5), "{script}: {:?}", run.duration);
    run
}

/// The command lines of processes whose environment holds the mark.
fn alive(mark: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let read = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
        // A zombie's environment reads as empty, so it does not count.
        if String::from_utf8_lossy(&read("environ")).contains(mark) {
            found.push(String::from_utf8_lossy(&read("cmdline")).replace('\0', " "));
        }
    }
    found
}

struct Watching {
    seen: Mutex<Vec<u8>>,
    cancel_on: String,
    cancel: CancellationToken,
    cancelled: Mutex<Option<Instant>>,
}

impl Watching {
    fn new(cancel_on: &str, cancel: &CancellationToken) -> Self {
        let cancel = cancel.clone();
        Self { seen: Mutex::default(), cancel_on: cancel_on.into(), cancel, cancelled: Mutex::default() }
    }
}

impl LiveOutput for Watching {
    fn append(&self, _: &CallId, bytes: &[u8]) {
        let mut seen = self.seen.lock().unwrap();
        seen.extend_from_slice(bytes);
        if !self.cancel_on.is_empty() && String::from_utf8_lossy(&seen).contains(&self.cancel_on) {
            self.cancel.cancel();
            self.cancelled.lock().unwrap().get_or_insert_with(Instant::now);
        }
    }
}

#[test]
fn a_command_ends_with_its_own_code_or_signal() {
    check("echo hi", Ending::Exit(0), "hi\n");
    check("exit 3", Ending::Exit(3), "");
    check("kill -9 $$", Ending::Signal(9), "");
    check("no-such-program 2>/dev/null", Ending::Exit(127), "");
}

#[test]
fn both_outputs_come_in_their_order() {
    check("echo a; echo b >&2; echo c; echo d >&2", Ending::Exit(0), "a\nb\nc\nd\n");
}

#[test]
fn a_background_child_neither_holds_the_call_nor_outlives_it() {
    assert_eq!(check("sleep 600 & echo ok", Ending::Exit(0), "ok\n").left_behind, 1);
    assert_eq!(check("sleep 600 >/dev/null 2>&1 & echo ok", Ending::Exit(0), "ok\n").left_behind, 1);
    assert_eq!(check("nohup setsid sleep 600 >/dev/null 2>&1 & echo ok", Ending::Exit(0), "ok\n").left_behind, 1);
    assert_eq!(check("(setsid sh -c 'sleep 600 & sleep 600 &' &); echo ok", Ending::Exit(0), "ok\n").unkillable, 0);
    check("(trap '' TERM HUP; while :; do sleep 0.2; done) & echo ok", Ending::Exit(0), "ok\n");
    check("(kill -STOP $BASHPID) & echo ok", Ending::Exit(0), "ok\n");
}

#[test]
fn a_background_child_that_floods_the_pipe_does_not_hold_the_call() {
    let (run, _) = run_for(Duration::from_secs(60), "yes & exit 4", "");
    assert_eq!((run.ending, run.left_behind), (Ending::Exit(4), 1));
    assert!(run.duration < Duration::from_secs(5), "{:?}", run.duration);
}

#[test]
fn output_that_is_still_under_way_when_the_shell_ends_is_kept() {
    let late = "(read -t 0.05 < <(sleep 1); echo late) & exit 0";
    let (_, output) = run_for(Duration::from_secs(60), late, "");
    assert_eq!(output, "late\n");
}

#[test]
fn five_megabytes_keep_their_start_and_their_end() {
    let (run, output) = run_for(Duration::from_secs(60), "seq 1 800000", "");
    assert_eq!(run.ending, Ending::Exit(0));
    assert!(run.output.total > 5_000_000);
    assert!(output.starts_with("1\n2\n") && output.ends_with("\n799999\n800000\n"));
}

#[test]
fn bytes_that_are_not_text_are_shown_and_counted() {
    let run = check(r"printf 'ok\xf0\xff\x00end'", Ending::Exit(0), "ok\\xf0\\xff\\x00end");
    assert_eq!(run.output.escaped, 3);
}

#[test]
fn nothing_waits_for_a_person() {
    check("cat; read x; echo $?", Ending::Exit(0), "1\n");
    check("(read x < /dev/tty) 2>/dev/null; echo $?", Ending::Exit(0), "1\n");
}

#[test]
fn a_broken_pipe_ends_its_writer() {
    check("yes | head -1; echo ${PIPESTATUS[0]}", Ending::Exit(0), "y\n141\n");
}

#[test]
fn a_time_out_ends_the_whole_tree() {
    let term_ignoring = "trap '' TERM; (trap '' TERM; sleep 600) & setsid sleep 600 & bash -c 'sleep 600 & sleep 600'";
    for script in ["sleep 600", "sleep 600 | sleep 600", "kill -STOP $$", term_ignoring] {
        let (run, _) = run_for(Duration::from_millis(200), script, "");
        assert_eq!((run.ending, run.unkillable), (Ending::TimedOut, 0), "{script}");
        assert!(run.duration < Duration::from_secs(4), "{script}: {:?}", run.duration);
    }
}

#[test]
fn what_a_command_says_while_it_is_ended_is_kept() {
    let script = "trap 'echo bye; exit 1' TERM; while :; do read -t 9 < <(sleep 99); done";
    let (run, output) = run_for(Duration::from_millis(300), script, "");
    assert_eq!((run.ending, output.as_str()), (Ending::TimedOut, "bye\n"));
}

#[test]
fn two_hundred_forks_are_ended_like_one() {
    let forks = "for i in $(seq 200); do (trap '' TERM; exec setsid nohup sleep 600) & done; echo ready; sleep 600";
    let (run, _) = run_for(Duration::from_secs(60), forks, "ready");
    assert_eq!((run.ending, run.unkillable), (Ending::Cancelled, 0));
}

#[test]
fn a_cancel_ends_the_whole_tree_within_a_second() {
    let term_ignoring = "trap '' TERM; (trap '' TERM; sleep 600) & setsid sleep 600 & echo ready; sleep 600";
    for script in ["echo ready; sleep 600", "echo ready; yes", term_ignoring] {
        let (run, _) = run_for(Duration::from_secs(60), script, "ready");
        assert_eq!((run.ending, run.unkillable), (Ending::Cancelled, 0), "{script}");
    }
}

#[test]
fn a_dropped_call_takes_its_processes_with_it() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ready = CancellationToken::new();
    let live = Watching::new("ready", &ready);
    let env = ProcessEnv::new(std::env::vars_os(), &[]).owned_by("test");
    let call = CallId("call_1".into());
    let script = "echo $AGENTD_CALL; setsid sleep 600 & echo ready; sleep 600";
    let outputs = Arc::new(Outputs::new("/nowhere".into()));
    let command = Command {
        script,
        cwd: Path::new("/"),
        env: &env,
        timeout: Duration::from_secs(60),
        call: &call,
        outputs: &outputs,
    };
    let never = CancellationToken::new();
    runtime.block_on(async {
        tokio::select! {
            _ = run(command, &live, &never) => unreachable!("it sleeps"),
            () = ready.cancelled() => {}
        }
    });
    let seen = String::from_utf8(live.seen.into_inner().unwrap()).unwrap();
    let mark = seen.lines().next().unwrap();
    // A kill is delivered at once but carried out by the killed one; it is waited for, not slept for.
    let patience = std::time::Instant::now() + Duration::from_secs(5);
    while !alive(mark).is_empty() {
        assert!(std::time::Instant::now() < patience, "left: {:?}", alive(mark));
        std::thread::yield_now();
    }
}

#[test]
fn a_command_sees_neither_keys_nor_the_daemons_own_variables() {
    let (_, output) = run_for(Duration::from_secs(60), "env | cut -d= -f1 | sort", "");
    let allowed = ["AGENTD_CALL", "GIT_PAGER", "GIT_TERMINAL_PROMPT", "OLDPWD", "PAGER", "PWD", "SHLVL", "TERM", "_"];
    for name in output.lines() {
        let passed = super::super::env::ProcessEnv::new([(name.into(), "x".into())], &[]);
        let listed = passed.iter().any(|(have, value)| have == name && value == "x");
        assert!(listed || allowed.contains(&name), "{name}");
    }
}
