//! What is said of real files.

use std::os::unix::fs::symlink;

use foundation::ErrorCode;
use serde_json::json;

use crate::tools::testing::bench;

/// One file's content, and the line that says what it is.
#[track_caller]
fn check(content: &[u8], said: &str) {
    let bench = bench();
    bench.put("a", content);
    let output = bench.call("file_info", json!({"path": "a"})).unwrap();
    let line = output.text.lines().find(|line| line.starts_with("content: ")).unwrap();
    assert_eq!(line, format!("content: {said}"), "{}", output.text);
    assert_eq!(output.summary, "a is a file");
}

#[test]
fn content_is_described_as_a_change_must_know_it() {
    check(b"", "empty");
    check(b"a\nb\n", "UTF-8 text, 2 lines, LF");
    check(b"a\nb", "UTF-8 text, 2 lines, LF, the last one without an end");
    check(b"a", "UTF-8 text, 1 line, no line end, the last one without an end");
    check(b"a\r\nb\r\n", "UTF-8 text, 2 lines, CRLF");
    check(b"a\r\nb\n", "UTF-8 text, 2 lines, LF and CRLF mixed");
    check(b"\xef\xbb\xbfa\n", "UTF-8 text with BOM, 1 line, LF");
    check(b"caf\xe9\n", "text that is not UTF-8, 1 line, LF");
    check(b"\xff\xfea\0", "UTF-16 text with BOM");
    check(b"a\0b", "binary");
}

#[test]
fn a_character_on_the_border_of_two_pieces_is_one() {
    let mut content = vec![b'a'; super::PIECE - 1];
    content.extend("é\r".as_bytes());
    content.resize(2 * super::PIECE, b'b');
    content.push(b'\n');
    check(&content, "UTF-8 text, 1 line, LF");
}

#[test]
fn folders_links_and_what_is_not_there() {
    let bench = bench();
    bench.put("folder/a", "").put("folder/b", "");
    symlink("folder/a", bench.root.join("link")).unwrap();
    let of = |path: &str| bench.call("file_info", json!({"path": path})).unwrap().text;
    assert!(of("folder").starts_with("folder: a folder\nholds: 2 names\nmode: 0"), "{}", of("folder"));
    let link = of("link");
    assert!(link.contains("leads to: ") && link.contains("folder/a\n") && link.contains("size: 0 bytes"), "{link}");
    bench.refused("file_info", json!({"path": "foldr"}), ErrorCode::NotFound);
}
