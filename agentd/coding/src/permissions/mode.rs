//! The mode a session is in at this moment.
//!
//! Shared between whoever changes it and the calls that are judged by it, so that a change counts for every call that
//! has not started yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use protocol::Mode;

const MODES: [Mode; 5] = [Mode::Plan, Mode::Ask, Mode::AcceptEdits, Mode::Auto, Mode::Bypass];

/// A mode that several can see and one can change.
#[derive(Clone, Debug)]
pub struct SharedMode(Arc<AtomicU8>);

impl SharedMode {
    /// Starts in `mode`.
    #[must_use]
    pub fn new(mode: Mode) -> Self {
        Self(Arc::new(AtomicU8::new(number(mode))))
    }

    /// The mode now.
    #[must_use]
    pub fn get(&self) -> Mode {
        MODES.get(usize::from(self.0.load(Ordering::SeqCst))).copied().unwrap_or_default()
    }

    /// Changes it for all who share it.
    pub fn set(&self, mode: Mode) {
        self.0.store(number(mode), Ordering::SeqCst);
    }
}

fn number(mode: Mode) -> u8 {
    match mode {
        Mode::Plan => 0,
        Mode::Ask => 1,
        Mode::AcceptEdits => 2,
        Mode::Auto => 3,
        Mode::Bypass => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_is_seen_by_all_who_share_it() {
        let mode = SharedMode::new(Mode::Ask);
        let other = mode.clone();
        for set in MODES {
            mode.set(set);
            assert_eq!(other.get(), set);
        }
    }
}
