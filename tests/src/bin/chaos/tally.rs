//! What was looked at and what was wrong, by invariant.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

#[derive(Default, Debug)]
pub(crate) struct Tally(Mutex<BTreeMap<&'static str, (u64, BTreeSet<String>)>>);

impl Tally {
    /// One look at an invariant; `wrong` says what is wrong when it does not hold.
    pub(crate) fn check(&self, invariant: &'static str, holds: bool, wrong: impl FnOnce() -> String) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (looked, violations) = all.entry(invariant).or_default();
        *looked += 1;
        if !holds {
            // A home is looked at after each of its rounds: what is wrong in it is told once.
            violations.insert(wrong());
        }
    }

    /// Prints the table; how many violations there are.
    pub(crate) fn print(&self) -> usize {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (invariant, (looked, violations)) in all.iter() {
            println!("{invariant:55} {looked:7} checked  {:3} violations", violations.len());
        }
        for (invariant, (_, violations)) in all.iter() {
            violations.iter().for_each(|violation| println!("VIOLATION {invariant}: {violation}"));
        }
        all.values().map(|(_, violations)| violations.len()).sum()
    }
}
