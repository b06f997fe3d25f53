//! What a person wants, read from their words by rules, in English and Chinese.
//!
//! Pure: text in, intent out. What no rule reads is [`Intent::Other`], never a guess.

/// What the words ask for. Paths and patterns are as the person wrote them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Intent {
    Read {
        path: String,
    },
    List {
        path: Option<String>,
    },
    Search {
        pattern: String,
        path: Option<String>,
    },
    Run {
        command: String,
    },
    Write {
        path: String,
        content: String,
    },
    Edit {
        path: String,
        old: String,
        new: String,
    },
    /// It is about a file, and which one is not said.
    WhichFile,
    Other,
}

const POLITE: &[&str] = &["please ", "can you ", "could you ", "now ", "then ", "请", "麻烦", "帮我", "你"];
const READ: &[&str] =
    &["read ", "show file", "show me ", "show ", "open ", "cat ", "view ", "读", "打开", "查看", "看看"];
const READ_ANYWHERE: &[&str] = &["read ", "show file", "读", "打开"];
const LIST: &[&str] = &["list", "ls", "列出", "列一下"];
const SEARCH: &[&str] = &["search for ", "search ", "grep for ", "grep ", "look for ", "find ", "搜索", "查找", "搜"];
const RUN: &[&str] = &["run ", "execute ", "exec ", "$ ", "执行", "运行"];
const WRITE: &[&str] = &["write ", "create ", "写入", "写", "创建", "新建"];
const CONTENT: &[&str] =
    &[" with the content ", " with content ", " containing ", "，内容为", "，内容是", "内容为", "内容是"];
const BECOMES: &[&str] = &["替换为", "替换成", "改成", "改为"];
/// Words round a name that are no part of it.
const FILLERS: &[&str] = &[
    "the ",
    "a ",
    "all ",
    "to ",
    "file ",
    "files in ",
    "files",
    "contents of ",
    "content of ",
    "directory ",
    "folder ",
    "取",
    "一下",
    "文件",
    "目录",
    "当前",
    "里的",
    "中的",
    "所有",
    "in ",
    "of ",
    "my ",
    "me ",
];
const TAILS: &[&str] = &["的内容", "看看", "文件", "目录", "吗", "吧", "下的"];

/// Reads the intent of one message.
pub(super) fn parse(text: &str) -> Intent {
    let mut text = text.trim();
    while let Some(rest) = POLITE.iter().find_map(|word| after(text, word)) {
        text = rest.trim_start();
    }
    edit(text)
        .or_else(|| write(text))
        .or_else(|| run(text))
        .or_else(|| search(text))
        .or_else(|| list(text))
        .or_else(|| read(text))
        .unwrap_or(Intent::Other)
}

/// The rest of the text if it begins with the word, in any case.
fn after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let head = text.get(..word.len())?;
    head.eq_ignore_ascii_case(word).then(|| &text[word.len()..])
}

/// The text on both sides of the word.
fn around<'a>(text: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    let at = text.to_ascii_lowercase().find(word)?;
    Some((&text[..at], &text[at + word.len()..]))
}

fn around_last<'a>(text: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    let at = text.to_ascii_lowercase().rfind(word)?;
    Some((&text[..at], &text[at + word.len()..]))
}

fn begins<'a>(text: &'a str, words: &[&str]) -> Option<&'a str> {
    words.iter().find_map(|word| after(text, word)).map(str::trim)
}

/// Without the quotes or backticks round the whole.
fn bare(text: &str) -> &str {
    const PAIRS: &[(char, char)] = &[('"', '"'), ('\'', '\''), ('`', '`'), ('“', '”'), ('‘', '’'), ('「', '」')];
    let text = text.trim();
    let inner = |&(open, close): &(char, char)| text.strip_prefix(open)?.strip_suffix(close);
    PAIRS.iter().find_map(inner).unwrap_or(text)
}

/// The first thing in quotes, else the first word that looks like a path, else the only word there is.
fn path(text: &str) -> Option<String> {
    if let Some(quoted) = quoted(text) {
        return Some(quoted.into());
    }
    let trimmed = text.split_whitespace().map(strip).filter(|word| !word.is_empty());
    let words: Vec<_> = trimmed.collect();
    let looks = |word: &&&str| word.contains(['/', '\\', '.']);
    let only = || words.first().filter(|word| words.len() == 1 && word.is_ascii());
    words.iter().find(looks).or_else(only).map(|word| (*word).to_owned())
}

fn quoted(text: &str) -> Option<&str> {
    let (at, open) = text.char_indices().find(|(_, c)| "\"'`“‘「".contains(*c))?;
    let close = match open {
        '“' => '”',
        '‘' => '’',
        '「' => '」',
        same => same,
    };
    let rest = &text[at + open.len_utf8()..];
    let inner = &rest[..rest.find(close)?];
    (!inner.trim().is_empty()).then_some(inner)
}

/// A word without the punctuation and the filler words that stick to it.
fn strip(word: &str) -> &str {
    let mut word = word;
    loop {
        let before = word;
        word = word.trim_end_matches(['.', ',', ';', ':', '!', '?', '。', '，', '；', '：', '！', '？', ')', '）']);
        word = word.trim_start_matches(['(', '（', '，', '：']);
        let fillers = FILLERS.iter().chain(READ).filter(|filler| !filler.is_ascii());
        word = fillers.fold(word, |word, filler| word.strip_prefix(filler).unwrap_or(word));
        word = TAILS.iter().fold(word, |word, tail| word.strip_suffix(tail).unwrap_or(word));
        if word == before {
            // `.` and `..` are paths.
            return word;
        }
    }
}

fn unfilled(text: &str) -> &str {
    let mut text = text.trim();
    while let Some(rest) = FILLERS.iter().find_map(|word| after(text, word)) {
        text = rest.trim_start();
    }
    text
}

fn edit(text: &str) -> Option<Intent> {
    let made = |path_in: &str, old: &str, new: &str| {
        let (old, new) = (bare(old), bare(new));
        let path = path(unfilled(path_in))?;
        (!old.is_empty()).then(|| Intent::Edit { path, old: old.into(), new: new.into() })
    };
    if let Some(rest) = begins(text, &["edit ", "in ", "编辑"]) {
        let (file, change) =
            around(rest, ": replace ").or_else(|| around(rest, " replace ")).or_else(|| around(rest, "：replace "))?;
        let (old, new) = around(change, " with ")?;
        return made(file, old, new);
    }
    if let Some((rest, to)) = begins(text, &["replace "])
        .map(|rest| (rest, " with "))
        .or(begins(text, &["change "]).map(|rest| (rest, " to ")))
    {
        let (change, file) = around_last(rest, " in ")?;
        let (old, new) = around(change, to)?;
        return made(file, old, new);
    }
    let (left, new) = BECOMES.iter().find_map(|word| text.split_once(word))?;
    let left = begins(left, &["把", "将", "在"])?;
    let (file, old) = ["中的", "里的", "中把", "里把", "中将"].iter().find_map(|word| left.split_once(word))?;
    made(file, old, new)
}

fn write(text: &str) -> Option<Intent> {
    let rest = begins(text, WRITE)?;
    let (file, content) = CONTENT
        .iter()
        .find_map(|word| around(rest, word))
        .or_else(|| rest.split_once(": ").or_else(|| rest.split_once(":\n")).or_else(|| rest.split_once('：')))?;
    let mut file = file.trim();
    while let Some(rest) = begins(file, &["to ", "the ", "a file ", "file ", "文件"]) {
        file = rest;
    }
    let is_one_word = quoted(file).is_some() || file.split_whitespace().count() == 1;
    let path = path(file).filter(|_| is_one_word)?;
    Some(Intent::Write { path, content: bare(content).into() })
}

fn run(text: &str) -> Option<Intent> {
    let rest = begins(text, RUN)?;
    let rest = begins(rest, &["the command ", "command ", "命令"]).unwrap_or(rest);
    let command = bare(rest.trim_start_matches(['：', ':']));
    (!command.is_empty()).then(|| Intent::Run { command: command.into() })
}

fn search(text: &str) -> Option<Intent> {
    if let Some((place, rest)) = begins(text, &["在"]).and_then(|rest| around(rest, "搜索").or(around(rest, "查找")))
    {
        let pattern = bare(rest);
        let place = place.trim().trim_end_matches(['中', '里', '下']);
        return (!pattern.is_empty()).then(|| Intent::Search { pattern: pattern.into(), path: path(place) });
    }
    let rest = begins(text, SEARCH)?;
    let place_of = |place: &str| path(unfilled(place));
    let in_quotes = quoted(rest).filter(|_| rest.starts_with(['"', '\'', '`', '“', '‘', '「']));
    let (pattern, place) = match (in_quotes, around_last(rest, " in ")) {
        (Some(pattern), Some((left, place))) if left.contains(pattern) => (pattern, place_of(place)),
        (Some(pattern), _) => (pattern, None),
        (None, Some((pattern, place))) if place_of(place).is_some() => (bare(pattern), place_of(place)),
        (None, _) => (bare(rest), None),
    };
    (!pattern.is_empty()).then(|| Intent::Search { pattern: pattern.into(), path: place })
}

fn list(text: &str) -> Option<Intent> {
    let rest = LIST.iter().find_map(|word| {
        let rest = after(text, word)?;
        (!word.is_ascii() || rest.is_empty() || rest.starts_with(' ')).then_some(rest)
    })?;
    let rest = unfilled(rest);
    Some(Intent::List { path: if matches!(rest, "." | "..") { Some(rest.into()) } else { path(rest) } })
}

fn read(text: &str) -> Option<Intent> {
    let first = begins(text, READ);
    let rest = first.or_else(|| READ_ANYWHERE.iter().find_map(|word| around(text, word)).map(|(_, rest)| rest))?;
    match path(unfilled(rest)) {
        Some(path) => Some(Intent::Read { path }),
        // Words that only happen to hold a verb are not about a file.
        None => first.map(|_| Intent::WhichFile),
    }
}

#[cfg(test)]
mod tests;
