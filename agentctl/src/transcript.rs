//! What was said in a session: pages of its durable events.

use protocol::api;
use protocol::event::Event;
use protocol::ids::{Seq, SessionId};
use protocol::method;
use serde_json::value::RawValue;

use crate::connect::{Connection, understand};
use crate::exit::Failure;

/// How many events are asked for at once.
const PAGE: u32 = 1000;

/// Hands out every durable event from the first on, page by page, as it came.
pub(crate) async fn whole(
    connection: &Connection,
    session_id: SessionId,
    mut each: impl FnMut(&RawValue) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut after: Seq = 0;
    loop {
        let ask = api::SessionHistory { session_id, before: None, after: Some(after), limit: Some(PAGE) };
        let page = connection.call::<method::SessionHistory>(ask).await?;
        for raw in &page.events {
            each(raw)?;
        }
        match page.next_seq {
            Some(next) if next > after && !page.events.is_empty() => after = next,
            _ => return Ok(()),
        }
    }
}

/// The newest events, oldest first, and whether there are older ones.
pub(crate) async fn newest(
    connection: &Connection,
    session_id: SessionId,
    last_seq: Seq,
    limit: u32,
) -> Result<(Vec<Event>, bool), Failure> {
    let before = Some(last_seq.saturating_add(1));
    let ask = api::SessionHistory { session_id, before, after: None, limit: Some(limit) };
    let page = connection.call::<method::SessionHistory>(ask).await?;
    let events: Vec<Event> = page.events.iter().filter_map(|raw| understand(raw)).collect();
    let is_cut = events.first().and_then(|event| event.seq).is_some_and(|seq| seq > 1);
    Ok((events, is_cut))
}
