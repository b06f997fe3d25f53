//! What the process finds around it, read once by `main`: nothing below looks at the environment.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;

use protocol::socket::Homes;

use crate::exit::Failure;
use crate::render::Paint;

/// The surroundings of this process.
#[derive(Debug)]
pub(crate) struct World {
    /// Absolute; what a new session gets as its workspace.
    pub(crate) cwd: PathBuf,
    pub(crate) homes: Homes,
    /// Where the daemon listens, whoever said so.
    pub(crate) socket: PathBuf,
    /// Our own executable; the daemon is looked for beside it.
    pub(crate) executable: Option<PathBuf>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The terminal's name, which others are shown when we decide something.
    pub(crate) tty: Option<String>,
    pub(crate) paint: Paint,
    /// Columns of the terminal on stdout.
    pub(crate) columns: Option<usize>,
}

impl World {
    /// Reads it all.
    ///
    /// # Errors
    /// When there is no directory to be in, or nothing says where the socket is.
    pub(crate) fn read(socket: Option<PathBuf>) -> Result<Self, Failure> {
        #[expect(clippy::disallowed_methods, reason = "a client works for the directory it was started in")]
        let cwd = std::env::current_dir()
            .map_err(|error| Failure::usage(format!("the current directory is gone: {error} (hint: cd to another)")))?;
        let homes = Homes::from_env(|name| std::env::var_os(name).map(PathBuf::from)).map_err(Failure::usage)?;
        let explicit = socket.map(|path| cwd.join(path));
        let socket = homes.socket_path(explicit.as_deref());
        let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let colour = std::io::stdout().is_terminal() && !is_plain;
        Ok(Self {
            cwd,
            socket,
            homes,
            executable: std::env::current_exe().ok(),
            environment: std::env::vars_os().collect(),
            tty: terminal_name(),
            paint: if colour { Paint::Colour } else { Paint::Plain },
            columns: terminal_columns(),
        })
    }
}

fn terminal_name() -> Option<String> {
    let name = rustix::termios::ttyname(std::io::stdin(), Vec::new()).ok()?;
    name.into_string().ok()
}

/// Columns of the terminal on stdout now; they change when its window does.
pub(crate) fn terminal_columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}
