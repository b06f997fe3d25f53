//! Writing real files.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use foundation::ErrorCode;
use serde_json::{Value, json};

use crate::tools::testing::bench;

fn input(path: &str, content: &str) -> Value {
    json!({"path": path, "content": content})
}

#[test]
fn content_is_written_as_it_is() {
    for content in ["", "x", "x\r\ny\n", "\u{feff}x\n", "é\n\n\n"] {
        let bench = bench();
        bench.call("write", input("a", content)).unwrap();
        bench.has("a", content);
        assert_eq!(bench.names(), ["a"]);
    }
}

#[test]
fn missing_folders_are_created() {
    let bench = bench();
    let output = bench.call("write", input("a/b/c.txt", "1\n2\n")).unwrap();
    assert_eq!(output.summary, "created a/b/c.txt: 4 bytes (+2 -0)");
    assert_eq!(output.detail.unwrap(), "--- /dev/null\n+++ a/b/c.txt\n@@ -0,0 +1,2 @@\n+1\n+2\n");
    bench.has("a/b/c.txt", "1\n2\n");
}

#[test]
fn an_existing_file_must_have_been_read_and_be_unchanged() {
    let bench = bench();
    bench.put("a", "old");
    bench.refused("write", input("a", "new"), ErrorCode::NotRead);
    bench.call("read", json!({"path": "a"})).unwrap();
    bench.put("a", "other");
    bench.refused("write", input("a", "new"), ErrorCode::Stale);
    bench.has("a", "other").call("read", json!({"path": "a"})).unwrap();
    std::fs::set_permissions(bench.root.join("a"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let plan = bench.plan("write", input("a", "new")).unwrap();
    assert_eq!(plan.risks, ["replaces all 5 bytes of a"]);
    let output = bench.call("write", input("a", "new")).unwrap();
    assert_eq!(output.summary, "wrote a: 3 bytes, replacing 5 (+1 -1)");
    bench.call("write", input("a", "newer")).unwrap();
    bench.has("a", "newer");
    assert_eq!(bench.root.join("a").metadata().unwrap().mode() & 0o7777, 0o755);
}

#[test]
fn what_is_no_file_is_refused_and_leaves_nothing_behind() {
    let bench = bench();
    bench.put("dir/x", "").put("file", "");
    bench.refused("write", input("dir", "x"), ErrorCode::NotAFile);
    bench.refused("write", input("file/below", "x"), ErrorCode::NotADirectory);
    bench.refused("write", input("/dev/null", "x"), ErrorCode::NotAFile);
    bench.refused("write", input("", "x"), ErrorCode::InvalidPath);
    assert_eq!(bench.names(), ["dir/", "dir/x", "file"]);
}

#[test]
fn a_link_to_nowhere_gets_its_target() {
    let bench = bench();
    symlink("sub/new", bench.root.join("link")).unwrap();
    bench.call("write", input("link", "x")).unwrap();
    assert!(bench.root.join("link").is_symlink());
    bench.has("sub/new", "x");
}

#[test]
fn a_link_out_of_the_workspace_is_told_to_people() {
    let bench = bench();
    symlink(&bench.base, bench.root.join("out")).unwrap();
    let plan = bench.plan("write", input("out/x", "x")).unwrap();
    assert_eq!(plan.risks[0], format!("outside the workspace: {}", bench.base.join("x").display()));
}
