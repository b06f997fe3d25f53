//! The unified diff, plain or from git. Hunks are read by the counts in their headers, so that a deleted line that
//! begins with `-- ` is no header.
//!
//! What would be lost in silence is an error: wrong counts, mode changes, copies, binary content.

use super::{FilePatch, Hunk, HunkLine, LineKind, Lines, ParseError, Place, check_changes};

const GIT: &str = "diff --git ";

/// What stands above the hunks of one file.
#[derive(Default)]
struct Header {
    /// Of `diff --git`, where both sides have one name.
    git_path: Option<String>,
    rename_from: Option<String>,
    rename_to: Option<String>,
    is_new: bool,
    is_deleted: bool,
}

pub(super) fn parse(lines: &mut Lines<'_>) -> Result<Vec<FilePatch>, ParseError> {
    let mut files = Vec::new();
    loop {
        lines.skip_blank();
        let Some(line) = lines.peek() else { return Ok(files) };
        let header = if line.starts_with(GIT) { header(lines)? } else { Header::default() };
        let start = lines.number();
        let has_names = lines.peek().is_some_and(|line| line.starts_with("--- "));
        if !has_names && header.git_path.is_none() && header.rename_from.is_none() {
            return Err(lines.error(format!("expected `--- a/path` or `*** Begin Patch`, found `{line}`")));
        }
        let names = if has_names { Some(names(lines)?) } else { None };
        let hunks = hunks(lines)?;
        files.push(file(header, names, hunks).map_err(|fact| ParseError { line: start, fact })?);
    }
}

fn header(lines: &mut Lines<'_>) -> Result<Header, ParseError> {
    let mut header = Header { git_path: lines.take(GIT).and_then(one_name), ..Header::default() };
    let mut old_mode = None;
    while let Some(line) = lines.peek() {
        if let Some(path) = lines.take("rename from ") {
            header.rename_from = Some(path.to_owned());
        } else if let Some(path) = lines.take("rename to ") {
            header.rename_to = Some(path.to_owned());
        } else if line.starts_with("new file mode ") {
            if line.trim_end() != "new file mode 100644" {
                return Err(lines.error("only plain files can be created; set another mode with a command"));
            }
            header.is_new = true;
            lines.skip();
        } else if lines.take("deleted file mode ").is_some() {
            header.is_deleted = true;
        } else if let Some(mode) = lines.take("old mode ") {
            old_mode = Some(mode);
        } else if let Some(mode) = line.strip_prefix("new mode ") {
            if old_mode != Some(mode.trim_end()) {
                return Err(lines.error("a patch cannot change a mode; use a command for that"));
            }
            lines.skip();
        } else if ["copy from ", "copy to ", "GIT binary patch", "Binary files "]
            .iter()
            .any(|start| line.starts_with(start))
        {
            return Err(lines.error(format!("`{line}` is not supported")));
        } else if ["index ", "similarity index ", "dissimilarity index "].iter().any(|start| line.starts_with(start)) {
            lines.skip();
        } else {
            break;
        }
    }
    Ok(header)
}

/// The name in `a/NAME b/NAME`.
fn one_name(both: &str) -> Option<String> {
    let half = both.len().checked_sub(1)? / 2;
    let (old, new) = (both.get(..half)?, both.get(half + 1..)?);
    let name = old.strip_prefix("a/")?;
    (new.strip_prefix("b/")? == name).then(|| name.to_owned())
}

/// The two names; `None` stands for `/dev/null`.
type Names = (Option<String>, Option<String>);

fn names(lines: &mut Lines<'_>) -> Result<Names, ParseError> {
    let quoted = "a quoted path is not supported; write it plainly";
    let old = lines.take("--- ").map(name).ok_or_else(|| lines.error("expected `--- path`"))?;
    if old.as_deref().is_some_and(|name| name.starts_with('"')) {
        return Err(lines.error(quoted));
    }
    let Some(new) = lines.take("+++ ").map(name) else {
        return Err(lines.error("expected `+++ path` after `--- path`"));
    };
    if new.as_deref().is_some_and(|name| name.starts_with('"')) {
        return Err(lines.error(quoted));
    }
    let (plain_old, plain_new) = (stripped(old.as_deref(), "a/"), stripped(new.as_deref(), "b/"));
    // Only both prefixes together are git's; one of them alone is a folder's name.
    let is_git = (old.is_none() || plain_old.is_some()) && (new.is_none() || plain_new.is_some());
    Ok(if is_git { (plain_old, plain_new) } else { (old, new) })
}

fn name(text: &str) -> Option<String> {
    let name = text.split('\t').next().unwrap_or(text).trim_end();
    (name != "/dev/null").then(|| name.to_owned())
}

fn stripped(name: Option<&str>, prefix: &str) -> Option<String> {
    name?.strip_prefix(prefix).map(str::to_owned)
}

fn hunks(lines: &mut Lines<'_>) -> Result<Vec<Hunk>, ParseError> {
    let mut hunks = Vec::new();
    loop {
        lines.skip_blank();
        let Some(line) = lines.peek() else { return Ok(hunks) };
        if !line.starts_with("@@") {
            // A file's header may follow. A line of a hunk here means that the counts were wrong.
            let is_header =
                line.starts_with("--- ") && lines.peek_second().is_some_and(|next| next.starts_with("+++ "));
            if !is_header && line.starts_with([' ', '+', '-', '\\']) && !hunks.is_empty() {
                return Err(lines.error(format!("the hunk has more lines than its header counts: `{line}`")));
            }
            return Ok(hunks);
        }
        hunks.push(hunk(lines, line)?);
    }
}

fn hunk(lines: &mut Lines<'_>, header: &str) -> Result<Hunk, ParseError> {
    let patch_line = lines.number();
    let Some(((start, old), (_, new))) = ranges(header) else {
        return Err(lines.error(format!("`{header}` is no hunk header; it reads `@@ -LINE,COUNT +LINE,COUNT @@`")));
    };
    lines.skip();
    let (mut old_left, mut new_left) = (old, new);
    let mut body: Vec<HunkLine> = Vec::new();
    while old_left > 0 || new_left > 0 {
        let missing = ParseError {
            line: lines.number(),
            fact: format!(
                "`{header}` counts {old} old and {new} new lines, but the hunk ends after {} and {}",
                old - old_left,
                new - new_left
            ),
        };
        let Some(line) = lines.body_line() else { return Err(missing) };
        let (takes_old, takes_new) = (line.kind != LineKind::Added, line.kind != LineKind::Removed);
        match (old_left.checked_sub(usize::from(takes_old)), new_left.checked_sub(usize::from(takes_new))) {
            (Some(old), Some(new)) => (old_left, new_left) = (old, new),
            _ => return Err(missing),
        }
        body.push(line);
    }
    check_changes(&body, patch_line)?;
    if start == 0 && old > 0 {
        return Err(ParseError { line: patch_line, fact: "lines count from 1".into() });
    }
    Ok(Hunk { patch_line, place: Place::At(start), lines: body })
}

/// Start and count.
type Range = (usize, usize);

fn ranges(header: &str) -> Option<(Range, Range)> {
    let (old, rest) = header.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    Some((range(old)?, range(new)?))
}

fn range(text: &str) -> Option<Range> {
    match text.split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    }
}

fn file(header: Header, names: Option<Names>, hunks: Vec<Hunk>) -> Result<FilePatch, String> {
    let git = header.git_path;
    if let (Some(from), Some(to)) = (header.rename_from, header.rename_to) {
        if names.is_some_and(|names| names != (Some(from.clone()), Some(to.clone()))) {
            return Err("the names of the rename and of the hunks differ".into());
        }
        return Ok(FilePatch::Change { from, to, hunks });
    }
    match names.unwrap_or_else(|| (git.clone().filter(|_| !header.is_new), git.filter(|_| !header.is_deleted))) {
        (None, None) => Err("both sides are /dev/null".into()),
        (None, Some(path)) => Ok(FilePatch::Add { path, content: content(&hunks)? }),
        (Some(path), None) => Ok(FilePatch::Delete { path, hunks }),
        (Some(from), Some(to)) if from != to => Err(format!(
            "the names differ, `{from}` and `{to}`; a move needs `rename from` and `rename to` below `diff --git`"
        )),
        (Some(path), Some(_)) if hunks.is_empty() => Err(format!("nothing is said to change in {path}")),
        (Some(path), Some(to)) => Ok(FilePatch::Change { from: path, to, hunks }),
    }
}

fn content(hunks: &[Hunk]) -> Result<String, String> {
    let mut content = String::new();
    if hunks.len() > 1 {
        return Err("a new file has one hunk".into());
    }
    for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
        if line.kind != LineKind::Added {
            return Err("a new file has only added lines".into());
        }
        content.push_str(&line.text);
        if !line.is_unterminated {
            content.push('\n');
        }
    }
    Ok(content)
}
