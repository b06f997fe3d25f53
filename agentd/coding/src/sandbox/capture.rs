//! What is kept of a command's output: its start and its end, in constant memory.
//!
//! Bytes are kept as they came and made into text once, at the end, so that a character cut by two reads stays whole.

use std::collections::VecDeque;
use std::fmt::Write as _;

/// Bytes kept from the start, and again from the end.
pub(crate) const KEPT: usize = 64 * 1024;

/// Output as it comes in.
#[derive(Default, Debug)]
pub(crate) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

/// Output as text.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Captured {
    /// Bytes that are not UTF-8, and zero bytes, stand in it as `\xNN`.
    pub(crate) text: String,
    /// How many bytes that were.
    pub(crate) escaped: usize,
    /// All bytes that came, kept or not.
    pub(crate) total: u64,
    /// Bytes in the middle that were not kept.
    pub(crate) omitted: u64,
}

impl Capture {
    /// Takes more output.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(KEPT - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(KEPT)..];
        let overflow = (self.tail.len() + rest.len()).saturating_sub(KEPT);
        self.tail.drain(..overflow);
        self.tail.extend(rest);
    }

    /// Makes text of what was kept.
    pub(crate) fn finish(mut self) -> Captured {
        let omitted = self.total - (self.head.len() + self.tail.len()) as u64;
        let mut captured = Captured { text: String::new(), escaped: 0, total: self.total, omitted };
        let tail = self.tail.make_contiguous();
        if omitted == 0 {
            self.head.extend_from_slice(tail);
            captured.decode(&self.head);
            return captured;
        }
        captured.decode(without_cut_end(&self.head));
        if !captured.text.ends_with('\n') {
            captured.text.push('\n');
        }
        // Writing to a string cannot fail.
        let _ = writeln!(captured.text, "[{omitted} bytes omitted]");
        captured.decode(without_cut_start(tail));
        captured
    }
}

/// A part of some output as text, and how many of its bytes that is: the beginning of a character that the part cuts is
/// left for the next, unless there is none.
pub(crate) fn text_of(bytes: &[u8], is_last: bool) -> (String, usize) {
    let whole = if is_last { bytes } else { without_cut_end(bytes) };
    // A part that is nothing but such a beginning would never get on.
    let whole = if whole.is_empty() { bytes } else { whole };
    let mut captured = Captured { text: String::new(), escaped: 0, total: 0, omitted: 0 };
    captured.decode(whole);
    (captured.text, whole.len())
}

impl Captured {
    fn decode(&mut self, bytes: &[u8]) {
        for chunk in bytes.utf8_chunks() {
            for (index, piece) in chunk.valid().split('\0').enumerate() {
                if index > 0 {
                    self.escape(&[0]);
                }
                self.text.push_str(piece);
            }
            self.escape(chunk.invalid());
        }
    }

    fn escape(&mut self, bytes: &[u8]) {
        self.escaped += bytes.len();
        for byte in bytes {
            let _ = write!(self.text, "\\x{byte:02x}");
        }
    }
}

/// Drops the beginning of a character whose end was not kept.
fn without_cut_end(bytes: &[u8]) -> &[u8] {
    let cut = bytes.utf8_chunks().last().map_or(0, |chunk| chunk.invalid().len());
    // A cut character is at most three bytes and begins with a lead byte; anything else was wrong from the start.
    let begins_a_character = bytes.get(bytes.len() - cut).is_some_and(|byte| *byte >= 0xc2);
    if begins_a_character { &bytes[..bytes.len() - cut] } else { bytes }
}

/// Drops the end of a character whose beginning was not kept.
fn without_cut_start(bytes: &[u8]) -> &[u8] {
    let continuation = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
    &bytes[continuation..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(chunks: &[&[u8]], text: &str, escaped: usize) {
        let mut capture = Capture::default();
        for chunk in chunks {
            capture.push(chunk);
        }
        let captured = capture.finish();
        assert_eq!((captured.text.as_str(), captured.escaped), (text, escaped));
    }

    #[test]
    fn short_output_comes_back_whole() {
        check(&[], "", 0);
        check(&[b"a\n", b"b"], "a\nb", 0);
        check(&["é".as_bytes().split_at(1).0, "é".as_bytes().split_at(1).1], "é", 0);
    }

    #[test]
    fn what_is_not_utf8_is_shown() {
        check(&[b"ok\xf0\xff\x00end"], "ok\\xf0\\xff\\x00end", 3);
    }

    #[test]
    fn long_output_keeps_start_and_end_in_constant_memory() {
        let mut capture = Capture::default();
        for number in 0..100_000 {
            capture.push(format!("line {number}\n").as_bytes());
        }
        assert!(capture.tail.capacity() <= 4 * KEPT);
        let captured = capture.finish();
        assert!(captured.text.starts_with("line 0\nline 1\n"), "{}", &captured.text[..50]);
        assert!(captured.text.ends_with("\nline 99999\n"));
        assert!(captured.text.contains(&format!("\n[{} bytes omitted]\n", captured.omitted)));
        assert_eq!(captured.total, captured.omitted + 2 * KEPT as u64);
    }

    #[test]
    fn a_character_cut_by_the_middle_is_dropped_and_not_escaped() {
        let mut capture = Capture::default();
        capture.push(b"x");
        capture.push("é".repeat(3 * KEPT).as_bytes());
        let captured = capture.finish();
        assert_eq!(captured.escaped, 0);
        assert!(captured.text.starts_with("xé") && captured.text.ends_with('é'));
    }

    #[test]
    fn one_chunk_longer_than_all_that_is_kept() {
        let mut capture = Capture::default();
        capture.push(&vec![b'a'; 5 * KEPT]);
        capture.push(b"z");
        let captured = capture.finish();
        assert_eq!((captured.total, captured.omitted), (5 * KEPT as u64 + 1, 3 * KEPT as u64 + 1));
        assert!(captured.text.ends_with("az"));
    }
}
