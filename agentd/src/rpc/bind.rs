//! The socket's file: made private, replaced only when it is stale, removed only when it is ours.
//!
//! Called with the daemon's lock held, so nobody else of us is binding at the same time. A file that is not a socket, a
//! directory that others can write, and a socket that answers are left as they are.

use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use tokio::net::UnixListener;

/// Clients that may wait to be let in.
const BACKLOG: i32 = 1024;

/// A listening socket.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) listener: UnixListener,
    /// The file that this process made; `None` when the socket was passed in.
    made: Option<Made>,
}

#[derive(Debug)]
struct Made {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error("socket {}: another agentd answers there (hint: use it, or `agentctl daemon stop`)", .path.display())]
    AlreadyRunning { path: PathBuf },
    #[error("{0}")]
    Path(String),
    #[error("socket directory {}: {why} (hint: remove it or set AGENTD_SOCKET to a path in a directory of yours)", .path.display())]
    Directory { path: PathBuf, why: String },
    #[error("socket {}: {why} (hint: remove the file or set AGENTD_SOCKET)", .path.display())]
    NotOurs { path: PathBuf, why: &'static str },
    #[error("socket {}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Listens at `path`, in a directory that only this user can enter.
///
/// # Errors
/// When the path is too long, the directory is not private, another daemon answers, or a foreign file is in the way.
pub(crate) fn bind(path: &Path) -> Result<Bound, BindError> {
    protocol::socket::check_length(path).map_err(BindError::Path)?;
    private_directory(directory(path), true)?;
    bind_in_place(path)
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn bind_in_place(path: &Path) -> Result<Bound, BindError> {
    remove_stale(path)?;
    let failed = |source| BindError::Io { path: path.into(), source };
    let listener = listen(path).and_then(UnixListener::from_std);
    let listener = listener.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => BindError::AlreadyRunning { path: path.into() },
        _ => failed(source),
    })?;
    let file = path.symlink_metadata().map_err(failed)?;
    let made = Made { path: path.into(), device: file.dev(), inode: file.ino() };
    Ok(Bound { listener, made: Some(made) })
}

/// The mode has to be right from the first moment, and the umask is the whole process's: a command that starts just then
/// would inherit it. So the mode is the socket's own, which Linux gives to the file.
fn listen(path: &Path) -> io::Result<std::os::unix::net::UnixListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Takes over a socket that somebody else listens at and will remove, such as systemd.
///
/// # Errors
/// When it cannot be registered with the runtime.
pub(crate) fn adopt(listener: std::os::unix::net::UnixListener) -> Result<Bound, BindError> {
    let failed = |source| BindError::Io { path: PathBuf::from("(passed in)"), source };
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(Bound { listener: UnixListener::from_std(listener).map_err(failed)?, made: None })
}

impl Bound {
    /// Stops listening and removes the file, if it is still the one that was made.
    pub(crate) fn close(self) {}

    /// A socket where this one was, whose file is gone, and the directory it was in. Connections that this one has let
    /// in are not concerned.
    ///
    /// # Errors
    /// As [`bind`]. Also when more is gone than that one directory: whoever removed all of it meant it.
    pub(crate) fn again(&self) -> Result<Self, BindError> {
        let Some(made) = &self.made else { return Err(BindError::Path("the socket was passed in".into())) };
        private_directory(directory(&made.path), false)?;
        bind_in_place(&made.path)
    }

    /// Whether clients that look at the path still find this socket. One that was passed in is not looked after here.
    pub(crate) fn is_reachable(&self) -> bool {
        self.made.as_ref().is_none_or(Made::is_there)
    }
}

impl Made {
    fn is_there(&self) -> bool {
        self.path.symlink_metadata().is_ok_and(|file| file.dev() == self.device && file.ino() == self.inode)
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let Some(made) = self.made.as_ref().filter(|made| made.is_there()) else { return };
        if let Err(error) = std::fs::remove_file(&made.path) {
            tracing::warn!(path = %made.path.display(), %error, "socket not removed");
        }
    }
}

fn private_directory(dir: &Path, with_parents: bool) -> Result<(), BindError> {
    let refuse = |why: String| BindError::Directory { path: dir.into(), why };
    match dir.symlink_metadata() {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let made = std::fs::DirBuilder::new().recursive(with_parents).mode(0o700).create(dir);
            made.map_err(|error| refuse(error.to_string()))?;
        }
        Err(error) => return Err(refuse(error.to_string())),
    }
    // What counts is what is there now, whoever made it.
    let found = dir.symlink_metadata().map_err(|error| refuse(error.to_string()))?;
    if !found.is_dir() {
        return Err(refuse("it is a link or a file, not a directory".into()));
    }
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own {
        return Err(refuse(format!("it belongs to uid {}, this is uid {own}", found.uid())));
    }
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o022 != 0 {
        return Err(refuse(format!("others can write it (mode {mode:o})")));
    }
    Ok(())
}

fn remove_stale(path: &Path) -> Result<(), BindError> {
    let file = match path.symlink_metadata() {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(BindError::Io { path: path.into(), source }),
    };
    if !file.file_type().is_socket() {
        return Err(BindError::NotOurs { path: path.into(), why: "the file there is no socket" });
    }
    if file.uid() != rustix::process::geteuid().as_raw() {
        return Err(BindError::NotOurs { path: path.into(), why: "the socket there belongs to another user" });
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|source| BindError::Io { path: path.into(), source })
        }
        // Also when its queue is full: somebody listens.
        Ok(_) | Err(_) => Err(BindError::AlreadyRunning { path: path.into() }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn home() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().permissions().mode() & 0o777
    }

    #[tokio::test]
    async fn directory_and_socket_are_private_and_the_socket_goes_with_its_owner() {
        let home = home();
        let path = home.path().join("run/agentd.sock");
        let bound = bind(&path).unwrap();
        assert_eq!((mode(path.parent().unwrap()), mode(&path)), (0o700, 0o600));
        bound.close();
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_stale_socket_is_replaced_and_a_living_one_refused() {
        let home = home();
        let path = home.path().join("agentd.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let bound = bind(&path).unwrap();
        assert!(matches!(bind(&path), Err(BindError::AlreadyRunning { .. })));
        assert!(path.exists(), "the loser removed the winner's socket");
        drop(bound);
    }

    #[tokio::test]
    async fn only_the_file_that_was_made_is_removed() {
        let home = home();
        let path = home.path().join("agentd.sock");
        let bound = bind(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let other = std::os::unix::net::UnixListener::bind(&path).unwrap();
        drop(bound);
        assert!(path.exists());
        drop(other);
        std::fs::remove_file(&path).unwrap();
        let passed = std::os::unix::net::UnixListener::bind(&path).unwrap();
        drop(adopt(passed).unwrap());
        assert!(path.exists(), "a socket that was passed in is not ours to remove");
    }

    #[tokio::test]
    async fn a_foreign_file_in_the_way_is_left_alone() {
        let home = home();
        let (file, link) = (home.path().join("file"), home.path().join("link"));
        std::fs::write(&file, "precious").unwrap();
        symlink(&file, &link).unwrap();
        for path in [&file, &link] {
            assert!(matches!(bind(path), Err(BindError::NotOurs { .. })));
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    }

    #[tokio::test]
    async fn a_directory_that_is_not_private_is_refused() {
        let home = home();
        let real = home.path().join("real");
        std::fs::create_dir(&real).unwrap();
        let (link, file, open) = (home.path().join("link"), home.path().join("file"), home.path().join("open"));
        symlink(&real, &link).unwrap();
        std::fs::write(&file, "").unwrap();
        std::fs::create_dir(&open).unwrap();
        for writable in [0o777, 0o770, 0o1777] {
            std::fs::set_permissions(&open, std::fs::Permissions::from_mode(writable)).unwrap();
            for dir in [&link, &file, &open] {
                let error = bind(&dir.join("agentd.sock")).unwrap_err();
                assert!(matches!(error, BindError::Directory { .. }), "{error}");
            }
        }
        assert!(std::fs::read_dir(&real).unwrap().next().is_none());
    }

    #[tokio::test]
    async fn a_path_that_no_socket_can_have_is_refused_with_the_way_out() {
        let home = home();
        let length = 108 - home.path().as_os_str().len() - 1;
        let path = home.path().join("s".repeat(length));
        let error = bind(&path).unwrap_err().to_string();
        assert!(error.contains("108 bytes") && error.contains("AGENTD_SOCKET"), "{error}");
        bind(&home.path().join("s".repeat(length - 1))).unwrap().close();
    }
}
