//! Which processes belong to a call, and how they end.
//!
//! A process belongs to a call when it is in its session or group, descends from one that is, or carries the call's
//! mark in the environment it was started with; so `setsid`, `nohup` and a second fork do not hide it. A process that
//! also throws its environment away (`env -i`) after leaving its parents is found where the daemon adopts orphans, by
//! the last call that it can belong to. Nothing is signalled by number alone: the process is pinned first and its start
//! time compared, so a reused number is never hit.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::time::Instant;

use super::env::CALL_VARIABLE;
use super::orphans::{orphans, reap};

const POLL: Duration = Duration::from_millis(10);
/// How long KILL may take before the processes are called unkillable.
const KILL_TIME: Duration = Duration::from_secs(1);

/// Looks at a process without an environment until it is believed to have none.
const MAX_BLANK: u32 = 5;

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
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    group: i32,
    pub(super) session: i32,
    /// In clock ticks since boot.
    pub(super) started: u64,
    /// It only waits to be collected.
    pub(super) is_dead: bool,
}

impl Tree {
    /// The tree below a process that was just started and leads its own session.
    pub(crate) fn new(leader: i32, call_mark: &str) -> Self {
        let since = read_process(leader).map_or(0, |process| process.started);
        Self { leader, since, mark: format!("{CALL_VARIABLE}={call_mark}").into_bytes() }
    }

    /// When the shell started, in clock ticks since boot; 0 if that could not be read.
    pub(crate) fn since(&self) -> u64 {
        self.since
    }

    /// Ends all of them: TERM, after `grace` KILL, until none is there.
    pub(crate) async fn end(&self, grace: Duration) -> Ended {
        let started = Instant::now();
        let mut seen = HashSet::new();
        let mut doubts = Doubts::default();
        loop {
            let scan = self.scan().await;
            let is_doubtful = doubts.note(&scan);
            let is_over = scan.members.is_empty() && !is_doubtful;
            if is_over || started.elapsed() > grace + KILL_TIME {
                seen.extend(scan.members.iter().map(identity));
                return Ended { ended: seen.len() - scan.members.len(), left: scan.members.len() };
            }
            for process in &scan.members {
                let is_new = seen.insert(identity(process));
                if started.elapsed() >= grace {
                    signal(process, Signal::KILL);
                } else if is_new {
                    signal(process, Signal::TERM);
                    // A stopped process acts on TERM only once it goes on.
                    signal(process, Signal::CONT);
                }
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Kills what is there at this moment, without waiting; for when nobody can wait any more.
    pub(crate) fn kill_now(&self) {
        // Twice: a fork may have happened while the first list was read.
        for _ in 0..2 {
            self.look().members.iter().for_each(|process| signal(process, Signal::KILL));
        }
    }

    async fn scan(&self) -> Scan {
        let tree = self.clone();
        // Reading another process's environment can block in the kernel, so it is kept off the runtime's threads.
        tokio::task::spawn_blocking(move || tree.look()).await.unwrap_or_default()
    }

    fn look(&self) -> Scan {
        let mut scan = Scan::default();
        let mut others = Vec::new();
        for pid in all_pids() {
            match read_process(pid) {
                Some(process) if process.started < self.since => {}
                Some(process) if process.is_dead => {
                    reap(&process);
                    scan.dead.push(pid);
                }
                Some(process) if self.is_kin(&process) => scan.members.push(process),
                Some(process) => match std::fs::read(format!("/proc/{pid}/environ")) {
                    Ok(environ) if environ.is_empty() => {
                        scan.blank.push(pid);
                        others.push(process);
                    }
                    Ok(environ) if environ.split(|byte| *byte == 0).any(|variable| variable == self.mark) => {
                        scan.members.push(process);
                    }
                    Ok(_) | Err(_) => others.push(process),
                },
                None => scan.dead.push(pid),
            }
        }
        let orphans = orphans(self.leader, &others);
        scan.members.extend(orphans.ours);
        scan.is_doubtful = orphans.is_doubtful;
        add_descendants(&mut scan.members, &others);
        scan
    }

    fn is_kin(&self, process: &Process) -> bool {
        [process.session, process.group, process.parent].contains(&self.leader)
    }
}

/// One look at all processes, each read at its own moment.
#[derive(Default, Debug)]
struct Scan {
    members: Vec<Process>,
    /// Ended while the list was read, or since: may have left a child behind that is not on the list.
    dead: Vec<i32>,
    /// Without any environment: for a moment every program is, while it is being started.
    blank: Vec<i32>,
    /// There are children of which nobody can say yet whose they are.
    is_doubtful: bool,
}

/// Whether a scan can be trusted when it finds nobody.
#[derive(Default, Debug)]
struct Doubts(HashMap<i32, u32>);

impl Doubts {
    /// Takes note of a scan; true if the next one may find what this one missed.
    fn note(&mut self, scan: &Scan) -> bool {
        let mut doubtful = scan.is_doubtful;
        let once = scan.dead.iter().map(|pid| (pid, 1));
        for (pid, times) in once.chain(scan.blank.iter().map(|pid| (pid, MAX_BLANK))) {
            let count = self.0.entry(*pid).or_default();
            *count += 1;
            doubtful |= *count <= times;
        }
        doubtful
    }
}

fn add_descendants(members: &mut Vec<Process>, others: &[Process]) {
    let mut pids: HashSet<_> = members.iter().map(|process| process.pid).collect();
    loop {
        let before = members.len();
        for process in others {
            if pids.contains(&process.parent) && pids.insert(process.pid) {
                members.push(*process);
            }
        }
        if members.len() == before {
            return;
        }
    }
}

fn identity(process: &Process) -> (i32, u64) {
    (process.pid, process.started)
}

pub(super) fn signal(process: &Process, signal: Signal) {
    let Some(pid) = Pid::from_raw(process.pid) else { return };
    let Ok(pinned) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    if read_process(process.pid).is_some_and(|now| now.started == process.started) {
        // It may have ended since, which is what is wanted; any other failure shows in the next scan.
        let _ = pidfd_send_signal(&pinned, signal);
    }
}

pub(super) fn all_pids() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Reads one process; none if it is gone.
pub(super) fn read_process(pid: i32) -> Option<Process> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may itself hold blanks, parentheses and bytes that are not text.
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let rest = std::str::from_utf8(&stat[after_name..]).ok()?;
    let fields: Vec<_> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index).and_then(|field| field.parse::<i32>().ok());
    let is_dead = matches!(*fields.first()?, "Z" | "X");
    let started = fields.get(19)?.parse().ok()?;
    Some(Process { pid, parent: number(1)?, group: number(2)?, session: number(3)?, started, is_dead })
}
