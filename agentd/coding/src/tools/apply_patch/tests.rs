//! Patches on real files: all or none.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use foundation::{Access, ErrorCode};
use serde_json::{Value, json};

use crate::tools::testing::bench;

fn input(patch: &str) -> Value {
    json!({ "patch": patch })
}

fn begin(files: &str) -> Value {
    input(&format!("*** Begin Patch\n{files}*** End Patch\n"))
}

#[test]
fn several_files_change_in_one_step() {
    let bench = bench();
    bench.seen("a", "1\n2\n").seen("old", "gone\n").seen("from", "x\ny\n");
    let patch = begin(
        "*** Update File: a\n@@\n-2\n+two\n*** Add File: new/b\n+b\n*** Delete File: old\n\
         *** Update File: from\n*** Move to: to\n@@\n-y\n+Y\n",
    );
    let plan = bench.plan("apply_patch", patch.clone()).unwrap();
    let output = bench.call("apply_patch", patch).unwrap();
    assert_eq!(output.summary, "applied the patch: a changed, new/b added, old deleted, from moved to to (+3 -3)");
    assert_eq!(output.detail.as_deref(), Some(plan.detail.as_str()));
    assert!(
        plan.detail.contains("rename from from\nrename to to\n--- from\n+++ to\n@@ -1,2 +1,2 @@\n x\n-y\n+Y\n"),
        "{}",
        plan.detail
    );
    bench.has("a", "1\ntwo\n").has("new/b", "b\n").has("to", "x\nY\n");
    assert_eq!(bench.names(), ["a", "new/", "new/b", "to"]);
    // What was written counts as read, under its new name.
    bench.call("edit", json!({"path": "to", "oldString": "Y", "newString": "z"})).unwrap();
}

#[test]
fn one_hunk_that_does_not_fit_leaves_every_file_as_it_was() {
    let bench = bench();
    bench.seen("a", "1\n").seen("b", "1\n").seen("c", "1\n");
    let patch = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-x\n+2\n--- a/c\n+++ b/c\n@@ -1 +1 @@\n-1\n+2\n";
    let error = bench.refused("apply_patch", input(patch), ErrorCode::PatchMismatch);
    assert_eq!(error.summary, "b, hunk 1 (patch line 8): line 1 is `1`, the patch expects `x`");
    bench.has("a", "1\n").has("b", "1\n").has("c", "1\n");
}

#[test]
fn a_write_that_fails_takes_the_others_back() {
    let bench = bench();
    bench.seen("a", "1\n").seen("b", "1\n");
    std::fs::set_permissions(bench.root.join("a"), std::fs::Permissions::from_mode(0o750)).unwrap();
    // The last name lies below the one before it, which by then is a file.
    let patch =
        begin("*** Update File: a\n@@\n-1\n+2\n*** Delete File: b\n*** Add File: n/x\n+x\n*** Add File: n/x/y\n+y\n");
    let error = bench.call("apply_patch", patch).unwrap_err();
    assert!(error.summary.ends_with("; the other files were put back as they were"), "{error}");
    bench.has("a", "1\n").has("b", "1\n");
    assert_eq!(bench.names(), ["a", "b"]);
    assert_eq!(bench.root.join("a").metadata().unwrap().mode() & 0o777, 0o750);
}

#[test]
fn nothing_that_exists_is_written_over() {
    let bench = bench();
    bench.seen("a", "1\n").seen("b", "2\n");
    bench.refused("apply_patch", begin("*** Add File: a\n+x\n"), ErrorCode::AlreadyExists);
    bench.refused("apply_patch", begin("*** Update File: a\n*** Move to: b\n"), ErrorCode::AlreadyExists);
    bench.refused("apply_patch", begin("*** Delete File: a\n*** Add File: a\n+x\n"), ErrorCode::PatchInvalid);
    bench.refused("apply_patch", begin("*** Add File: c\n+x\n*** Add File: ./c\n+x\n"), ErrorCode::PatchInvalid);
    bench.has("a", "1\n").has("b", "2\n");
    assert_eq!(bench.names(), ["a", "b"]);
}

#[test]
fn existing_files_must_have_been_read_and_be_unchanged() {
    let bench = bench();
    bench.put("a", "1\n");
    for files in ["*** Update File: a\n@@\n-1\n+2\n", "*** Delete File: a\n", "*** Update File: a\n*** Move to: b\n"] {
        bench.refused("apply_patch", begin(files), ErrorCode::NotRead);
    }
    bench.seen("a", "1\n").put("a", "1\n2\n");
    bench.refused("apply_patch", begin("*** Update File: a\n@@\n-1\n+2\n"), ErrorCode::Stale);
    bench.refused("apply_patch", begin("*** Update File: none\n@@\n-1\n+2\n"), ErrorCode::NotFound);
    bench.refused("apply_patch", input("nonsense"), ErrorCode::PatchInvalid);
    bench.has("a", "1\n2\n");
}

#[test]
fn bytes_modes_and_links_stay() {
    let bench = bench();
    bench.seen("a", b"\xef\xbb\xbfx=1\r\n// caf\xe9\r\nend");
    std::fs::set_permissions(bench.root.join("a"), std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink("a", bench.root.join("link")).unwrap();
    bench.call("apply_patch", begin("*** Update File: link\n@@\n-x=1\n+x=2\n")).unwrap();
    bench.has("a", b"\xef\xbb\xbfx=2\r\n// caf\xe9\r\nend");
    assert!(bench.root.join("link").is_symlink());
    bench.call("apply_patch", begin("*** Update File: a\n*** Move to: b\n@@\n-end\n+END\n")).unwrap();
    bench.has("b", b"\xef\xbb\xbfx=2\r\n// caf\xe9\r\nEND");
    assert_eq!(bench.root.join("b").metadata().unwrap().mode() & 0o777, 0o755);
    bench.refused("apply_patch", begin("*** Delete File: link\n"), ErrorCode::NotAFile);
    bench.seen("c", "x");
    symlink("c", bench.root.join("link2")).unwrap();
    bench.refused("apply_patch", begin("*** Delete File: link2\n"), ErrorCode::NotAFile);
    bench.seen("wide", b"\xff\xfea\0");
    bench.refused("apply_patch", begin("*** Update File: wide\n@@\n-a\n+b\n"), ErrorCode::Binary);
}

#[test]
fn a_deletion_in_a_unified_diff_must_be_the_whole_file() {
    let bench = bench();
    bench.seen("a", "1\n2\n");
    let patch = |hunk: &str| input(&format!("--- a/a\n+++ /dev/null\n{hunk}"));
    bench.refused("apply_patch", patch("@@ -1 +0,0 @@\n-1\n"), ErrorCode::PatchMismatch);
    bench.call("apply_patch", patch("@@ -1,2 +0,0 @@\n-1\n-2\n")).unwrap();
    assert!(bench.names().is_empty());
}

#[test]
fn every_path_of_the_patch_is_declared() {
    let bench = bench();
    let patch = begin("*** Update File: a\n*** Move to: ../b\n*** Add File: c/d\n+x\n");
    let access = bench.tool("apply_patch").access(&patch);
    assert_eq!(access, Access::Write(vec![bench.root.join("a"), bench.base.join("b"), bench.root.join("c/d")]));
    assert_eq!(bench.tool("apply_patch").access(&input("nonsense")), Access::Nothing);
}
