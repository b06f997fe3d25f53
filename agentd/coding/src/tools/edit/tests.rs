//! Edits on real files, byte for byte.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use foundation::ErrorCode;
use serde_json::{Value, json};

use crate::tools::testing::bench;

fn input(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "oldString": old, "newString": new})
}

#[track_caller]
fn check(content: &[u8], old: &str, new: &str, expected: &[u8]) {
    let bench = bench();
    bench.seen("a", content).call("edit", input("a", old, new)).unwrap();
    bench.has("a", expected);
    assert_eq!(bench.names(), ["a"]);
}

#[test]
fn everything_outside_the_edit_stays_byte_for_byte() {
    check(b"a\r\nb\nc\r\n", "b\nc", "B\nC", b"a\r\nB\nC\r\n");
    check(b"a\r\nb\r\nc\r\n", "a\nb", "A\nB", b"A\r\nB\r\nc\r\n");
    check(b"\xef\xbb\xbfconst v=1;\n", "const v=1", "const v=2", b"\xef\xbb\xbfconst v=2;\n");
    check(b"l1\nl2\nl3", "l1", "L1", b"L1\nl2\nl3");
    check(b"x=1\n// caf\xe9\n", "x=1", "x=2", b"x=2\n// caf\xe9\n");
    check(b"cost: $1\n", "$1", "$0 & \\1", b"cost: $0 & \\1\n");
    check(b"a\nb\n", "a\n", "", b"b\n");
}

#[test]
fn all_occurrences_are_replaced_when_asked() {
    let bench = bench();
    bench.seen("a", "x y x\r\nx");
    let mut input = input("a", "x", "xx");
    input["replaceAll"] = json!(true);
    let output = bench.call("edit", input).unwrap();
    assert_eq!(output.summary, "edited a: 3 replacements (+2 -2)");
    bench.has("a", "xx y xx\r\nxx");
}

#[test]
fn the_model_gets_one_line_and_people_the_diff() {
    let bench = bench();
    bench.seen("src/a", "1\n2\n3\n");
    let diff = "--- src/a\n+++ src/a\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n";
    let plan = bench.plan("edit", input("src/a", "2", "two")).unwrap();
    assert_eq!((plan.detail.as_str(), plan.risks.len()), (diff, 0));
    bench.has("src/a", "1\n2\n3\n");
    let output = bench.call("edit", input("src/a", "2", "two")).unwrap();
    assert_eq!(output.summary, "edited src/a: 1 replacement at line 2 (+1 -1)");
    assert_eq!((output.text.as_str(), output.detail.as_deref()), ("", Some(diff)));
}

#[test]
fn several_places_are_named_line_by_line() {
    let bench = bench();
    bench.seen("a", "if x {\n}\nif x {\r\n");
    let error = bench.refused("edit", input("a", "if x {", "if y {"), ErrorCode::Ambiguous);
    assert_eq!(error.details.unwrap(), "line 1: if x {\nline 3: if x {");
    bench.seen("b", "a\nb\na\r\nb\r\n");
    bench.refused("edit", input("b", "a\nb", "c"), ErrorCode::Ambiguous);
    bench.seen("c", "aaa");
    bench.refused("edit", input("c", "aa", "b"), ErrorCode::Ambiguous);
    bench.has("c", "aaa");
}

#[track_caller]
fn check_near(content: &[u8], old: &str, shows: &[&str]) {
    let bench = bench();
    bench.seen("a", content);
    let error = bench.refused("edit", input("a", old, "?"), ErrorCode::NoMatch);
    let told = format!("{}\n{}", error.hint, error.details.as_ref().and_then(Value::as_str).unwrap_or_default());
    for part in shows {
        assert!(told.contains(part), "{part:?} not in:\n{told}");
    }
    bench.has("a", content);
}

#[test]
fn no_match_shows_the_nearest_lines_and_how_they_differ() {
    check_near(
        b"fn a() {\n\tlet x = 1;\n}\n",
        "fn a() {\n    let x = 1;\n}",
        &["lines 1-3", "`→let x = 1;`", "`····let x = 1;`"],
    );
    check_near(b"let x = 1; \nend\n", "let x = 1;\nend", &["`let x = 1;·`", "`let x = 1;`"]);
    check_near(b"one\nlet value = compute();\n", "let valeu = compute();", &["line 2", "`let value = compute();`"]);
    check_near(b"caf\xe9 x\n", "caf\u{fffd} x", &["U+FFFD"]);
    check_near(b"a\nb", "a\nb\nc", &["the file ends at line 2"]);
    check_near(b"zzz\n", "completely different", &["Read the file again"]);
    check_near(b"", "x", &["Read the file again"]);
}

#[test]
fn calls_that_mean_nothing_are_refused() {
    let bench = bench();
    bench.seen("a", "x");
    let error = bench.refused("edit", input("a", "", "y"), ErrorCode::InvalidInput);
    assert!(error.hint.contains("write"));
    bench.refused("edit", input("a", "x", "x"), ErrorCode::InvalidInput);
    bench.refused("edit", input("none", "x", "y"), ErrorCode::NotFound);
    bench.refused("edit", json!({"path": "a"}), ErrorCode::InvalidInput);
    bench.seen("utf16", b"\xff\xfea\0").seen("bin", b"a\0b");
    bench.refused("edit", input("utf16", "a", "b"), ErrorCode::Binary);
    bench.refused("edit", input("bin", "a", "b"), ErrorCode::Binary);
    bench.has("utf16", b"\xff\xfea\0");
}

#[test]
fn only_what_was_read_and_is_unchanged_is_edited() {
    let bench = bench();
    bench.put("a", "x\ny\n");
    bench.refused("edit", input("a", "x", "X"), ErrorCode::NotRead);
    bench.call("read", json!({"path": "a"})).unwrap();
    bench.put("a", "x\nY\n");
    let error = bench.refused("edit", input("a", "x", "X"), ErrorCode::Stale);
    assert!(error.summary.contains("has changed since it was read"));
    bench.has("a", "x\nY\n");
    // The same content at another time is no change, and the session's own writes count as read.
    bench.call("read", json!({"path": "a"})).unwrap();
    bench.put("a", "x\nY\n");
    bench.call("edit", input("a", "x", "X")).unwrap();
    bench.call("edit", input("a", "X", "z")).unwrap();
    bench.has("a", "z\nY\n");
}

#[test]
fn links_stay_links_and_their_target_changes() {
    let bench = bench();
    bench.seen("sub/real.md", "x");
    symlink("sub/real.md", bench.root.join("link.md")).unwrap();
    symlink("link.md", bench.root.join("chain.md")).unwrap();
    symlink("loop.md", bench.root.join("loop.md")).unwrap();
    let plan = bench.plan("edit", input("chain.md", "x", "y")).unwrap();
    assert!(plan.risks[0].starts_with("chain.md leads through a link to "), "{:?}", plan.risks);
    bench.call("edit", input("chain.md", "x", "y")).unwrap();
    bench.has("sub/real.md", "y");
    assert!(["link.md", "chain.md"].map(|name| bench.root.join(name).is_symlink()).iter().all(|link| *link));
    bench.refused("edit", input("loop.md", "x", "y"), ErrorCode::InvalidPath);
}

#[test]
fn mode_bits_stay() {
    for mode in [0o755, 0o600, 0o664] {
        let bench = bench();
        bench.seen("a", "x");
        let path = bench.root.join("a");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        bench.call("edit", input("a", "x", "y")).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, mode);
    }
}

#[test]
fn people_are_told_of_places_outside_and_of_hard_links() {
    let bench = bench();
    let outside = bench.base.join("outside");
    std::fs::write(&outside, "x").unwrap();
    std::fs::hard_link(&outside, bench.root.join("hard")).unwrap();
    bench.seen("hard", "x").files.note(&outside, blake3::hash(b"x"));
    let plan = bench.plan("edit", input("hard", "x", "y")).unwrap();
    assert_eq!(plan.risks, ["hard has 1 name more (hard links), which will not change"]);
    let plan = bench.plan("edit", input("../outside", "x", "y")).unwrap();
    assert_eq!(plan.risks[0], format!("outside the workspace: {}", outside.display()));
}

#[test]
fn a_cancelled_edit_changes_nothing() {
    let bench = bench();
    bench.seen("a", "x").cancel.cancel();
    let error = bench.call("edit", input("a", "x", "y")).unwrap_err();
    assert_eq!(error.code, ErrorCode::Cancelled);
    bench.has("a", "x");
}
