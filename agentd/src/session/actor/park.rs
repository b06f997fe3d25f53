//! Lets go of a turn so that it can go on in another life of the daemon, and keeps what grows in case this one ends
//! without a word.
//!
//! When the daemon stops, calls that run are waited for, for a while; nothing new starts, and what a person is asked
//! stays asked. What is left then is no different from what a crash leaves, and is found in the same way.

use std::time::Duration;

use tokio::time::Instant;

use super::{Actor, Phase};

/// How often what grows is kept.
pub(super) const DRAFT_PAUSE: Duration = Duration::from_secs(2);

impl Actor {
    /// Lets what runs come to its end until then, and nothing more.
    pub(super) fn park(&mut self, until: Option<Instant>) {
        if let Phase::Running(running) = &mut self.phase {
            running.parking = until;
        }
        self.park_when_quiet();
    }

    /// Ends the loop once no call of it runs: what it waits for is a model or a person.
    pub(super) fn park_when_quiet(&mut self) {
        let waits = |call| self.waiting.questions.holds(call);
        if self.running().is_some_and(|running| running.parking.is_some() && running.open_calls.iter().all(waits)) {
            self.turns.abort_all();
        }
    }

    /// When calls that still run are not waited for any longer.
    pub(super) fn parking_ends(&self) -> Option<Instant> {
        self.running().and_then(|running| running.parking).filter(|_| self.has_task())
    }

    pub(super) fn next_draft(&self) -> Option<Instant> {
        self.running().filter(|running| running.end_again.is_none()).map(|running| running.draft_at)
    }

    /// Keeps what has grown since the last time.
    pub(super) async fn keep_drafts(&mut self) {
        let Phase::Running(running) = &mut self.phase else { return };
        running.draft_at = Instant::now() + DRAFT_PAUSE;
        let drafts = self.feed.drafts();
        // No promise stands on them: they take no room from what has one.
        if drafts.is_empty() || self.env.store.is_short_of_room() {
            return;
        }
        if let Err(error) = self.env.store.keep_drafts(self.session.id, drafts).await {
            tracing::warn!(session = %self.session.id, %error, "what grows could not be kept");
        }
    }
}
