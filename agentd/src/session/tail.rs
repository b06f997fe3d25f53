//! The newest durable events of one session, in memory, for subscribers that are nearly up to date.
//!
//! Holds a run of events without gaps that ends at the last one; whoever is behind its first event reads the journal.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use protocol::{CallId, Event, EventBody, MessageId, RpcError, Seq, SessionId};

const MAX_EVENTS: usize = 512;
const MAX_BYTES: usize = 1 << 20;

/// One committed event, as the bytes that were stored and that everybody gets.
#[derive(Clone, Debug)]
pub(crate) struct Durable {
    pub(crate) seq: Seq,
    pub(crate) kind: Arc<str>,
    pub(crate) json: Arc<str>,
    /// What this event makes final.
    pub(crate) ends: Ends,
}

/// The growing thing that a durable event supersedes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ends {
    Nothing,
    Message(MessageId),
    Tool(CallId),
    /// The turn: whatever still grew is over.
    Turn,
}

impl Durable {
    /// An event that has just been committed; `json` is what was stored of it.
    pub(crate) fn committed(event: &Event, json: Arc<str>) -> Self {
        let ends = match &event.body {
            EventBody::Message { message } => Ends::Message(message.id),
            EventBody::ToolFinished { tool_use_id, .. } => Ends::Tool(tool_use_id.clone()),
            EventBody::TurnEnded { .. } | EventBody::TurnRecoverable { .. } => Ends::Turn,
            _ => Ends::Nothing,
        };
        Self { seq: event.seq.unwrap_or_default(), kind: event.body.kind().into(), json, ends }
    }

    /// An event read back from the journal.
    pub(crate) fn stored(seq: Seq, kind: &str, json: Arc<str>) -> Self {
        Self { seq, kind: kind.into(), json, ends: Ends::Nothing }
    }
}

/// Where a subscriber that is far behind reads on.
#[async_trait]
pub(crate) trait Journal: Send + Sync {
    /// At most `limit` events after `after`, in order and without gaps.
    ///
    /// # Errors
    /// `not_found` when the session is gone, `storage_error` when the database cannot be read.
    async fn page(&self, session: SessionId, after: Seq, limit: usize) -> Result<Vec<Durable>, RpcError>;
}

#[derive(Debug)]
pub(crate) struct Tail {
    events: VecDeque<Durable>,
    bytes: usize,
    last_seq: Seq,
}

impl Tail {
    pub(crate) fn new(last_seq: Seq) -> Self {
        Self { events: VecDeque::new(), bytes: 0, last_seq }
    }

    pub(crate) fn last_seq(&self) -> Seq {
        self.last_seq
    }

    pub(crate) fn push(&mut self, event: Durable) {
        if event.seq != self.last_seq + 1 {
            // A gap cannot come from the store. If it comes all the same, subscribers find the truth in the journal.
            tracing::error!(seq = event.seq, last_seq = self.last_seq, "event published out of order");
            self.events.clear();
            self.bytes = 0;
        }
        self.last_seq = self.last_seq.max(event.seq);
        self.bytes += event.json.len();
        self.events.push_back(event);
        while self.events.len() > MAX_EVENTS || self.bytes > MAX_BYTES {
            let Some(old) = self.events.pop_front() else { break };
            self.bytes -= old.json.len();
        }
    }

    /// At most `limit` events after `cursor`, or `None` when the next one is only in the journal.
    pub(crate) fn after(&self, cursor: Seq, limit: usize) -> Option<Vec<Durable>> {
        if cursor >= self.last_seq {
            return Some(Vec::new());
        }
        let first = self.events.front()?.seq;
        let skip = usize::try_from((cursor + 1).checked_sub(first)?).ok()?;
        Some(self.events.iter().skip(skip).take(limit).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seqs(tail: &Tail, cursor: Seq) -> Option<Vec<Seq>> {
        tail.after(cursor, 3).map(|events| events.iter().map(|event| event.seq).collect())
    }

    #[test]
    fn a_tail_serves_what_it_holds_and_sends_others_to_the_journal() {
        let mut tail = Tail::new(4);
        assert_eq!(seqs(&tail, 4), Some(vec![]));
        assert_eq!(seqs(&tail, 3), None);
        for seq in 5..=600 {
            tail.push(Durable::stored(seq, "notice", "{}".into()));
        }
        assert_eq!(seqs(&tail, 87), None, "only 512 events are kept");
        assert_eq!(seqs(&tail, 88), Some(vec![89, 90, 91]));
        assert_eq!(seqs(&tail, 599), Some(vec![600]));
        assert_eq!(seqs(&tail, 600), Some(vec![]));
    }

    #[test]
    fn a_tail_of_large_events_stays_within_a_megabyte() {
        let mut tail = Tail::new(0);
        for seq in 1..=4 {
            tail.push(Durable::stored(seq, "message", "x".repeat(400_000).into()));
        }
        assert_eq!(seqs(&tail, 1), None);
        assert_eq!(seqs(&tail, 2), Some(vec![3, 4]));
    }

    #[test]
    fn after_a_gap_nothing_older_is_served_from_memory() {
        let mut tail = Tail::new(0);
        for seq in [1, 2, 5] {
            tail.push(Durable::stored(seq, "notice", "{}".into()));
        }
        assert_eq!(seqs(&tail, 1), None);
        assert_eq!(seqs(&tail, 4), Some(vec![5]));
    }
}
