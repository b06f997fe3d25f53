//! A transcript as the body of a chat completions request.
//!
//! Each result is a message of role `tool`, directly behind the message with its call.

use std::borrow::Cow;

use foundation::{Message, ModelError, ModelRequest, Part, Role, ToolChoice};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::config::Profile;
use crate::replay;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    messages: Vec<Turn<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(flatten)]
    more: Map<String, Value>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum Turn<'a> {
    System {
        content: String,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: &'a str,
    },
}

/// Plain text where there is nothing else: some servers know no other form.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(String),
    Pieces(Vec<Piece<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct ToolCall<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: Called<'a>,
}

#[derive(Serialize)]
struct Called<'a> {
    name: &'a str,
    arguments: String,
}

/// The request's bytes.
pub(super) fn body(profile: &Profile, request: &ModelRequest<'_>) -> Result<Vec<u8>, ModelError> {
    let mut more = Map::new();
    if let Some(max_output) = replay::max_output(profile, request) {
        let field = profile.quirks.max_tokens_field.as_deref().unwrap_or("max_tokens");
        more.insert(field.into(), max_output.into());
    }
    more.extend(profile.quirks.body.clone());
    let wants_usage = profile.quirks.stream_options != Some(false);
    let tools = request.tools.iter().map(|spec| Tool {
        r#type: "function",
        function: Function { name: spec.name, description: spec.description, parameters: &spec.parameters },
    });
    replay::serialise(&Body {
        model: &profile.model,
        stream: true,
        stream_options: wants_usage.then_some(StreamOptions { include_usage: true }),
        messages: turns(profile, request),
        tools: tools.collect(),
        tool_choice: (request.tool_choice == ToolChoice::None && !request.tools.is_empty()).then_some("none"),
        more,
    })
}

fn turns<'a>(profile: &Profile, request: &ModelRequest<'a>) -> Vec<Turn<'a>> {
    let mut turns = Vec::new();
    let system = joined(request.system.iter().map(|system| system.text.as_str()), "\n\n");
    if let Some(content) = system {
        turns.push(Turn::System { content });
    }
    for message in request.messages {
        match message.role {
            Role::System => turns.extend(text_of(message).map(|content| Turn::System { content })),
            Role::User => turns.extend(user(message)),
            Role::Assistant => turns.extend(assistant(message, profile)),
            Role::Tool => {}
        }
        turns.extend(message.content.iter().filter_map(|part| match part {
            Part::ToolResult { tool_use_id, content, .. } => {
                Some(Turn::Tool { tool_call_id: wire_id(&tool_use_id.0, profile), content: replay::result(content) })
            }
            _ => None,
        }));
    }
    turns
}

fn user(message: &Message) -> Option<Turn<'_>> {
    if !message.content.iter().any(|part| matches!(part, Part::Image { .. })) {
        return text_of(message).map(|text| Turn::User { content: Content::Text(text) });
    }
    let pieces = message.content.iter().filter_map(|part| match part {
        Part::Text { text } if !replay::is_blank(text) => Some(Piece::Text { text }),
        Part::Image { media_type, data } => {
            Some(Piece::ImageUrl { image_url: ImageUrl { url: format!("data:{media_type};base64,{data}") } })
        }
        _ => None,
    });
    Some(Turn::User { content: Content::Pieces(pieces.collect()) })
}

fn assistant<'a>(message: &'a Message, profile: &Profile) -> Option<Turn<'a>> {
    let empty = Value::Object(Map::new());
    let tool_calls: Vec<_> = message
        .tool_uses()
        .map(|(id, name, input)| ToolCall {
            id: wire_id(&id.0, profile),
            r#type: "function",
            function: Called { name, arguments: replay::arguments(input, &empty).to_string() },
        })
        .collect();
    let content = text_of(message);
    if content.is_none() && tool_calls.is_empty() {
        return None;
    }
    let echo =
        profile.quirks.echo_reasoning == Some(true) && !tool_calls.is_empty() && replay::is_own(message, profile);
    let thoughts = message.content.iter().filter_map(|part| match part {
        Part::Thinking { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let reasoning_content = if echo { joined(thoughts, "") } else { None };
    Some(Turn::Assistant { content, reasoning_content, tool_calls })
}

/// The id as the server takes it. A call and its result give the same one, on every request.
fn wire_id<'a>(id: &'a str, profile: &Profile) -> Cow<'a, str> {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let fits = id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if fits || profile.quirks.short_call_ids != Some(true) {
        return Cow::Borrowed(id);
    }
    // FNV-1a: short, and the same in every build.
    let mut hash =
        id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let mut short = String::new();
    for _ in 0..9 {
        short.push(DIGITS[usize::try_from(hash % 36).unwrap_or(0)].into());
        hash /= 36;
    }
    Cow::Owned(short)
}

fn text_of(message: &Message) -> Option<String> {
    joined(message.content.iter().filter_map(Part::as_text), "")
}

/// The texts that are not blank, or `None` if all are.
fn joined<'a>(texts: impl Iterator<Item = &'a str>, between: &str) -> Option<String> {
    let texts: Vec<_> = texts.filter(|text| !replay::is_blank(text)).collect();
    (!texts.is_empty()).then(|| texts.join(between))
}
