//! Files as a crash may leave them, and what is said of the call.

use super::*;

fn hash(content: &str) -> Option<String> {
    Some(blake3::hash(content.as_bytes()).to_hex().to_string())
}

/// Two files, `a` and `b`: what they were, were to become, and are. Absent is `-`.
#[track_caller]
fn check(files: &[(&str, &str, &str)], expected: &str, words: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let state = |content: &str| if content == "-" { None } else { hash(content) };
    let mark = |(place, (before, after, now)): (usize, &(&str, &str, &str))| {
        let path = dir.path().join(["a", "b"][place]);
        if *now != "-" {
            std::fs::write(&path, now).unwrap();
        }
        FileMark { path, before: state(before), after: state(after) }
    };
    let marks: Vec<_> = files.iter().enumerate().map(mark).collect();
    let (kind, text) = match settle(&marks) {
        OnDisk::NotApplied => ("before", String::new()),
        OnDisk::Applied => ("after", String::new()),
        OnDisk::Unknown(text) => ("unknown", text),
    };
    assert_eq!(kind, expected, "{text}");
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}

#[test]
fn the_files_tell_what_became_of_the_call() {
    check(&[("one", "two", "one")], "before", &[]);
    check(&[("one", "two", "two")], "after", &[]);
    check(&[("-", "new", "-")], "before", &[]);
    check(&[("-", "new", "new")], "after", &[]);
    check(&[("old", "-", "old")], "before", &[]);
    check(&[("old", "-", "-")], "after", &[]);
    check(&[("same", "same", "same")], "after", &[]);
    check(&[], "unknown", &[]);
}

#[test]
fn what_is_neither_is_said_for_each_file() {
    let halfway = [("one", "two", "two"), ("three", "four", "three")];
    check(&halfway, "unknown", &["/a: as the call was to leave it\n", "/b: as it was before the call"]);
    let other = &hash("other").unwrap()[..12];
    check(&[("one", "two", "other")], "unknown", &["/a: now blake3 ", other]);
    check(&[("one", "two", "-")], "unknown", &["/a: now absent; before the call blake3 "]);
}

#[test]
fn what_is_no_file_any_more_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
    let mark = FileMark { path: pipe, before: None, after: hash("x") };
    assert!(matches!(settle(&[mark]), OnDisk::Unknown(text) if text.contains("not a file any more")));
}

#[test]
fn temporary_files_that_nobody_holds_are_taken_away() {
    let dir = tempfile::tempdir().unwrap();
    let names = [(".agentd-1-1-0.tmp", false), (".agentd-1-2-0.tmp", true), (".agentd-notes", true), ("a", true)];
    names.iter().for_each(|(name, _)| std::fs::write(dir.path().join(name), "x").unwrap());
    std::os::unix::fs::symlink("a", dir.path().join(".agentd-1-3-0.tmp")).unwrap();
    let held = std::fs::File::open(dir.path().join(names[1].0)).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let mark = FileMark { path: dir.path().join("a"), before: hash("x"), after: None };
    assert_eq!(settle(&[mark]), OnDisk::NotApplied);
    for (name, stays) in names {
        assert_eq!(dir.path().join(name).exists(), stays, "{name}");
    }
}
