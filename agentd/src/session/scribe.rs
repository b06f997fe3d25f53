//! Writes a session's journal: commit first, publish then.
//!
//! The one place where a sequence number is given out, an event is serialised and its bytes go to the store and, only
//! after the commit, to everybody who watches. So nobody ever sees an event that a crash could undo.

use std::sync::Arc;

use foundation::failpoint;
use jiff::Timestamp;
use protocol::{Actor, Cursor, Event, EventBody, RpcError, Seq, SessionId, TurnId};

use super::feed::{Durable, Feed};
use crate::store::{CallRow, Entry, GrantRow, NewEvent, ReceiptRow, Store, WorkbenchRows};

/// Something that happened, before it has a place in the journal.
#[derive(Debug)]
pub(crate) struct Fact {
    pub(crate) body: EventBody,
    pub(crate) turn: Option<TurnId>,
    pub(crate) actor: Option<Actor>,
}

impl Fact {
    pub(crate) fn new(body: EventBody, actor: Actor) -> Self {
        Self { body, turn: None, actor: Some(actor) }
    }

    pub(crate) fn in_turn(mut self, turn: TurnId) -> Self {
        self.turn = Some(turn);
        self
    }
}

/// What is committed together with facts but is nobody's event.
#[derive(Default, Debug)]
pub(crate) struct Rows {
    pub(crate) calls: Vec<CallRow>,
    pub(crate) receipts: Vec<ReceiptRow>,
    pub(crate) grants: Vec<GrantRow>,
    pub(crate) workbench: WorkbenchRows,
}

#[derive(Debug)]
pub(crate) struct Scribe {
    session: SessionId,
    store: Store,
    feed: Arc<Feed>,
    last_seq: Seq,
}

impl Scribe {
    /// Goes on after `last_seq`.
    pub(crate) fn new(session: SessionId, store: Store, feed: Arc<Feed>, last_seq: Seq) -> Self {
        Self { session, store, feed, last_seq }
    }

    pub(crate) fn last_seq(&self) -> Seq {
        self.last_seq
    }

    /// Commits facts in one transaction, then publishes them. Answers with the `seq` of the last.
    ///
    /// # Errors
    /// `storage_error`: then nothing of it happened, and the next write goes on from where the store is.
    pub(crate) async fn write(&mut self, facts: Vec<Fact>, rows: Rows) -> Result<Seq, RpcError> {
        let ts = Timestamp::now();
        let mut events = Vec::with_capacity(facts.len());
        let mut durables = Vec::with_capacity(facts.len());
        for (fact, seq) in facts.into_iter().zip(self.last_seq + 1..) {
            let event = Event {
                body: fact.body,
                session_id: self.session,
                seq: Some(seq),
                cursor: Some(Cursor::new(self.store.epoch(), seq)),
                ts,
                turn_id: fact.turn,
                actor: fact.actor,
            };
            let json: Arc<str> = serde_json::to_string(&event)
                .map_err(|error| super::internal(format!("an event could not be written as JSON: {error}")))?
                .into();
            durables.push(Durable::committed(&event, Arc::clone(&json)));
            events.push(NewEvent { event, json });
        }
        let Rows { calls, receipts, grants, workbench } = rows;
        let entry = Entry { session: self.session, events, calls, receipts, grants, workbench };
        failpoint::hit_each("commit.before", durables.iter().map(|durable| &*durable.kind));
        if let Err(error) = self.store.append(entry).await {
            // A commit that failed may still have reached the disk: ask, and never guess.
            if let Ok(Some(session)) = self.store.session(self.session).await {
                self.last_seq = session.last_seq;
            }
            return Err(super::storage(&error));
        }
        failpoint::hit_each("commit.after", durables.iter().map(|durable| &*durable.kind));
        self.last_seq += durables.len() as Seq;
        self.feed.publish(durables);
        Ok(self.last_seq)
    }
}
