//! The journal: events that are only ever added, each chained to the one before it by its hash.
//!
//! `seq` runs from 1 in each session without a gap. What is read back is, byte for byte, what was handed in.

use std::borrow::Cow;
use std::sync::Arc;

use blake3::Hash;
use jiff::Timestamp;
use protocol::{Event, EventBody, Seq, SessionId};
use rusqlite::{Connection, OptionalExtension, Row};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::columns::{Count, Nanos, Text};
use super::error::{Fault, StoreError};
use super::{CallRow, GrantRow, ReceiptRow, WorkbenchRows, calls, drafts, grants, projection, receipts, workbench};

#[cfg(test)]
mod tests;

/// Payload bytes of one page of history, unless a single event is longer. Whoever reads in pages holds one, and there may
/// be many who have stopped reading.
const PAGE_BYTES: usize = 4 << 20;
/// Events whose hashes are checked in one read.
const VERIFY_EVENTS: u32 = 500;

/// What is committed together: all of it or nothing.
#[derive(Debug)]
pub struct Entry {
    pub session: SessionId,
    /// In order, from the number after the session's last event on.
    pub events: Vec<NewEvent>,
    pub calls: Vec<CallRow>,
    pub receipts: Vec<ReceiptRow>,
    pub grants: Vec<GrantRow>,
    pub workbench: WorkbenchRows,
}

/// A durable event and its only serialisation.
#[derive(Debug)]
pub struct NewEvent {
    /// Its `seq` is set.
    pub event: Event,
    /// The bytes to store, to send and to replay.
    pub json: Arc<str>,
}

/// An event as it was stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredEvent {
    pub seq: Seq,
    /// The event's `type`.
    pub kind: String,
    pub json: Arc<str>,
}

/// Part of a session's history, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HistoryPage {
    pub events: Vec<StoredEvent>,
    /// The `after` of the next page, or its `before` when paging backwards; `None` when there is no more.
    pub next_seq: Option<Seq>,
}

pub(super) fn append(tx: &Connection, entry: &Entry) -> Result<(), Fault> {
    let (mut last, mut hash) = head(tx, entry.session)?;
    for new in &entry.events {
        let expected = last + 1;
        if new.event.seq != Some(expected) || new.event.session_id != entry.session {
            return Err(StoreError::Sequence { session: entry.session, expected, found: new.event.seq }.into());
        }
        hash = insert(tx, new, expected, hash)?;
        projection::project(tx, &new.event, expected)?;
        last = expected;
    }
    let cuts =
        |new: &NewEvent| matches!(new.event.body, EventBody::TurnEnded { .. } | EventBody::TurnRecoverable { .. });
    if entry.events.iter().any(cuts) {
        drafts::clear(tx, entry.session)?;
    }
    if entry.events.iter().any(|new| matches!(new.event.body, EventBody::Message { .. })) {
        drafts::forget_message(tx, entry.session)?;
    }
    entry.calls.iter().try_for_each(|row| calls::put(tx, row))?;
    entry.receipts.iter().try_for_each(|row| receipts::put(tx, row))?;
    entry.grants.iter().try_for_each(|row| grants::put(tx, row))?;
    workbench::put(tx, entry.session, &entry.workbench)
}

const HEAD: &str = "SELECT seq, hash FROM event WHERE session_id = ?1 ORDER BY seq DESC LIMIT 1";

/// The last event's number and hash; 0 and zeros before the first.
fn head(tx: &Connection, session: SessionId) -> rusqlite::Result<(Seq, Hash)> {
    let head = tx
        .prepare_cached(HEAD)?
        .query_row([Text(session)], |row| Ok((row.get::<_, Count>(0)?.0, Hash::from_bytes(row.get(1)?))));
    Ok(head.optional()?.unwrap_or((0, Hash::from_bytes([0; 32]))))
}

const INSERT: &str =
    "INSERT INTO event (session_id, seq, type, ts, prev_hash, hash, payload) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

fn insert(tx: &Connection, new: &NewEvent, seq: Seq, previous: Hash) -> rusqlite::Result<Hash> {
    let (event, hash) = (&new.event, chained(&previous, new.json.as_bytes()));
    let kind = event.body.kind();
    tx.prepare_cached(INSERT)?.execute((
        Text(event.session_id),
        Count(seq),
        kind,
        Nanos(event.ts),
        previous.as_bytes(),
        hash.as_bytes(),
        &*new.json,
    ))?;
    Ok(hash)
}

fn chained(previous: &Hash, payload: &[u8]) -> Hash {
    blake3::Hasher::new().update(previous.as_bytes()).update(payload).finalize()
}

const FORWARDS: &str = "SELECT seq, type, payload FROM event
    WHERE session_id = ?1 AND seq > ?2 AND seq < ?3 ORDER BY seq LIMIT ?4";
const BACKWARDS: &str = "SELECT seq, type, payload FROM event
    WHERE session_id = ?1 AND seq > ?2 AND seq < ?3 ORDER BY seq DESC LIMIT ?4";

/// Goes backwards from `before` when only that is given, else forwards. Ends before an event that is not what was once
/// stored as one, and says so when that is the first: sent as it is, it would break the line of whoever gets it.
pub(super) fn history(
    db: &Connection,
    session: SessionId,
    after: Option<Seq>,
    before: Option<Seq>,
    limit: u32,
) -> Result<HistoryPage, Fault> {
    let backwards = after.is_none() && before.is_some();
    let mut statement = db.prepare_cached(if backwards { BACKWARDS } else { FORWARDS })?;
    // One more than wanted, to see whether there is more.
    let span = (Text(session), Count(after.unwrap_or(0)), Count(before.unwrap_or(Seq::MAX)), i64::from(limit) + 1);
    let mut rows = statement.query(span)?;
    let (mut events, mut bytes, mut next_seq) = (Vec::<StoredEvent>::new(), 0, None);
    while let Some(row) = rows.next()? {
        let event = stored(row)?;
        let is_line = !event.json.contains('\n') && serde_json::from_str::<&RawValue>(&event.json).is_ok();
        if !is_line && events.is_empty() {
            let file = db.path().unwrap_or_default().into();
            return Err(StoreError::Chain { file, session, seq: event.seq }.into());
        }
        bytes += event.json.len();
        if let Some(last) = events.last()
            && (!is_line || events.len() >= limit as usize || bytes > PAGE_BYTES)
        {
            next_seq = Some(last.seq);
            break;
        }
        events.push(event);
    }
    if backwards {
        events.reverse();
    }
    Ok(HistoryPage { events, next_seq })
}

fn stored(row: &Row<'_>) -> rusqlite::Result<StoredEvent> {
    Ok(StoredEvent { seq: row.get::<_, Count>(0)?.0, kind: row.get(1)?, json: row.get(2)? })
}

/// How far the check of a chain has come.
#[derive(Clone, Copy)]
pub(super) struct Link {
    seq: Seq,
    hash: Hash,
}

impl Link {
    pub(super) const FIRST: Self = Self { seq: 0, hash: Hash::from_bytes([0; 32]) };

    /// The last event that holds.
    pub(super) fn seq(self) -> Seq {
        self.seq
    }
}

const CHAIN: &str = "SELECT seq, prev_hash, hash, payload, type, ts FROM event
    WHERE session_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";

const REST: &str = "SELECT seq, prev_hash, hash, payload FROM event
    WHERE session_id = ?1 AND seq > ?2 ORDER BY seq";

/// Takes from another database what goes on from where this one ends, as long as it chains. Answers with how many
/// events that were, and the first that is lost.
pub(super) fn take_over(from: &Connection, session: SessionId, tx: &Connection) -> Result<(u64, Option<Seq>), Fault> {
    let (mut last, mut hash) = head(tx, session)?;
    let first = last;
    let mut statement = from.prepare(REST)?;
    let mut rows = statement.query((Text(session), Count(last)))?;
    while let Ok(Some(row)) = rows.next() {
        let json: Arc<str> = match row.get(3) {
            Ok(json) => json,
            Err(_) => break,
        };
        let next = chained(&hash, json.as_bytes());
        let chains = row.get_ref(0)?.as_i64().is_ok_and(|seq| u64::try_from(seq) == Ok(last + 1))
            && row.get_ref(1)?.as_blob() == Ok(hash.as_bytes())
            && row.get_ref(2)?.as_blob() == Ok(next.as_bytes());
        let Some(event) = chains.then(|| serde_json::from_str::<Event>(&json).ok()).flatten() else { break };
        last += 1;
        hash = insert(tx, &NewEvent { event: event.clone(), json }, last, hash)?;
        projection::project(tx, &event, last)?;
    }
    let known = "SELECT max((SELECT coalesce(max(seq), 0) FROM event WHERE session_id = ?1),
        (SELECT coalesce(max(last_seq), 0) FROM session WHERE id = ?1))";
    let known: Count = from.query_row(known, [Text(session)], |row| row.get(0))?;
    Ok((last - first, (known.0 > last).then_some(last + 1)))
}

/// What a stretch of a chain turned out to be.
pub(super) enum Stretch {
    Holds(Link),
    Complete,
    Broken(Seq),
}

/// What of a payload stands in columns too, so that it can be asked for.
#[derive(Deserialize)]
struct Label<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    ts: Timestamp,
}

/// The columns beside the payload are under no hash of their own: they must say what it says.
fn says_the_same(row: &Row<'_>) -> rusqlite::Result<bool> {
    let payload = row.get_ref(3)?.as_bytes().unwrap_or_default();
    let Ok(label) = serde_json::from_slice::<Label<'_>>(payload) else { return Ok(false) };
    let ts = i64::try_from(label.ts.as_nanosecond()).unwrap_or(i64::MAX);
    Ok(row.get_ref(4)?.as_bytes() == Ok(label.kind.as_bytes()) && row.get_ref(5)?.as_i64() == Ok(ts))
}

/// Checks the next stretch. At the end, the session's row must know of no later event: the chain alone cannot tell
/// that its end was cut off.
pub(super) fn verify(db: &Connection, session: SessionId, from: Link) -> Result<Stretch, Fault> {
    let mut statement = db.prepare_cached(CHAIN)?;
    let mut rows = statement.query((Text(session), Count(from.seq), VERIFY_EVENTS))?;
    let mut link = from;
    while let Some(row) = rows.next()? {
        let next =
            Link { seq: link.seq + 1, hash: chained(&link.hash, row.get_ref(3)?.as_bytes().unwrap_or_default()) };
        let holds = row.get_ref(0)?.as_i64().is_ok_and(|seq| u64::try_from(seq) == Ok(next.seq))
            && row.get_ref(1)?.as_blob() == Ok(link.hash.as_bytes())
            && row.get_ref(2)?.as_blob() == Ok(next.hash.as_bytes())
            && says_the_same(row)?;
        if !holds {
            return Ok(Stretch::Broken(next.seq));
        }
        link = next;
    }
    if link.seq > from.seq {
        return Ok(Stretch::Holds(link));
    }
    let mut last_seq = db.prepare_cached("SELECT last_seq FROM session WHERE id = ?1")?;
    let last_seq: Option<Count> = last_seq.query_row([Text(session)], |row| row.get(0)).optional()?;
    Ok(if last_seq.map_or(0, |last| last.0) == link.seq { Stretch::Complete } else { Stretch::Broken(link.seq + 1) })
}
