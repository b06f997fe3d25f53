//! What a provider says went wrong, as a kind that the loop can act on.
//!
//! The status, the error's code and a few well-known phrases decide; the provider's own words are always passed on.

use std::time::Duration;

use foundation::{ModelError, ModelErrorKind};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use ModelErrorKind as Kind;

/// What is shown of an error body that has no message in it.
const EXCERPT_CHARS: usize = 300;

/// A refusal as it came.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Refusal<'a> {
    pub(crate) provider: &'a str,
    /// HTTP status, if the refusal was not inside an accepted stream.
    pub(crate) status: Option<u16>,
    /// Name and value of the header that the provider's support asks for.
    pub(crate) request_id: Option<(&'a str, &'a str)>,
    pub(crate) retry_after: Option<Duration>,
}

impl Refusal<'_> {
    /// Reads an error body, JSON or not.
    pub(crate) fn read(&self, body: &str) -> ModelError {
        match serde_json::from_str::<Value>(body) {
            Ok(value) => self.explain(&value),
            Err(_) => self.explain(&Value::String(excerpt(body))),
        }
    }

    /// Reads an error object.
    pub(crate) fn explain(&self, body: &Value) -> ModelError {
        let body = body.get(0).unwrap_or(body);
        let error = body.get("error").filter(|error| !error.is_null()).unwrap_or(body);
        let message = ["message", "detail", "error"]
            .iter()
            .find_map(|field| error.get(field).and_then(Value::as_str))
            .or_else(|| error.as_str())
            .map_or_else(|| excerpt(&error.to_string()), |text| text.trim().into());
        let code = error.get("code");
        let status = self.status.or_else(|| number(code)).or_else(|| number(error.get("status")));
        let words: Vec<_> =
            [code, error.get("type"), error.get("status")].into_iter().flatten().filter_map(Value::as_str).collect();
        let kind = classify(status, &words.join(" ").to_lowercase(), &message.to_lowercase());
        let mut text = self.provider.to_owned();
        match (self.status, words.first()) {
            (Some(status), _) => text += &format!(": HTTP {status}"),
            (None, Some(word)) => text += &format!(": {word} inside the answer"),
            (None, None) => text += ": error inside the answer",
        }
        if !message.is_empty() {
            text += &format!(": {message}");
        }
        if let Some((name, value)) = self.request_id {
            text += &format!(" ({name} {value})");
        }
        ModelError { retry_after: self.retry_after, ..ModelError::new(kind, text, hint(kind)) }
    }
}

/// Reads one event of an accepted stream.
///
/// # Errors
/// What the provider reports in place of the event, or that it is none of this format.
pub(crate) fn read_event<T: DeserializeOwned>(provider: &str, data: &str) -> Result<T, ModelError> {
    serde_json::from_str(data).map_err(|error| {
        let body = serde_json::from_str::<Value>(data).unwrap_or_default();
        if body.get("error").is_some_and(|error| !error.is_null()) {
            return Refusal { provider, ..Refusal::default() }.explain(&body);
        }
        let message = format!("{provider}: an event of the answer is not of this API's format: {error}");
        ModelError::new(Kind::Protocol, message, "check this provider's `api` and `baseUrl`")
    })
}

fn number(value: Option<&Value>) -> Option<u16> {
    let value = value?;
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    u16::try_from(number).ok().filter(|status| (400..600).contains(status))
}

fn excerpt(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(EXCERPT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

/// `words` are the error's code and type, `message` its text, both in lower case.
pub(crate) fn classify(status: Option<u16>, words: &str, message: &str) -> Kind {
    const TOO_LARGE: &[&str] = &[
        "context_length_exceeded",
        "context length",
        "context window",
        "context size",
        "context limit",
        "prompt is too long",
        "input is too long",
        "request_too_large",
        "exceeds the maximum number of tokens",
        "reduce the length of the messages",
    ];
    const NO_CREDIT: &[&str] =
        &["insufficient_quota", "billing_error", "credit balance", "insufficient balance", "insufficient credits"];
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| words.contains(phrase) || message.contains(phrase));
    match status {
        Some(402) => Kind::Quota,
        _ if says(NO_CREDIT) => Kind::Quota,
        Some(401 | 403) => Kind::Auth,
        Some(413) => Kind::ContextTooLarge,
        Some(400 | 422 | 500) | None if says(TOO_LARGE) => Kind::ContextTooLarge,
        Some(429) => Kind::RateLimit,
        Some(503 | 529) => Kind::Overloaded,
        None | Some(400) if says(&["content_filter", "content_policy", "data_inspection_failed"]) => Kind::Filter,
        Some(408 | 500..) => by_words(words).unwrap_or(Kind::Server),
        Some(_) => Kind::BadRequest,
        None => by_words(words).unwrap_or(Kind::Server),
    }
}

fn by_words(words: &str) -> Option<Kind> {
    const WORDS: &[(&str, Kind)] = &[
        ("overloaded", Kind::Overloaded),
        ("unavailable", Kind::Overloaded),
        ("rate_limit", Kind::RateLimit),
        ("resource_exhausted", Kind::RateLimit),
        ("authentication", Kind::Auth),
        ("invalid_api_key", Kind::Auth),
        ("permission", Kind::Auth),
        ("invalid_request", Kind::BadRequest),
        ("not_found", Kind::BadRequest),
    ];
    WORDS.iter().find(|(word, _)| words.contains(word)).map(|&(_, kind)| kind)
}

fn hint(kind: Kind) -> &'static str {
    match kind {
        Kind::Auth => "check this provider's key, and that it may use this model",
        Kind::Quota => "add credit to this account, or choose another model",
        Kind::RateLimit => "wait, then try again",
        Kind::Overloaded | Kind::Server => "try again in a while, or choose another model",
        Kind::ContextTooLarge => "compact the session, or choose a model with a larger context window",
        Kind::Filter => "put the request in other words",
        Kind::BadRequest => "check the model's name and this provider's settings",
        Kind::Network | Kind::Incomplete => "try again",
        Kind::Protocol => "check that the base URL is one of an API of this format",
    }
}

/// How long the provider asks to wait: seconds, or an HTTP date as seen from `now`.
pub(crate) fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(value.trim()).ok()?;
    Some(Duration::try_from(until.duration_since(now)).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests;
