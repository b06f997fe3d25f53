//! Reaches the daemon, and starts one where none listens: one starter at a time, nothing but the needed environment.
//!
//! The only place of this program that starts a process.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use protocol::socket::{PROVIDER_VARIABLES, check_length};
use rustix::fs::FlockOperation;
use tokio::net::UnixStream;

use crate::exit::Failure;
use crate::world::World;

/// How long a daemon may take from its start to its first connection.
const START_LIMIT: Duration = Duration::from_secs(10);
/// How long to wait for somebody else who is starting one.
const LOCK_LIMIT: Duration = Duration::from_secs(20);
/// The daemon's exit code when another one holds its lock: that one may still be on its way to the socket.
const ALREADY_RUNS: i32 = 75;
const PAUSE: Duration = Duration::from_millis(10);

/// A daemon that was started. Whoever answers says whether it is that one: another may have been there, out of sight.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) pid: u32,
    /// A sentence for people.
    pub(crate) note: String,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// No socket, or nobody behind it.
    #[error("nobody listens on {}", .0.display())]
    Nobody(PathBuf),
    #[error("{0}")]
    Path(String),
    #[error("socket {} belongs to uid {uid}, not to you", path.display())]
    Foreign { path: PathBuf, uid: u32 },
    #[error("socket {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
}

impl ConnectError {
    pub(crate) fn into_failure(self, socket: &Path) -> Failure {
        let hint = match &self {
            Self::Nobody(_) => "start it with `agentctl daemon start`".into(),
            Self::Foreign { .. } => "set AGENTD_SOCKET or --socket to a path of your own".into(),
            Self::Path(_) | Self::Io { .. } => format!("look at {} and the directories above it", socket.display()),
        };
        match self {
            Self::Path(sentence) => Failure::Usage(sentence),
            other => Failure::Unreachable { message: other.to_string(), hint },
        }
    }
}

/// Connects to a daemon that listens, and makes sure that it is ours.
pub(crate) async fn connect(socket: &Path) -> Result<UnixStream, ConnectError> {
    check_length(socket).map_err(ConnectError::Path)?;
    let path = || socket.to_path_buf();
    let stream = UnixStream::connect(socket).await.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => ConnectError::Nobody(path()),
        _ => ConnectError::Io { path: path(), error },
    })?;
    let uid = stream.peer_cred().map_err(|error| ConnectError::Io { path: path(), error })?.uid();
    if uid != rustix::process::geteuid().as_raw() {
        return Err(ConnectError::Foreign { path: path(), uid });
    }
    Ok(stream)
}

/// Connects; starts a daemon first if nobody listens, and tells of it then.
pub(crate) async fn connect_or_start(world: &World) -> Result<(UnixStream, Option<Started>), Failure> {
    let connected = |result: Result<UnixStream, ConnectError>| match result {
        Ok(stream) => Ok((stream, None)),
        Err(error) => Err(error.into_failure(&world.socket)),
    };
    match connect(&world.socket).await {
        Err(ConnectError::Nobody(_)) => {}
        other => return connected(other),
    }
    let trouble = |error: io::Error| Failure::Unreachable {
        message: format!("the state directory {} cannot be used: {error}", world.homes.state.display()),
        hint: "make it a directory that you can write, or set AGENTD_STATE_HOME".into(),
    };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&world.homes.state).map_err(trouble)?;
    let _lock = start_lock(&world.homes.state.join("start.lock")).await.map_err(trouble)?;
    // Somebody else may have started it while we waited.
    match connect(&world.socket).await {
        Err(ConnectError::Nobody(_)) => start(world).await.map(|(stream, started)| (stream, Some(started))),
        other => connected(other),
    }
}

async fn start_lock(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
    let begin = Instant::now();
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) if begin.elapsed() < LOCK_LIMIT => tokio::time::sleep(PAUSE).await,
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(io::Error::other(format!("another start holds {} for too long", path.display())));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

async fn start(world: &World) -> Result<(UnixStream, Started), Failure> {
    let program = find_daemon(world)?;
    let log = world.homes.state.join("agentd.log");
    let failed = |what: String, log_tail: String| Failure::Unreachable {
        message: format!("{} {what}{log_tail}", program.display()),
        hint: format!("its log is {}; run `{}` by hand to see more", log.display(), program.display()),
    };
    let (mut child, log_start) =
        spawn(world, &program, &log).map_err(|error| failed(error.to_string(), String::new()))?;
    let begin = Instant::now();
    loop {
        if let Ok(stream) = connect(&world.socket).await {
            let note = format!("agentd started (pid {}, log {})", child.id(), log.display());
            return Ok((stream, Started { pid: child.id(), note }));
        }
        let ended = child.try_wait().ok().flatten();
        let is_elsewhere = ended.is_some_and(|status| status.code() == Some(ALREADY_RUNS));
        if let Some(status) = ended.filter(|_| !is_elsewhere) {
            return Err(failed(format!("ended at once with {status}"), tail(&log, log_start)));
        }
        if begin.elapsed() >= START_LIMIT {
            let who = if is_elsewhere { "runs already, but" } else { "is there, but" };
            let what = format!("{who} does not listen on {} after {} s", world.socket.display(), START_LIMIT.as_secs());
            return Err(failed(what, tail(&log, log_start)));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Starts the daemon with its output in the log. Gives the log's length before, in bytes.
fn spawn(world: &World, program: &Path, log: &Path) -> io::Result<(Child, u64)> {
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(log)?;
    let start = log.metadata()?.len();
    #[expect(clippy::disallowed_methods, reason = "the one process that a client starts is the daemon")]
    let mut command = Command::new(program);
    command
        .env_clear()
        .envs(environment(&world.environment).cloned())
        .env("AGENTD_SOCKET", &world.socket)
        .current_dir("/");
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    Ok((command.spawn()?, start))
}

/// What a daemon gets of a shell's environment: enough to find its things and the keys of providers. See
/// `PROVIDER_VARIABLES`.
fn environment(all: &[(OsString, OsString)]) -> impl Iterator<Item = &(OsString, OsString)> {
    all.iter().filter(|(name, _)| {
        let name = name.as_bytes();
        [&b"PATH"[..], b"HOME", b"LANG"].contains(&name)
            || [&b"XDG_"[..], b"AGENTD_"].iter().any(|start| name.starts_with(start))
            || PROVIDER_VARIABLES.iter().any(|variable| name == variable.as_bytes())
    })
}

/// `agentd` beside our own executable, else on `PATH`.
fn find_daemon(world: &World) -> Result<PathBuf, Failure> {
    let beside = world.executable.as_ref().and_then(|own| own.parent()).map(|dir| dir.join("agentd"));
    let path = world.environment.iter().find(|(name, _)| name == OsStr::new("PATH"));
    let on_path = path.into_iter().flat_map(|(_, dirs)| std::env::split_paths(dirs)).map(|dir| dir.join("agentd"));
    beside.into_iter().chain(on_path).find(|file| file.is_file()).ok_or_else(|| Failure::Unreachable {
        message: format!(
            "nobody listens on {}, and no program `agentd` is beside agentctl or on PATH",
            world.socket.display()
        ),
        hint: "install agentd, or set --socket to where it listens".into(),
    })
}

/// The last lines that were written since `start`.
fn tail(log: &Path, start: u64) -> String {
    let read = || -> io::Result<String> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(start.max(length.saturating_sub(4096))))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(8)..].iter().map(|line| format!("\n  {line}")).collect()
}

#[cfg(test)]
mod tests;
