//! Finds exact text in a file's bytes and puts other text in its place, touching nothing else.
//!
//! Pure. Text with LF ends also matches CRLF ends; the new text then takes the ends of what it replaces. Both kinds
//! count as matches of one text, so that a twin in the other style makes it ambiguous. Text that names `\r` itself is
//! taken byte for byte.

use std::ops::Range;

/// Where `old` stands in `content`: also overlapping places, in order.
pub(super) fn places(content: &[u8], old: &str) -> Vec<Range<usize>> {
    let finder = memchr::memmem::Finder::new(old);
    if old.contains('\r') || !old.contains('\n') {
        return starts(&finder, content).map(|at| at..at + old.len()).collect();
    }
    let (plain, ends) = without_returns(content);
    // `ends` holds where in `plain` a CRLF was; each one before a place moves it one byte further in `content`.
    starts(&finder, &plain)
        .map(|at| {
            let end = at + old.len();
            at + ends.partition_point(|crlf| *crlf < at)..end + ends.partition_point(|crlf| *crlf < end)
        })
        .collect()
}

fn starts(finder: &memchr::memmem::Finder<'_>, haystack: &[u8]) -> impl Iterator<Item = usize> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = from + finder.find(haystack.get(from..)?)?;
        from = at + 1;
        Some(at)
    })
}

fn without_returns(content: &[u8]) -> (Vec<u8>, Vec<usize>) {
    let mut plain = Vec::with_capacity(content.len());
    let mut ends = Vec::new();
    let mut from = 0;
    for at in memchr::memmem::find_iter(content, b"\r\n") {
        plain.extend_from_slice(content.get(from..at).unwrap_or_default());
        ends.push(plain.len());
        from = at + 1;
    }
    plain.extend_from_slice(content.get(from..).unwrap_or_default());
    (plain, ends)
}

/// The places that do not overlap an earlier one: what replacing all of them means.
pub(super) fn apart(places: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut end = 0;
    let mut kept = Vec::new();
    for place in places {
        if place.start >= end {
            end = place.end;
            kept.push(place.clone());
        }
    }
    kept
}

/// `content` with `new` instead of `old` at each of `places`, which do not overlap.
pub(super) fn replaced(content: &[u8], places: &[Range<usize>], old: &str, new: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + places.len() * new.len());
    // Found once, because one line may hold very many places.
    let newlines: Vec<usize> =
        if new.contains('\n') { memchr::memchr_iter(b'\n', content).collect() } else { Vec::new() };
    let mut from = 0;
    for place in places {
        out.extend_from_slice(content.get(from..place.start).unwrap_or_default());
        if old.contains('\r') {
            out.extend_from_slice(new.as_bytes());
        } else {
            let own = content.get(place.clone()).unwrap_or_default();
            put_with_ends(&mut out, &crlf_ends(own), is_crlf_near(content, &newlines, place.start), (old, new));
        }
        from = place.end;
    }
    out.extend_from_slice(content.get(from..).unwrap_or_default());
    out
}

/// Writes `new` with the line ends of the place it fills: unchanged lines keep theirs, others take their neighbour's.
fn put_with_ends(out: &mut Vec<u8>, own: &[bool], is_crlf_near: bool, (old, new): (&str, &str)) {
    let total = new.matches('\n').count();
    let head = common_ends(old.bytes(), new.bytes()).min(own.len()).min(total);
    let tail = common_ends(old.bytes().rev(), new.bytes().rev()).min(own.len() - head).min(total - head);
    let around = own.get(head.saturating_sub(1)).copied().unwrap_or(is_crlf_near);
    let mut current = around;
    let mut number = 0;
    let mut last = 0;
    for byte in new.bytes() {
        // A CRLF that the new text itself names is meant literally.
        if byte == b'\n' {
            let from_end = total - number;
            if number < head {
                current = own.get(number).copied().unwrap_or(around);
            } else if from_end <= tail {
                current = own.get(own.len() - from_end).copied().unwrap_or(around);
            } else if number < own.len() - tail {
                current = own.get(number).copied().unwrap_or(around);
            }
            if current && last != b'\r' {
                out.push(b'\r');
            }
            number += 1;
        }
        out.push(byte);
        last = byte;
    }
}

/// For each line end in `bytes`, whether it is CRLF.
fn crlf_ends(bytes: &[u8]) -> Vec<bool> {
    memchr::memchr_iter(b'\n', bytes).map(|at| at > 0 && bytes.get(at - 1) == Some(&b'\r')).collect()
}

/// Whether the line that `at` stands in ends in CRLF; for the last line, the one before it.
fn is_crlf_near(content: &[u8], newlines: &[usize], at: usize) -> bool {
    let next = newlines.partition_point(|newline| *newline < at);
    let end = newlines.get(next).or_else(|| newlines.last());
    end.is_some_and(|end| *end > 0 && content.get(end - 1) == Some(&b'\r'))
}

/// How many line ends the two have in common before they differ.
fn common_ends(old: impl Iterator<Item = u8>, new: impl Iterator<Item = u8>) -> usize {
    old.zip(new).take_while(|(old, new)| old == new).filter(|(old, _)| *old == b'\n').count()
}

/// The 1-based line that a byte stands in.
pub(super) fn line_of(content: &[u8], at: usize) -> usize {
    1 + memchr::memchr_iter(b'\n', content.get(..at).unwrap_or_default()).count()
}

#[cfg(test)]
mod tests;
