//! A transcript as the body of a Messages request.
//!
//! Results stand in one user message directly behind the calls they answer. At most four cache marks: the tools, the
//! stable system text, and the last two user messages, since the earlier one is where the call before this one ended.

use foundation::{Message, ModelError, ModelRequest, Part, Role, ToolChoice, ToolSpec};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::config::Profile;
use crate::replay;

/// The API has no default for the longest answer.
const DEFAULT_MAX_TOKENS: u64 = 8192;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Marked<Block<'a>>>,
    messages: Vec<Turn<'a>>,
    #[serde(flatten)]
    more: &'a Map<String, Value>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    content: Vec<Marked<Block<'a>>>,
}

#[derive(Serialize)]
struct Marked<B> {
    #[serde(flatten)]
    block: B,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: &'a str,
    },
    Image {
        source: Source<'a>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: &'a Value,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheControl {
    Ephemeral,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Choice {
    None,
}

/// The request's bytes.
pub(super) fn body(profile: &Profile, request: &ModelRequest<'_>) -> Result<Vec<u8>, ModelError> {
    let empty = Value::Object(Map::new());
    let max_tokens = replay::max_output(profile, request).or(profile.limits.max_output).unwrap_or(DEFAULT_MAX_TOKENS);
    replay::serialise(&Body {
        model: &profile.model,
        max_tokens,
        stream: true,
        tools: tools(request.tools),
        tool_choice: (request.tool_choice == ToolChoice::None && !request.tools.is_empty()).then_some(Choice::None),
        system: system(request),
        messages: turns(profile, request.messages, &empty),
        more: &profile.quirks.body,
    })
}

fn tools(specs: &[ToolSpec]) -> Vec<Tool<'_>> {
    let mut tools: Vec<_> = specs
        .iter()
        .map(|spec| Tool {
            name: spec.name,
            description: spec.description,
            input_schema: &spec.parameters,
            cache_control: None,
        })
        .collect();
    if let Some(last) = tools.last_mut() {
        last.cache_control = Some(CacheControl::Ephemeral);
    }
    tools
}

fn system<'a>(request: &ModelRequest<'a>) -> Vec<Marked<Block<'a>>> {
    let texts: Vec<_> = request.system.iter().filter(|text| !replay::is_blank(&text.text)).collect();
    let last_stable = texts.iter().rposition(|text| text.stable);
    texts
        .iter()
        .enumerate()
        .map(|(place, text)| Marked {
            block: Block::Text { text: &text.text },
            cache_control: (Some(place) == last_stable).then_some(CacheControl::Ephemeral),
        })
        .collect()
}

fn turns<'a>(profile: &Profile, messages: &'a [Message], empty: &'a Value) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn<'a>> = Vec::new();
    for message in messages {
        let own = replay::is_own(message, profile);
        let mut blocks: Vec<_> = message.content.iter().filter_map(|part| block(part, own, empty)).collect();
        // An answer may not end in reasoning, nor consist of it.
        while matches!(blocks.last(), Some(Block::Thinking { .. } | Block::RedactedThinking { .. })) {
            blocks.pop();
        }
        if blocks.is_empty() {
            continue;
        }
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        let blocks = blocks.into_iter().map(|block| Marked { block, cache_control: None });
        match turns.last_mut() {
            Some(turn) if turn.role == role => turn.content.extend(blocks),
            _ => turns.push(Turn { role, content: blocks.collect() }),
        }
    }
    for turn in turns.iter_mut().rev().filter(|turn| turn.role == "user").take(2) {
        if let Some(last) = turn.content.last_mut() {
            last.cache_control = Some(CacheControl::Ephemeral);
        }
    }
    turns
}

fn block<'a>(part: &'a Part, own: bool, empty: &'a Value) -> Option<Block<'a>> {
    match part {
        Part::Text { text } => (!replay::is_blank(text)).then_some(Block::Text { text }),
        Part::Image { media_type, data } => Some(Block::Image { source: Source::Base64 { media_type, data } }),
        Part::Thinking { redacted: Some(data), .. } if own => Some(Block::RedactedThinking { data }),
        Part::Thinking { text, signature: Some(signature), .. } if own => {
            Some(Block::Thinking { thinking: text, signature })
        }
        Part::Thinking { .. } | Part::Other(_) => None,
        Part::ToolUse { id, name, input, .. } => {
            Some(Block::ToolUse { id: &id.0, name, input: replay::arguments(input, empty) })
        }
        Part::ToolResult { tool_use_id, content, is_error, .. } => Some(Block::ToolResult {
            tool_use_id: &tool_use_id.0,
            content: replay::result(content),
            is_error: *is_error,
        }),
    }
}
