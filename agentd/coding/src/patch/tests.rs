//! Both patch forms: what applies, byte for byte, and what is refused with which words.

use proptest::prelude::*;

use super::*;

/// Applies a patch that changes one file.
fn patched(content: &str, patch: &str) -> Result<String, String> {
    let files = parse(patch).map_err(|error| error.to_string())?;
    let [FilePatch::Change { hunks, .. }] = files.as_slice() else { panic!("{files:?}") };
    let bytes = apply(content.as_bytes(), hunks).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(bytes).unwrap())
}

fn unified(hunks: &str) -> String {
    format!("--- a/f\n+++ b/f\n{hunks}")
}

fn begin(hunks: &str) -> String {
    format!("*** Begin Patch\n*** Update File: f\n{hunks}*** End Patch\n")
}

#[track_caller]
fn check(content: &str, hunks: &str, expected: &str) {
    let patch = if hunks.starts_with("@@ -") { unified(hunks) } else { begin(hunks) };
    assert_eq!(patched(content, &patch).as_deref(), Ok(expected), "{hunks}");
}

#[track_caller]
fn check_refused(content: &str, hunks: &str, fact: &str) {
    let patch = if hunks.starts_with("@@ -") { unified(hunks) } else { begin(hunks) };
    let error = patched(content, &patch).unwrap_err();
    assert!(error.contains(fact), "{hunks}\n{error}");
}

#[test]
fn hunks_apply_where_they_say() {
    check("a\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "a\nB\nc\n");
    check("a\nb\nc\n", "@@ -2 +2,2 @@ fn x\n-b\n+B\n+B2\n", "a\nB\nB2\nc\n");
    check("a\nb\n", "@@ -1,0 +2 @@\n+x\n", "a\nx\nb\n");
    check("a\nb\n", "@@ -0,0 +1 @@\n+x\n", "x\na\nb\n");
    check("", "@@ -0,0 +1 @@\n+x\n", "x\n");
    check("a\nb\nc\nd\n", "@@ -1 +1 @@\n-a\n+A\n@@ -4 +4 @@\n-d\n+D\n", "A\nb\nc\nD\n");
    check("a\nb\n", "@@ -1,2 +0,0 @@\n-a\n-b\n", "");
}

#[test]
fn hunks_without_numbers_apply_where_their_lines_are() {
    check("a\nb\nc\n", "@@\n a\n-b\n+B\n c\n", "a\nB\nc\n");
    check("a\nb\nc\n", " a\n-b\n+B\n", "a\nB\nc\n");
    check("x\nfn a\n  1\nfn b\n  1\n", "@@ fn b\n-  1\n+  2\n", "x\nfn a\n  1\nfn b\n  2\n");
    check(
        "class A\n  def x\n    1\nclass B\n  def x\n    1\n",
        "@@ class B\n@@ def x\n-    1\n+    2\n",
        "class A\n  def x\n    1\nclass B\n  def x\n    2\n",
    );
    check("a\nb\na\n", "@@\n-a\n+A\n*** End of File\n", "a\nb\nA\n");
    check("a\nb\n", "@@ a\n+x\n", "a\nx\nb\n");
    check("a\n", "@@\n+x\n*** End of File\n", "a\nx\n");
    check("a\nb\nc\n", "@@\n-a\n+A\n@@\n-c\n+C\n", "A\nb\nC\n");
}

#[test]
fn blank_context_and_dashes_are_understood() {
    check("a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+B\n", "a\n\nB\n");
    check("a\n\nb\n", "@@\n a\n\n-b\n+B\n\n", "a\n\nB\n");
    check("-- old\nb\n", "@@ -1,2 +1,2 @@\n--- old\n+++ new\n b\n", "++ new\nb\n");
    check("-- old\nb\n", "@@\n--- old\n+-- new\n", "-- new\nb\n");
}

#[test]
fn line_ends_and_marks_are_the_files_own() {
    check("a\r\nb\r\nc\r\n", "@@ -2 +2,2 @@\n-b\n+B\n+B2\n", "a\r\nB\r\nB2\r\nc\r\n");
    check("a\r\nb\nc\r\n", "@@ -1,3 +1,3 @@\n-a\n-b\n+A\n+B\n c\n", "A\r\nB\nc\r\n");
    check("a\r\nb\r\n", "@@ -2 +2 @@\n-b\r\n+B\r\n", "a\r\nB\r\n");
    check("a\r\n\r\n", "@@ -1,2 +1,2 @@\n-a\n+A\n\n", "A\r\n\r\n");
    check("\u{feff}a\nb\n", "@@ -1 +1 @@\n-a\n+A\n", "\u{feff}A\nb\n");
    check("\u{feff}a\nb\n", "@@ -1 +1 @@\n-\u{feff}a\n+\u{feff}A\n", "\u{feff}A\nb\n");
    check("a\r\n", "@@\n a\n+b\n", "a\r\nb\r\n");
}

#[test]
fn the_final_newline_or_its_absence_stays_unless_the_patch_says_otherwise() {
    let none = "\\ No newline at end of file\n";
    check("l1\nl2\nl3", "@@ -1,3 +1,3 @@\n-l1\n+L1\n l2\n l3\n", "L1\nl2\nl3");
    check("l1\nl3", "@@ -2 +2 @@\n-l3\n+L3\n", "l1\nL3");
    check("l1\nl3", &format!("@@ -2 +2 @@\n-l3\n{none}+L3\n"), "l1\nL3\n");
    check("l1\nl3", &format!("@@ -2 +2 @@\n-l3\n{none}+L3\n{none}"), "l1\nL3");
    check("l1\n", &format!("@@ -1 +1 @@\n-l1\n+L1\n{none}"), "L1");
    check("l1", "@@ -1 +1,2 @@\n l1\n+l2\n", "l1\nl2\n");
    check("l1", &format!("@@ -1 +1,2 @@\n l1\n+l2\n{none}"), "l1\nl2");
    check("l1\r\nl2", "@@ -2 +2,2 @@\n l2\n+l3\n", "l1\r\nl2\r\nl3\r\n");
    check_refused("l1\n", &format!("@@ -1 +1 @@\n-l1\n{none}+L1\n"), "line 1 ends in a newline");
    check_refused("a\nb\n", &format!("@@ -1 +1 @@\n-a\n+A\n{none}"), "not the last");
}

#[test]
fn what_does_not_fit_exactly_is_refused_with_line_expected_and_found() {
    check_refused("a\nb\n", "@@ -2 +2 @@\n-c\n+C\n", "hunk 1 (patch line 3): line 2 is `b`, the patch expects `c`");
    check_refused("a\n\tb\n", "@@ -2 +2 @@\n-    b\n+c\n", "line 2 is `→b`, the patch expects `····b`");
    check_refused("x\na\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+B\n", "old lines stand at line 2");
    check_refused("a\n", "@@ -2 +2 @@\n-b\n+B\n", "goes to line 2, but the file has 1 line");
    check_refused(
        "a\nb\nc\n",
        "@@ -1,2 +1,2 @@\n-a\n+A\n b\n@@ -2,2 +2,2 @@\n b\n-c\n+C\n",
        "the hunk before it goes to line 2",
    );
    check_refused(
        "a\nb\nc\n",
        "@@ -3 +3 @@\n-c\n+C\n@@ -1 +1 @@\n-a\n+A\n",
        "hunk 2 (patch line 6): it begins at line 1",
    );
    check_refused("a\na\n", "@@\n-a\n+A\n", "several places, line 1, 2");
    check_refused("a\nb\nc\n", "@@\n a\n-x\n+X\n", "nearest at line 1: line 2 is `b`, the patch expects `x`");
    check_refused("a\nb\n", "@@\n-b\n+B\n@@\n-a\n+A\n", "out of order");
    check_refused("a \n", "@@\n-a\n+A\n", "not in the file");
    check_refused("f\nf\n", "@@ f\n+x\n", "`@@ f` is several lines, line 1, 2");
    check_refused("f\n", "@@ g\n+x\n", "no line from line 1 on is `g`");
    check_refused("a\nb\n", "@@\n-a\n+A\n*** End of File\n", "belongs at the end of the file");
}

#[test]
fn patches_that_cannot_be_read_name_their_line() {
    for (patch, fact) in [
        ("", "the patch is empty"),
        ("hello\n", "patch line 1: expected `--- a/path`"),
        ("--- a/f\n@@ -1 +1 @@\n-a\n+b\n", "expected `+++ path`"),
        ("--- a/f\n+++ b/f\n", "nothing is said to change"),
        ("--- a/f\n+++ b/f\n@@\n-a\n+b\n", "patch line 3: `@@` is no hunk header"),
        ("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+b\n", "the hunk ends after 1 and 1"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n+c\n", "patch line 6: the hunk has more lines"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n-b\n+c\n", "the hunk ends after 1 and 0"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n a\n", "neither removes nor adds"),
        ("--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", "the names differ"),
        ("--- /dev/null\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", "a new file has only added lines"),
        ("diff --git a/f b/f\nold mode 100644\nnew mode 100755\n", "cannot change a mode"),
        ("diff --git a/f b/f\nindex 1..2\nGIT binary patch\n", "is not supported"),
        ("*** Begin Patch\n*** End Patch\n", "names no file"),
        ("*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n", "cut off"),
        ("*** Begin Patch\n*** Update File: f\n*** End Patch\n", "nothing is said to change"),
        ("*** Begin Patch\n*** Update File: f\n@@\n+b\n*** End Patch\n", "nothing that says where"),
        ("*** Begin Patch\n*** Update File: f\n@@ -1 +1 @@\n-a\n+b\n*** End Patch\n", "line numbers do not belong"),
        ("*** Begin Patch\n*** Update File: f\n@@\n-a\nb\n*** End Patch\n", "patch line 5: `b` begins with none"),
        ("*** Begin Patch\n*** Add File: f\nb\n*** End Patch\n", "begins with `+`"),
        ("*** Begin Patch\n*** Delete File: f\n*** End Patch\nmore\n", "stands behind"),
    ] {
        let error = parse(patch).unwrap_err().to_string();
        assert!(error.contains(fact), "{patch}\n{error}");
    }
}

#[test]
fn files_are_added_deleted_and_moved_in_both_forms() {
    let add = |path: &str, content: &str| FilePatch::Add { path: path.into(), content: content.into() };
    let delete = |path: &str| FilePatch::Delete { path: path.into(), hunks: Vec::new() };
    let rename = |from: &str, to: &str| FilePatch::Change { from: from.into(), to: to.into(), hunks: Vec::new() };
    let git = "diff --git a/n b/n\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+x\n+y\n\
               \\ No newline at end of file\ndiff --git a/e b/e\nnew file mode 100644\ndiff --git a/d b/d\n\
               deleted file mode 100644\ndiff --git a/o b/p\nsimilarity index 100%\nrename from o\nrename to p\n";
    assert_eq!(parse(git).unwrap(), [add("n", "x\ny"), add("e", ""), delete("d"), rename("o", "p")]);
    let begin = "*** Begin Patch\n*** Add File: n\n+x\n+\n*** Delete File: d\n\n*** Update File: o\n*** Move to: p\n\
                 *** Add File: e\n*** End Patch";
    assert_eq!(parse(begin).unwrap(), [add("n", "x\n\n"), delete("d"), rename("o", "p"), add("e", "")]);
    // A folder that happens to be called `a` is no prefix.
    let plain = "--- a/f\t2026-01-01\n+++ a/f\n@@ -1 +1 @@\n-a\n+b\n";
    assert_eq!(parse(plain).unwrap()[0].paths(), ["a/f"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_diff_of_two_texts_turns_one_into_the_other(
        old in proptest::collection::vec("(|a|b|-- c|\\+\\+ d|@@ e|é)(\r)?", 0..14),
        new in proptest::collection::vec("(|a|b|-- c|\\+\\+ d|@@ e|é)(\r)?", 0..14),
        old_ends in any::<bool>(),
        new_ends in any::<bool>(),
        // Without context nothing would tell which end an inserted line is meant to have.
        radius in 1_usize..4,
    ) {
        let text = |lines: &[String], ends: bool| lines.join("\n") + if ends && !lines.is_empty() { "\n" } else { "" };
        let (old, new) = (text(&old, old_ends), text(&new, new_ends));
        let diff = similar::TextDiff::configure().newline_terminated(false).diff_slices(&pieces(&old), &pieces(&new));
        let hunks = git_hunks(&diff, radius);
        prop_assume!(!hunks.is_empty());
        prop_assert_eq!(patched(&old, &unified(&hunks)), Ok(new));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "([ +-]|@@ -1,2 \\+1 @@|\\*\\*\\* [A-Z][a-z]+ (File|Patch|to): |--- |\\+\\+\\+ |a|\n|\r|\\\\ N){0,40}") {
        for text in [text.clone(), begin(&text), unified(&text)] {
            for file in parse(&text).unwrap_or_default() {
                if let FilePatch::Change { hunks, .. } | FilePatch::Delete { hunks, .. } = file {
                    let _outcome = apply("a\nb\na".as_bytes(), &hunks);
                }
            }
        }
    }
}

fn pieces(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Hunks as git writes them, with the lines' own `\r` and with the mark for a missing newline.
fn git_hunks(diff: &similar::TextDiff<'_, '_, str>, radius: usize) -> String {
    let mut text = String::new();
    for group in diff.grouped_ops(radius) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let range = |start: usize, end: usize| (if start == end { start } else { start + 1 }, end - start);
        let (old, old_count) = range(first.old_range().start, last.old_range().end);
        let (new, new_count) = range(first.new_range().start, last.new_range().end);
        text.push_str(&format!("@@ -{old},{old_count} +{new},{new_count} @@\n"));
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            text.push_str(&format!("{}{}", change.tag(), change.value()));
            if !change.value().ends_with('\n') {
                text.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    text
}
