//! Runs one command and leaves nothing of it behind. The only place that starts processes.
//!
//! The command leads a session of its own, so it has no terminal; its input is empty; its two outputs share one pipe,
//! so their order is kept. The run is over when the **shell** ends, not when the last holder of the pipe does, and
//! then every process it started is ended too.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use foundation::{CallId, LiveOutput, failpoint};
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessSession};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::capture::{Capture, Captured};
use super::env::{CALL_VARIABLE, ProcessEnv};
use super::orphans::{Shell, Starting};
use super::tree::{Ended, Tree};
use crate::outputs::{Kept, Outputs, Spill};

/// How long output may still come after the shell ended, from what it left running.
const DRAIN: Duration = Duration::from_millis(200);
/// Between TERM and KILL after a time-out.
const TIMEOUT_GRACE: Duration = Duration::from_secs(2);
/// The same after a cancel, and for what the shell left behind: somebody waits for these.
const CANCEL_GRACE: Duration = Duration::from_millis(500);

/// What to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command<'a> {
    /// For `bash -c`.
    pub(crate) script: &'a str,
    pub(crate) cwd: &'a Path,
    pub(crate) env: &'a ProcessEnv,
    pub(crate) timeout: Duration,
    pub(crate) call: &'a CallId,
    /// Where long output is kept whole.
    pub(crate) outputs: &'a Arc<Outputs>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) ending: Ending,
    pub(crate) output: Captured,
    /// All of it, where it is long.
    pub(crate) kept: Option<Kept>,
    pub(crate) duration: Duration,
    /// Processes that the shell left running and that were ended.
    pub(crate) left_behind: usize,
    /// Processes that even KILL did not end.
    pub(crate) unkillable: usize,
}

/// Why it ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    Exit(i32),
    Signal(i32),
    TimedOut,
    Cancelled,
}

/// Runs `command` in bash until the shell ends, its time is up, or `cancel`.
///
/// Returns within a second of `cancel`. Dropping the future kills what runs, without grace.
///
/// # Errors
/// When bash cannot be started: not installed, no such directory, no processes left.
pub(crate) async fn run(command: Command<'_>, live: &dyn LiveOutput, cancel: &CancellationToken) -> io::Result<Run> {
    let started = Instant::now();
    let (mut running, reader) = start(&command)?;
    let spill = Spill::new(Arc::clone(command.outputs));
    let mut pump = Pump { reader, open: true, capture: Capture::default(), spill, live, call: command.call };
    let deadline = started + command.timeout;
    let ending = pump.during(running.ending(deadline, cancel)).await?;
    let ended = match ending {
        Ending::Exit(_) | Ending::Signal(_) => {
            pump.until_closed(DRAIN).await;
            pump.during(running.tree.end(CANCEL_GRACE)).await
        }
        Ending::TimedOut => pump.during(running.tree.end(TIMEOUT_GRACE)).await,
        Ending::Cancelled => pump.during(running.tree.end(CANCEL_GRACE)).await,
    };
    pump.until_closed(DRAIN).await;
    running.collect(ended).await;
    let left_behind = if matches!(ending, Ending::Exit(_) | Ending::Signal(_)) { ended.ended } else { 0 };
    let (output, kept) = (pump.capture.finish(), pump.spill.finish().await);
    Ok(Run { ending, output, kept, duration: started.elapsed(), left_behind, unkillable: ended.left })
}

fn start(command: &Command<'_>) -> io::Result<(Running, Receiver)> {
    let (reader, writer) = io::pipe()?;
    let second_writer = writer.try_clone()?;
    // An id has 74 random bits, and no process of another call has ever carried it.
    let mark = command.env.mark();
    #[expect(clippy::disallowed_methods, reason = "this is the place that starts processes")]
    let mut bash = tokio::process::Command::new("bash");
    bash.args(["--noprofile", "--norc", "-c", command.script])
        .current_dir(command.cwd)
        .env_clear()
        .envs(command.env.iter())
        .env(CALL_VARIABLE, &mark)
        .stdin(Stdio::null())
        .stdout(Stdio::from(writer))
        .stderr(Stdio::from(second_writer));
    let mut bash = CommandWrap::from(bash);
    bash.wrap(ProcessSession).wrap(KillOnDrop);
    // The outer wrapper would wait for the whole group; what is wanted is the shell's own end.
    let starting = Starting::new();
    failpoint::check("spawn.before")?;
    let child = bash.spawn()?.into_inner();
    failpoint::hit("spawn.after");
    let leader = child.id().and_then(|pid| i32::try_from(pid).ok()).ok_or(io::ErrorKind::NotFound)?;
    let tree = Tree::new(leader, &mark);
    let shell = starting.done(leader, tree.since());
    // Dropping the command closes this side's writers: the pipe ends with its last holder.
    drop(bash);
    Ok((Running { child, tree, over: false, _shell: shell }, Receiver::from_owned_fd(OwnedFd::from(reader))?))
}

/// A started command. Dropped before its end, it takes its processes with it.
#[derive(Debug)]
struct Running {
    child: Box<dyn ChildWrapper>,
    tree: Tree,
    over: bool,
    _shell: Shell,
}

impl Running {
    async fn ending(&mut self, deadline: Instant, cancel: &CancellationToken) -> io::Result<Ending> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Ok(Ending::Cancelled),
            status = self.child.wait() => status.map(ending_of),
            () = tokio::time::sleep_until(deadline) => Ok(Ending::TimedOut),
        }
    }

    /// Collects the shell, so that it stays no zombie; one that is stuck in the kernel is left to the runtime.
    async fn collect(&mut self, ended: Ended) {
        if ended.left == 0 {
            // The status is known, or does not matter after a time-out.
            drop(self.child.wait().await);
        }
        self.over = true;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.over {
            self.tree.kill_now();
        }
    }
}

fn ending_of(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exit(code),
        (None, signal) => Ending::Signal(signal.unwrap_or_default()),
    }
}

/// Reads the pipe for as long as anything else is waited for, so that no command ever blocks on it.
struct Pump<'a> {
    reader: Receiver,
    open: bool,
    capture: Capture,
    spill: Spill,
    live: &'a dyn LiveOutput,
    call: &'a CallId,
}

impl Pump<'_> {
    async fn during<F: Future>(&mut self, other: F) -> F::Output {
        tokio::pin!(other);
        let mut buffer = vec![0; 64 * 1024];
        loop {
            tokio::select! {
                biased;
                output = &mut other => return output,
                read = self.reader.read(&mut buffer), if self.open => self.take(&read, &buffer).await,
            }
        }
    }

    async fn until_closed(&mut self, at_most: Duration) {
        let mut buffer = vec![0; 64 * 1024];
        let deadline = Instant::now() + at_most;
        // The clock is asked too: a pipe that always has more would never let the time-out speak.
        while self.open && Instant::now() < deadline {
            let Ok(read) = tokio::time::timeout_at(deadline, self.reader.read(&mut buffer)).await else { return };
            self.take(&read, &buffer).await;
        }
    }

    async fn take(&mut self, read: &io::Result<usize>, buffer: &[u8]) {
        match read {
            Ok(0) | Err(_) => self.open = false,
            Ok(length) => {
                self.capture.push(&buffer[..*length]);
                self.live.append(self.call, &buffer[..*length]);
                self.spill.push(&buffer[..*length]).await;
            }
        }
    }
}

#[cfg(test)]
mod tests;
