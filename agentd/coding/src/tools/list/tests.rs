//! Listing real directories.

use std::os::unix::fs::symlink;

use foundation::ErrorCode;
use serde_json::json;

use crate::tools::testing::bench;

#[test]
fn entries_come_sorted_with_folders_and_links_marked() {
    let bench = bench();
    bench.put("b.txt", "").put(".hidden", "").put("src/deep/x", "").put(".git/HEAD", "").put("out.log", "");
    bench.put(".gitignore", "*.log\n");
    symlink("b.txt", bench.root.join("link")).unwrap();
    let output = bench.call("list", json!({"path": "."})).unwrap();
    assert_eq!(output.text, ".git/\n.gitignore\n.hidden\nb.txt\nlink -> b.txt\nsrc/\n[6 entries]\n");
    assert_eq!(output.summary, "listed .: 6 entries");
    let output = bench.call("list", json!({"path": "src", "depth": 2})).unwrap();
    assert_eq!(output.text, "src/deep/\nsrc/deep/x\n[2 entries]\n");
    let output = bench.call("list", json!({"path": "src", "depth": 2, "limit": 1})).unwrap();
    assert_eq!(output.text, "src/deep/\n[1 of 2 entries shown: name a folder in it, or a smaller depth]\n");
}

#[test]
fn an_empty_folder_says_so() {
    let bench = bench();
    let output = bench.call("list", json!({"path": "."})).unwrap();
    assert_eq!(output.text, "[. is empty, or .gitignore leaves out all of it]\n");
}

#[test]
fn a_large_folder_stays_within_the_caps() {
    let bench = bench();
    for number in 0..500 {
        bench.put(&format!("{number:03}-{}", "x".repeat(60)), "");
    }
    let text = bench.call("list", json!({"path": "."})).unwrap().text;
    assert!(text.len() <= 12_000 && text.contains(" of 500 entries shown: "), "{}", text.len());
}

#[test]
fn a_folder_outside_is_shown_in_full() {
    let bench = bench();
    std::fs::create_dir(bench.base.join("other")).unwrap();
    std::fs::write(bench.base.join("other/x"), "").unwrap();
    let output = bench.call("list", json!({"path": "../other"})).unwrap();
    assert_eq!(output.text, format!("{}\n[1 entry]\n", bench.base.join("other/x").display()));
}

#[test]
fn what_is_no_folder_is_refused() {
    let bench = bench();
    bench.put("file.txt", "");
    bench.refused("list", json!({"path": "file.txt"}), ErrorCode::NotADirectory);
    let error = bench.refused("list", json!({"path": "fil.txt"}), ErrorCode::NotFound);
    assert!(error.hint.contains("file.txt"));
    bench.cancel.cancel();
    bench.refused("list", json!({"path": "."}), ErrorCode::Cancelled);
}
