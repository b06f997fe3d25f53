//! Reading real files, odd ones included.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use foundation::ErrorCode;
use serde_json::json;

use crate::tools::testing::bench;

#[track_caller]
fn check(content: &[u8], range: (Option<u64>, Option<u64>), expected: &str) {
    let bench = bench();
    bench.put("a.txt", content);
    let output = bench.call("read", json!({"path": "a.txt", "startLine": range.0, "endLine": range.1})).unwrap();
    assert_eq!(output.text, expected);
}

#[test]
fn lines_come_numbered_under_a_header_with_range_and_total() {
    check(b"one\ntwo\nthree\n", (None, None), "a.txt: lines 1-3 of 3\n     1\tone\n     2\ttwo\n     3\tthree\n");
    check(b"one\ntwo\nthree\n", (Some(2), Some(2)), "a.txt: lines 2-2 of 3\n     2\ttwo\n");
    check(b"one\ntwo\nthree\n", (Some(2), Some(99)), "a.txt: lines 2-3 of 3\n     2\ttwo\n     3\tthree\n");
    check(b"\n", (None, None), "a.txt: lines 1-1 of 1\n     1\t\n");
    check(b"", (None, None), "a.txt is empty (0 bytes)");
    check(b"", (Some(1), None), "a.txt is empty (0 bytes)");
}

#[test]
fn what_the_text_does_not_show_is_said() {
    check(b"a\nb", (None, None), "a.txt: lines 1-2 of 2 (no newline at the end)\n     1\ta\n     2\tb\n");
    check(b"a\r\nb\r\n", (None, None), "a.txt: lines 1-2 of 2 (CRLF line ends)\n     1\ta\n     2\tb\n");
    check(b"a\r\nb\n", (None, None), "a.txt: lines 1-2 of 2 (mixed line ends, LF and CRLF)\n     1\ta\n     2\tb\n");
    check(b"\xef\xbb\xbfa\n", (None, None), "a.txt: lines 1-1 of 1 (UTF-8 byte order mark)\n     1\ta\n");
    check(
        b"x=1\ncaf\xe9\n",
        (None, None),
        "a.txt: lines 1-2 of 2 (1 line with bytes that are not UTF-8, shown as U+FFFD)\n     1\tx=1\n     2\tcaf\u{fffd}\n",
    );
    check(b"\xff\xfea\0\n\0", (None, None), "a.txt: lines 1-1 of 1 (UTF-16, which edits cannot change)\n     1\ta\n");
}

#[test]
fn ranges_that_are_none_are_refused() {
    let bench = bench();
    bench.put("a.txt", "one\ntwo\n");
    for (start, end) in [(3, 9), (0, 1), (2, 1)] {
        bench.refused("read", json!({"path": "a.txt", "startLine": start, "endLine": end}), ErrorCode::RangeInvalid);
    }
}

#[test]
fn a_long_file_is_cut_at_a_line_and_can_be_read_on() {
    let bench = bench();
    let content: String = (1..=2_000).map(|number| format!("line number {number}\n")).collect();
    bench.put("a.txt", &content);
    let (mut start, mut got) = (1, String::new());
    loop {
        let text = bench.call("read", json!({"path": "a.txt", "startLine": start})).unwrap().text;
        assert!(text.len() <= 12_000, "{}", text.len());
        for line in text.lines().filter_map(|line| line.split_once('\t')) {
            got.push_str(line.1);
            got.push('\n');
        }
        let Some((_, next)) = text.rsplit_once("go on with startLine ") else { break };
        start = next.trim_end_matches("]\n").parse().unwrap();
    }
    assert!(got == content);
}

#[test]
fn one_huge_line_is_clipped_on_a_character_border() {
    let bench = bench();
    bench.put("a.json", "é".repeat(2_500_000));
    let text = bench.call("read", json!({"path": "a.json"})).unwrap().text;
    assert!(text.len() <= 12_000 && text.contains("[line clipped: 5,000,000 bytes in all]"), "{text}");
    assert!(!text.contains('\u{fffd}'));
}

#[test]
fn files_over_the_cap_need_a_range_and_then_cost_only_that() {
    let bench = bench();
    bench.put("a.log", "0123456789abcde\n".repeat(700_000));
    bench.refused("read", json!({"path": "a.log"}), ErrorCode::TooLarge);
    let text = bench.call("read", json!({"path": "a.log", "startLine": 699_999})).unwrap().text;
    assert!(text.starts_with("a.log: lines 699999-700000 of 700,000\n"), "{text}");
    std::fs::File::create(bench.root.join("sparse")).unwrap().set_len(1 << 40).unwrap();
    bench.refused("read", json!({"path": "sparse"}), ErrorCode::TooLarge);
    bench.refused("read", json!({"path": "sparse", "endLine": 1}), ErrorCode::Binary);
}

#[test]
fn what_is_no_text_file_is_answered_at_once() {
    let bench = bench();
    let root = &bench.root;
    rustix::fs::mknodat(rustix::fs::CWD, root.join("fifo"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    let _socket = UnixListener::bind(root.join("socket")).unwrap();
    symlink("fifo", root.join("to-fifo")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    bench.put("image.png", b"\x89PNG\0\0").put("dir/name.txt", "");
    for (path, code, word) in [
        ("fifo", ErrorCode::NotAFile, "FIFO"),
        ("to-fifo", ErrorCode::NotAFile, "FIFO"),
        ("socket", ErrorCode::NotAFile, "socket"),
        ("/dev/zero", ErrorCode::NotAFile, "device"),
        ("dir", ErrorCode::NotAFile, "directory"),
        ("loop", ErrorCode::InvalidPath, "loop"),
        ("image.png", ErrorCode::Binary, "binary"),
        ("dir/nam.txt", ErrorCode::NotFound, "dir/name.txt"),
        ("dir/name.txt/x", ErrorCode::NotADirectory, "dir/name.txt/x"),
        ("~/x", ErrorCode::InvalidPath, "~"),
    ] {
        let error = bench.refused("read", json!({"path": path}), code);
        assert!(error.to_string().contains(word), "{path}: {error}");
    }
}

#[test]
fn a_part_that_was_read_counts_as_the_file() {
    let bench = bench();
    bench.put("a.txt", "one\ntwo\n");
    bench.call("read", json!({"path": "a.txt", "endLine": 1})).unwrap();
    bench.call("edit", json!({"path": "a.txt", "oldString": "two", "newString": "2"})).unwrap();
    bench.has("a.txt", "one\n2\n");
}

#[test]
fn a_cancelled_read_says_so() {
    let bench = bench();
    bench.put("a.txt", "x").cancel.cancel();
    bench.refused("read", json!({"path": "a.txt"}), ErrorCode::Cancelled);
}
