//! Every run of words in a command line that might be executed, found without understanding the line.
//!
//! Finds too much rather than too little: only refusals and questions are built on it.

use super::is_runner;

/// How deep quoted scripts are looked into: `bash -c "bash -c '…'"`.
const MAX_DEPTH: usize = 8;

/// The runs, each without quotes, backslashes and what separates commands.
pub(crate) fn commands(line: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    collect(line, 0, &mut found);
    found
}

fn collect(line: &str, depth: usize, found: &mut Vec<Vec<String>>) {
    for run in runs(line) {
        let runs_words = run.iter().any(|word| is_runner(word));
        for script in run.iter().filter_map(|word| script_in(word, runs_words)) {
            // Only ever shorter: a line cannot hold itself.
            if depth < MAX_DEPTH && script.len() < line.len() {
                collect(script, depth + 1, found);
            }
        }
        found.push(run);
    }
}

/// The part of a word that something may take for a command line.
fn script_in(word: &str, runs_words: bool) -> Option<&str> {
    // Substitutions run inside double quotes too; `git -c alias.x='!rm y'` runs what stands behind the mark.
    let marked = ["$(", "`", "=!"].iter().find_map(|mark| word.split_once(mark)).map(|(_, script)| script);
    // `bash -c 'rm x'`, `su -c "rm x"`: the script is one word.
    marked.or_else(|| (runs_words && word.contains(|c: char| c.is_whitespace() || ";|&".contains(c))).then_some(word))
}

fn runs(line: &str) -> Vec<Vec<String>> {
    let mut runs = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), close) if open == close => quote = None,
            (Some('\''), inner) => word.get_or_insert_default().push(inner),
            (_, '\\') => match characters.next() {
                // A line that goes on in the next one is one line.
                Some('\n') | None => {}
                Some(escaped) => word.get_or_insert_default().push(escaped),
            },
            (Some(_), inner) => word.get_or_insert_default().push(inner),
            (None, '\'' | '"') => {
                word.get_or_insert_default();
                quote = Some(character);
            }
            (None, ';' | '&' | '|' | '(' | ')' | '{' | '}' | '`' | '\n' | '\r') => {
                push_word(&mut runs, word.take());
                runs.push(Vec::new());
            }
            // A redirection's target is a word like any other: `>rm` runs nothing, and is found all the same.
            (None, '<' | '>' | '!') => push_word(&mut runs, word.take()),
            (None, blank) if blank.is_whitespace() => push_word(&mut runs, word.take()),
            (None, other) => word.get_or_insert_default().push(other),
        }
    }
    push_word(&mut runs, word);
    runs.retain(|run| !run.is_empty());
    runs
}

fn push_word(runs: &mut [Vec<String>], word: Option<String>) {
    if let (Some(run), Some(word)) = (runs.last_mut(), word) {
        run.push(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, wanted: &str) {
        let found: Vec<_> = commands(line).iter().map(|run| run.join(" ")).collect();
        assert!(found.iter().any(|run| run == wanted || run.ends_with(&format!(" {wanted}"))), "{line}: {found:?}");
    }

    #[test]
    fn a_command_is_found_wherever_it_stands() {
        for line in [
            "rm x",
            "ls; rm x",
            "ls && rm x",
            "ls | rm x",
            "ls & rm x",
            "ls\nrm x",
            "(rm x)",
            "{ rm x; }",
            "$(rm x)",
            "`rm x`",
            "echo \"$(rm x)\"",
            "echo \"`rm x`\"",
            "A=1 rm x",
            "timeout 5 rm x",
            "sudo -n rm x",
            "\\rm x",
            "r''m x",
            "'rm' x",
            "\"rm\" \"x\"",
            "if true; then rm x; fi",
            "rm \\\nx",
            "! rm x",
            "bash -c 'rm x'",
            "bash -c \"bash -c 'rm x'\"",
            "find . -exec rm x",
            "xargs rm x",
            "eval 'rm x'",
            "cat <(rm x)",
            "ls >/dev/null; rm x",
            "git -c alias.y='!rm x' y",
            "rm\tx",
            "rm\u{a0}x",
        ] {
            check(line, "rm x");
        }
    }

    #[test]
    fn words_in_quotes_are_no_commands_unless_something_runs_them() {
        let found = commands("echo 'please rm x'");
        assert_eq!(found, [["echo", "please rm x"]]);
    }

    #[test]
    fn an_endless_nest_ends() {
        assert!(!commands(&"bash -c \"$(".repeat(500)).is_empty());
    }
}
