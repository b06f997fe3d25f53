//! Standing answers: `bash(git log *)`, `edit(src/**)`, `web_fetch(domain:docs.rs)`, or a bare tool name.
//!
//! An allow rule matches only what is fully understood; a deny or ask rule matches whatever might be meant. The two
//! are different functions on purpose.

use std::fmt;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use super::facts::{Call, Touch};
use super::shell::{base_name, commands, is_runner, plain_words};
use crate::paths::Target;

/// One rule. Prints as it was written.
#[derive(Clone, Debug)]
pub struct Rule {
    text: String,
    tool: String,
    pattern: Pattern,
}

#[derive(Clone, Debug)]
enum Pattern {
    Any,
    Words { words: Vec<String>, open: bool },
    Path { glob: GlobMatcher, absolute: bool },
    Domain(String),
}

/// Why a text is no rule.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{rule}` is no rule: {why}")]
pub struct RuleError {
    pub rule: String,
    /// The fact and the next step.
    pub why: String,
}

/// All rules of a session's settings, of all layers.
#[derive(Clone, Default, Debug)]
pub struct Rules {
    pub allow: Vec<Rule>,
    pub ask: Vec<Rule>,
    pub deny: Vec<Rule>,
    /// The settings could not be read: everything asks that is not a plain read in the workspace.
    pub fail_closed: bool,
}

impl Rule {
    /// Reads a rule. `home` is what `~` stands for.
    ///
    /// # Errors
    /// Says what the text lacks. A rule that could never match is an error too.
    pub fn parse(text: &str, home: Option<&Path>) -> Result<Self, RuleError> {
        let text = text.trim();
        let wrong = |why: String| RuleError { rule: text.into(), why };
        let (tool, pattern) = match text.split_once('(') {
            None => (text, None),
            Some((tool, rest)) => {
                let inner = rest.strip_suffix(')').ok_or_else(|| wrong("the closing `)` is missing".into()))?;
                (tool, Some(inner))
            }
        };
        let is_name = |character: char| character.is_ascii_alphanumeric() || "_-.".contains(character);
        if tool.is_empty() || !tool.chars().all(is_name) {
            return Err(wrong("it must begin with a tool's name, as in `bash(git log *)`".into()));
        }
        let pattern = match pattern {
            None => Pattern::Any,
            Some(pattern) => Pattern::parse(tool, pattern, home).map_err(wrong)?,
        };
        Ok(Self { text: text.into(), tool: tool.into(), pattern })
    }

    /// Whether the rule says that this call may run: all of it, beyond doubt.
    #[must_use]
    pub fn allows(&self, call: &Call<'_>) -> bool {
        if !self.is_about(call) {
            return false;
        }
        match (&self.pattern, &call.touch) {
            (Pattern::Any, _) => true,
            (Pattern::Words { words, open }, Touch::Run { command, .. }) => plain_words(command).is_some_and(|given| {
                fits(words, *open, &given) && !(*open && given.first().is_some_and(|p| is_runner(p)))
            }),
            (Pattern::Path { glob, absolute }, Touch::Read(targets) | Touch::Write(targets)) => {
                !targets.is_empty() && targets.iter().all(|target| covers(glob, *absolute, target, call.root))
            }
            (Pattern::Domain(domain), Touch::Fetch { host: Some(host) }) => within(host, domain),
            _ => false,
        }
    }

    /// Whether the rule might be about this call, or about any part of it.
    #[must_use]
    pub fn concerns(&self, call: &Call<'_>) -> bool {
        if !self.is_about(call) {
            return false;
        }
        match (&self.pattern, &call.touch) {
            (Pattern::Any, _) => true,
            (Pattern::Words { words, open }, Touch::Run { command, .. }) => {
                commands(command).iter().any(|run| (0..run.len()).any(|start| might_fit(words, *open, &run[start..])))
            }
            (Pattern::Path { glob, absolute }, Touch::Read(targets) | Touch::Write(targets)) => {
                targets.iter().any(|target| concerns_path(glob, *absolute, target, call.root))
            }
            (Pattern::Domain(domain), Touch::Fetch { host }) => host.as_ref().is_none_or(|host| within(host, domain)),
            _ => false,
        }
    }

    /// `read` speaks of every reader and `edit` of every writer, so that no other tool is a way round them.
    fn is_about(&self, call: &Call<'_>) -> bool {
        self.tool == call.tool
            || matches!((self.tool.as_str(), &call.touch), ("read", Touch::Read(_)) | ("edit", Touch::Write(_)))
    }
}

impl Pattern {
    fn parse(tool: &str, pattern: &str, home: Option<&Path>) -> Result<Self, String> {
        if pattern.trim().is_empty() {
            return Err("the pattern is empty; write the bare tool name for all its calls".into());
        }
        if let Some(domain) = pattern.strip_prefix("domain:") {
            return Ok(Self::Domain(domain.trim().to_ascii_lowercase()));
        }
        if tool == "bash" {
            return Self::words(pattern);
        }
        let pattern = match (pattern.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => format!("{}/{rest}", globset::escape(&home.to_string_lossy())),
            (Some(_), None) => return Err("the home folder is not known; write the path out".into()),
            (None, _) => pattern.strip_prefix("./").unwrap_or(pattern).to_owned(),
        };
        let built = GlobBuilder::new(&pattern).literal_separator(true).backslash_escape(true).build();
        let glob = built.map_err(|error| format!("{error}; see the glob syntax of `.gitignore`"))?;
        Ok(Self::Path { glob: glob.compile_matcher(), absolute: pattern.starts_with('/') })
    }

    fn words(pattern: &str) -> Result<Self, String> {
        let (fixed, open) = match pattern.trim_end().strip_suffix('*') {
            Some("") => ("", true),
            Some(fixed) if fixed.ends_with([' ', '\t']) => (fixed, true),
            _ => (pattern, false),
        };
        if fixed.trim().is_empty() {
            return Ok(Self::Words { words: Vec::new(), open });
        }
        let hint = "write one plain command, and ` *` at its end for any further arguments";
        let words = plain_words(fixed).ok_or_else(|| format!("`{fixed}` is not one plain command; {hint}"))?;
        Ok(Self::Words { words, open })
    }
}

fn fits(words: &[String], open: bool, given: &[String]) -> bool {
    given.starts_with(words) && (open || given.len() == words.len())
}

/// As `fits`, with the program known by its bare name.
fn might_fit(words: &[String], open: bool, given: &[String]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return true };
    let Some((given_program, given_arguments)) = given.split_first() else { return false };
    (program == given_program || program == base_name(given_program)) && fits(arguments, open, given_arguments)
}

fn covers(glob: &GlobMatcher, absolute: bool, target: &Target, root: &Path) -> bool {
    match target.real.strip_prefix(root) {
        _ if absolute => glob.is_match(&target.real),
        Ok(relative) => glob.is_match(relative),
        Err(_) => false,
    }
}

/// The path itself as written and as it really is, or a folder above it: what is in a denied folder is denied.
fn concerns_path(glob: &GlobMatcher, absolute: bool, target: &Target, root: &Path) -> bool {
    [&target.real, &target.absolute].into_iter().any(|path| {
        let relative = path.strip_prefix(root).ok().map(PathBuf::from);
        let seen = if absolute { Some(path.clone()) } else { relative };
        seen.is_some_and(|seen| seen.ancestors().any(|part| !part.as_os_str().is_empty() && glob.is_match(part)))
    })
}

fn within(host: &str, domain: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    host == domain || host.strip_suffix(domain).is_some_and(|front| front.ends_with('.'))
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

#[cfg(test)]
mod tests;
