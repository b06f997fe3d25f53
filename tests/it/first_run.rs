//! What a newcomer does first: no key, no settings, no daemon.

use e2e::daemon::Home;
use serde_json::json;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn one_command_starts_the_daemon_reads_a_real_file_and_answers() {
    let home = Home::new();
    home.write("Cargo.toml", "[workspace]\nmembers = [\"the-canary\"]\n");
    let run = home.ctl(&["run", "read Cargo.toml"]);
    let (out, err) = (text(&run.stdout), text(&run.stderr));
    assert_eq!(run.status.code(), Some(0), "{out}\n{err}");
    assert!(out.contains("members = [\"the-canary\"]"), "the file's content is in the answer: {out}");
    assert!(err.contains("read"), "the tool is shown: {err}");
    assert!(err.to_lowercase().contains("offline"), "a line says that the offline model answered: {err}");
    assert!(err.contains("started"), "a line says that a daemon was started: {err}");
    let again = home.ctl(&["run", "read Cargo.toml"]);
    assert!(!text(&again.stderr).contains("started agentd"), "the second run finds the daemon");
}

#[test]
fn a_person_who_switches_off_what_is_not_built_is_told_that_it_does_not_hold() {
    let home = Home::new();
    home.settings(&json!({"sandbox": {"network": "off"}}));
    home.write("Cargo.toml", "[workspace]\n");
    let told = "`sandbox.network` has no effect in this version";
    let run = home.ctl(&["run", "read Cargo.toml"]);
    let err = text(&run.stderr);
    assert!(run.status.success() && err.contains(told), "{err}");
    assert!(text(&std::fs::read(home.log()).unwrap()).contains(told), "the daemon's log has it too");
    let explained = text(&home.ctl(&["config", "sandbox.network"]).stdout);
    assert!(explained.contains("! sandbox.network: no effect in this version"), "{explained}");
}

#[test]
fn the_offline_dialogue_reads_package_json_and_sums_it_up() {
    let home = Home::new();
    home.write("package.json", "{\n  \"name\": \"sample\",\n  \"version\": \"1.2.3\"\n}\n");
    let mut daemon = home.start();
    let work = daemon.home.work();
    let mut client = daemon.connect();
    for prompt in ["读取 package.json", "read package.json", "show file \"package.json\""] {
        let session = client.session(&work);
        assert_eq!(client.turn(&session, prompt)["state"], "completed", "{prompt}");
        let history = client.history(&session);
        let types: Vec<&str> = history.iter().map(|event| event["type"].as_str().unwrap()).collect();
        let spoken: Vec<&str> =
            types.iter().copied().filter(|kind| ["message", "tool.started", "tool.finished"].contains(kind)).collect();
        assert_eq!(spoken, ["message", "message", "tool.started", "tool.finished", "message", "message"], "{prompt}");
        let messages: Vec<_> = history.iter().filter(|event| event["type"] == "message").collect();
        let roles: Vec<_> = messages.iter().map(|event| event["data"]["message"]["role"].clone()).collect();
        assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
        let answer = messages[3]["data"]["message"].to_string();
        assert!(answer.contains("1.2.3"), "{prompt}: {answer}");
    }
    // A file that is not there: a structured error, an answer in words, and no call left open.
    let session = client.session(&work);
    assert_eq!(client.turn(&session, "read missing.json")["state"], "completed");
    let history = client.history(&session);
    let finished = history.iter().find(|event| event["type"] == "tool.finished").unwrap();
    assert_eq!(finished["data"]["code"], "NOT_FOUND");
    assert_eq!(daemon.terminate(), Some(0));
}
