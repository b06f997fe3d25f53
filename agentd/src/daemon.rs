//! The only place that starts and stops things, in order.
//!
//! Start: lock, settings, store, recovery, socket, "ready". Stop: no new connections, calls that run may end, turns are
//! put away as they are, the store flushed, the socket removed if we bound it.

use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use protocol::api::DaemonInfo;
use protocol::socket::Homes;
use protocol::{InstanceId, RpcError};
use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::args::Args;
use crate::file_system::{self, NetworkDisk};
use crate::lock::{Lock, LockError};
use crate::rpc::handlers::{self, House};
use crate::rpc::listener::{self, BindError, Connections, Server};
use crate::session::assemble::SessionEnv;
use crate::session::models;
use crate::session::registry::Registry;
use crate::settings::{SettingsSource, SettingsWatch};
use crate::store::{self, Store, StoreError};
use crate::systemd;

const DATABASE: &str = "agentd.db";

/// The pause between two looks at whether a copy of the database is due. The first comes well after the start.
const LOOK_FOR_BACKUP: Duration = Duration::from_secs(10 * 60);

/// How long the turns may take to end once the daemon is told to stop, if whoever tells does not say; in milliseconds.
const DRAIN_MS: u64 = 10_000;

/// The pauses between looks at a full disk: first the short one, then twice as long each time up to the other.
const LOOK_FOR_ROOM: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(10));

/// What sessions may take beyond that to write down where they are.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How long a lock may be held by nobody who answers before that counts as another daemon.
const LET_GO: Duration = Duration::from_secs(2);

/// The world as `main` found it.
#[derive(Debug)]
pub struct Config {
    pub homes: Homes,
    pub home: Option<PathBuf>,
    pub socket: PathBuf,
    pub env: BTreeMap<String, String>,
}

impl Config {
    /// # Errors
    /// When the environment does not tell where things are, or the socket's path is too long.
    pub fn from_world(args: &Args, env: BTreeMap<String, String>) -> Result<Self, StartError> {
        let homes = Homes::from_env(|name| env.get(name).map(PathBuf::from)).map_err(StartError::Other)?;
        let socket = homes.socket_path(args.socket.as_deref());
        protocol::socket::check_length(&socket).map_err(StartError::Other)?;
        let home = env.get("HOME").map(PathBuf::from);
        Ok(Self { homes, home, socket, env })
    }
}

/// Why the daemon did not start. Each names what happened to what, and the next step.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Disk(#[from] NetworkDisk),
    #[error(transparent)]
    Socket(#[from] BindError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Session(#[from] RpcError),
    #[error("{0}")]
    Other(String),
}

impl StartError {
    /// As in `sysexits.h`: 74 for storage, be it that somebody locks it, 75 for another daemon, with which there is nothing
    /// to try again.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Lock(LockError::AlreadyRunning { .. }) | Self::Socket(BindError::AlreadyRunning { .. }) => 75,
            Self::Store(_) | Self::Session(_) | Self::Disk(_) => 74,
            Self::Lock(_) | Self::Socket(_) | Self::Other(_) => 1,
        }
    }
}

/// Runs the daemon until it is told to stop: by a signal, or by `daemon/shutdown`.
///
/// # Errors
/// When it cannot start. Once it serves, nothing of one session ends it.
pub async fn run(config: Config) -> Result<(), StartError> {
    let daemon = Daemon::start(config).await?;
    let (lost, broken) = (daemon.server.lost(), daemon.store.broken());
    tokio::select! {
        () = signalled() => {}
        () = daemon.stop.cancelled() => {}
        () = lost.cancelled() => {}
        () = broken.cancelled() => {}
    }
    let socket = daemon.house.socket.clone();
    let failure = if broken.is_cancelled() { daemon.store.probe().await.err() } else { None };
    daemon.finish().await;
    if let Some(failure) = failure {
        return Err(StartError::Store(failure));
    }
    if lost.is_cancelled() { Err(lost_socket(&socket)) } else { Ok(()) }
}

/// Puts a copy of the database in its place, while no daemon runs.
///
/// # Errors
/// When a daemon runs, or there is no sound copy: nothing was changed then.
pub fn restore(config: &Config, from: Option<&Path>) -> Result<(), StartError> {
    let state = &config.homes.state;
    private_dir(state)?;
    let _lock = Lock::take(&state.join("agentd.lock"))?;
    let (copy, aside) = store::restore(&state.join(DATABASE), from)?;
    let aside = aside.map_or_else(
        || "there was none before".to_owned(),
        |aside| format!("what was there is in {}", aside.display()),
    );
    tracing::info!("the database is now {}; {aside}", copy.display());
    Ok(())
}

/// Everything that was started, in the order in which it is stopped.
struct Daemon {
    /// The root of all tokens: cancelled once, when the daemon is told to stop.
    stop: CancellationToken,
    house: Arc<House>,
    server: Server,
    settings: SettingsWatch,
    watchdog: JoinSet<()>,
    store: Store,
    _lock: Lock,
}

impl Daemon {
    async fn start(config: Config) -> Result<Self, StartError> {
        let state = &config.homes.state;
        private_dir(state)?;
        file_system::check(state)?;
        if let Err(error) = coding::sandbox::adopt_orphans() {
            tracing::warn!(%error, "processes that leave their command's session cannot be ended with it");
        }
        // Asking for it once is enough: from then on a terminal that hangs up does not end the sessions.
        let _hang_up = signal(SignalKind::hangup()).map_err(|error| StartError::Other(format!("SIGHUP: {error}")))?;
        let lock = lock(&state.join("agentd.lock"), &config.socket).await?;
        let stop = CancellationToken::new();
        let source = SettingsSource::new(config.homes.clone(), config.home.clone(), config.env);
        let source = Arc::new(source.with_presets(models::preset_variables()));
        let settings = SettingsWatch::start(Arc::clone(&source), stop.clone());
        let store = Store::open_or_rescue(&state.join(DATABASE))?;
        if let Some(rescue) = store.rescue() {
            tracing::error!("{rescue}");
        }
        let env = SessionEnv::new(store.clone(), source, settings.receiver(), (config.homes, config.home));
        let env = Arc::new(env);
        let house = Arc::new(House {
            sessions: Registry::new(Arc::clone(&env)),
            env,
            info: identity(&store),
            socket: config.socket,
            clients: Connections::default(),
            stop: stop.clone(),
            drain_ms: AtomicU64::new(DRAIN_MS),
        });
        let ended = coding::sandbox::end_leftovers(store.epoch()).await;
        if ended > 0 {
            tracing::warn!(ended, "processes of commands that were cut off were still running");
        }
        house.sessions.recover().await?;
        let bound = match systemd::passed_listener().map_err(StartError::Other)? {
            Some(passed) => listener::adopt(passed)?,
            None => listener::bind(&house.socket)?,
        };
        let methods = handlers::module(Arc::clone(&house)).map_err(|error| StartError::Other(error.to_string()))?;
        let server = Server::start(bound, methods, house.clients.clone(), stop.clone());
        let mut watchdog = watchdog(store.clone(), stop.clone());
        watchdog.spawn(back_up_daily(store.clone(), stop.clone()));
        watchdog.spawn(look_for_room(store.clone(), stop.clone()));
        tracing::info!(socket = %house.socket.display(), version = %house.info.version, "listening");
        systemd::ready();
        Ok(Self { stop, house, server, settings, watchdog, store, _lock: lock })
    }

    /// Lets calls that run come to their end for a while, puts turns away, and leaves nothing open.
    async fn finish(mut self) {
        self.stop.cancel();
        tracing::info!("stopping: calls that run may end, nothing new starts");
        systemd::stopping();
        let drain = Duration::from_millis(self.house.drain_ms.load(Ordering::Relaxed));
        tokio::select! {
            drained = tokio::time::timeout(drain + LAST_WORDS, self.house.sessions.close_all(Instant::now() + drain)) => {
                if drained.is_err() {
                    tracing::warn!("some sessions did not close in {} ms", drain.as_millis());
                }
            }
            () = signalled() => tracing::warn!("second signal: leaving without waiting"),
        }
        self.server.stop().await;
        self.settings.stopped().await;
        while self.watchdog.join_next().await.is_some() {}
        self.store.close().await;
    }
}

/// The lock of the state directory. A daemon that answers has it for good; without one, somebody is on the way out: a
/// daemon that is stopping, or a command that a killed daemon was just starting and that lets go of the lock at once.
async fn lock(path: &Path, socket: &Path) -> Result<Lock, LockError> {
    let patience = Instant::now() + LET_GO;
    loop {
        match Lock::take(path) {
            Err(LockError::AlreadyRunning { .. })
                if Instant::now() < patience && UnixStream::connect(socket).await.is_err() =>
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            taken => return taken,
        }
    }
}

/// Who this daemon is, for as long as it lives.
fn identity(store: &Store) -> DaemonInfo {
    DaemonInfo {
        version: env!("CARGO_PKG_VERSION").into(),
        instance_id: InstanceId::new(),
        pid: std::process::id(),
        started_at: Timestamp::now(),
        store_epoch: store.epoch().to_owned(),
        draining: false,
    }
}

/// Tells systemd that the daemon can still do what a turn needs: reach its database.
fn watchdog(store: Store, stop: CancellationToken) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn(systemd::keep_alive(
        move || {
            let store = store.clone();
            // A lock that others hold and a full disk pass, and another daemon would find them too.
            async move { matches!(store.probe().await, Ok(()) | Err(StoreError::Busy { .. } | StoreError::Full { .. })) }
        },
        stop,
    ));
    tasks
}

/// While the disk is full, looks again and again whether there is room.
async fn look_for_room(store: Store, stop: CancellationToken) {
    let mut room = store.watch_room();
    let look = async {
        let (shortest, longest) = LOOK_FOR_ROOM;
        let mut pause = shortest;
        while room.wait_for(|is_short| *is_short).await.is_ok() {
            tokio::time::sleep(pause).await;
            let of = store.clone();
            if let Err(error) = tokio::task::spawn_blocking(move || of.look_for_room()).await {
                tracing::error!(%error, "looking for room on the disk ended badly");
            }
            pause = if store.is_short_of_room() { (pause * 2).min(longest) } else { shortest };
        }
    };
    tokio::select! {
        () = look => {}
        () = stop.cancelled() => {}
    }
}

/// Makes a copy of the database each day.
async fn back_up_daily(store: Store, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_FOR_BACKUP) => {}
        }
        if !store.is_backup_due() || store.is_short_of_room() {
            continue;
        }
        let of = store.clone();
        match tokio::task::spawn_blocking(move || of.back_up()).await {
            Ok(Ok(copy)) => tracing::info!(copy = %copy.display(), "the database was backed up"),
            Ok(Err(error)) => tracing::warn!(%error, "the database could not be backed up"),
            Err(error) => tracing::error!(%error, "the backup of the database ended badly"),
        }
    }
}

fn lost_socket(path: &Path) -> StartError {
    let what = "removed or replaced while the daemon ran and cannot be made again, so no client could find it (hint: start the daemon again)";
    StartError::Other(format!("socket {}: {what}", path.display()))
}

async fn signalled() {
    let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

/// Makes a directory that only its owner can enter.
fn private_dir(path: &Path) -> Result<(), StartError> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| {
        StartError::Other(format!(
            "state directory {}: {error} (hint: make it writable, or set AGENTD_STATE_HOME)",
            path.display()
        ))
    })
}
