//! Shows where a text that does not match comes nearest, and in what it differs.
//!
//! Pure, and bounded: a model that missed by a space gets its answer in one round, a huge file costs no more.

use crate::text;

const MAX_LINES: usize = 50_000;
const MAX_COMPARED: usize = 4_000;
const MAX_SHOWN: usize = 3;
const MAX_LINE_BYTES: usize = 200;

/// The nearest lines of `content` and how `old` differs from them. `None` when nothing is near.
pub(super) fn nearest(content: &[u8], old: &str) -> Option<String> {
    let content = String::from_utf8_lossy(content);
    let lines: Vec<&str> = content.split('\n').take(MAX_LINES).collect();
    let wanted: Vec<&str> = old.split('\n').collect();
    // Blank lines at the ends match everywhere and say nothing.
    let first = wanted.iter().position(|line| !line.trim().is_empty())?;
    let start = by_equal_lines(&lines, &wanted).or_else(|| by_likeness(&lines, wanted.get(first)?, first))?;
    Some(described(&lines, &wanted, start, content.contains('\u{fffd}')))
}

/// The place where most lines are the same but for white space.
fn by_equal_lines(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let wanted: Vec<String> = wanted.iter().take(MAX_COMPARED).map(|line| squeezed(line)).collect();
    let lines: Vec<String> = lines.iter().map(|line| squeezed(line)).collect();
    let mut votes = std::collections::BTreeMap::<usize, usize>::new();
    let mut places = std::collections::HashMap::<&str, Vec<usize>>::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
        places.entry(line).or_default().push(at);
    }
    for (offset, line) in wanted.iter().enumerate() {
        for at in places.get(line.as_str()).into_iter().flatten().take(MAX_COMPARED) {
            if let Some(start) = at.checked_sub(offset) {
                *votes.entry(start).or_default() += 1;
            }
        }
    }
    let best = votes.values().max()?;
    votes.iter().find(|(_, votes)| *votes == best).map(|(start, _)| *start)
}

fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The place whose line is most like the first one that is wanted.
fn by_likeness(lines: &[&str], wanted: &str, offset: usize) -> Option<usize> {
    let wanted = text::prefix(wanted.trim(), MAX_LINE_BYTES);
    let mut known: Vec<&str> =
        lines.iter().map(|line| text::prefix(line.trim(), MAX_LINE_BYTES)).filter(|line| !line.is_empty()).collect();
    known.truncate(MAX_COMPARED);
    let inside = lines.iter().position(|line| line.contains(wanted));
    let at = inside.or_else(|| {
        let best = *similar::get_close_matches(wanted, &known, 1, 0.6).first()?;
        lines.iter().position(|line| text::prefix(line.trim(), MAX_LINE_BYTES) == best)
    })?;
    at.checked_sub(offset)
}

fn described(lines: &[&str], wanted: &[&str], start: usize, damaged: bool) -> String {
    let count = wanted.len();
    let last = (start + count).min(lines.len());
    let mut text = format!("Nearest: {} (· space, → tab, ␍ carriage return).", range(start + 1, last));
    let mut shown = 0;
    for (offset, wanted) in wanted.iter().enumerate() {
        let line = start + offset;
        let Some(has) = lines.get(line) else {
            text.push_str(&format!(
                "\nthe file ends at line {}, oldString goes on with `{}`",
                lines.len(),
                show(wanted)
            ));
            break;
        };
        let has_text = has.strip_suffix('\r').unwrap_or(has);
        // The first and the last line need only be parts of theirs.
        let fits = (offset > 0 || has_text.ends_with(wanted)) && (offset + 1 < count || has_text.starts_with(wanted));
        if has_text == *wanted || ((offset == 0 || offset + 1 == count) && fits) {
            continue;
        }
        if shown == MAX_SHOWN {
            text.push_str("\nmore lines differ");
            break;
        }
        shown += 1;
        text.push_str(&format!("\nline {}: file has  `{}`\n  oldString has `{}`", line + 1, show(has), show(wanted)));
    }
    if damaged {
        text.push_str("\nBytes that are not UTF-8 are shown as U+FFFD and cannot be matched by it: leave them out.");
    }
    text
}

fn range(first: usize, last: usize) -> String {
    if first >= last { format!("line {first}") } else { format!("lines {first}-{last}") }
}

fn show(line: &str) -> String {
    text::clip(&text::visible(line), MAX_LINE_BYTES).into_owned()
}
