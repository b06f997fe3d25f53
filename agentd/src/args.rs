//! The command line of the daemon.

use std::path::PathBuf;

use clap::Parser;

/// The coding-agent daemon: owns the sessions, runs the turns, asks for approval, streams over a Unix socket.
///
/// People rarely start it by hand: `agentctl` starts one when none is running, and systemd can own it as a user service.
#[derive(Parser, Debug)]
#[command(name = "agentd", version, max_term_width = 100)]
#[command(after_help = "Files: the database, lock and log are under $XDG_STATE_HOME/agentd (default ~/.local/state), \
                        settings under $XDG_CONFIG_HOME/agentd (default ~/.config).\n\
                        Exit codes: 0 stopped, 1 could not start, 74 the database cannot be used, 75 already running, or another program locks the database.")]
pub struct Args {
    /// Listen here [default: $AGENTD_SOCKET, $XDG_RUNTIME_DIR/agentd/agentd.sock, or under the state directory].
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What else it does than serve.
#[derive(clap::Subcommand, Debug)]
pub enum Command {
    /// Put a copy of the database in its place; what is there now is moved aside, and no daemon may run
    #[command(after_help = "Example: agentctl daemon stop && agentd restore")]
    Restore {
        /// This copy, instead of the newest sound one of the state directory's `backups`
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
    },
}
