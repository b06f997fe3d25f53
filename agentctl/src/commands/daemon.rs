//! `daemon start|stop|status`.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use protocol::api::{self, ApprovalRole, Empty};
use protocol::method;
use rustix::fs::FlockOperation;

use crate::args::Daemon;
use crate::commands::list::table;
use crate::connect::Connection;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::start;
use crate::world::World;

/// What a stop waits for beyond the time that turns get.
const STOP_GRACE: Duration = Duration::from_secs(10);
const DEFAULT_DRAIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

pub(super) async fn daemon(world: &World, command: Daemon) -> Result<Exit, Failure> {
    match command {
        Daemon::Start => start(world).await,
        Daemon::Stop { drain } => stop(world, drain.map_or(DEFAULT_DRAIN, Duration::from_secs)).await,
        Daemon::Status { form } => status(world, form.json).await,
    }
}

async fn start(world: &World) -> Result<Exit, Failure> {
    let connection = Connection::open(world, ApprovalRole::Observe).await?;
    let runs = format!("agentd runs (pid {})", connection.daemon.daemon.pid);
    let (said, others) = match connection.notes.split_first() {
        Some((started, others)) if connection.is_first => (started, others),
        _ => (&runs, &connection.notes[..]),
    };
    others.iter().for_each(|note| output::note(note));
    output::line(said).map(|()| Exit::Done)
}

/// Asks it to end, and returns when it has let go of everything: whoever comes next may copy or restore the database.
async fn stop(world: &World, drain: Duration) -> Result<Exit, Failure> {
    let connection = match Connection::open_running(world, ApprovalRole::Observe).await {
        Err(Failure::Unreachable { .. }) => return output::line("agentd does not run").map(|()| Exit::Done),
        other => other?,
    };
    let pid = connection.daemon.daemon.pid;
    let drain_ms = u64::try_from(drain.as_millis()).ok();
    let asked = connection.call::<method::DaemonShutdown>(api::DaemonShutdown { drain_ms }).await;
    match asked {
        Ok(_) | Err(Failure::Unreachable { .. }) => {} // it may be gone before its answer is
        Err(failure) => return Err(failure),
    }
    drop(connection);
    let begin = Instant::now();
    let lock = world.homes.state.join("agentd.lock");
    while !matches!(start::connect(&world.socket).await, Err(start::ConnectError::Nobody(_))) || holds(&lock, pid) {
        if begin.elapsed() > drain + STOP_GRACE {
            return Err(Failure::other(format!("agentd (pid {pid}) is still there (hint: `kill {pid}`)")));
        }
        tokio::time::sleep(PAUSE).await;
    }
    output::line(&format!("agentd stopped (pid {pid})")).map(|()| Exit::Done)
}

/// Whether this process holds the lock. The socket goes first, and the database is closed after that. A lock that says it
/// is another's is no reason to wait: the daemon may have its state elsewhere.
fn holds(lock: &Path, pid: u32) -> bool {
    let is_its = std::fs::read_to_string(lock).is_ok_and(|holder| holder.trim() == pid.to_string());
    let is_held = |file| rustix::fs::flock(file, FlockOperation::NonBlockingLockShared).is_err();
    is_its && File::open(lock).is_ok_and(is_held)
}

async fn status(world: &World, json: bool) -> Result<Exit, Failure> {
    let connection = Connection::open_running(world, ApprovalRole::Observe).await?;
    connection.notes.iter().for_each(|note| output::note(note));
    let status = connection.call::<method::DaemonStatus>(Empty {}).await?;
    if json {
        return output::json(&status).map(|()| Exit::Done);
    }
    let sessions = &status.sessions;
    let draining = if status.draining { " (going down)" } else { "" };
    let rows = [
        ("agentd", format!("{}, pid {}{draining}", status.version, status.pid)),
        ("since", status.started_at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()),
        ("socket", status.socket.display().to_string()),
        ("database", status.database.display().to_string()),
        ("sessions", format!("{}, {} in memory, {} running", sessions.total, sessions.in_memory, sessions.running)),
        ("clients", status.clients.to_string()),
        ("approvals", format!("{} waiting", status.approvals_pending)),
        ("memory", format!("{} MiB", status.memory_bytes >> 20)),
    ];
    let rescue = status.store.rescue.map(|rescue| ("rescue", rescue));
    let full = status.store.is_full.then(|| ("disk", "full: nothing new starts until there is room".to_owned()));
    let rows = rows.into_iter().chain(rescue).chain(full).map(|(name, value)| vec![name.to_owned(), value]);
    output::text(&table(&[], rows)).map(|()| Exit::Done)
}
