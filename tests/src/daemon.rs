//! A home of its own with a daemon in it.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Client;
use crate::{PATIENCE, command, eventually, program};

/// A fresh home: nothing of the machine's own settings, keys or daemons reaches into it, nothing of it gets out.
#[derive(Debug)]
pub struct Home {
    dir: TempDir,
    /// Variables that the programs get beside the built-in few.
    pub env: Vec<(String, String)>,
}

/// A daemon that was started by hand, for tests of the socket.
#[derive(Debug)]
pub struct Daemon {
    pub home: Home,
    child: Child,
}

impl Home {
    /// # Panics
    /// When no temporary directory can be made.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it makes a directory")]
    pub fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("agentd-").tempdir().expect("a temporary directory");
        for sub in ["work", "home"] {
            std::fs::create_dir(dir.path().join(sub)).expect("a directory in it");
        }
        Self { dir, env: Vec::new() }
    }

    /// The workspace.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.dir.path().join("work").canonicalize().expect("the workspace")
    }

    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.dir.path().join("home/.local/state/agentd")
    }

    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.state().join("run/agentd.sock")
    }

    /// Writes a file of the workspace.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.work().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("the file's directory");
        std::fs::write(path, content).expect("the file");
    }

    /// Reads a file of the workspace.
    #[must_use]
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.work().join(name)).unwrap_or_else(|error| format!("({name}: {error})"))
    }

    /// Writes the user's settings.
    pub fn settings(&self, settings: &Value) {
        let dir = self.dir.path().join("home/.config/agentd");
        std::fs::create_dir_all(&dir).expect("the settings directory");
        std::fs::write(dir.join("settings.json"), settings.to_string()).expect("the settings");
    }

    /// Adds top-level settings to those that are there.
    pub fn add_settings(&self, more: &Value) {
        let path = self.dir.path().join("home/.config/agentd/settings.json");
        let there = std::fs::read_to_string(path).unwrap_or_else(|_| "{}".to_owned());
        let mut settings: Value = serde_json::from_str(&there).expect("settings");
        for (key, value) in more.as_object().into_iter().flatten() {
            settings[key] = value.clone();
        }
        self.settings(&settings);
    }

    /// Makes the offline model play a scenario; see the settings for its form.
    pub fn script(&self, scenario: &Value) {
        let file = self.dir.path().join("script.json");
        std::fs::write(&file, scenario.to_string()).expect("the script");
        self.settings(&json!({"model": format!("offline/script:{}", file.display())}));
    }

    /// One of our programs, in the workspace and with this home's environment alone.
    #[must_use]
    pub fn command(&self, name: &str) -> Command {
        let mut command = command(program(name));
        command.current_dir(self.work()).env_clear().envs(self.environment());
        command
    }

    /// All that the programs know of the world.
    #[must_use]
    pub fn environment(&self) -> Vec<(String, String)> {
        let path = std::env::var("PATH").unwrap_or_default();
        let home = self.dir.path().join("home").display().to_string();
        let own = [("HOME", home), ("PATH", path), ("LANG", "C.UTF-8".into()), ("TERM", "xterm".into())];
        own.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(self.env.clone()).collect()
    }

    /// Runs `agentctl` to its end.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn ctl(&self, args: &[&str]) -> Output {
        self.command("agentctl").args(args).output().expect("agentctl")
    }

    /// Starts a daemon and waits until it listens.
    #[must_use]
    pub fn start(self) -> Daemon {
        let child = self.spawn();
        Daemon { home: self, child }.listening()
    }

    fn spawn(&self) -> Child {
        std::fs::create_dir_all(self.state()).expect("the state directory");
        let log = std::fs::File::options().create(true).append(true).open(self.log()).expect("the log");
        self.command("agentd").stderr(log).spawn().expect("agentd")
    }

    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.state().join("agentd.log")
    }

    /// A connection to whatever daemon listens here.
    #[must_use]
    pub fn connect(&self) -> Client {
        Client::new(UnixStream::connect(self.socket()).expect("the daemon listens"))
    }
}

impl Daemon {
    /// A daemon in a fresh home, with the offline model that follows rules.
    #[must_use]
    pub fn start() -> Self {
        Home::new().start()
    }

    fn listening(mut self) -> Self {
        let socket = self.home.socket();
        eventually("the daemon to listen", || {
            if let Some(status) = self.child.try_wait().expect("the daemon's status") {
                let log = std::fs::read_to_string(self.home.log()).unwrap_or_default();
                panic!("agentd ended with {status}:\n{log}");
            }
            UnixStream::connect(&socket).ok()
        });
        self
    }

    #[must_use]
    pub fn connect(&self) -> Client {
        self.home.connect()
    }

    #[must_use]
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid")
    }

    /// `kill -9`, as a crash would.
    pub fn kill(&mut self) {
        self.child.kill().expect("the daemon is ours to kill");
        self.child.wait().expect("its end");
    }

    /// Starts it again in the same home.
    #[must_use]
    pub fn restart(mut self) -> Self {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            self.terminate();
        }
        self.child = self.home.spawn();
        self.listening()
    }

    /// Starts it again in the same home and does not wait; for one that may die on the way up.
    ///
    /// # Panics
    /// When there is no such program.
    pub fn respawn(&mut self) {
        self.child = self.home.spawn();
    }

    /// Whether the process has ended.
    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// SIGTERM, and the exit code that follows.
    pub fn terminate(&mut self) -> Option<i32> {
        self.signal();
        self.ended()
    }

    /// SIGTERM.
    pub fn signal(&self) {
        kill_process(Pid::from_raw(self.pid()).expect("a pid"), Signal::TERM).expect("the daemon is ours");
    }

    /// Waits for its end: the exit code.
    pub fn ended(&mut self) -> Option<i32> {
        eventually("the daemon to stop", || self.child.try_wait().expect("its status")).code()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            let _gone = kill_process(Pid::from_raw(self.pid()).expect("a pid"), Signal::TERM);
            let start = std::time::Instant::now();
            while start.elapsed() < PATIENCE && self.child.try_wait().is_ok_and(|status| status.is_none()) {
                #[expect(clippy::disallowed_methods, reason = "the harness is blocking on purpose")]
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            drop(self.child.kill());
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // A daemon that agentctl started by itself: ours too, and nobody else's, since the home is ours.
        if let Ok(stream) = UnixStream::connect(self.socket()) {
            drop(Client::new(stream).call("daemon/shutdown", &json!({})));
            let socket: &Path = &self.socket();
            let start = std::time::Instant::now();
            while start.elapsed() < PATIENCE && UnixStream::connect(socket).is_ok() {
                #[expect(clippy::disallowed_methods, reason = "the harness is blocking on purpose")]
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        }
    }
}
