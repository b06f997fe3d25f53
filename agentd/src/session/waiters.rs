//! Who waits for a session to come to rest, without polling.

use protocol::api::{TurnWaited, Until};
use protocol::{Seq, SessionStatus, Turn, TurnId};

use super::command::Reply;

#[derive(Default, Debug)]
pub(crate) struct Waiters {
    waiting: Vec<Waiter>,
}

#[derive(Debug)]
pub(crate) struct Waiter {
    /// The turn that the client means; for `until: "idle"` any.
    pub(crate) turn: Option<TurnId>,
    pub(crate) until: Until,
    pub(crate) reply: Reply<TurnWaited>,
}

/// Where the session stands now.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    pub(crate) status: SessionStatus,
    pub(crate) seq: Seq,
    /// The turn that runs.
    pub(crate) running: Option<Turn>,
    /// Turns that will run without anybody's word.
    pub(crate) queued: Vec<TurnId>,
    /// The turn that was cut off and waits, else the one that ended last.
    pub(crate) rests: Option<Turn>,
}

impl Standing {
    /// Whether a turn runs or will run by itself.
    pub(crate) fn goes_on(&self, turn: TurnId) -> bool {
        self.queued.contains(&turn) || self.running.as_ref().is_some_and(|running| running.id == turn)
    }
}

impl Waiters {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn add(&mut self, waiter: Waiter) {
        self.waiting.push(waiter);
    }

    /// Answers everybody whose wait is over, and forgets those who went away.
    pub(crate) fn wake(&mut self, standing: &Standing) {
        self.waiting.retain(|waiter| !waiter.reply.is_closed());
        for index in (0..self.waiting.len()).rev() {
            if is_over(self.waiting[index].turn, self.waiting[index].until, standing) {
                let waiter = self.waiting.swap_remove(index);
                let turn = standing.running.clone().or_else(|| standing.rests.clone());
                let answer = TurnWaited { turn, status: standing.status, seq: standing.seq };
                drop(waiter.reply.send(Ok(answer)));
            }
        }
    }
}

/// Whether a wait has come to its end.
fn is_over(turn: Option<TurnId>, until: Until, standing: &Standing) -> bool {
    let goes_on = turn.map_or(standing.running.is_some(), |turn| standing.goes_on(turn));
    let is_meant = standing.running.as_ref().is_some_and(|running| turn.is_none_or(|turn| turn == running.id));
    match until {
        Until::Ended => !goes_on,
        Until::Idle => standing.running.is_none() && standing.queued.is_empty(),
        // A turn that ends without asking will never ask: its end ends the wait too.
        Until::Approval => {
            let asks = matches!(standing.status, SessionStatus::WaitingApproval | SessionStatus::WaitingAnswer);
            !goes_on || is_meant && asks
        }
    }
}
