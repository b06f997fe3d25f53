//! The strict reading, compared with tables and with bash itself.

use std::time::Duration;

use foundation::CallId;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::sandbox::{Command, ProcessEnv, run};

#[test]
fn one_command_of_plain_words_is_read() {
    let cases: &[(&str, &[&str])] = &[
        ("ls", &["ls"]),
        ("  git  log\t-p ", &["git", "log", "-p"]),
        ("git commit -m 'a b'", &["git", "commit", "-m", "a b"]),
        (r#"git commit -m "it's; fine > ok""#, &["git", "commit", "-m", "it's; fine > ok"]),
        ("echo '$HOME'", &["echo", "$HOME"]),
        ("cargo test --jobs=2", &["cargo", "test", "--jobs=2"]),
        ("echo a''b", &["echo", "ab"]),
        ("echo ''", &["echo", ""]),
        ("./build.sh é", &["./build.sh", "é"]),
    ];
    for (command, words) in cases {
        assert_eq!(plain_words(command).as_deref(), Some(&words.map_to_strings()[..]), "{command}");
    }
}

trait MapToStrings {
    fn map_to_strings(&self) -> Vec<String>;
}

impl MapToStrings for &[&str] {
    fn map_to_strings(&self) -> Vec<String> {
        self.iter().map(ToString::to_string).collect()
    }
}

#[test]
fn anything_else_is_not_plain() {
    let cases = [
        "",
        " ",
        "ls; rm x",
        "ls && rm x",
        "ls || rm x",
        "ls | head",
        "ls & rm x",
        "ls &",
        "ls\nrm x",
        "ls\r\nrm x",
        "(ls)",
        "{ ls; }",
        "ls > x",
        "ls < x",
        "ls 2>&1",
        "ls $HOME",
        "ls `pwd`",
        "ls $(pwd)",
        "ls \"$HOME\"",
        "ls \"`pwd`\"",
        "ls \"a\\b\"",
        "ls *",
        "ls ?",
        "ls [a]",
        "ls {a,b}",
        "ls ~",
        "ls \\;",
        "ls # x",
        "! ls",
        "A=1 ls",
        "PATH=./x:$PATH ls",
        "'ls'",
        "\"ls\" x",
        "l''s",
        "l\\s",
        "$'\\x6cs'",
        "ls 'a",
        "ls \"a",
        "if true",
        "export A=1",
        "ls\u{a0}x",
        "ls\u{2028}rm x",
        "ls \u{202e}x",
        "ls a\u{200b}b",
        "ls 'a\nb'",
        "ls \u{1b}[2K",
        "ls '\u{2003}'",
        "{ls,x}",
        "ls ^a^b",
    ];
    for command in cases {
        assert_eq!(plain_words(command), None, "{command:?}");
    }
}

#[test]
fn runners_are_known_by_any_of_their_names() {
    for program in ["sh", "/bin/sh", "env", "python3", "python3.12", "sudo", "xargs", "node", "../bash"] {
        assert!(is_runner(program), "{program}");
    }
    for program in ["git", "ls", "cargo", "sha256sum", "envsubst"] {
        assert!(!is_runner(program), "{program}");
    }
}

/// Lines in which everything that means something to a shell comes up often.
fn lines() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-c=./:,@%+-]{1,3}",
        3 => Just(" ".to_owned()),
        1 => Just("\t".to_owned()),
        2 => "'[a-c$`;\"\\\\ ]{0,3}'",
        2 => "\"[a-c;'| ]{0,3}\"",
        1 => "[;&|<>$`(){}*?\\[\\]#!~^\\\\'\"]",
    ];
    prop::collection::vec(piece, 1..8).prop_map(|pieces| pieces.concat())
}

#[test]
fn bash_reads_a_plain_line_as_the_same_words() {
    let mut runner = TestRunner::deterministic();
    let lines = lines();
    let mut sample = || lines.new_tree(&mut runner).unwrap().current();
    let plain: Vec<_> = (0..1500).map(|_| sample()).filter_map(|line| Some((plain_words(&line)?, line))).collect();
    assert!(plain.len() > 100, "{}", plain.len());
    let print = r#"; printf "%s\n" $# "$@""#;
    let script: String = plain.iter().map(|(_, line)| format!("set -- {line}{print}\n")).collect();
    let expected: String = plain.iter().map(|(words, _)| format!("{}\n{}\n", words.len(), words.join("\n"))).collect();
    assert_eq!(output_of(&script), expected);
}

fn output_of(script: &str) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let env = ProcessEnv::new(std::env::vars_os(), &[]);
    let (call, timeout) = (CallId("call_1".into()), Duration::from_secs(60));
    let folder = tempfile::tempdir().unwrap();
    let outputs = std::sync::Arc::new(crate::outputs::Outputs::new(folder.path().join("outputs")));
    let command = Command { script, cwd: folder.path(), env: &env, timeout, call: &call, outputs: &outputs };
    runtime.block_on(run(command, &(), &CancellationToken::new())).unwrap().output.text
}

proptest! {
    #[test]
    fn what_is_plain_to_the_strict_is_one_run_to_the_lenient(line in lines()) {
        if let Some(words) = plain_words(&line) {
            prop_assert!(commands(&line).contains(&words), "{line:?}");
        }
    }

    #[test]
    fn no_line_is_too_strange(line in ".*") {
        drop((plain_words(&line), commands(&line), risks(&line)));
    }
}
