//! The light line-mode client of agentd: a person's or a script's end of the socket.
//!
//! Knows the protocol and terminals, and nothing of the daemon's inside. `main` is the contract; `transport` is there for whoever
//! measures it.

mod approve;
mod args;
mod chat;
mod commands;
mod connect;
mod exit;
mod naming;
mod output;
mod question;
mod render;
mod start;
mod transcript;
mod untrusted;
mod view;
mod watch;
mod world;

#[cfg(test)]
mod fake;

use std::process::ExitCode;

pub use connect::transport;

use clap::Parser;

use crate::args::Args;
use crate::exit::{Exit, Failure};
use crate::world::World;

/// Runs the program: arguments in, exit code out.
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return usage(&error),
    };
    let outcome = World::read(args.socket.clone()).and_then(|world| {
        // One thread: a terminal that does not read holds up the socket too, so nothing piles up in between.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::other(format!("no async runtime: {error}")))?;
        let outcome = runtime.block_on(commands::dispatch(args, world));
        runtime.shutdown_background(); // a thread that still reads the terminal must not hold up the end
        outcome
    });
    outcome.unwrap_or_else(|failure| failure.report()).into()
}

/// Help goes to stdout and is no error; a wrong argument is exit 2.
fn usage(error: &clap::Error) -> ExitCode {
    let printed = error.print();
    let exit = if error.use_stderr() { Exit::Usage } else { Exit::Done };
    if printed.is_err() { Exit::Failed.into() } else { exit.into() }
}
