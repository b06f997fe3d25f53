//! The conversation with systemd: the socket that it passes in, and what it is told of us.
//!
//! Without systemd every function does nothing. Whoever bound the socket removes it: a passed-in one belongs to
//! systemd, which keeps it open over our restarts, so it must not be unlinked here.

use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixListener;

use rustix::net::{AddressFamily, SocketType, sockopt};
use sd_notify::NotifyState;
use tokio_util::sync::CancellationToken;

/// Takes the socket that systemd listens on for us; `None` when it passed none.
///
/// Call it once: a second call would own the same descriptor again. The listener is non-blocking, as tokio wants it.
///
/// # Errors
/// A sentence when what was passed is not exactly one listening Unix stream socket.
pub fn passed_listener() -> Result<Option<UnixListener>, String> {
    let passed = |error: std::io::Error| format!("sockets passed by systemd: {error} (hint: check agentd.socket)");
    let mut sockets = sd_notify::listen_fds().map_err(passed)?;
    let Some(socket) = sockets.next() else { return Ok(None) };
    let others = sockets.len();
    if others > 0 {
        return Err(format!("systemd passed {} sockets, agentd serves one (hint: check agentd.socket)", others + 1));
    }
    #[expect(unsafe_code, reason = "the descriptor arrives as a number in the environment")]
    // SAFETY: LISTEN_PID names this process, so the descriptor was opened for it before it started, and this function
    // runs once, so nobody else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    adopt(socket).map(Some)
}

fn adopt(socket: OwnedFd) -> Result<UnixListener, String> {
    let listens = sockopt::socket_domain(&socket) == Ok(AddressFamily::UNIX)
        && sockopt::socket_type(&socket) == Ok(SocketType::STREAM)
        && sockopt::socket_acceptconn(&socket) == Ok(true);
    if !listens {
        return Err(
            "systemd passed something that is no listening Unix stream socket (hint: check agentd.socket)".into()
        );
    }
    let listener = UnixListener::from(socket);
    listener.set_nonblocking(true).map_err(|error| format!("the socket passed by systemd: {error}"))?;
    Ok(listener)
}

/// The daemon serves.
pub fn ready() {
    tell(&[NotifyState::Ready, NotifyState::Status("serving")]);
}

/// The daemon is on its way out.
pub fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
}

/// Tells systemd that the daemon lives, until `cancel`, each time that `can_work` answers yes in time.
///
/// Returns at once when the unit has no `WatchdogSec=`. `can_work` should ask what a turn cannot do without, such as
/// the thread that writes the database: a daemon that only breathes is of no use.
pub async fn keep_alive<F, A>(can_work: F, cancel: CancellationToken)
where
    F: Fn() -> A,
    A: Future<Output = bool>,
{
    let Some(limit) = sd_notify::watchdog_enabled() else { return };
    // Twice in the time that the unit allows, so that one late answer does not end us.
    let pause = limit / 2;
    loop {
        match tokio::time::timeout(pause, can_work()).await {
            Ok(true) => tell(&[NotifyState::Watchdog]),
            Ok(false) | Err(_) => tracing::error!("cannot work; systemd restarts the daemon unless this passes"),
        }
        if cancel.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return;
        }
    }
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "systemd does not hear us");
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::{UnixDatagram, UnixStream};

    use super::*;

    #[test]
    fn a_listening_unix_socket_is_adopted_and_stays_on_disk() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let listener = adopt(UnixListener::bind(&path).unwrap().into()).unwrap();
        let would_block = listener.accept().unwrap_err();
        assert_eq!(would_block.kind(), std::io::ErrorKind::WouldBlock);
        let mut client = UnixStream::connect(&path).unwrap();
        client.write_all(b"x").unwrap();
        let (mut served, _) = listener.accept().unwrap();
        served.read_exact(&mut [0]).unwrap();
        drop(listener);
        assert!(path.exists());
    }

    #[test]
    fn anything_else_is_refused_with_the_next_step() {
        let dir = tempfile::tempdir().unwrap();
        let refused = |socket: OwnedFd| assert!(adopt(socket).unwrap_err().contains("check agentd.socket"));
        refused(UnixDatagram::bind(dir.path().join("d")).unwrap().into());
        refused(UnixStream::pair().unwrap().0.into());
        refused(std::net::TcpListener::bind("127.0.0.1:0").unwrap().into());
        refused(std::fs::File::open("/dev/null").unwrap().into());
    }

    #[tokio::test]
    async fn without_systemd_nothing_is_passed_and_nobody_watches() {
        assert!(passed_listener().unwrap().is_none());
        keep_alive(|| async { panic!("nobody asked") }, CancellationToken::new()).await;
    }
}
