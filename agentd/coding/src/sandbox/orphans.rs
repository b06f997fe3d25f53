//! Tells a child that a command left to the daemon from the daemon's own, and says when it may be ended.
//!
//! A process that leaves its parents, its session and its environment behind carries nothing that says whose it is.
//! Where the daemon adopts orphans, it is at least our child. It may be ended once no other call is running that was
//! there when it started: then its own call is over, or is the one that is ending. So the last call that may own it
//! ends it, and no running call ever loses a process to another one.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpid};

use super::tree::{Process, read_process};

// One for the process, as the kernel's list of children is: with two, each would take the other's shells for orphans.
static SHELLS: Mutex<Shells> = Mutex::new(Shells { starting: 0, started: Vec::new() });
static ADOPTS: AtomicBool = AtomicBool::new(false);

/// The children that are no orphans.
#[derive(Debug)]
struct Shells {
    /// Shells of which nobody knows the number yet.
    starting: usize,
    started: Vec<Started>,
}

#[derive(Clone, Copy, Debug)]
struct Started {
    pid: i32,
    /// As [`Process::started`].
    since: u64,
    /// Its call is over; it stays known until it is gone, so that only its owner collects it.
    is_over: bool,
}

/// Makes this process the parent of what commands leave without one, so that no process outlives its call by hiding.
///
/// Once, early, in the process that runs commands: it does not pass on to a forked one. Children that something other
/// than a tool of this crate started would be taken for orphans while a command runs.
///
/// # Errors
/// When the kernel refuses; commands then run as before, and what hides well enough is left to the system.
pub fn adopt_orphans() -> io::Result<()> {
    set_child_subreaper(Some(getpid()))?;
    ADOPTS.store(true, Ordering::Relaxed);
    Ok(())
}

/// A shell that is about to be started. While there is one, no child can be told from it.
#[derive(Debug)]
pub(super) struct Starting(());

/// A shell that runs a call, until this is dropped.
#[derive(Debug)]
pub(super) struct Shell {
    pid: i32,
    since: u64,
}

impl Starting {
    pub(super) fn new() -> Self {
        shells().starting += 1;
        Self(())
    }

    /// The shell is there.
    pub(super) fn done(self, pid: i32, since: u64) -> Shell {
        let mut shells = shells();
        shells.forget_gone();
        shells.started.push(Started { pid, since, is_over: false });
        drop(shells);
        Shell { pid, since }
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        shells().starting -= 1;
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let mut shells = shells();
        for shell in &mut shells.started {
            shell.is_over |= (shell.pid, shell.since) == (self.pid, self.since);
        }
        shells.forget_gone();
    }
}

/// What a look at our children gave.
#[derive(Default, Debug)]
pub(super) struct Orphans {
    /// To be ended with the call.
    pub(super) ours: Vec<Process>,
    /// Nobody knew at this moment; a second look may tell.
    pub(super) is_doubtful: bool,
}

/// Which of `processes` are orphans that the call of the shell `leader` may end.
pub(super) fn orphans(leader: i32, processes: &[Process]) -> Orphans {
    let mut children = processes.iter().filter(|process| is_child(process)).peekable();
    if children.peek().is_none() {
        return Orphans::default();
    }
    let shells = shells();
    let unknown: Vec<_> = children.filter(|child| !shells.know(child.pid)).copied().collect();
    if shells.starting > 0 {
        return Orphans { ours: Vec::new(), is_doubtful: !unknown.is_empty() };
    }
    let ours = unknown.into_iter().filter(|orphan| !shells.may_own(leader, orphan)).collect();
    Orphans { ours, is_doubtful: false }
}

/// Collects a dead orphan, which nobody else waits for.
pub(super) fn reap(dead: &Process) {
    if !is_child(dead) {
        return;
    }
    let shells = shells();
    let now = read_process(dead.pid).filter(|now| now.started == dead.started && now.is_dead);
    if shells.starting == 0
        && !shells.know(dead.pid)
        && now.is_some()
        && let Some(pid) = Pid::from_raw(dead.pid)
    {
        // A failure means that it is collected already.
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

impl Shells {
    fn know(&self, pid: i32) -> bool {
        self.started.iter().any(|shell| shell.pid == pid)
    }

    /// Whether a call other than that of `leader` is running and was when `orphan` started.
    fn may_own(&self, leader: i32, orphan: &Process) -> bool {
        let running = self.started.iter().filter(|shell| !shell.is_over && shell.pid != leader);
        running.into_iter().any(|shell| shell.since <= orphan.started)
    }

    fn forget_gone(&mut self) {
        self.started.retain(|shell| {
            !shell.is_over || read_process(shell.pid).is_some_and(|process| process.started == shell.since)
        });
    }
}

fn shells() -> MutexGuard<'static, Shells> {
    SHELLS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_child(process: &Process) -> bool {
    ADOPTS.load(Ordering::Relaxed) && process.parent == getpid().as_raw_nonzero().get()
}
