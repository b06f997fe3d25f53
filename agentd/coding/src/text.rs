//! Small facts about bytes that are meant to be text: whether they are, where to cut them, how to show what is hidden.
//!
//! Pure. Cuts fall on character borders and count bytes of UTF-8.

use std::borrow::Cow;

/// Looks like text up to here, then it is taken for text.
pub(crate) const SNIFF_BYTES: usize = 8 * 1024;
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// What the first bytes of a file say about the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Text,
    Utf16 { big_endian: bool },
    Binary,
}

/// A zero byte in the first 8 KiB makes a file binary, unless a mark at its start says UTF-16.
pub(crate) fn kind(bytes: &[u8]) -> Kind {
    match bytes {
        [0xff, 0xfe, rest @ ..] if !rest.starts_with(&[0, 0]) => return Kind::Utf16 { big_endian: false },
        [0xfe, 0xff, ..] => return Kind::Utf16 { big_endian: true },
        _ => {}
    }
    let head = bytes.get(..SNIFF_BYTES).unwrap_or(bytes);
    if head.contains(&0) { Kind::Binary } else { Kind::Text }
}

/// The longest start of `text` within `max_bytes` that ends on a character border.
pub(crate) fn prefix(text: &str, max_bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(max_bytes)).unwrap_or(text)
}

/// A line of at most `max_bytes`, and how much of it is left out.
pub(crate) fn clip(line: &str, max_bytes: usize) -> Cow<'_, str> {
    if line.len() <= max_bytes {
        return Cow::Borrowed(line);
    }
    let kept = prefix(line, max_bytes);
    Cow::Owned(format!("{kept} [+{} bytes of this line]", line.len() - kept.len()))
}

/// A line with its white space made visible, where white space can hide a difference.
pub(crate) fn visible(line: &str) -> String {
    let inner = line.trim_start();
    let indent = line.len() - inner.len();
    let text_end = line.trim_end().len().max(indent);
    line.char_indices()
        .map(|(at, char)| match char {
            '\t' => '→',
            '\r' => '␍',
            ' ' if at < indent || at >= text_end => '·',
            '\u{a0}' => '⍽',
            '\u{feff}' => '�',
            other => other,
        })
        .collect()
}

/// `1 line`, `2 lines`, `1,234 lines`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let plural = match (number, noun) {
        (1, _) => noun.to_owned(),
        (_, "entry") => "entries".to_owned(),
        (_, "match") => "matches".to_owned(),
        _ => format!("{noun}s"),
    };
    format!("{} {plural}", thousands(number))
}

/// `1,234`.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let texts = [0, 999, 1_000, 1_234_567].map(thousands);
        assert_eq!(texts, ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([count(1, "entry"), count(2, "entry"), count(3, "line")], ["1 entry", "2 entries", "3 lines"]);
    }

    #[test]
    fn cuts_fall_on_character_borders() {
        assert_eq!(prefix("aé", 2), "a");
        assert_eq!(clip("ééé", 3), "é [+4 bytes of this line]");
        assert_eq!(clip("abc", 3), "abc");
    }

    #[test]
    fn hidden_white_space_is_shown() {
        assert_eq!(visible("  a b \t"), "··a b·→");
        assert_eq!(visible("a\r"), "a␍");
        assert_eq!(visible("   "), "···");
    }

    #[test]
    fn files_are_told_apart_by_their_start() {
        assert_eq!(kind(b"abc"), Kind::Text);
        assert_eq!(kind(b"a\0c"), Kind::Binary);
        assert_eq!(kind(b"\xff\xfea\0"), Kind::Utf16 { big_endian: false });
        assert_eq!(kind(b"\xfe\xff\0a"), Kind::Utf16 { big_endian: true });
        let late = [vec![b'a'; SNIFF_BYTES], vec![0]].concat();
        assert_eq!(kind(&late), Kind::Text);
    }
}
