//! Finding files by pattern.

use foundation::ErrorCode;
use serde_json::{Value, json};

use crate::tools::testing::{Bench, bench};

fn tree() -> Bench {
    let bench = bench();
    bench.put("src/a.rs", "").put("src/deep/b.rs", "").put("c.rs", "").put("src/n.txt", "").put("target/d.rs", "");
    bench.put(".github/ci.yml", "").put(".env", "").put(".git/config.rs", "").put(".gitignore", "target\n");
    bench
}

#[track_caller]
fn check(bench: &Bench, input: Value, expected: &str) {
    assert_eq!(bench.call("glob", input).unwrap().text, expected);
}

#[test]
fn files_are_found_by_the_shape_of_their_path() {
    let bench = tree();
    check(&bench, json!({"pattern": "**/*.rs"}), "c.rs\nsrc/a.rs\nsrc/deep/b.rs\n[3 files]\n");
    check(&bench, json!({"pattern": "src/*.rs"}), "src/a.rs\n[1 file]\n");
    check(&bench, json!({"pattern": "./src/*.{rs,txt}"}), "src/a.rs\nsrc/n.txt\n[2 files]\n");
    check(&bench, json!({"pattern": "**/*.rs", "path": "src"}), "src/a.rs\nsrc/deep/b.rs\n[2 files]\n");
    check(&bench, json!({"pattern": "*.rs"}), "c.rs\n[1 file]\n[`**/*.rs` would also match 2 files further down]\n");
    check(&bench, json!({"pattern": "*.none"}), "[no files match *.none in .]\n");
}

#[test]
fn hidden_names_are_found_only_when_named() {
    let bench = tree();
    check(&bench, json!({"pattern": "**/*.yml"}), "[no files match **/*.yml in .]\n");
    check(&bench, json!({"pattern": ".github/*.yml"}), ".github/ci.yml\n[1 file]\n");
    check(&bench, json!({"pattern": "**/.env"}), ".env\n[1 file]\n");
}

#[test]
fn over_the_cap_the_total_and_how_to_narrow_are_said() {
    let bench = bench();
    for number in 0..300 {
        bench.put(&format!("{number:03}"), "");
    }
    let text = bench.call("glob", json!({"pattern": "*"})).unwrap().text;
    assert!(text.ends_with("199\n[200 of 300 files shown: use a narrower pattern or path]\n"), "{text}");
    check(&bench, json!({"pattern": "*", "limit": 1}), "000\n[1 of 300 files shown: use a narrower pattern or path]\n");
}

#[test]
fn patterns_that_cannot_work_say_why() {
    let bench = tree();
    for pattern in ["", "/etc/*", "../*", "a/../../*", "[a", "{a"] {
        bench.refused("glob", json!({"pattern": pattern}), ErrorCode::PatternInvalid);
    }
    bench.refused("glob", json!({"pattern": "*", "path": "none"}), ErrorCode::NotFound);
    bench.refused("glob", json!({"pattern": "*", "path": "c.rs"}), ErrorCode::NotADirectory);
}
