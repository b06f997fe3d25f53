//! Places where a test makes the daemon die or an operation fail: `name=N*kill`, `name=N*eio`, `name=N*enospc`,
//! separated by commas.
//!
//! `N` counts the times a place is passed, from 1. The names are those that the code passes in; a plan with a name that
//! is never passed does nothing. A build without debug assertions has none of this: there every function is empty, no
//! text of this module is in the program, and the variable means nothing.

#[cfg(debug_assertions)]
pub use armed::{arm, check, hit, hit_each};

#[cfg(not(debug_assertions))]
pub use absent::{arm, check, hit, hit_each};

#[cfg(debug_assertions)]
mod armed {
    use std::collections::BTreeMap;
    use std::io;
    use std::sync::{Mutex, PoisonError};

    use rustix::process::{Signal, getpid, kill_process};

    /// What happens at a place.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(super) enum Action {
        /// The end of the process, as `kill -9` makes it.
        Kill,
        /// The operation fails as on a broken disk.
        Fail,
        /// The operation fails as on a full disk.
        NoRoom,
    }

    #[derive(PartialEq, Eq, Debug)]
    pub(super) struct Point {
        pub(super) name: String,
        /// How often the place is still passed unharmed, this time included; 0 once it has happened.
        pub(super) left: u32,
        pub(super) action: Action,
    }

    /// The one global of the house: a fail point that had to be handed down would change what it is to watch.
    static PLAN: Mutex<Vec<Point>> = Mutex::new(Vec::new());

    const VARIABLE: &str = "AGENTD_FAILPOINTS";

    /// Takes the plan of an environment; what cannot be read of it is left out.
    pub fn arm(env: &BTreeMap<String, String>) {
        let points = env.get(VARIABLE).into_iter().flat_map(|plan| read(plan)).collect();
        *PLAN.lock().unwrap_or_else(PoisonError::into_inner) = points;
    }

    pub(super) fn read(plan: &str) -> Vec<Point> {
        let point = |text: &str| {
            let (name, what) = text.trim().split_once('=')?;
            let (times, action) = what.split_once('*')?;
            let action = match action {
                "kill" => Action::Kill,
                "eio" => Action::Fail,
                "enospc" => Action::NoRoom,
                _ => return None,
            };
            Some(Point { name: name.to_owned(), left: times.parse().ok().filter(|times| *times > 0)?, action })
        };
        plan.split(',').filter_map(point).collect()
    }

    /// Counts one passing of `area` and `what`, joined by a dot; what is due now.
    pub(super) fn pass(points: &mut [Point], area: &str, what: &str) -> Option<Action> {
        let is_named = |point: &&mut Point| {
            let rest = point.name.strip_prefix(area);
            let rest = if what.is_empty() { rest } else { rest.and_then(|rest| rest.strip_prefix('.')) };
            point.left > 0 && rest == Some(what)
        };
        let point = points.iter_mut().find(is_named)?;
        point.left -= 1;
        (point.left == 0).then_some(point.action)
    }

    fn due(area: &str, what: &str) -> Option<Action> {
        let due = pass(&mut PLAN.lock().unwrap_or_else(PoisonError::into_inner), area, what);
        if due == Some(Action::Kill) {
            let _never_returns = kill_process(getpid(), Signal::KILL);
        }
        due
    }

    /// A place where the process may end.
    pub fn hit(name: &str) {
        due(name, "");
    }

    /// The places `<area>.<kind>`, one for each kind.
    pub fn hit_each<'a>(area: &str, kinds: impl IntoIterator<Item = &'a str>) {
        for kind in kinds {
            due(area, kind);
        }
    }

    /// A place where the process may end, or what is done there may fail.
    ///
    /// # Errors
    /// The one that the plan names.
    pub fn check(name: &str) -> io::Result<()> {
        match due(name, "") {
            Some(Action::Fail) => Err(rustix::io::Errno::IO.into()),
            Some(Action::NoRoom) => Err(rustix::io::Errno::NOSPC.into()),
            Some(Action::Kill) | None => Ok(()),
        }
    }
}

#[cfg(not(debug_assertions))]
mod absent {
    use std::collections::BTreeMap;

    /// Nothing: this build has no fail points.
    #[inline(always)]
    pub fn arm(_env: &BTreeMap<String, String>) {}

    /// Nothing.
    #[inline(always)]
    pub fn hit(_name: &str) {}

    /// Nothing.
    #[inline(always)]
    pub fn hit_each<'a>(_area: &str, _kinds: impl IntoIterator<Item = &'a str>) {}

    /// Never fails.
    ///
    /// # Errors
    /// None.
    #[inline(always)]
    pub fn check(_name: &str) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::armed::{Action, pass, read};

    #[track_caller]
    fn check(plan: &str, passed: &[(&str, &str)], expected: &[Option<Action>]) {
        let mut points = read(plan);
        let found: Vec<_> = passed.iter().map(|(area, what)| pass(&mut points, area, what)).collect();
        assert_eq!(found, expected, "{plan}");
    }

    #[test]
    fn a_place_does_what_the_plan_says_at_its_nth_passing_and_once() {
        check("a=1*kill", &[("a", ""), ("a", "")], &[Some(Action::Kill), None]);
        check("a=2*eio", &[("a", ""), ("a", ""), ("a", "")], &[None, Some(Action::Fail), None]);
        check("commit.before.turn.ended=1*kill", &[("commit.before", "turn.ended")], &[Some(Action::Kill)]);
        check("x=1*kill, a=1*eio", &[("a", "")], &[Some(Action::Fail)]);
    }

    #[test]
    fn another_name_or_what_cannot_be_read_does_nothing() {
        check("a.b=1*kill", &[("a", ""), ("a", "bc"), ("a.", "b"), ("ab", "")], &[None, None, None, None]);
        for plan in ["", "a", "a=1", "a=x*kill", "a=0*kill", "a=1*explode", ",,"] {
            check(plan, &[("a", "")], &[None]);
        }
    }
}
