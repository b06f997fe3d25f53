//! Which processes belong to a call, and how they end.
//!
//! A process belongs to a call when it is in its session or group, descends from one that is, or carries the call's
//! mark in the environment it was started with; so `setsid`, `nohup` and a second fork do not hide it. Only a process
//! that also throws its environment away (`env -i`) after leaving its parents does. Nothing is signalled by number
//! alone: the process is pinned first and its start time compared, so a reused number is never hit.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::time::Instant;

use super::env::CALL_VARIABLE;

const POLL: Duration = Duration::from_millis(10);
/// How long KILL may take before the processes are called unkillable.
const KILL_TIME: Duration = Duration::from_secs(1);

/// The processes of one call.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    /// The shell: first of its session and group.
    leader: i32,
    /// When the shell started, in clock ticks since boot. Nothing older belongs to the call.
    since: u64,
    /// `NAME=value` in the environment.
    mark: Vec<u8>,
}

/// What became of them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Ended {
    pub(crate) ended: usize,
    /// Still there after KILL: stuck in the kernel, or of another user.
    pub(crate) left: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Process {
    pid: i32,
    parent: i32,
    group: i32,
    session: i32,
    started: u64,
}

impl Tree {
    /// The tree below a process that was just started and leads its own session.
    pub(crate) fn new(leader: i32, call_mark: &str) -> Self {
        let since = read_process(leader).map_or(0, |process| process.started);
        Self { leader, since, mark: format!("{CALL_VARIABLE}={call_mark}").into_bytes() }
    }

    /// Ends all of them: TERM, after `grace` KILL, until none is there.
    pub(crate) async fn end(&self, grace: Duration) -> Ended {
        let mut seen = HashSet::new();
        let mut left = self.scan().await;
        let term_until = Instant::now() + grace;
        let mut asked = HashSet::new();
        while !left.is_empty() && Instant::now() < term_until {
            for process in &left {
                if asked.insert(identity(process)) {
                    signal(process, Signal::TERM);
                    // A stopped process acts on TERM only once it goes on.
                    signal(process, Signal::CONT);
                }
            }
            seen.extend(left.iter().map(identity));
            tokio::time::sleep(POLL).await;
            left = self.scan().await;
        }
        let kill_until = Instant::now() + KILL_TIME;
        while !left.is_empty() && Instant::now() < kill_until {
            seen.extend(left.iter().map(identity));
            left.iter().for_each(|process| signal(process, Signal::KILL));
            tokio::time::sleep(POLL).await;
            left = self.scan().await;
        }
        Ended { ended: seen.len() - left.len().min(seen.len()), left: left.len() }
    }

    /// Kills what is there at this moment, without waiting; for when nobody can wait any more.
    pub(crate) fn kill_now(&self) {
        // Twice: a fork may have happened while the first list was read.
        for _ in 0..2 {
            self.members().iter().for_each(|process| signal(process, Signal::KILL));
        }
    }

    async fn scan(&self) -> Vec<Process> {
        let tree = self.clone();
        // Reading another process's environment can block in the kernel, so it is kept off the runtime's threads.
        tokio::task::spawn_blocking(move || tree.members()).await.unwrap_or_default()
    }

    fn members(&self) -> Vec<Process> {
        let young: Vec<_> = all_processes().filter(|process| process.started >= self.since).collect();
        let mut members: Vec<_> = young.iter().filter(|process| self.owns(process)).copied().collect();
        let mut pids: HashSet<_> = members.iter().map(|process| process.pid).collect();
        loop {
            let before = members.len();
            for process in &young {
                if pids.contains(&process.parent) && pids.insert(process.pid) {
                    members.push(*process);
                }
            }
            if members.len() == before {
                return members;
            }
        }
    }

    fn owns(&self, process: &Process) -> bool {
        process.session == self.leader
            || process.group == self.leader
            || process.parent == self.leader
            || std::fs::read(format!("/proc/{}/environ", process.pid))
                .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|variable| variable == self.mark))
    }
}

fn identity(process: &Process) -> (i32, u64) {
    (process.pid, process.started)
}

fn signal(process: &Process, signal: Signal) {
    let Some(pid) = Pid::from_raw(process.pid) else { return };
    let Ok(pinned) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    if read_process(process.pid).is_some_and(|now| now.started == process.started) {
        // It may have ended since, which is what is wanted; any other failure shows in the next scan.
        let _ = pidfd_send_signal(&pinned, signal);
    }
}

fn all_processes() -> impl Iterator<Item = Process> {
    let entries = std::fs::read_dir(Path::new("/proc")).into_iter().flatten().flatten();
    entries.filter_map(|entry| read_process(entry.file_name().to_str()?.parse().ok()?))
}

/// Reads one process; none if it is gone or only waits to be collected.
fn read_process(pid: i32) -> Option<Process> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may itself hold blanks, parentheses and bytes that are not text.
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let rest = std::str::from_utf8(&stat[after_name..]).ok()?;
    let fields: Vec<_> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index).and_then(|field| field.parse::<i32>().ok());
    if matches!(*fields.first()?, "Z" | "X") {
        return None;
    }
    let started = fields.get(19)?.parse().ok()?;
    Some(Process { pid, parent: number(1)?, group: number(2)?, session: number(3)?, started })
}
