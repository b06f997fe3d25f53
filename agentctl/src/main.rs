//! Reads the world once: arguments, environment, directory, terminal. Then hands over to the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    agentctl::main()
}
