//! Moving real files and folders.

use std::os::unix::fs::symlink;

use foundation::ErrorCode;
use serde_json::{Value, json};

use crate::tools::testing::bench;

fn input(from: &str, to: &str) -> Value {
    json!({"from": from, "to": to})
}

#[test]
fn files_and_folders_move_and_what_was_read_of_them_stays_read() {
    let bench = bench();
    bench.seen("a", "one\n").seen("folder/b", "two\n");
    let moved = bench.call("move", input("a", "new/place/c")).unwrap();
    assert_eq!(moved.summary, "moved a to new/place/c");
    assert_eq!(moved.detail.unwrap(), "rename from a\nrename to new/place/c\n");
    bench.call("move", input("folder", "other")).unwrap();
    assert_eq!(bench.names(), ["new/", "new/place/", "new/place/c", "other/", "other/b"]);
    bench.call("edit", json!({"path": "new/place/c", "oldString": "one", "newString": "1"})).unwrap();
    bench.call("edit", json!({"path": "other/b", "oldString": "two", "newString": "2"})).unwrap();
    bench.has("new/place/c", "1\n").has("other/b", "2\n");
}

#[test]
fn what_stands_at_the_new_path_is_lost_only_when_it_was_read_and_the_call_says_so() {
    let bench = bench();
    bench.put("a", "new").put("b", "old").put("folder/x", "");
    bench.refused("move", input("a", "b"), ErrorCode::AlreadyExists);
    let overwrite = json!({"from": "a", "to": "b", "overwrite": true});
    bench.refused("move", overwrite.clone(), ErrorCode::NotRead);
    bench.has("b", "old");
    let error =
        bench.refused("move", json!({"from": "a", "to": "folder", "overwrite": true}), ErrorCode::AlreadyExists);
    assert!(error.hint.contains("folder/a"), "{error}");
    bench.call("read", json!({"path": "b"})).unwrap();
    let plan = bench.plan("move", overwrite.clone()).unwrap();
    assert_eq!(plan.risks, ["replaces b, which has 3 bytes"]);
    let moved = bench.call("move", overwrite).unwrap();
    assert_eq!(moved.summary, "moved a to b, replacing what was there");
    bench.has("b", "new");
    assert_eq!(bench.names(), ["b", "folder/", "folder/x"]);
}

#[test]
fn what_cannot_be_moved_stays_where_it_is() {
    let bench = bench();
    bench.put("a", "").put("folder/b", "");
    symlink("a", bench.root.join("link")).unwrap();
    bench.refused("move", input("moon", "b"), ErrorCode::NotFound);
    bench.refused("move", input("a", "a"), ErrorCode::InvalidPath);
    bench.refused("move", input("folder", "folder/in/it"), ErrorCode::InvalidPath);
    bench.refused("move", input("link", "b"), ErrorCode::NotAFile);
    bench.refused("move", input("a", "folder/b/c"), ErrorCode::NotADirectory);
    assert_eq!(bench.names(), ["a", "folder/", "folder/b", "link"]);
}
