//! What commands of an earlier life of the daemon left running, ended before anything is said about their calls.
//!
//! A daemon that was killed could not end its commands. They are known by the mark in their environment, which names
//! the daemon's database, and by the session that their shell led; nobody else's processes carry either.

use std::collections::HashSet;
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::Instant;

use super::env::CALL_VARIABLE;
use super::tree::{Process, all_pids, read_process, signal};

/// How long KILL may take before the processes are called unkillable.
const PATIENCE: Duration = Duration::from_secs(2);

/// Ends every process that a command of this owner left, and tells how many there were.
///
/// Before the daemon starts commands of its own: they carry the same mark.
pub async fn end_leftovers(owner: &str) -> usize {
    let mark = format!("{CALL_VARIABLE}={owner}.").into_bytes();
    let (mut seen, until) = (HashSet::new(), Instant::now() + PATIENCE);
    loop {
        let mark = mark.clone();
        let found = tokio::task::spawn_blocking(move || look(&mark)).await.unwrap_or_default();
        if found.is_empty() || Instant::now() > until {
            return seen.len();
        }
        for process in &found {
            seen.insert((process.pid, process.started));
            signal(process, Signal::KILL);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn look(mark: &[u8]) -> Vec<Process> {
    let alive: Vec<_> = all_pids().filter_map(read_process).filter(|process| !process.is_dead).collect();
    let is_marked = |process: &&Process| {
        let environ = std::fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|variable| variable.starts_with(mark))
    };
    let mut sessions: HashSet<i32> = alive.iter().filter(is_marked).map(|process| process.session).collect();
    // A command may have started this very daemon, and then its mark is ours too.
    let own = i32::try_from(std::process::id()).ok().and_then(read_process);
    if let Some(own) = own {
        sessions.remove(&own.session);
    }
    alive.into_iter().filter(|process| sessions.contains(&process.session)).collect()
}
