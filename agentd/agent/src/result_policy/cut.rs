//! Cuts text to a number of bytes, at the ends of lines where it can and of characters always. Pure.
//!
//! A line that alone would take too much of the room is clipped inside, so that it never crowds out the others.

/// Room for one marker with the largest number in it.
const MARKER_BYTES: usize = 48;

/// With less room than this there are no markers.
const LEAST_BYTES: usize = 8 * MARKER_BYTES;

/// As many lines from the start as fit into `max_bytes`, and how much was left out.
pub(super) fn head(text: &str, max_bytes: usize) -> String {
    cut(text, max_bytes, Share { head: 1, of: 1 })
}

/// Two thirds of `max_bytes` from the start and one third from the end, and how much was left out between them.
pub(super) fn head_and_tail(text: &str, max_bytes: usize) -> String {
    cut(text, max_bytes, Share { head: 2, of: 3 })
}

#[derive(Clone, Copy)]
struct Share {
    head: usize,
    of: usize,
}

fn cut(text: &str, max_bytes: usize, share: Share) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    if max_bytes < LEAST_BYTES {
        return text[..text.floor_char_boundary(max_bytes)].to_owned();
    }
    let room = max_bytes - MARKER_BYTES;
    let one_line = !text.trim_end_matches('\n').contains('\n');
    let line_bytes = if one_line { room } else { room / 4 };
    let head_room = if one_line { room } else { room * share.head / share.of };

    let mut kept = String::new();
    let rest = take_lines(text.split_inclusive('\n'), head_room, line_bytes, |line| kept.push_str(line));
    let rest = &text[rest..];

    let mut tail = Vec::new();
    let taken = take_lines(rest.split_inclusive('\n').rev(), room - head_room, line_bytes, |line| {
        tail.push(line.to_owned());
    });
    let omitted = rest.len() - taken;
    if omitted > 0 {
        kept.push_str(&marker(omitted));
        kept.push_str(if tail.is_empty() { "" } else { "\n" });
    }
    kept.extend(tail.into_iter().rev());
    kept
}

/// Gives lines to `keep` while there is room for them; returns how much of the text they are.
fn take_lines<'a>(
    lines: impl Iterator<Item = &'a str>,
    mut room: usize,
    line_bytes: usize,
    mut keep: impl FnMut(&str),
) -> usize {
    let mut taken = 0;
    for line in lines {
        let clipped = clip(line, line_bytes);
        if clipped.len() > room {
            break;
        }
        room -= clipped.len();
        taken += line.len();
        keep(&clipped);
    }
    taken
}

/// The line without its middle when it is longer than `max_bytes`.
fn clip(line: &str, max_bytes: usize) -> std::borrow::Cow<'_, str> {
    if line.len() <= max_bytes {
        return line.into();
    }
    let room = max_bytes.saturating_sub(MARKER_BYTES);
    let head = line.floor_char_boundary(room * 2 / 3);
    let tail = line.ceil_char_boundary(line.len() - room / 3);
    format!("{}{}{}", &line[..head], marker(tail - head), &line[tail..]).into()
}

fn marker(bytes: usize) -> String {
    format!("… {bytes} bytes omitted …")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What the markers in `text` say was left out, and how long they are themselves.
    fn marked(text: &str) -> (usize, usize) {
        let numbers = text.split("… ").skip(1).filter_map(|rest| rest.split_once(" bytes omitted …")?.0.parse().ok());
        numbers.fold((0, 0), |(omitted, markers), bytes: usize| (omitted + bytes, markers + marker(bytes).len()))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_cap_holds_and_what_fits_is_untouched(text in "[a-zäß€😀\n]{0,500}", max in 0_usize..600) {
            for cut in [head(&text, max), head_and_tail(&text, max)] {
                prop_assert!(cut.len() <= max);
                prop_assert!(text.len() > max || cut == text);
            }
        }

        #[test]
        fn what_is_left_out_is_counted(text in "([a-zäß€]{0,40}\n|[a-z😀]{500,800}\n?){0,12}", max in LEAST_BYTES..3000) {
            for cut in [head(&text, max), head_and_tail(&text, max)] {
                let (omitted, markers) = marked(&cut);
                let kept = cut.len() - markers;
                let own_line = usize::from(kept + omitted > text.len());
                prop_assert_eq!(kept + omitted - own_line, text.len());
            }
        }
    }

    #[test]
    fn the_start_and_the_end_are_kept_as_whole_lines() {
        let text: String = (1..=200).map(|n| format!("line {n}\n")).collect();
        let cut = head_and_tail(&text, 600);
        assert!(cut.starts_with("line 1\nline 2\n") && cut.ends_with("line 199\nline 200\n"), "{cut}");
        assert!(cut.lines().all(|line| line.starts_with("line ") || line.starts_with("… ")), "{cut}");
        assert!(cut.len() > 500);
        let cut = head(&text, 600);
        assert!(cut.starts_with("line 1\nline 2\n") && cut.ends_with(" bytes omitted …"), "{cut}");
    }

    #[test]
    fn one_long_line_does_not_crowd_out_the_others() {
        let text = format!("before\n{}\nafter\n", "x".repeat(100_000));
        let cut = head_and_tail(&text, 1000);
        assert!(cut.starts_with("before\nxx") && cut.ends_with("xx\nafter\n"), "{cut}");
        let cut = head(&"y".repeat(100_000), 1000);
        assert!(cut.len() > 900 && cut.starts_with("yy") && cut.ends_with("yy"), "{cut}");
    }
}
