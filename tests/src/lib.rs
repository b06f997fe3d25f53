//! The harness of the end-to-end tests: the real programs, the real socket, a model that plays what a test says.
//!
//! Everything is blocking and every wait is bounded: a test reads like what a person does at a terminal, and one that
//! hangs says where.

#![expect(clippy::expect_used, clippy::panic, reason = "a harness fails the test that uses it")]

pub mod client;
pub mod daemon;
pub mod model;
pub mod strict;
pub mod terminal;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Once;
use std::time::Duration;

/// How long anything may take before a test gives up on it. Generous: machines are shared.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The path of one of our programs, built if it is not up to date.
///
/// Cargo builds no programs of other packages for a test, so the first call asks it to, with the same profile.
///
/// # Panics
/// When the build fails.
#[must_use]
pub fn program(name: &str) -> PathBuf {
    static BUILT: Once = Once::new();
    let (target, is_release) = target();
    BUILT.call_once(|| {
        let mut cargo = command(env!("CARGO"));
        if is_release {
            // As the README builds them.
            cargo.args(["build", "--quiet", "--release", "--target-dir"]);
        } else {
            // The whole workspace with its tests, as `cargo test --workspace` selects it: another selection would turn
            // other features on in the dependencies and build all of them a second time.
            cargo.args(["build", "--quiet", "--workspace", "--bins", "--tests", "--target-dir"]);
        }
        cargo.arg(&target);
        let built = cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).status();
        assert!(built.is_ok_and(|status| status.success()), "cargo could not build the programs");
    });
    let profile = if is_release { "release" } else { "debug" };
    let path = target.join(profile).join(name);
    if !path.is_file() {
        panic!("{} was not built", path.display());
    }
    path
}

/// The target directory that this test was built into, and whether as a release.
fn target() -> (PathBuf, bool) {
    let test = std::env::current_exe().unwrap_or_default();
    // A test is in `deps` of its profile's directory, a program beside it.
    let directory = test.parent().unwrap_or(&test);
    let profile = if directory.ends_with("deps") { directory.parent().unwrap_or(directory) } else { directory };
    let profile = profile.to_owned();
    let is_release = profile.file_name().is_some_and(|name| name == "release");
    (profile.parent().unwrap_or(&profile).to_owned(), is_release)
}

/// A command that a test starts.
#[expect(clippy::disallowed_methods, reason = "tests drive the programs from outside, as people do")]
#[must_use]
pub fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}

/// Waits until `done` gives something, looking again every few milliseconds.
///
/// # Panics
/// When it has given nothing after [`PATIENCE`].
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "the harness is blocking on purpose")]
pub fn eventually<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let start = std::time::Instant::now();
    loop {
        if let Some(it) = done() {
            return it;
        }
        if start.elapsed() > PATIENCE {
            panic!("waited {} s for {what}", PATIENCE.as_secs());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// How many processes have this directory, or one below it, as their own.
#[must_use]
pub fn running_in(directory: &std::path::Path) -> usize {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let places = processes.filter_map(|process| std::fs::read_link(process.path().join("cwd")).ok());
    places.filter(|place| place.starts_with(directory)).count()
}
