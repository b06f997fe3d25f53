//! `agentd`: reads the world once, runs the daemon, turns its end into an exit code.

use std::collections::BTreeMap;
use std::process::ExitCode;

use agentd::{Args, Command, Config};
use clap::Parser;

fn main() -> ExitCode {
    // Nobody of the same user reads our memory or environment, where keys are: not a tool, not a core dump.
    let _not_on_linux = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    let args = Args::parse();
    let env: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    // Leaves the terminal of whoever started us, so that closing it does not end the sessions. Refused when a shell
    // started us in the foreground: there Ctrl-C should reach us.
    let _own_session = rustix::process::setsid();
    foundation::failpoint::arm(&env);
    agentd::logging::init(&env);
    let config = match Config::from_world(&args, env) {
        Ok(config) => config,
        Err(error) => return fail(&error),
    };
    if let Some(Command::Restore { from }) = args.command {
        return match agentd::restore(&config, from.as_deref()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error),
        };
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&agentd::StartError::Other(format!("the async runtime did not start: {error}"))),
    };
    match runtime.block_on(agentd::run(config)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn fail(error: &agentd::StartError) -> ExitCode {
    tracing::error!("{error}");
    ExitCode::from(error.exit_code())
}
