//! Finding the text to replace, line ends and near misses included.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(content: &str, old: &str, new: &str, expected: &str) {
    let places = places(content.as_bytes(), old);
    assert_eq!(places.len(), 1, "{old:?} in {content:?}: {places:?}");
    let out = replaced(content.as_bytes(), &places, old, new);
    assert_eq!(String::from_utf8(out).unwrap(), expected, "{old:?} → {new:?} in {content:?}");
}

#[test]
fn text_in_lf_matches_either_end_and_keeps_the_files_own() {
    check("a\r\nb\nc\r\n", "b\nc", "B\nC", "a\r\nB\nC\r\n");
    check("a\r\nb\r\nc\r\n", "a\nb\n", "A\nB\n", "A\r\nB\r\nc\r\n");
    check("a\r\nb\r\nc\r\n", "a\nb", "a\nx\ny\nb", "a\r\nx\r\ny\r\nb\r\nc\r\n");
    check("a\r\nb\nc\r\nd", "a\nb\nc\nd", "a\nb\nx\nc\nd", "a\r\nb\nx\nc\r\nd");
    check("a\r\nb\r\n", "b", "b\nc", "a\r\nb\r\nc\r\n");
    check("a\r\nb", "b", "b\nc", "a\r\nb\r\nc");
    check("a\nb\n", "\nb", "\nB\nC", "a\nB\nC\n");
    check("a\r\nb\r\n", "\nb", "", "a\r\n");
    check("a\r\nb\r\nc", "a\nb\nc", "c", "c");
}

#[test]
fn text_that_names_its_returns_is_taken_literally() {
    check("a\r\nb\r\n", "a\r\nb", "x\ny", "x\ny\r\n");
    check("a\r\nb\r\n", "a\nb", "x\r\ny", "x\r\ny\r\n");
    check("a\nb\n", "a", "x\r\ny", "x\r\ny\nb\n");
    assert!(places(b"a\nb\n", "a\r\nb").is_empty());
}

#[test]
fn replacement_text_means_itself() {
    check("x", "x", r"$1 \1 $& \n", r"$1 \1 $& \n");
}

#[test]
fn twins_in_both_styles_and_overlapping_places_all_count() {
    assert_eq!(places(b"a\nb;a\r\nb", "a\nb").len(), 2);
    assert_eq!(places(b"aaa", "aa").len(), 2);
    assert_eq!(apart(&places(b"aaaaa", "aa")), [0..2, 2..4]);
}

#[test]
fn many_places_in_one_line_cost_no_more_than_their_bytes() {
    let content = "1,".repeat(500_000);
    let found = places(content.as_bytes(), ",");
    let out = replaced(content.as_bytes(), &found, ",", ",\n");
    assert!(out == "1,\n".repeat(500_000).as_bytes());
}

#[test]
fn lines_are_counted_from_one() {
    assert_eq!([line_of(b"a\nb\n", 0), line_of(b"a\nb\n", 1), line_of(b"a\nb\n", 2)], [1, 1, 2]);
}

/// Anything a file may hold, but never the letters of the needle.
fn surroundings() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"\r\n".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"\xef\xbb\xbf".to_vec()),
        Just(b"\xe9\xff".to_vec()),
        Just("äß 日本".as_bytes().to_vec()),
        Just(b"\t  text".to_vec()),
        Just(b"NEEDL".to_vec()),
    ];
    proptest::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_outside_the_edit_changes(
        before in surroundings(),
        after in surroundings(),
        ends in proptest::collection::vec(any::<bool>(), 0..4),
        new in "[a-z$\\\\]{0,12}",
    ) {
        let old: Vec<String> = (0..=ends.len()).map(|number| format!("NEEDLE{number}")).collect();
        let mut inside = String::new();
        for (number, line) in old.iter().enumerate() {
            inside.push_str(line);
            if let Some(crlf) = ends.get(number) {
                inside.push_str(if *crlf { "\r\n" } else { "\n" });
            }
        }
        let content = [before.as_slice(), inside.as_bytes(), &after].concat();
        let old = old.join("\n");
        let found = places(&content, &old);
        let place = before.len()..before.len() + inside.len();
        prop_assert!(found.iter().eq([&place]), "{found:?} is not {place:?}");
        let expected = [before.as_slice(), new.as_bytes(), &after].concat();
        prop_assert_eq!(replaced(&content, &found, &old, &new), expected);
        // The same lines in another order of letters keep every end they had.
        let relettered = replaced(&content, &found, &old, &old.replace("NEEDLE", "other"));
        let expected = [before.as_slice(), inside.replace("NEEDLE", "other").as_bytes(), &after].concat();
        prop_assert_eq!(relettered, expected);
    }
}
