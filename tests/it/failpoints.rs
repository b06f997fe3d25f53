//! The daemon dies at a named place, and whoever asks again gets the one answer.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use e2e::daemon::Home;
use serde_json::{Value, json};

#[test]
fn a_message_handed_in_again_after_a_crash_exists_once_wherever_the_crash_was() {
    for place in ["commit.before.turn.started", "commit.after.turn.started", "reply.before.turn/start"] {
        let mut home = Home::new();
        home.env.push(("AGENTD_FAILPOINTS".into(), format!("{place}=1*kill")));
        let mut daemon = home.start();
        let session = daemon.connect().session(&daemon.home.work());
        let start = json!({"sessionId": session, "input": "hello", "clientMessageId": "once"});
        let mut stream = UnixStream::connect(daemon.home.socket()).unwrap();
        let line = json!({"jsonrpc": "2.0", "id": 1, "method": "turn/start", "params": start});
        writeln!(stream, "{line}").unwrap();
        let mut answer = String::new();
        let _reset_or_end = BufReader::new(stream).read_line(&mut answer);
        assert_eq!(answer, "", "{place}: no answer came");
        assert_eq!(daemon.ended(), None, "{place}: it was killed");
        daemon.home.env.clear();
        let daemon = daemon.restart();
        let mut client = daemon.connect();
        let turns: HashSet<String> = (0..3).map(|_| client.ok("turn/start", &start)["turnId"].to_string()).collect();
        assert_eq!(turns.len(), 1, "{place}: the same receipt each time");
        let history = client.history(&session);
        let is_said = |event: &&Value| event["data"]["message"]["role"] == "user";
        assert_eq!(history.iter().filter(is_said).count(), 1, "{place}: said once");
    }
}

/// A home whose model reads two files, changes both with one call, and says "after".
fn home_that_changes(call: &Value) -> Home {
    let home = Home::new();
    home.write("a.txt", "one\n");
    home.write("b.txt", "three\n");
    let read = |path: &str| json!({"name": "read", "input": {"description": "look", "path": path}});
    let read = json!([read("a.txt"), read("b.txt")]);
    home.script(&json!({"steps": [[{"toolCalls": read}], [{"toolCalls": [call]}], [{"text": "after"}]]}));
    home
}

/// Kills the daemon at a place of a change of files, and lets the turn go on: the files are what the call was to make
/// of them, whether it had come so far or not, and the model is told so.
#[track_caller]
fn check_change(tool: &str, input: &Value, place: &str, expected: [&str; 2], words: &str) {
    let mut home = home_that_changes(&json!({"name": tool, "input": input}));
    home.env.push(("AGENTD_FAILPOINTS".into(), format!("{place}*kill")));
    let mut daemon = home.start();
    let mut client = daemon.connect();
    let new = json!({"cwd": daemon.home.work(), "mode": "accept-edits"});
    let session = client.ok("session/new", &new)["session"]["id"].as_str().unwrap().to_owned();
    let turn = client.ok("turn/start", &json!({"sessionId": session, "input": "go"}))["turnId"].clone();
    assert_eq!(daemon.ended(), None, "{tool} {place}: it was killed");
    daemon.home.env.clear();
    let daemon = daemon.restart();
    let mut client = daemon.connect();
    client.ok("turn/resume", &json!({"turnId": turn, "action": "continue"}));
    assert_eq!(client.ended(&session, &turn)["state"], "completed", "{tool} {place}");
    let content = |name: &str| std::fs::read_to_string(daemon.home.work().join(name)).unwrap_or_default();
    assert_eq!([content("a.txt"), content("b.txt")], expected, "{tool} {place}");
    let history = client.history(&session);
    let parts = history.iter().flat_map(|event| event["data"]["message"]["content"].as_array().into_iter().flatten());
    let result = parts.rev().find(|part| part["type"] == "tool_result").unwrap();
    assert!(result["content"].as_str().unwrap().contains(words), "{tool} {place}: {words:?} in {result}");
    let left: Vec<_> = std::fs::read_dir(daemon.home.work()).unwrap().map(|file| file.unwrap().file_name()).collect();
    let left = left.iter().filter(|name| name.to_string_lossy().starts_with('.'));
    assert_eq!(left.collect::<Vec<_>>(), Vec::<&std::ffi::OsString>::new(), "{tool} {place}: nothing is left beside");
}

#[test]
fn a_change_of_files_that_was_cut_off_is_settled_by_what_they_hold() {
    let write = json!({"description": "x", "path": "a.txt", "content": "two\n"});
    let edit = json!({"description": "x", "path": "a.txt", "oldString": "one", "newString": "two"});
    for (tool, input) in [("write", &write), ("edit", &edit)] {
        for place in ["file.written=1", "file.synced=1"] {
            check_change(tool, input, place, ["two\n", "three\n"], "interrupted before this took effect");
        }
        check_change(tool, input, "file.placed=1", ["two\n", "three\n"], "the files hold what the call was to leave");
    }
}

#[test]
fn a_patch_that_was_cut_off_between_its_files_says_what_each_of_them_holds() {
    let patch =
        "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-three\n+four\n";
    let input = json!({"description": "x", "patch": patch});
    check_change("apply_patch", &input, "file.written=1", ["two\n", "four\n"], "before this took effect");
    for place in ["file.placed=1", "file.written=2"] {
        let words = "a.txt: as the call was to leave it\n";
        check_change("apply_patch", &input, place, ["two\n", "three\n"], words);
    }
    check_change("apply_patch", &input, "file.placed=2", ["two\n", "four\n"], "the files hold what");
}
