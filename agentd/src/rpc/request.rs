//! One line of a client, read as JSON-RPC 2.0 has it. Knows no method.

use std::borrow::Cow;

use jsonrpsee::types::Id;
use protocol::RpcError;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::reply::{invalid_request, parse_error};

/// The most entries of one batch.
pub(crate) const MAX_BATCH: u32 = 64;

/// What a line holds.
#[derive(Debug)]
pub(crate) enum Incoming<'a> {
    One(Entry<'a>),
    Batch(Vec<Entry<'a>>),
}

pub(crate) type Entry<'a> = Result<Call<'a>, Invalid>;

/// A request, or a notification when it has no id.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) id: Option<RequestId>,
    pub(crate) method: Cow<'a, str>,
    pub(crate) params: Option<&'a RawValue>,
}

/// What a client calls its request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum RequestId {
    Plain(Id<'static>),
    /// A number that jsonrpsee has no type for, such as -1 or 1.5; as it was written.
    Number(String),
}

/// A message that is not a request, and the id to say so to.
#[derive(Debug)]
pub(crate) struct Invalid {
    pub(crate) id: RequestId,
    pub(crate) error: RpcError,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct OnlyId<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
}

/// Tells `"id": null` from no id at all.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads a line.
pub(crate) fn read(line: &[u8]) -> Incoming<'_> {
    let refuse = |error| Incoming::One(Err(Invalid { id: RequestId::Plain(Id::Null), error }));
    let Ok(text) = std::str::from_utf8(line) else { return refuse(parse_error()) };
    if !text.trim_start().starts_with('[') {
        return Incoming::One(entry(text));
    }
    let Ok(entries) = serde_json::from_str::<Vec<&RawValue>>(text) else { return refuse(parse_error()) };
    match entries.len() {
        0 => refuse(invalid_request("a batch has at least one entry")),
        more if more > MAX_BATCH as usize => {
            refuse(invalid_request(format!("a batch has at most {MAX_BATCH} entries, this one has {more}")))
        }
        _ => Incoming::Batch(entries.into_iter().map(|raw| entry(raw.get())).collect()),
    }
}

fn entry(text: &str) -> Entry<'_> {
    let invalid = |hint: String| Invalid { id: id_of(text), error: invalid_request(hint) };
    let message: Message<'_> = serde_json::from_str(text).map_err(|why| {
        if serde_json::from_str::<IgnoredAny>(text).is_err() {
            return Invalid { id: RequestId::Plain(Id::Null), error: parse_error() };
        }
        invalid(why.to_string())
    })?;
    if message.jsonrpc != "2.0" {
        return Err(invalid("`jsonrpc` must be \"2.0\"".into()));
    }
    if message.params.is_some_and(|params| !params.get().starts_with(['{', '['])) {
        return Err(invalid("`params` must be an object or an array".into()));
    }
    let id = match message.id {
        None => None,
        Some(id) => Some(RequestId::read(id).ok_or_else(|| invalid("`id` must be a string or a number".into()))?),
    };
    Ok(Call { id, method: message.method, params: message.params })
}

fn id_of(text: &str) -> RequestId {
    let id = serde_json::from_str::<OnlyId<'_>>(text).ok().and_then(|message| RequestId::read(message.id?));
    id.unwrap_or(RequestId::Plain(Id::Null))
}

impl RequestId {
    fn read(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        match text.as_bytes().first()? {
            b'n' => Some(Self::Plain(Id::Null)),
            b'"' => serde_json::from_str(text).ok().map(|id: String| Self::Plain(Id::Str(id.into()))),
            b'-' | b'0'..=b'9' => match text.parse() {
                Ok(number) => Some(Self::Plain(Id::Number(number))),
                Err(_) => Some(Self::Number(text.to_owned())),
            },
            _ => None,
        }
    }

    /// The id to hand to jsonrpsee; [`RequestId::stamp`] puts the real one back.
    pub(crate) fn plain(&self) -> Id<'static> {
        match self {
            Self::Plain(id) => id.clone(),
            Self::Number(_) => Id::Null,
        }
    }

    /// Puts this id into an answer that was made for [`RequestId::plain`].
    pub(crate) fn stamp(&self, response: Box<RawValue>) -> Box<RawValue> {
        let Self::Number(id) = self else { return response };
        let stamped = response.get().replacen("\"id\":null", &format!("\"id\":{id}"), 1);
        RawValue::from_string(stamped).unwrap_or(response)
    }
}
