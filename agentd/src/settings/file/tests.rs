//! What the parser takes, and what it says about the rest.

use super::*;

/// Checks the only problem of a text: its position and part of its words.
#[track_caller]
fn bad(text: &str, line: usize, column: usize, words: &str) {
    let problems = match parse(text) {
        Err(problem) => vec![problem],
        Ok(contents) => [contents.errors, contents.unknown].concat(),
    };
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].at, Some(Position { line, column }), "{problems:?}");
    assert!(problems[0].text.contains(words), "{problems:?}");
}

#[track_caller]
fn good(text: &str, keys: &[&str]) {
    let contents = parse(text).unwrap();
    assert_eq!((contents.errors, contents.unknown), (vec![], vec![]));
    assert_eq!(contents.entries.iter().map(|entry| entry.key).collect::<Vec<_>>(), keys);
}

#[test]
fn comments_and_trailing_commas_are_accepted() {
    good("", &[]);
    good("// nothing yet\n", &[]);
    good("{}", &[]);
    good("{ // why\n \"mode\": \"plan\", /* so */ \"limits\": {\"maxSteps\": 3,}, }", &["mode", "limits.maxSteps"]);
    good("\u{feff}{\"mode\": \"ask\"}", &["mode"]);
}

#[test]
fn everything_else_that_is_no_json_is_named_with_line_and_column() {
    bad("{\n  \"mode\": \"ask\"\n  \"model\": \"a/b\"\n}", 2, 16, "expected comma");
    bad("{mode: \"ask\"}", 1, 2, "expected string");
    bad("{'mode': \"ask\"}", 1, 2, "ingle-quoted");
    bad("{\"limits\": {\"maxSteps\": 0x10}}", 1, 25, "exadecimal");
    bad("{\"limits\": {\"maxSteps\": +1}}", 1, 25, "nary plus");
    bad("{\"compaction\": {\"at\": .5}}", 1, 23, "ecimal point");
    bad("{\"compaction\": {\"at\": NaN}}", 1, 23, "unexpected token");
    bad("{\"model\": \"a/\\x41\"}", 1, 14, "escape");
    bad("{\"mode\": \"ask\"", 1, 1, "nterminated object");
    bad("[]", 1, 1, "must be an object");
    bad("{} {}", 1, 4, "more than one");
}

#[test]
fn wrong_values_are_left_out_and_named() {
    bad("{\"mode\": \"yolo\"}", 1, 10, "unknown variant `yolo`");
    bad("{\"mode\": \"byapss\"}", 1, 10, "did you mean `bypass`?");
    bad("{\"model\": \"gpt\"}", 1, 11, "provider/model");
    bad("{\"model\": null}", 1, 11, "`model`");
    bad("{\"limits\": {\"maxSteps\": 0}}", 1, 25, "at least 1");
    bad("{\"limits\": {\"maxSteps\": -1}}", 1, 25, "limits.maxSteps");
    bad("{\"limits\": {\"maxSteps\": 1e999}}", 1, 25, "limits.maxSteps");
    bad("{\"limits\": 5}", 1, 12, "`limits` must be an object");
    bad("{\"permissions\": {\"deny\": \"bash\"}}", 1, 26, "permissions.deny");
    bad("{\"permissions\": {\"deny\": [\"a\", 1]}}", 1, 26, "permissions.deny[1]");
    bad("{\"compaction\": {\"at\": 85}}", 1, 23, "at most 1");
    bad("{\"noClient\": \"allow\"}", 1, 14, "deny_after");
    bad("{\"providers\": {\"x\": {\"baseURL\": \"http://h\"}}}", 1, 15, "did you mean `baseUrl`?");
    bad("{\"providers\": {\"x\": {\"baseUrl\": \"http://u:p@h\"}}}", 1, 15, "without a name or password");
    bad("{\"providers\": {\"x\": {\"apiKey\": \"sk-1\"}}}", 1, 15, "providers.x.apiKey");
}

#[test]
fn a_key_that_is_there_twice_counts_as_neither() {
    let contents = parse("{\"mode\": \"plan\", \"mode\": \"auto\"}").unwrap();
    assert_eq!((contents.entries.len(), contents.errors.len()), (0, 2));
    bad("{\"env\": {\"set\": {\"A\": \"1\", \"A\": \"2\"}}}", 1, 28, "`A` more than once");
}

#[test]
fn an_unknown_key_is_named_with_the_nearest_known_one() {
    bad("{\n\"permisions\": {}}", 2, 1, "did you mean `permissions`?");
    bad("{\"limits\": {\"maxStep\": 1}}", 1, 13, "did you mean `limits.maxSteps`?");
}

#[test]
fn deep_nesting_ends_before_the_stack_does() {
    let nested = |depth: usize| format!("{{\"hooks\": {{\"x\": {}{}}}}}", "[".repeat(depth), "]".repeat(depth));
    good(&nested(30), &["hooks"]);
    bad(&nested(31), 1, 47, "nested more than 32");
    bad(&nested(300), 1, 47, "nested more than 32");
    assert!(parse(&nested(100_000)).unwrap_err().text.contains("nesting depth"));
    good("{\"model\": \"a/[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"}", &["model"]);
}

#[test]
fn a_file_of_nothing_but_mistakes_is_reported_in_part() {
    let text: String = (0..60_000).map(|n| format!("\"k{n}\": 1,")).collect();
    let contents = parse(&format!("{{{text}}}")).unwrap();
    assert_eq!(contents.unknown.len(), MAX_PROBLEMS);
}

#[test]
fn names_from_a_file_cannot_steer_a_terminal() {
    let contents = parse(&format!("{{\"\\u001b[2J\u{202e}{}\": 1}}", "x".repeat(500))).unwrap();
    let text = &contents.unknown[0].text;
    assert!(text.contains("\\u{1b}[2J\\u{202e}xxx") && text.len() < 150, "{text}");
}

#[test]
fn only_small_regular_utf8_files_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("settings.json");
    assert_eq!(read(&path), Ok(None));
    assert_eq!(read(&path.join("below")), Ok(None));
    assert!(read(dir.path()).unwrap_err().text.contains("regular file"));
    std::fs::write(&path, vec![b' '; 2_000_000]).unwrap();
    assert!(read(&path).unwrap_err().text.contains("larger than 1024 KiB"));
    std::fs::write(&path, b"{\"mode\xff").unwrap();
    assert!(read(&path).unwrap_err().text.contains("byte 6"));
    std::fs::write(&path, "{}").unwrap();
    assert_eq!(read(&path), Ok(Some("{}".into())));
    let pipe = dir.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    assert!(read(&pipe).unwrap_err().text.contains("regular file"));
}
