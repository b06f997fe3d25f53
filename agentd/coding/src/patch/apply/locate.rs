//! Where a hunk's old lines stand, or why they do not.

use super::Line;
use crate::patch::{Hunk, HunkLine, Place};
use crate::text;

const MAX_SHOWN_BYTES: usize = 160;
const MAX_SHOWN_PLACES: usize = 10;

/// The 0-based line where the hunk begins, not before `from`, where the hunk before it ended.
pub(super) fn locate(lines: &[Line<'_>], from: usize, hunk: &Hunk) -> Result<usize, String> {
    let old: Vec<&HunkLine> = hunk.old().collect();
    let at = match &hunk.place {
        Place::At(line) => stated(lines, from, *line, &old)?,
        Place::Found { anchors, at_end } => found(lines, from, anchors, *at_end, &old)?,
    };
    // An added line behind a line that is said to be the last has no place.
    let last = old.iter().position(|line| line.is_unterminated);
    if last.is_some_and(|last| last + 1 < old.len()) {
        return Err("`\\ No newline at end of file` stands at a line that is not the last".into());
    }
    Ok(at)
}

fn stated(lines: &[Line<'_>], from: usize, line: usize, old: &[&HunkLine]) -> Result<usize, String> {
    let at = if old.is_empty() { line } else { line.saturating_sub(1) };
    if at < from {
        return Err(format!("it begins at line {line}, but the hunk before it goes to line {from}"));
    }
    let end = at + old.len();
    if end > lines.len() {
        return Err(format!("it goes to line {end}, but the file has {}", text::count(lines.len() as u64, "line")));
    }
    let Some(differs) = first_difference(lines, at, old) else { return Ok(at) };
    let mut fact = difference(lines, at, differs, old);
    if let [elsewhere] = places(lines, 0, old).as_slice() {
        fact.push_str(&format!("; the hunk's old lines stand at line {}", elsewhere + 1));
    }
    Err(fact)
}

fn found(
    lines: &[Line<'_>],
    from: usize,
    anchors: &[String],
    at_end: bool,
    old: &[&HunkLine],
) -> Result<usize, String> {
    let anchor = anchored(lines, from, anchors)?;
    if old.is_empty() {
        return Ok(if at_end { lines.len() } else { anchor.map_or(from, |anchor| anchor + 1) });
    }
    if at_end {
        let at = lines.len().checked_sub(old.len()).filter(|at| *at >= from);
        let at = at.ok_or("it has more old lines than are left before the end of the file")?;
        return match first_difference(lines, at, old) {
            None => Ok(at),
            Some(differs) => Err(format!("it belongs at the end of the file; {}", difference(lines, at, differs, old))),
        };
    }
    let places = places(lines, anchor.unwrap_or(from), old);
    match (places.as_slice(), anchor) {
        ([only], _) | ([only, ..], Some(_)) => Ok(*only),
        ([], _) => Err(nowhere(lines, anchor.unwrap_or(from), old)),
        (many, None) => Err(format!(
            "its old lines stand at several places, {}; give more lines of context or `@@ ` and a line above the right one",
            numbers(many)
        )),
    }
}

/// The line of the last anchor. The first must be unique, or it would say nothing.
fn anchored(lines: &[Line<'_>], from: usize, anchors: &[String]) -> Result<Option<usize>, String> {
    let mut at = None;
    for anchor in anchors {
        let start = at.map_or(from, |at| at + 1);
        let is_anchor = |line: &Line<'_>| line.body.trim_ascii() == anchor.as_bytes();
        let found: Vec<usize> = (start..lines.len()).filter(|at| lines.get(*at).is_some_and(is_anchor)).collect();
        at = match (found.as_slice(), at) {
            ([], _) => return Err(format!("no line from line {} on is `{anchor}`", start + 1)),
            ([only], _) | ([only, ..], Some(_)) => Some(*only),
            (many, None) => return Err(format!("`@@ {anchor}` is several lines, {}; use a unique one", numbers(many))),
        };
    }
    Ok(at)
}

fn places(lines: &[Line<'_>], from: usize, old: &[&HunkLine]) -> Vec<usize> {
    let Some(last) = lines.len().checked_sub(old.len()) else { return Vec::new() };
    (from..=last).filter(|at| first_difference(lines, *at, old).is_none()).collect()
}

/// Which of the old lines is the first that differs.
fn first_difference(lines: &[Line<'_>], at: usize, old: &[&HunkLine]) -> Option<usize> {
    old.iter()
        .enumerate()
        .find(|(offset, old)| !lines.get(at + offset).is_some_and(|line| fits(line, old)))
        .map(|(at, _)| at)
}

fn fits(line: &Line<'_>, old: &HunkLine) -> bool {
    line.body == old.text.as_bytes() && (!old.is_unterminated || line.end.is_empty())
}

fn difference(lines: &[Line<'_>], at: usize, differs: usize, old: &[&HunkLine]) -> String {
    let expected = old.get(differs);
    let wanted = expected.map_or(String::new(), |line| shown(line.text.as_bytes()));
    let number = at + differs + 1;
    match lines.get(at + differs) {
        Some(line)
            if expected.is_some_and(|expected| expected.is_unterminated && line.body == expected.text.as_bytes()) =>
        {
            format!("line {number} ends in a newline, the patch says it has none")
        }
        Some(line) => format!("line {number} is `{}`, the patch expects `{wanted}`", shown(line.body)),
        None => format!("the file ends before line {number}, the patch expects `{wanted}`"),
    }
}

fn nowhere(lines: &[Line<'_>], from: usize, old: &[&HunkLine]) -> String {
    let before = places(lines, 0, old);
    if !before.is_empty() {
        return format!(
            "out of order: its old lines stand at {}, above what the hunk before it changed or its anchor",
            numbers(&before)
        );
    }
    // Where most of it fits is where it was meant.
    let fit = |at: usize| first_difference(lines, at, old).unwrap_or(old.len());
    let best = (from..lines.len()).max_by_key(|at| (fit(*at), std::cmp::Reverse(*at)));
    match best.filter(|at| fit(*at) > 0) {
        Some(at) => format!(
            "its old lines are not in the file; nearest at line {}: {}",
            at + 1,
            difference(lines, at, fit(at), old)
        ),
        None => {
            let first = old.first().map_or(String::new(), |line| shown(line.text.as_bytes()));
            format!("its old lines are not in the file from line {} on; no line there is `{first}`", from + 1)
        }
    }
}

fn shown(line: &[u8]) -> String {
    text::clip(&text::visible(&String::from_utf8_lossy(line)), MAX_SHOWN_BYTES).into_owned()
}

fn numbers(places: &[usize]) -> String {
    let lines: Vec<_> = places.iter().take(MAX_SHOWN_PLACES).map(|at| (at + 1).to_string()).collect();
    format!("line {}{}", lines.join(", "), if places.len() > MAX_SHOWN_PLACES { " and more" } else { "" })
}
