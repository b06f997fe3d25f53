//! Events that belong to a stream and not to a journal.

use std::sync::Arc;

use jiff::Timestamp;
use protocol::{Event, EventBody, SessionId};

/// The event as it is sent.
pub(crate) fn control(session_id: SessionId, body: EventBody) -> Arc<str> {
    let event = Event { body, session_id, seq: None, cursor: None, ts: Timestamp::now(), turn_id: None, actor: None };
    let json = serde_json::to_string(&event).inspect_err(|error| tracing::error!(%error, "event cannot be serialised"));
    json.unwrap_or_default().into()
}
