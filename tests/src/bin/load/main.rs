//! The daemon with a long past and many clients: memory, times, and who suffers from whom. Prints figures for people.
//!
//! `cargo run --release -p e2e --bin load`. What is said to be enough stands beside each figure; it is meant for a machine
//! with two cores.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a rig that cannot go on says so; it prints for people")]

mod figures;
mod past;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use e2e::client::Client;
use e2e::daemon::{Daemon, Home};
use figures::Figures;
use serde_json::{Value, json};

const SESSIONS: u32 = 1000;
/// Turns of each; a turn has two messages.
const TURNS: u32 = 50;
const CLIENTS: usize = 200;
/// How many of them look at the same session.
const BUSIEST: usize = 20;
/// Sessions that work at the same time, and the turns that each of them runs.
const ACTIVE: (usize, u32) = (50, 10);

fn main() {
    let mut daemon = with_a_past();
    let begun = Instant::now();
    daemon = daemon.restart();
    daemon.connect().ok("ping", &json!({}));
    println!("start until the first answer: {} ms (enough: 1000)", begun.elapsed().as_millis());
    let sessions = lists(&daemon);
    let mut clients = attach(&daemon, &sessions);
    println!("memory with {CLIENTS} attached: {} MiB (enough: 400)", memory(&daemon));
    let over = AtomicBool::new(false);
    let events = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for client in &mut clients {
            scope.spawn(|| read_all(client, &over, &events));
        }
        active(&daemon, &sessions, &events);
        ten_megabytes(&daemon);
        over.store(true, Ordering::Relaxed);
        // Whoever waits for a line gets one more.
        for session in &sessions[..CLIENTS] {
            drop(daemon.connect().call("session/update", &json!({"sessionId": session, "title": "over"})));
        }
    });
    let store = status(&daemon)["store"].clone();
    println!("memory at the end: {} MiB, WAL {} KiB", memory(&daemon), store["walBytes"].as_u64().unwrap_or(0) >> 10);
}

/// A daemon that has been stopped, with all sessions in its database.
fn with_a_past() -> Daemon {
    let home = Home::new();
    let big = json!({"name": "bash", "input": {"description": "much", "command": "for part in $(seq 40); do head -c 187500 /dev/urandom | base64; sleep 0.05; done"}});
    let steps =
        json!({"loop": true, "steps": [[{"delayMs": 20}, {"text": "An answer of a few words, as there are many."}]]});
    home.script(&steps);
    home.write("big.json", json!({"loop": true, "steps": [[{"toolCalls": [big]}], [{"text": "done"}]]}).to_string());
    home.add_settings(&json!({"permissions": {"allow": ["bash"]}}));
    let mut daemon = home.start();
    let mut client = daemon.connect();
    let session = client.session(&daemon.home.work());
    for turn in 0..TURNS {
        client.turn(&session, &format!("question {turn}"));
    }
    drop(client);
    daemon.terminate();
    let database = daemon.home.state().join("agentd.db");
    let begun = Instant::now();
    past::multiply(&database, SESSIONS).expect("copies of the session");
    let size = std::fs::metadata(&database).map_or(0, |found| found.len());
    let messages = SESSIONS * TURNS * 2;
    println!("{SESSIONS} sessions, {messages} messages, {} MiB, made in {} s", size >> 20, begun.elapsed().as_secs());
    daemon
}

fn lists(daemon: &Daemon) -> Vec<String> {
    let mut client = daemon.connect();
    let mut figures = Figures::default();
    for _ in 0..50 {
        figures.time(|| client.ok("session/list", &json!({})));
    }
    println!("session/list, first page: {figures} (enough: 50)");
    let mut all = Figures::default();
    let listed = all.time(|| client.ok("session/list", &json!({"limit": 1000})));
    println!("session/list, all: {all}");
    let mut history = Figures::default();
    let ids = listed["sessions"].as_array().into_iter().flatten();
    let ids: Vec<String> = ids.filter_map(|session| session["id"].as_str().map(str::to_owned)).collect();
    for id in ids.iter().take(50) {
        history.time(|| client.ok("session/history", &json!({"sessionId": id})));
    }
    println!("session/history, whole: {history}");
    ids
}

fn attach(daemon: &Daemon, sessions: &[String]) -> Vec<Client> {
    let mut figures = Figures::default();
    let clients = (0..CLIENTS).map(|place| {
        let session = if place < BUSIEST { &sessions[0] } else { &sessions[place] };
        figures.time(|| {
            let mut client = daemon.connect();
            client.ok("initialize", &json!({"client": {"name": "load"}}));
            client.subscribe(session, &json!({"kind": "snapshot"}));
            client.event_of("stream.synced");
            client
        })
    });
    let clients = clients.collect();
    println!("attach, from connect to synced: {figures} (enough: 100)");
    clients
}

/// Many sessions work at once: how soon a message is acknowledged, and how much gets done.
fn active(daemon: &Daemon, sessions: &[String], events: &AtomicU64) {
    let (begun, before) = (Instant::now(), events.load(Ordering::Relaxed));
    let (count, turns) = ACTIVE;
    let figures = std::thread::scope(|scope| {
        let runs: Vec<_> = sessions[..count]
            .iter()
            .map(|session| {
                scope.spawn(move || {
                    let (mut client, mut figures) = (daemon.connect(), Figures::default());
                    for turn in 0..turns {
                        let start = json!({"sessionId": session, "input": format!("more {turn}")});
                        let turn = figures.time(|| client.ok("turn/start", &start))["turnId"].clone();
                        client.ended(session, &turn);
                    }
                    figures
                })
            })
            .collect();
        let mut all = Figures::default();
        runs.into_iter().for_each(|run| all.extend(run.join().expect("its turns")));
        all
    });
    let seconds = begun.elapsed().as_secs_f64();
    let done = f64::from(turns) * f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    let seen = events.load(Ordering::Relaxed) - before;
    println!("{count} sessions at once: {:.0} turns/s (enough: 40), {seen} events to clients", done / seconds);
    println!("turn/start until acknowledged: {figures} (enough: p50 10, p99 100)");
    println!("memory then: {} MiB (enough: 400)", memory(daemon));
}

/// A command prints ten megabytes while one of its watchers has stopped: what all others feel of that.
fn ten_megabytes(daemon: &Daemon) {
    let mut owner = daemon.connect();
    let script = daemon.home.work().join("big.json");
    let new = json!({"cwd": daemon.home.work(), "model": format!("offline/script:{}", script.display())});
    let session = owner.ok("session/new", &new)["session"]["id"].as_str().unwrap_or_default().to_owned();
    // It subscribes and reads nothing more, as a terminal that was stopped.
    let mut stopped = daemon.connect();
    stopped.subscribe(&session, &json!({"kind": "live"}));
    let before = memory(daemon);
    let over = AtomicBool::new(false);
    let (mut peak, mut figures) = (before, Figures::default());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            owner.turn(&session, "go");
            over.store(true, Ordering::Relaxed);
        });
        let mut client = daemon.connect();
        while !over.load(Ordering::Relaxed) {
            figures.time(|| client.ok("ping", &json!({})));
            peak = peak.max(memory(daemon));
            pause();
        }
    });
    println!("ping during 10 MB of output with a stopped watcher: {figures} (enough: p99 250)");
    println!("memory before {before} MiB, at most {peak} MiB (enough: 64 more)");
    drop(stopped);
}

fn read_all(client: &mut Client, over: &AtomicBool, events: &AtomicU64) {
    while !over.load(Ordering::Relaxed) && client.line().is_some() {
        events.fetch_add(1, Ordering::Relaxed);
    }
}

fn status(daemon: &Daemon) -> Value {
    daemon.connect().ok("daemon/status", &json!({}))
}

fn memory(daemon: &Daemon) -> u64 {
    status(daemon)["memoryBytes"].as_u64().unwrap_or_default() >> 20
}

#[expect(clippy::disallowed_methods, reason = "the rig is blocking on purpose")]
fn pause() {
    std::thread::sleep(Duration::from_millis(5));
}
