//! One settings file: read within bounds, parsed, each value checked against its key.
//!
//! The file may belong to a stranger's repository, so its size, depth and kind are bounded, and nothing of it reaches
//! an error text but short, escaped names. Knows nothing about layers and about who may set what.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use jsonc_parser::ast::{ObjectProp, Value as Ast};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions};
use serde_json::Value;

use super::keys;
use super::model::Settings;

/// The largest file that is read, in bytes.
pub(crate) const MAX_BYTES: u64 = 1024 * 1024;
/// The deepest nesting of objects and lists.
const MAX_DEPTH: usize = 32;
/// Problems of one kind that are kept of a file: to find a line costs a look at all before it.
const MAX_PROBLEMS: usize = 20;
/// The longest part of a stranger's name that is repeated in a message, in characters.
const MAX_SHOWN: usize = 60;

/// A value that a file gives to a known key.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Entry {
    pub(crate) key: &'static str,
    pub(crate) value: Value,
    pub(crate) at: Position,
}

/// 1-based line and column, in characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Position {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// Something wrong with a file; without a position when it is about the whole of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Problem {
    pub(crate) at: Option<Position>,
    pub(crate) text: String,
}

/// What a file that could be parsed holds.
#[derive(Clone, Default, PartialEq, Debug)]
pub(crate) struct Contents {
    /// In the order of the file.
    pub(crate) entries: Vec<Entry>,
    /// Wrong types, duplicates: values that were left out.
    pub(crate) errors: Vec<Problem>,
    /// Names that are no keys.
    pub(crate) unknown: Vec<Problem>,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.at {
            Some(Position { line, column }) => write!(out, "line {line} column {column}: {}", self.text),
            None => out.write_str(&self.text),
        }
    }
}

impl Problem {
    fn whole(text: impl Into<String>) -> Self {
        Self { at: None, text: text.into() }
    }
}

/// The text of a file; `None` when there is none.
///
/// Never waits: a pipe, a device or a folder of that name is an error.
pub(crate) fn read(path: &Path) -> Result<Option<String>, Problem> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        // A plain file where a folder is expected: then there are no settings below it either.
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(Problem::whole(format!("cannot be read: {error}"))),
    };
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err(Problem::whole("is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Problem::whole(format!("cannot be read: {error}")))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Problem::whole(format!("is larger than {} KiB", MAX_BYTES / 1024)));
    }
    String::from_utf8(bytes).map(Some).map_err(|error| {
        Problem::whole(format!("is not UTF-8 at byte {}; save it as UTF-8", error.utf8_error().valid_up_to()))
    })
}

/// Parses JSON with comments and trailing commas; everything else that is not JSON is an error.
///
/// A byte order mark at the start is skipped. An empty file holds nothing.
pub(crate) fn parse(text: &str) -> Result<Contents, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &options).map_err(|error| Problem {
        at: Some(Position { line: error.line_display(), column: error.column_display() }),
        text: lower_first(&error.kind().to_string()),
    })?;
    let mut walk = Walk { text, contents: Contents::default() };
    if let Some(offset) = parsed.value.as_ref().and_then(|value| too_deep(value, MAX_DEPTH)) {
        return Err(walk.problem(offset, format!("nested more than {MAX_DEPTH} levels deep")));
    }
    match parsed.value {
        None => {}
        Some(Ast::Object(root)) => walk.section("", root.properties),
        Some(other) => return Err(walk.problem(other.start(), "must be an object: `{ … }`")),
    }
    Ok(walk.contents)
}

/// Where `value` is nested deeper than `levels`. The parser has a limit of its own, so this recursion ends.
fn too_deep(value: &Ast<'_>, levels: usize) -> Option<usize> {
    let below = |value: &Ast<'_>| too_deep(value, levels.saturating_sub(1));
    match value {
        Ast::Object(_) | Ast::Array(_) if levels == 0 => Some(value.start()),
        Ast::Object(object) => object.properties.iter().find_map(|member| below(&member.value)),
        Ast::Array(array) => array.elements.iter().find_map(below),
        _ => None,
    }
}

struct Walk<'a> {
    text: &'a str,
    contents: Contents,
}

impl Walk<'_> {
    fn problem(&self, offset: usize, text: impl Into<String>) -> Problem {
        Problem { at: Some(position(self.text, offset)), text: text.into() }
    }

    fn error(&mut self, offset: usize, text: impl Into<String>) {
        if self.contents.errors.len() < MAX_PROBLEMS {
            let problem = self.problem(offset, text);
            self.contents.errors.push(problem);
        }
    }

    fn unknown(&mut self, offset: usize, name: &str) {
        if self.contents.unknown.len() < MAX_PROBLEMS {
            let name = shown(name);
            let hint = keys::nearest(&name).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            let problem = self.problem(offset, format!("`{name}` is no settings key{hint}"));
            self.contents.unknown.push(problem);
        }
    }

    /// Takes the members of the file or of a section of keys.
    fn section(&mut self, prefix: &str, members: Vec<ObjectProp<'_>>) {
        let twice = duplicates(&members);
        for (index, member) in members.into_iter().enumerate() {
            let dot = if prefix.is_empty() { "" } else { "." };
            let name = format!("{prefix}{dot}{}", member.name.as_str());
            let start = member.start();
            if twice.contains(&index) {
                // Which of the two the author meant is a guess, and one of them may be a list of denials.
                self.error(start, format!("`{}` is there more than once", shown(&name)));
            } else if let Some(key) = keys::find(&name) {
                self.leaf(key.name, member.value);
            } else if keys::is_section(&name) {
                match member.value {
                    Ast::Object(section) => self.section(&name, section.properties),
                    other => self.error(other.start(), format!("`{name}` must be an object: `{{ … }}`")),
                }
            } else {
                self.unknown(start, &name);
            }
        }
    }

    fn leaf(&mut self, key: &'static str, value: Ast<'_>) {
        let start = value.start();
        if let Some((offset, name)) = first_duplicate(&value) {
            return self.error(offset, format!("`{key}` has `{}` more than once", shown(&name)));
        }
        let value = Value::from(value);
        match check_type(key, &value) {
            Ok(()) => {
                let at = position(self.text, start);
                self.contents.entries.push(Entry { key, value, at });
            }
            Err(text) => self.error(start, text),
        }
    }
}

/// The members that share their name with another.
fn duplicates(members: &[ObjectProp<'_>]) -> Vec<usize> {
    let mut seen = std::collections::HashMap::<&str, Vec<usize>>::new();
    for (index, member) in members.iter().enumerate() {
        seen.entry(member.name.as_str()).or_default().push(index);
    }
    seen.into_values().filter(|indexes| indexes.len() > 1).flatten().collect()
}

/// The first name that an object inside `value` has more than once, and where.
fn first_duplicate(value: &Ast<'_>) -> Option<(usize, String)> {
    match value {
        Ast::Object(object) => duplicates(&object.properties)
            .into_iter()
            .max()
            .map(|index| (object.properties[index].start(), object.properties[index].name.as_str().to_owned()))
            .or_else(|| object.properties.iter().find_map(|member| first_duplicate(&member.value))),
        Ast::Array(array) => array.elements.iter().find_map(first_duplicate),
        _ => None,
    }
}

/// Checks a value by putting it, alone, into the default settings.
fn check_type(key: &str, value: &Value) -> Result<(), String> {
    let mut tree = serde_json::to_value(Settings::default()).map_err(|error| error.to_string())?;
    if let Some(slot) = tree.pointer_mut(&pointer(key)) {
        *slot = value.clone();
    }
    let Err(error) = serde_path_to_error::deserialize::<_, Settings>(tree) else { return Ok(()) };
    let path = error.path().to_string();
    let text = error.into_inner().to_string();
    Err(format!("`{}`: {}{}", shown(&path), shown_text(&text), near_field(&text)))
}

/// `; did you mean …?` for an unknown field below a key, from the names that serde lists.
fn near_field(error: &str) -> String {
    let Some(rest) = error.strip_prefix("unknown field `").or_else(|| error.strip_prefix("unknown variant `")) else {
        return String::new();
    };
    let mut names = rest.split('`').step_by(2);
    let Some(unknown) = names.next() else { return String::new() };
    keys::closest(unknown, names).map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

/// The JSON pointer of a dotted key of the table.
pub(crate) fn pointer(key: &str) -> String {
    format!("/{}", key.replace('.', "/"))
}

fn position(text: &str, offset: usize) -> Position {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Position { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
}

/// A name from a file, safe to print and short.
pub(crate) fn shown(name: &str) -> String {
    clipped(name, MAX_SHOWN)
}

fn shown_text(text: &str) -> String {
    clipped(text, 4 * MAX_SHOWN)
}

fn clipped(text: &str, max: usize) -> String {
    let mut out: String = text.chars().take(max).flat_map(escaped).collect();
    if text.chars().nth(max).is_some() {
        out.push('…');
    }
    out
}

/// Escapes what could move a terminal's cursor or turn text around.
fn escaped(c: char) -> impl Iterator<Item = char> {
    let plain = !c.is_control()
        && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    let unicode = (!plain).then(|| c.escape_unicode());
    plain.then_some(c).into_iter().chain(unicode.into_iter().flatten())
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

#[cfg(test)]
mod tests;
