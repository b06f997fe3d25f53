//! The `*** Begin Patch` form: no line numbers, a hunk stands where its old lines are found.

use super::{FilePatch, Hunk, HunkLine, LineKind, Lines, ParseError, Place, check_changes};

pub(super) const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const END_OF_FILE: &str = "*** End of File";

pub(super) fn parse(lines: &mut Lines<'_>) -> Result<Vec<FilePatch>, ParseError> {
    lines.skip();
    let mut files = Vec::new();
    loop {
        lines.skip_blank();
        let Some(line) = lines.peek() else {
            return Err(lines.error(format!("the patch is cut off: `{END}` is missing")));
        };
        if line.trim_end() == END {
            lines.skip();
            break;
        }
        if let Some(path) = lines.take("*** Add File: ") {
            files.push(FilePatch::Add { path: path.trim().to_owned(), content: content(lines)? });
        } else if let Some(path) = lines.take("*** Delete File: ") {
            files.push(FilePatch::Delete { path: path.trim().to_owned(), hunks: Vec::new() });
        } else if let Some(path) = lines.take("*** Update File: ") {
            files.push(update(lines, path.trim())?);
        } else {
            let expected = "expected `*** Add File: `, `*** Update File: `, `*** Delete File: ` or `*** End Patch`";
            return Err(lines.error(format!("{expected}, found `{line}`")));
        }
    }
    lines.skip_blank();
    match lines.peek() {
        Some(line) => Err(lines.error(format!("`{line}` stands behind `{END}`"))),
        None => Ok(files),
    }
}

fn content(lines: &mut Lines<'_>) -> Result<String, ParseError> {
    let mut content = String::new();
    while let Some(line) = lines.peek() {
        if line.starts_with("*** ") {
            break;
        }
        let Some(text) = line.strip_prefix('+') else {
            lines.skip_blank();
            if lines.peek().is_none_or(|line| line.starts_with("*** ")) {
                break;
            }
            return Err(lines.error("each line of a new file begins with `+`"));
        };
        content.push_str(text);
        content.push('\n');
        lines.skip();
    }
    if lines.take("\\ ").is_some() {
        content.pop();
    }
    Ok(content)
}

fn update(lines: &mut Lines<'_>, path: &str) -> Result<FilePatch, ParseError> {
    let start = lines.number();
    let to = lines.take("*** Move to: ").map_or(path, str::trim).to_owned();
    let mut hunks = Vec::new();
    loop {
        if lines.peek().is_some_and(|line| line.trim().is_empty()) && hunks.is_empty() && is_over(lines) {
            lines.skip_blank();
        }
        match lines.peek() {
            Some(line) if !line.starts_with("*** ") => hunks.push(hunk(lines)?),
            Some(_) | None => break,
        }
    }
    if hunks.is_empty() && to == path {
        return Err(ParseError { line: start, fact: format!("nothing is said to change in {path}") });
    }
    Ok(FilePatch::Change { from: path.to_owned(), to, hunks })
}

/// Whether only blank lines stand before the next file.
fn is_over(lines: &Lines<'_>) -> bool {
    let rest = lines.lines.get(lines.at..).unwrap_or_default();
    rest.iter().find(|line| !line.trim().is_empty()).is_none_or(|line| line.starts_with("*** "))
}

fn hunk(lines: &mut Lines<'_>) -> Result<Hunk, ParseError> {
    let patch_line = lines.number();
    let mut anchors = Vec::new();
    while let Some(anchor) = lines.take("@@") {
        if anchor.starts_with(" -") && anchor.trim_end().ends_with("@@") {
            let fact = "line numbers do not belong into this form; write `@@` or `@@ ` and a line of the file";
            return Err(ParseError { line: lines.number() - 1, fact: fact.into() });
        }
        if !anchor.trim().is_empty() {
            anchors.push(anchor.trim().to_owned());
        }
    }
    let mut body: Vec<HunkLine> = Vec::new();
    let mut at_end = false;
    while let Some(line) = lines.peek() {
        if line.trim_end() == END_OF_FILE {
            lines.skip();
            at_end = true;
            break;
        }
        if line.starts_with("@@") || line.starts_with("*** ") || (line.trim().is_empty() && is_over(lines)) {
            lines.skip_blank();
            break;
        }
        let taken = lines.body_line();
        body.push(taken.ok_or_else(|| lines.error(format!("`{line}` begins with none of space, `-`, `+`")))?);
    }
    check_changes(&body, patch_line)?;
    if anchors.is_empty() && !at_end && body.iter().all(|line| line.kind == LineKind::Added) {
        let fact = "the hunk has nothing that says where it belongs; give a line before or after it";
        return Err(ParseError { line: patch_line, fact: fact.into() });
    }
    Ok(Hunk { patch_line, place: Place::Found { anchors, at_end }, lines: body })
}
