//! A diff, or any block of somebody else's text, for a terminal.

use crate::render::Paint;
use crate::untrusted::Untrusted;

/// The text line by line, with added and removed lines coloured if it is a diff.
///
/// `max_lines` cuts what is longer and says so; `None` shows all. Lines are never wrapped or indented, so that what is
/// shown can be read and copied as it is. Ends in a newline unless empty.
pub(crate) fn diff(text: &str, paint: Paint, max_lines: Option<usize>) -> String {
    let is_diff =
        text.starts_with("--- ") || text.starts_with("diff ") || text.contains("\n@@ ") || text.starts_with("@@ ");
    let lines: Vec<&str> = text.lines().collect();
    let shown = max_lines.map_or(lines.len(), |max| max.min(lines.len()));
    let mut out = String::new();
    for line in &lines[..shown] {
        let safe = Untrusted::new(line).escaped();
        let painted = match line.as_bytes().first() {
            _ if !is_diff => safe,
            _ if line.starts_with("+++") || line.starts_with("---") => paint.bold(&safe),
            Some(b'+') => paint.green(&safe),
            Some(b'-') => paint.red(&safe),
            Some(b'@') => paint.cyan(&safe),
            _ => safe,
        };
        out.push_str(&painted);
        out.push('\n');
    }
    if shown < lines.len() {
        out.push_str(&paint.dim(&format!("… {} more lines", lines.len() - shown)));
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn a_diff_is_coloured_and_a_command_is_not() {
        let text = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n-old\n+new\u{1b}[0m";
        assert_snapshot!(diff(text, Paint::Colour, None).replace('\u{1b}', "ESC"), @r"
        ESC[1m--- a/xESC[0m
        ESC[1m+++ b/xESC[0m
        ESC[36m@@ -1,2 +1,2 @@ESC[0m
         same
        ESC[31m-oldESC[0m
        ESC[32m+new<U+001B>[0mESC[0m
        ");
        assert_eq!(diff("-rf is an option\n+x too", Paint::Colour, None), "-rf is an option\n+x too\n");
        assert_eq!(diff("a\nb\nc", Paint::Plain, Some(1)), "a\n… 2 more lines\n");
        assert_eq!(diff("", Paint::Plain, None), "");
    }
}
