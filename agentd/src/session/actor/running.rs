//! The turn that runs, as its session keeps it.

use std::collections::HashSet;

use agent::Halt;
use protocol::api::TurnInterrupted;
use protocol::{CallId, Turn};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::super::command::{Reply, TurnSays};
use super::park::DRAFT_PAUSE;

#[derive(Debug)]
pub(super) struct Running {
    pub(super) turn: Turn,
    pub(super) cancel: CancellationToken,
    /// It was cut off before and goes on: what it asks may have been asked already.
    pub(super) is_resumed: bool,
    /// Calls that have begun and are not over.
    pub(super) open_calls: HashSet<CallId>,
    /// Set once nothing of it runs any more and its end is not in the journal yet: when that is tried again. A fixed
    /// moment, so that a busy mailbox does not put it off for ever.
    pub(super) end_again: Option<Instant>,
    /// Nothing of it runs any more, and it may go on later.
    pub(super) is_cut_off: bool,
    /// Told when the turn is over and nothing of it is alive.
    pub(super) interrupters: Vec<Reply<TurnInterrupted>>,
    /// The daemon stops: how long calls that run are waited for. Nothing new starts.
    pub(super) parking: Option<Instant>,
    /// What would start meanwhile. It is never answered.
    pub(super) held: Vec<oneshot::Sender<Result<(), Halt>>>,
    /// What the loop has said and the disk did not take yet, and when that is tried again.
    pub(super) put_off: Vec<TurnSays>,
    pub(super) keep_again: Option<Instant>,
    /// When what grows is kept next.
    pub(super) draft_at: Instant,
}

impl Running {
    pub(super) fn new(turn: Turn, cancel: CancellationToken, is_resumed: bool) -> Self {
        Self {
            turn,
            cancel,
            is_resumed,
            open_calls: HashSet::new(),
            end_again: None,
            is_cut_off: false,
            interrupters: Vec::new(),
            parking: None,
            held: Vec::new(),
            put_off: Vec::new(),
            keep_again: None,
            draft_at: Instant::now() + DRAFT_PAUSE,
        }
    }
}
