//! Reads a command line, in two ways that err on opposite sides.
//!
//! `plain_words` is strict: one command of plain words, or nothing. What may run unasked is judged by it. `commands`
//! is lenient: every run of words that might be executed, however deep. What must not run is judged by it. Neither
//! is a shell: a command can hide from `commands` behind a variable, which is why a line that is not plain asks.

mod lenient;
mod risks;

pub(crate) use lenient::commands;
pub(crate) use risks::risks;

/// Programs that run what their arguments say. A rule with open arguments must not allow one, nor may "always".
const RUNNERS: &[&str] = &[
    ".",
    "awk",
    "bash",
    "builtin",
    "bun",
    "busybox",
    "chroot",
    "command",
    "coproc",
    "dash",
    "deno",
    "doas",
    "env",
    "eval",
    "exec",
    "fish",
    "flock",
    "gawk",
    "ionice",
    "ksh",
    "lua",
    "nice",
    "node",
    "nohup",
    "nsenter",
    "parallel",
    "perl",
    "php",
    "pkexec",
    "python",
    "python2",
    "python3",
    "ruby",
    "runuser",
    "script",
    "setsid",
    "sh",
    "source",
    "ssh",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "tclsh",
    "time",
    "timeout",
    "trap",
    "unshare",
    "watch",
    "xargs",
    "zsh",
];

/// First words that make the rest something else than one command.
const RESERVED: &[&str] = &[
    "case", "declare", "do", "done", "elif", "else", "esac", "export", "fi", "for", "function", "if", "in", "let",
    "local", "readonly", "select", "set", "shopt", "then", "typeset", "unset", "until", "while",
];

/// The words of a command that is exactly one program with plain arguments, else `None`.
///
/// Quotes are fine around arguments as long as nothing in them is expanded; the program must stand bare.
pub(crate) fn plain_words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = command.trim_matches([' ', '\t']).chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' => words.extend(word.take()),
            // A program that is quoted is a program that hides.
            '\'' | '"' if words.is_empty() => return None,
            '\'' | '"' => quoted(character, &mut characters, word.get_or_insert_default())?,
            other if is_plain(other) => word.get_or_insert_default().push(other),
            _ => return None,
        }
    }
    words.extend(word);
    let program = words.first()?;
    (!program.contains('=') && !RESERVED.contains(&program.as_str())).then_some(words)
}

fn quoted(quote: char, characters: &mut std::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match characters.next()? {
            end if end == quote => return Some(()),
            '$' | '`' | '\\' | '!' if quote == '"' => return None,
            inner if inner == ' ' || is_visible(inner) => word.push(inner),
            _ => return None,
        }
    }
}

/// Whether the shell takes the character for itself, outside quotes.
fn is_plain(character: char) -> bool {
    is_visible(character) && !";&|<>$`(){}*?[]#!~\\^".contains(character)
}

/// Whether a person sees it. Blanks other than the space, controls and characters without a shape of their own are not.
pub(crate) fn is_visible(character: char) -> bool {
    !character.is_whitespace() && !character.is_control() && !is_shapeless(character)
}

/// Zero-width, direction-changing, filler and tag characters.
fn is_shapeless(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether the program runs what its arguments say, so that "with any arguments" would mean anything at all.
pub(crate) fn is_runner(program: &str) -> bool {
    let name = base_name(program);
    // python3.12, lua5.4: a version does not make it another program.
    let plain = name.trim_end_matches(|character: char| character.is_ascii_digit() || character == '.');
    RUNNERS.contains(&name) || RUNNERS.contains(&plain)
}

/// The last component of a path.
pub(crate) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

#[cfg(test)]
mod tests;
