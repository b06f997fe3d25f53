//! Making real folders.

use foundation::ErrorCode;
use serde_json::json;

use crate::tools::testing::bench;

#[test]
fn a_folder_is_made_with_those_above_it_and_may_be_there_already() {
    let bench = bench();
    let make = |path: &str| bench.call("mkdir", json!({"path": path})).unwrap().summary;
    assert_eq!(make("a/b/c"), "created the folder a/b/c and 2 above it");
    assert_eq!(make("a/b/c"), "a/b/c is there already");
    assert_eq!(make("a/d"), "created the folder a/d");
    assert_eq!(bench.names(), ["a/", "a/b/", "a/b/c/", "a/d/"]);
}

#[test]
fn what_is_no_folder_is_left_as_it_is() {
    let bench = bench();
    bench.put("a", "mine");
    bench.refused("mkdir", json!({"path": "a"}), ErrorCode::AlreadyExists);
    bench.refused("mkdir", json!({"path": "a/b"}), ErrorCode::NotADirectory);
    bench.refused("mkdir", json!({"path": ""}), ErrorCode::InvalidPath);
    bench.has("a", "mine");
}
