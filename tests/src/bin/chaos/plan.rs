//! How the daemon dies in each round: by chance, then at every named place, the first and the second time.

use crate::dice::Dice;

/// Places that are come to under load.
const PLACES: &[&str] = &[
    "commit",
    "spawn.before",
    "spawn.after",
    "file.written",
    "file.synced",
    "file.placed",
    "reply.before.turn/start",
    "reply.before.approval/respond",
    "reply.before.turn/interrupt",
    "reply.after",
];

/// Events that are committed under load: each has a place before and one after.
const COMMITS: &[&str] = &[
    "turn.started",
    "turn.queued",
    "turn.ended",
    "queue.changed",
    "session.status",
    "message",
    "tool.started",
    "tool.finished",
    "approval.requested",
    "approval.resolved",
    "question.requested",
    "question.resolved",
    "todos.updated",
    "session.updated",
];

/// Places that are come to at a start after a crash, and when its turns go on.
const RECOVERY: &[&str] = &[
    "recover.before",
    "recover.after",
    "resume.before",
    "resume.after",
    "commit.before.turn.recoverable",
    "commit.after.turn.recoverable",
    "commit.before.turn.resumed",
    "commit.after.turn.resumed",
    "commit.before.notice",
    "commit.after.notice",
    "reserve",
];

/// How a life ends.
#[derive(Clone, Debug)]
pub(crate) enum Death {
    /// `kill -9` at a moment that the dice say.
    Chance,
    /// At the nth passing of a place under load.
    Point(String, u32),
    /// The same at the start after a crash.
    Recovery(String, u32),
}

#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) index: usize,
    pub(crate) death: Death,
    pub(crate) dice: Dice,
}

/// All rounds, in the order in which they are run. A short run comes to each place once.
pub(crate) fn jobs(kills: u32, seed: u64, short: bool) -> Vec<Job> {
    let times: &[u32] = if short { &[1] } else { &[1, 2] };
    let commits = COMMITS.iter().flat_map(|kind| ["before", "after"].map(|side| format!("commit.{side}.{kind}")));
    let places: Vec<String> = PLACES.iter().map(|place| (*place).to_owned()).chain(commits).collect();
    let mut deaths: Vec<Death> = (0..kills).map(|_| Death::Chance).collect();
    for times in times {
        deaths.extend(places.iter().map(|place| Death::Point(place.clone(), *times)));
        // Each start looks at the reserve once.
        let again = |place: &&&str| *times == 1 || **place != "reserve";
        deaths.extend(RECOVERY.iter().filter(again).map(|place| Death::Recovery((*place).to_owned(), *times)));
    }
    let job = |(index, death): (usize, Death)| Job { index, death, dice: Dice::new(seed, index as u64 + 1) };
    deaths.into_iter().enumerate().map(job).collect()
}
