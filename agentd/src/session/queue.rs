//! The messages of one session that wait for their turn, in the order of their arrival.

use std::collections::VecDeque;

use protocol::api::Delivery;
use protocol::{Actor, ErrorKind, RpcError, Turn, TurnId};
use tokio::time::Instant;

/// Messages that may wait in a session.
const ROOM: usize = 64;

#[derive(Default, Debug)]
pub(crate) struct Queue {
    waiting: VecDeque<Waits>,
    /// When the first is tried again, after it could not be started.
    pub(crate) again_at: Option<Instant>,
}

/// A message that waits, and who wrote it.
#[derive(Clone, Debug)]
pub(crate) struct Waits {
    pub(crate) turn: Turn,
    pub(crate) by: Actor,
}

impl Queue {
    pub(crate) fn restore(&mut self, queued: Vec<(Turn, Option<Actor>)>) {
        self.waiting = queued.into_iter().map(|(turn, by)| Waits { turn, by: by.unwrap_or(Actor::Daemon) }).collect();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn holds(&self, turn: TurnId) -> bool {
        self.waiting.iter().any(|waits| waits.turn.id == turn)
    }

    pub(crate) fn turns(&self) -> Vec<Turn> {
        self.waiting.iter().map(|waits| waits.turn.clone()).collect()
    }

    /// # Errors
    /// `overloaded`.
    pub(crate) fn check_room(&self) -> Result<(), RpcError> {
        if self.waiting.len() < ROOM {
            return Ok(());
        }
        let fact = format!("{ROOM} messages wait in this session already");
        Err(RpcError::new(ErrorKind::Overloaded, fact, "wait for some to run, or take some back with queue/delete"))
    }

    pub(crate) fn push(&mut self, waits: Waits) {
        self.waiting.push_back(waits);
    }

    /// # Errors
    /// `not_found` for one that does not wait here.
    pub(crate) fn get(&self, turn: TurnId) -> Result<&Turn, RpcError> {
        self.waiting.iter().map(|waits| &waits.turn).find(|waits| waits.id == turn).ok_or_else(|| {
            let fact = format!("no message waits as turn {turn}");
            RpcError::new(
                ErrorKind::NotFound,
                fact,
                "it runs, is over or was taken back: queue/list shows those that wait",
            )
        })
    }

    /// Puts a changed message in its old place.
    pub(crate) fn replace(&mut self, changed: Waits) {
        if let Some(waits) = self.waiting.iter_mut().find(|waits| waits.turn.id == changed.turn.id) {
            *waits = changed;
        }
    }

    pub(crate) fn remove(&mut self, turn: TurnId) {
        self.waiting.retain(|waits| waits.turn.id != turn);
    }

    pub(crate) fn first(&self) -> Option<Waits> {
        self.waiting.front().cloned()
    }

    /// Those that are meant for a turn that has begun.
    pub(crate) fn steering(&self) -> Vec<Waits> {
        self.waiting.iter().filter(|waits| waits.turn.delivery == Delivery::Steer).cloned().collect()
    }
}
