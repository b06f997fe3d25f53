//! What of a transcript may be sent back to a model: the same care for every wire format.
//!
//! Nothing empty is sent, no arguments that are not an object, and no reasoning to a model that did not write it.

use foundation::{Message, ModelError, ModelErrorKind, ModelRequest};
use serde::Serialize;
use serde_json::Value;

use crate::config::Profile;

/// Stands for a result without a word, which some servers refuse.
const NO_OUTPUT: &str = "(no output)";

/// Whether this model wrote the message, so that it may see its own reasoning again.
pub(crate) fn is_own(message: &Message, profile: &Profile) -> bool {
    message.model.as_deref() == Some(&profile.name)
}

/// A call's arguments; `{}` where they were no object, which the call's result has already told the model.
pub(crate) fn arguments<'a>(input: &'a Value, empty: &'a Value) -> &'a Value {
    if input.is_object() { input } else { empty }
}

pub(crate) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

pub(crate) fn result(content: &str) -> &str {
    if is_blank(content) { NO_OUTPUT } else { content }
}

/// The longest answer to ask for.
pub(crate) fn max_output(profile: &Profile, request: &ModelRequest<'_>) -> Option<u64> {
    match (request.max_output, profile.limits.max_output) {
        (Some(wanted), Some(limit)) => Some(wanted.min(limit)),
        (wanted, _) => wanted,
    }
}

pub(crate) fn serialise(body: &impl Serialize) -> Result<Vec<u8>, ModelError> {
    serde_json::to_vec(body).map_err(|error| {
        ModelError::new(ModelErrorKind::BadRequest, format!("the request has no JSON form: {error}"), "report this")
    })
}
