//! The life of a daemon among its clients: found, started once, found again, and nobody else's.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

use e2e::daemon::{Daemon, Home};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn signal(daemon: &Daemon, signal: Signal) {
    kill_process(Pid::from_raw(daemon.pid()).unwrap(), signal).unwrap();
}

/// How often a daemon came to listen in this home.
fn starts(home: &Home) -> usize {
    text(&fs::read(home.log()).unwrap()).matches(": listening ").count()
}

#[test]
fn a_client_right_after_a_crash_gets_a_new_daemon() {
    let mut daemon = Daemon::start();
    let session = daemon.connect().session(&daemon.home.work());
    daemon.kill();
    let listed = daemon.home.ctl(&["ls", "--json"]);
    assert!(listed.status.success(), "{}", text(&listed.stderr));
    assert!(text(&listed.stdout).contains(&session), "{}", text(&listed.stdout));
    assert_eq!(starts(&daemon.home), 2);
}

#[test]
fn twenty_clients_at_once_start_one_daemon() {
    let home = Home::new();
    let listing = || home.command("agentctl").arg("ls").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let all: Vec<Child> = (0..20).map(|_| listing()).collect();
    let all: Vec<Output> = all.into_iter().map(|one| one.wait_with_output().unwrap()).collect();
    for one in &all {
        assert!(one.status.success(), "{}", text(&one.stderr));
    }
    let started = all.iter().filter(|one| text(&one.stderr).contains("agentd started (pid ")).count();
    assert_eq!((started, starts(&home)), (1, 1));
}

/// A directory in the workspace whose path has this many bytes.
fn long(home: &Home, bytes: usize) -> PathBuf {
    let base = home.work().join("r");
    let path = PathBuf::from(format!("{}{}", base.display(), "x".repeat(bytes - base.as_os_str().len())));
    fs::create_dir(&path).unwrap();
    path
}

/// Runs a client, and a daemon by hand, with this runtime directory: both fail at once and say the same.
#[track_caller]
fn check_refused(mut home: Home, runtime: &Path, told: &[&str]) {
    home.env.push(("XDG_RUNTIME_DIR".into(), runtime.display().to_string()));
    for program in ["agentctl", "agentd"] {
        let mut command = home.command(program);
        let ended = if program == "agentctl" { command.arg("ls").output() } else { command.output() }.unwrap();
        let said = text(&ended.stderr);
        assert!(!ended.status.success(), "{program}: {said}");
        assert!(told.iter().all(|words| said.contains(words)), "{program} should say {told:?}: {said}");
    }
}

#[test]
fn a_runtime_directory_that_cannot_hold_a_socket_is_named_by_both_sides() {
    for bytes in [100, 150] {
        let home = Home::new();
        let runtime = long(&home, bytes);
        let (length, path) = (format!("has {} bytes", bytes + 19), runtime.display().to_string());
        check_refused(home, &runtime, &[&path, &length, "107", "AGENTD_SOCKET"]);
    }
    // One that nobody can write, not even root; one that others can; a link to one of our own; somebody else's.
    check_refused(Home::new(), Path::new("/proc/self"), &["/proc/self/agentd", "AGENTD_SOCKET"]);
    let home = Home::new();
    let open = home.work().join("open");
    fs::create_dir_all(open.join("agentd")).unwrap();
    fs::set_permissions(open.join("agentd"), fs::Permissions::from_mode(0o777)).unwrap();
    check_refused(home, &open, &["others can write it", "AGENTD_SOCKET"]);
    let home = Home::new();
    fs::create_dir_all(home.work().join("runtime")).unwrap();
    fs::create_dir_all(home.work().join("elsewhere")).unwrap();
    symlink(home.work().join("elsewhere"), home.work().join("runtime/agentd")).unwrap();
    let runtime = home.work().join("runtime");
    check_refused(home, &runtime, &["AGENTD_SOCKET"]);
    if rustix::process::geteuid().is_root() {
        let home = Home::new();
        let theirs = home.work().join("theirs");
        fs::create_dir_all(theirs.join("agentd")).unwrap();
        std::os::unix::fs::chown(theirs.join("agentd"), Some(65_534), None).unwrap();
        check_refused(home, &theirs, &["belongs to uid 65534", "AGENTD_SOCKET"]);
    }
}

#[test]
fn client_and_daemon_look_in_the_same_place_whatever_is_set() {
    // The longest that fits, none at all, and values that count as none.
    let home = Home::new();
    let longest = long(&home, 107 - "/agentd/agentd.sock".len());
    for runtime in [Some(longest.display().to_string()), None, Some(String::new()), Some("relative".to_owned())] {
        let mut home = Home::new();
        home.env.extend(runtime.clone().map(|runtime| ("XDG_RUNTIME_DIR".into(), runtime)));
        let socket = match &runtime {
            Some(set) if set.starts_with('/') => longest.join("agentd/agentd.sock"),
            _ => home.socket(),
        };
        let started = home.ctl(&["daemon", "start"]);
        assert!(started.status.success(), "{runtime:?}: {}", text(&started.stderr));
        assert!(fs::symlink_metadata(&socket).unwrap().file_type().is_socket(), "{runtime:?}");
        let by_hand = home.command("agentd").output().unwrap();
        assert_eq!(by_hand.status.code(), Some(75), "{runtime:?}: {}", text(&by_hand.stderr));
        assert!(home.ctl(&["daemon", "stop"]).status.success());
        assert!(!socket.exists(), "{runtime:?}: the socket goes with its daemon");
    }
}

#[test]
fn a_log_out_that_clears_the_runtime_directory_ends_no_turn_and_starts_no_second_daemon() {
    let home = Home::new();
    home.script(&json!({"steps": [[{"text": "a"}, {"stallMs": 60_000}]]}));
    let daemon = home.start();
    let mut client = daemon.connect();
    let session = client.session(&daemon.home.work());
    client.ok("turn/start", &json!({"sessionId": session, "input": "go"}));
    signal(&daemon, Signal::HUP);
    fs::remove_dir_all(daemon.home.socket().parent().unwrap()).unwrap();
    let listed = daemon.home.ctl(&["ls", "--json"]);
    assert!(listed.status.success(), "{}", text(&listed.stderr));
    assert!(text(&listed.stdout).contains("\"running\""), "{}", text(&listed.stdout));
    assert!(!text(&listed.stderr).contains("agentd started"), "{}", text(&listed.stderr));
    assert_eq!(starts(&daemon.home), 1);
    // Who was there before is still served, by the same process.
    let status = client.ok("daemon/status", &json!({}));
    assert_eq!(status["pid"], daemon.pid());
    assert_eq!(client.ok("session/get", &json!({"sessionId": session}))["session"]["status"], "running");
}

/// The modes of a directory and of all that is in it.
fn modes(path: &Path, found: &mut Vec<(PathBuf, bool, u32)>) {
    let file = fs::symlink_metadata(path).unwrap();
    found.push((path.to_owned(), file.is_dir(), file.permissions().mode() & 0o7777));
    if file.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| modes(&entry.unwrap().path(), found));
    }
}

#[test]
fn all_that_is_kept_is_its_owners_alone_whatever_the_umask_is() {
    let home = Home::new();
    home.write("note.txt", "n\n");
    let open = |program: &str, rest: &str| {
        let own = home.command(program);
        let line = format!("umask 000 && exec {} {rest}", own.get_program().display());
        let mut shell = e2e::command("/bin/sh");
        shell.args(["-c", &line]).current_dir(home.work()).env_clear().envs(home.environment());
        let ended = shell.output().unwrap();
        assert!(ended.status.success(), "{rest}: {}", text(&ended.stderr));
    };
    open("agentctl", "run 'read note.txt'");
    let mut found = Vec::new();
    modes(&home.state(), &mut found);
    let names: Vec<String> = found.iter().map(|(path, ..)| path.display().to_string()).collect();
    for name in
        ["agentd.db", "agentd.db-wal", "agentd.reserve", "agentd.lock", "start.lock", "agentd.log", "agentd.sock"]
    {
        assert!(names.iter().any(|path| path.ends_with(name)), "{name} is missed in {names:?}");
    }
    assert!(home.ctl(&["daemon", "stop"]).status.success());
    // Again over what is there, and a restore: copies are as private as what they are copies of.
    fs::copy(home.state().join("agentd.db"), home.work().join("copy.db")).unwrap();
    fs::set_permissions(home.work().join("copy.db"), fs::Permissions::from_mode(0o666)).unwrap();
    open("agentd", &format!("restore --from {}", home.work().join("copy.db").display()));
    open("agentctl", "run 'read note.txt'");
    modes(&home.state(), &mut found);
    for (path, is_dir, mode) in found {
        let private = if is_dir { 0o700 } else { 0o600 };
        assert_eq!(mode, private, "{} has mode {mode:o}", path.display());
    }
}

#[test]
fn a_state_directory_on_a_network_file_system_is_refused_and_not_touched() {
    let mut daemon = Daemon::start();
    daemon.connect().session(&daemon.home.work());
    daemon.terminate();
    let before = fs::read(daemon.home.state().join("agentd.db")).unwrap();
    daemon.home.env.push(("AGENTD_FAILPOINTS".into(), "state.is_nfs=1*eio".into()));
    let refused = daemon.home.ctl(&["ls"]);
    let (said, state) = (text(&refused.stderr), daemon.home.state().display().to_string());
    assert!(!refused.status.success());
    for words in ["network file system (nfs)", "XDG_STATE_HOME", &state] {
        assert!(said.contains(words), "{said}");
    }
    let by_hand = daemon.home.command("agentd").output().unwrap();
    assert_eq!(by_hand.status.code(), Some(74));
    assert!(fs::read(daemon.home.state().join("agentd.db")).unwrap() == before, "the database is as it was");
}
