//! Searching real files, within the caps.

use foundation::ErrorCode;
use serde_json::{Value, json};

use crate::tools::testing::{Bench, bench};

#[track_caller]
fn check(bench: &Bench, input: Value, expected: &str) {
    assert_eq!(bench.call("grep", input).unwrap().text, expected);
}

#[test]
fn matches_come_with_path_line_and_text() {
    let bench = bench();
    bench.put("a.rs", "fn one() {}\nfn two() {}\n").put("sub/b.txt", "one\r\nfn\r\n");
    check(&bench, json!({"pattern": "one"}), "a.rs:1:fn one() {}\nsub/b.txt:1:one\n[2 matches]\n");
    check(&bench, json!({"pattern": "^fn$"}), "sub/b.txt:2:fn\n[1 match]\n");
    check(&bench, json!({"pattern": "fn", "path": "sub"}), "sub/b.txt:2:fn\n[1 match]\n");
    check(&bench, json!({"pattern": "two", "path": "a.rs"}), "a.rs:2:fn two() {}\n[1 match]\n");
    check(&bench, json!({"pattern": "none"}), "[no line in . matches none]\n");
    check(
        &bench,
        json!({"pattern": "fn", "limit": 1}),
        "a.rs:1:fn one() {}\n[1 of 3 matches shown: use a narrower pattern, path or glob]\n",
    );
}

#[test]
fn patterns_that_look_like_options_are_patterns() {
    let bench = bench();
    bench.put("a", "--pre=sh\n-->\n-e\n");
    bench.put("run.sh", format!("touch {}\n", bench.base.join("ran").display()));
    check(&bench, json!({"pattern": "--pre=sh"}), "a:1:--pre=sh\n[1 match]\n");
    check(&bench, json!({"pattern": "-->"}), "a:2:-->\n[1 match]\n");
    check(&bench, json!({"pattern": "-e"}), "a:3:-e\n[1 match]\n");
    assert!(!bench.base.join("ran").exists());
}

#[test]
fn case_matters_when_the_pattern_has_upper_case_or_it_is_asked() {
    let bench = bench();
    bench.put("a", "Word\nword\n");
    check(&bench, json!({"pattern": "word"}), "a:1:Word\na:2:word\n[2 matches]\n");
    check(&bench, json!({"pattern": "Word"}), "a:1:Word\n[1 match]\n");
    check(&bench, json!({"pattern": "word", "caseSensitive": true}), "a:2:word\n[1 match]\n");
    check(&bench, json!({"pattern": "WORD", "caseSensitive": false}), "a:1:Word\na:2:word\n[2 matches]\n");
}

#[test]
fn context_lines_stand_round_each_match() {
    let bench = bench();
    bench.put("a", "1\n2\nx\n4\n5\n6\nx\n8\n");
    let expected = "a-2-2\na:3:x\na-4-4\n--\na-6-6\na:7:x\na-8-8\n[2 matches]\n";
    check(&bench, json!({"pattern": "x", "context": 1}), expected);
}

#[test]
fn ignored_hidden_and_binary_files_are_left_out() {
    let bench = bench();
    bench.put(".gitignore", "target\n*.log\n").put("target/x", "word\n").put("a.log", "word\n").put(".env", "word\n");
    bench
        .put("bin", b"word\n\0word\n")
        .put("late", [b"word\n".repeat(20_000).as_slice(), b"\0"].concat())
        .put("ok", "word\n");
    check(&bench, json!({"pattern": "word"}), "ok:1:word\n[1 match]\n");
    check(&bench, json!({"pattern": "word", "glob": ".env"}), ".env:1:word\n[1 match]\n");
    check(&bench, json!({"pattern": "word", "path": "a.log"}), "a.log:1:word\n[1 match]\n");
    check(&bench, json!({"pattern": "word", "path": "bin"}), "[bin is a binary file and was not searched]\n");
}

#[test]
fn a_glob_chooses_the_files() {
    let bench = bench();
    bench.put("a.rs", "w\n").put("s/b.rs", "w\n").put("s/t/c.ts", "w\n");
    check(&bench, json!({"pattern": "w", "glob": "*.rs"}), "a.rs:1:w\ns/b.rs:1:w\n[2 matches]\n");
    check(&bench, json!({"pattern": "w", "glob": "s/*.rs"}), "s/b.rs:1:w\n[1 match]\n");
    check(&bench, json!({"pattern": "w", "glob": "*.{ts,js}"}), "s/t/c.ts:1:w\n[1 match]\n");
    check(&bench, json!({"pattern": "w", "glob": "!*.rs"}), "s/t/c.ts:1:w\n[1 match]\n");
    bench.refused("grep", json!({"pattern": "w", "glob": "{a"}), ErrorCode::PatternInvalid);
}

#[test]
fn other_encodings_are_searched() {
    let bench = bench();
    bench.put("le", b"\xff\xfew\0o\0r\0d\0\n\0").put("latin", b"caf\xe9 word\n").put("mark", b"\xef\xbb\xbfword\n");
    let expected = "latin:1:caf\u{fffd} word\nle:1:word\nmark:1:word\n[3 matches]\n";
    check(&bench, json!({"pattern": "word"}), expected);
    check(&bench, json!({"pattern": "^word", "path": "mark"}), "mark:1:word\n[1 match]\n");
}

#[test]
fn long_lines_are_clipped_and_drop_no_others() {
    let bench = bench();
    bench.put("a.json", format!("{}needle{}\nneedle\n", "é".repeat(1_000_000), "x".repeat(3_000_000)));
    let text = bench.call("grep", json!({"pattern": "needle"})).unwrap().text;
    assert!(
        text.len() < 1_000 && text.contains("éneedlex") && text.ends_with("\na.json:2:needle\n[2 matches]\n"),
        "{text}"
    );
}

#[test]
fn caps_hold_while_the_total_is_counted() {
    let bench = bench();
    bench.put("a", "word\n".repeat(5_000)).put("b", "word\n");
    let text = bench.call("grep", json!({"pattern": "word"})).unwrap().text;
    assert!(
        text.ends_with("a:200:word\n[200 of 5,001 matches shown: use a narrower pattern, path or glob]\n"),
        "{text}"
    );
    let text = bench.call("grep", json!({"pattern": "word", "context": 3, "path": "a"})).unwrap().text;
    assert!(text.lines().count() <= 251 && text.contains("of 5,000 matches shown"));
    bench.put("a", format!("word {}\n", "x".repeat(300)).repeat(500));
    let text = bench.call("grep", json!({"pattern": "word", "path": "a"})).unwrap().text;
    assert!(text.len() <= 12_000 && text.contains("of 500 matches shown"), "{}", text.len());
}

#[test]
fn bad_patterns_show_the_place_and_a_way_out() {
    let bench = bench();
    for (pattern, word) in
        [("foo(", r"foo\("), ("(?=x)", "context"), (r"a\nb", "one by one"), ("", "look for"), ("[", r"\[")]
    {
        let error = bench.refused("grep", json!({"pattern": pattern}), ErrorCode::PatternInvalid);
        assert!(error.hint.contains(word), "{pattern}: {error}");
    }
    bench.refused("grep", json!({"pattern": "x", "path": "none"}), ErrorCode::NotFound);
    bench.refused("grep", json!({"pattern": "x", "path": "/dev/zero"}), ErrorCode::NotAFile);
    bench.cancel.cancel();
    bench.refused("grep", json!({"pattern": "x"}), ErrorCode::Cancelled);
}
