//! Text from models, tools, files and other programs, on its way to a terminal.
//!
//! Such text may hold bytes that move the cursor, rewrite what was shown or reorder what is read. The raw type has no
//! `Display`, so the only way out is `escaped`, which makes each of them visible.

/// Text that somebody else wrote.
#[derive(Clone, Copy)]
pub(crate) struct Untrusted<'a>(&'a str);

impl<'a> Untrusted<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self(text)
    }

    /// The text with every control, direction and invisible character spelt out; newline and tab stay.
    pub(crate) fn escaped(self) -> String {
        let mut out = String::with_capacity(self.0.len());
        let mut before = '\0';
        let mut chars = self.0.chars().peekable();
        while let Some(c) = chars.next() {
            let is_line_end = c == '\r' && chars.peek() == Some(&'\n');
            let joins_emoji = c == '\u{200d}' && before >= '\u{2190}';
            if is_line_end {
                // A Windows line end is a line end.
            } else if is_hostile(c) && !joins_emoji {
                out.push_str(&format!("<U+{:04X}>", u32::from(c)));
            } else {
                out.push(c);
            }
            before = c;
        }
        out
    }

    /// The same on one line: newlines and runs of blanks become one blank, and what is over `max` characters is cut.
    pub(crate) fn one_line(self, max: usize) -> String {
        let joined = self.0.split_whitespace().collect::<Vec<_>>().join(" ");
        let escaped = Untrusted::new(&joined).escaped();
        if escaped.chars().count() <= max {
            return escaped;
        }
        let head: String = escaped.chars().take(max.saturating_sub(1)).collect();
        format!("{head}…")
    }
}

fn is_hostile(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => true, // C0, DEL, C1: CSI and OSC begin here
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' => true,
        '\u{e0000}'..='\u{e007f}' => true, // tags: a whole invisible alphabet
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, shown: &str) {
        assert_eq!(Untrusted::new(text).escaped(), shown);
    }

    #[test]
    fn nothing_invisible_reaches_the_terminal() {
        check("plain\ttext\nLine two: é 漢 🦀", "plain\ttext\nLine two: é 漢 🦀");
        check("\u{1b}[31mred\u{1b}]0;title\u{7}", "<U+001B>[31mred<U+001B>]0;title<U+0007>");
        check("\u{9b}2J", "<U+009B>2J");
        check("a\rb", "a<U+000D>b");
        check("a\r\nb", "a\nb");
        check("back\u{8}space \u{7f}", "back<U+0008>space <U+007F>");
        check("rm \u{202e}fdp.exe\u{2066}", "rm <U+202E>fdp.exe<U+2066>");
        check("zero\u{200b}width\u{feff} soft\u{ad}", "zero<U+200B>width<U+FEFF> soft<U+00AD>");
        check("tag\u{e0041}", "tag<U+E0041>");
        check("👩\u{200d}🔬 l\u{200d}s", "👩\u{200d}🔬 l<U+200D>s");
    }

    #[test]
    fn one_line_stays_one_line() {
        assert_eq!(Untrusted::new(" a\n\n b\tc ").one_line(20), "a b c");
        assert_eq!(Untrusted::new("abcdef").one_line(4), "abc…");
        assert_eq!(Untrusted::new("abcd").one_line(4), "abcd");
    }
}
