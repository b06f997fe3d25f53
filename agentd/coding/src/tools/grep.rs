//! The tool that searches the content of files.
//!
//! Runs in the process on ripgrep's own libraries, so that no pattern can become an option of a program.

mod found;

use std::fs::File;
use std::io::{self, Read};

use async_trait::async_trait;
use foundation::{
    Access, ErrorCode, ResultPolicy, Tool, ToolClass, ToolContext, ToolError, ToolOutcome, ToolOutput, ToolSpec,
    parameters,
};
use globset::GlobMatcher;
use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::glob;
use super::place::{Place, parse};
use super::walk::{self, Clock, Hidden, Listing, MAX_BYTES};
use crate::paths::{Target, open_file};
use crate::text;
use found::Found;

const MAX_CONTEXT: usize = 20;
/// A line over this is not searched; its file is counted as skipped.
const MAX_HEAP_BYTES: usize = 64 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Input {
    /// Regular expression (Rust syntax: no look-around, no back-references), matched line by line.
    pattern: String,
    /// File or folder to search. Default the workspace.
    #[serde(default)]
    path: Option<String>,
    /// Only files that match, such as `*.rs` (at any depth) or `src/**/*.ts`; `!` before it leaves them out.
    #[serde(default)]
    glob: Option<String>,
    /// Default: upper case in the pattern makes it matter.
    #[serde(default)]
    case_sensitive: Option<bool>,
    /// Lines shown before and after each match. Default 0, maximum 20.
    #[serde(default)]
    context: Option<usize>,
    /// Matches at most. Default and maximum 200.
    #[serde(default)]
    limit: Option<usize>,
}

/// `grep`.
#[derive(Debug)]
pub(crate) struct Grep {
    spec: ToolSpec,
    place: Place,
}

impl Grep {
    pub(crate) fn new(place: Place) -> Self {
        let spec = ToolSpec {
            name: "grep",
            description: "Searches file contents by regular expression. Gives `path:line:text` for matches and \
                          `path-line-text` for context, at most 200 matches, 250 lines, 12,000 bytes, then the total. \
                          Leaves out binary files, hidden names and what .gitignore names; long lines are clipped \
                          round the match.",
            parameters: parameters::<Input>(),
            class: ToolClass::Read,
            policy: ResultPolicy::Head { max_bytes: MAX_BYTES },
        };
        Self { spec, place }
    }
}

#[async_trait]
impl Tool for Grep {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn access(&self, input: &Value) -> Access {
        let path =
            parse::<Input>(input).and_then(|input| self.place.workspace.absolute(input.path.as_deref().unwrap_or(".")));
        path.map_or(Access::Nothing, |path| Access::Read(vec![path]))
    }

    async fn invoke(&self, input: Value, _: &ToolContext<'_>, cancel: &CancellationToken) -> ToolOutcome {
        let input: Input = parse(&input)?;
        self.place.blocking(cancel, move |place, cancel| grep(place, &input, cancel)).await
    }
}

fn grep(place: &Place, input: &Input, cancel: &CancellationToken) -> Result<ToolOutput, ToolError> {
    let (target, shown) = place.find(input.path.as_deref().unwrap_or("."))?;
    let filter = input.glob.as_deref().map(Filter::new).transpose()?;
    let hidden = input.glob.as_deref().map_or(Hidden::Skip, |glob| glob::hidden(glob.trim_start_matches('!')));
    let mut search = Search {
        matcher: matcher(input)?,
        searcher: searcher(input.context.unwrap_or(0).min(MAX_CONTEXT)),
        clock: Clock::new(cancel),
        listing: Listing::new(input.limit),
        is_whole: true,
        skipped: 0,
    };
    if target.real.is_dir() {
        search.directory(place, &target, hidden, filter.as_ref())?;
    } else {
        let is_binary = search.file(&target, &shown)?;
        if is_binary {
            let text = format!("[{shown} is a binary file and was not searched]\n");
            return Ok(ToolOutput { summary: format!("{shown} is binary"), text, ..ToolOutput::default() });
        }
    }
    Ok(search.output(input, &shown))
}

struct Search<'a> {
    matcher: RegexMatcher,
    searcher: Searcher,
    clock: Clock<'a>,
    listing: Listing,
    is_whole: bool,
    skipped: u64,
}

impl Search<'_> {
    fn directory(
        &mut self,
        place: &Place,
        root: &Target,
        hidden: Hidden,
        filter: Option<&Filter>,
    ) -> Result<(), ToolError> {
        for entry in walk::walk(&root.real, hidden, None) {
            if !self.is_whole || !self.clock.goes_on()? {
                self.is_whole = false;
                break;
            }
            let Ok(entry) = entry else {
                self.skipped += 1;
                continue;
            };
            let own = entry.path().strip_prefix(&root.real).unwrap_or(entry.path());
            let is_wanted = filter.is_none_or(|filter| filter.takes(own));
            if !entry.file_type().is_some_and(|kind| kind.is_file()) || !is_wanted {
                continue;
            }
            let shown = place.workspace.show(entry.path()).replace('\n', "\\n");
            let path = entry.into_path();
            let target = Target { absolute: path.clone(), real: path, inside: root.inside };
            // One file that cannot be read is no reason to drop what others hold.
            match self.file(&target, &shown) {
                Ok(_) => {}
                Err(error) if error.code == ErrorCode::Cancelled => return Err(error),
                Err(_) => self.skipped += 1,
            }
        }
        Ok(())
    }

    /// Searches one file, and says whether it was binary.
    fn file(&mut self, target: &Target, shown: &str) -> Result<bool, ToolError> {
        let opened = open_file(target, shown)?;
        let mut found = Found::new(&self.matcher, shown, self.listing.has_room());
        let mut timed = Timed { file: opened.file, clock: &self.clock, is_over: false };
        let searched = self.searcher.search_reader(&self.matcher, &mut timed, &mut found);
        self.is_whole &= !timed.is_over;
        let is_binary = found.is_binary;
        self.clock.goes_on()?;
        found.put_into(&mut self.listing);
        searched.map_err(|error| crate::paths::io_error(shown, &error))?;
        Ok(is_binary)
    }

    fn output(self, input: &Input, shown: &str) -> ToolOutput {
        let nothing = self.listing.total == 0 && self.is_whole;
        let (line, mut text) = self.listing.finished("match", "use a narrower pattern, path or glob", self.is_whole);
        if nothing {
            text = format!("[no line in {shown} matches {}]\n", text::clip(&input.pattern, 200));
        }
        if self.skipped > 0 {
            text.push_str(&format!("[{} could not be read and were left out]\n", text::count(self.skipped, "file")));
        }
        let pattern = text::clip(&input.pattern, 80).replace('\n', "\\n");
        ToolOutput { summary: format!("`{pattern}` in {shown}: {line}"), text, ..ToolOutput::default() }
    }
}

/// Ends a search also within one file.
struct Timed<'a> {
    file: File,
    clock: &'a Clock<'a>,
    is_over: bool,
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.clock.goes_on() {
            Ok(true) => self.file.read(buffer),
            Ok(false) | Err(_) => {
                self.is_over = true;
                Ok(0)
            }
        }
    }
}

/// Which files of a folder are searched.
struct Filter {
    matcher: GlobMatcher,
    takes_matching: bool,
}

impl Filter {
    fn new(text: &str) -> Result<Self, ToolError> {
        let (pattern, takes_matching) = text.strip_prefix('!').map_or((text, true), |rest| (rest, false));
        let pattern = pattern.strip_prefix("./").or_else(|| pattern.strip_prefix('/')).unwrap_or(pattern);
        let anywhere = format!("**/{pattern}");
        let matcher = glob::compiled(if text.contains('/') { pattern } else { &anywhere })?;
        Ok(Self { matcher, takes_matching })
    }

    fn takes(&self, path: &std::path::Path) -> bool {
        self.matcher.is_match(path) == self.takes_matching
    }
}

fn searcher(context: usize) -> Searcher {
    SearcherBuilder::new()
        .line_terminator(LineTerminator::crlf())
        .binary_detection(BinaryDetection::quit(0))
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .heap_limit(Some(MAX_HEAP_BYTES))
        .build()
}

fn matcher(input: &Input) -> Result<RegexMatcher, ToolError> {
    let invalid = |summary: String, hint: String| Err(ToolError::new(ErrorCode::PatternInvalid, summary, hint));
    if input.pattern.is_empty() {
        return invalid("the pattern is empty and would match every line".into(), "Name what to look for.".into());
    }
    let mut builder = RegexMatcherBuilder::new();
    builder.multi_line(true).crlf(true);
    match input.case_sensitive {
        Some(sensitive) => builder.case_insensitive(!sensitive),
        None => builder.case_smart(true),
    };
    let error = match builder.build(&input.pattern) {
        Ok(matcher) => return Ok(matcher),
        Err(error) => error.to_string(),
    };
    let hint = if error.contains("look-around") || error.contains("backreferences") {
        "Search for the plain part and look at the matches with context.".to_owned()
    } else if input.pattern.contains('\n') || input.pattern.contains("\\n") {
        "Lines are matched one by one: search for one line of it, with context.".to_owned()
    } else {
        format!("To find the text literally, send `{}`.", escaped(&input.pattern))
    };
    invalid(format!("the pattern is no regular expression: {error}"), hint)
}

fn escaped(pattern: &str) -> String {
    pattern.chars().fold(String::new(), |mut text, char| {
        if r"\.+*?()|[]{}^$".contains(char) {
            text.push('\\');
        }
        text.push(char);
        text
    })
}

#[cfg(test)]
mod tests;
