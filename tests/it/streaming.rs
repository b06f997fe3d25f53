//! A long answer: bytes and work grow with its length, not with its square, and nobody watching costs nothing.

use e2e::daemon::{Daemon, Home};
use serde_json::json;

struct Streamed {
    cpu_ms: u64,
    bytes: usize,
    snapshots: u64,
}

/// Streams an answer of `chunks` times 100 bytes to `watchers` clients.
fn stream(chunks: u64, watchers: usize) -> Streamed {
    let home = Home::new();
    let text = "0123456789".repeat(10);
    home.script(&json!({"steps": [[{"repeat": {"text": text, "count": chunks, "delayMs": 0}}]]}));
    let daemon = home.start();
    let mut client = daemon.connect();
    let session = client.session(&daemon.home.work());
    let mut clients: Vec<_> = (0..watchers).map(|_| daemon.connect()).collect();
    for watcher in &mut clients {
        watcher.subscribe(&session, &json!({"kind": "live"}));
    }
    let before = client.ok("daemon/status", &json!({}));
    client.turn(&session, "go");
    let mut bytes = 0;
    for watcher in &mut clients {
        let events = watcher.events_until(|event| event["type"] == "turn.ended");
        let whole = events.iter().rfind(|event| event["type"] == "message").unwrap();
        let length = whole["data"]["message"]["content"][0]["text"].as_str().unwrap().len() as u64;
        assert_eq!(length, chunks * 100, "the final message is whole");
        bytes = bytes.max(watcher.bytes);
    }
    let after = client.ok("daemon/status", &json!({}));
    let rise = |field: &str| after[field].as_u64().unwrap() - before[field].as_u64().unwrap();
    let streamed = Streamed { cpu_ms: rise("cpuMs"), bytes, snapshots: rise("snapshotsSerialised") };
    drop::<Daemon>(daemon);
    streamed
}

#[test]
fn a_megabyte_in_ten_thousand_chunks_stays_linear() {
    let runs: Vec<Streamed> = [2_500, 5_000, 10_000].map(|chunks| stream(chunks, 1)).into();
    for run in &runs {
        println!("cpu {} ms, {} bytes to the client, {} snapshots", run.cpu_ms, run.bytes, run.snapshots);
    }
    assert!(runs[2].bytes < 25 << 20, "{} bytes to the client", runs[2].bytes);
    // Four times the text may cost four times the work, with room for noise; its square would be sixteen times.
    let (small, large) = (runs[0].cpu_ms.max(20), runs[2].cpu_ms);
    assert!(large < small * 9, "{small} ms for 250 kB, {large} ms for 1 MB");
}

#[test]
fn with_no_subscriber_no_snapshot_is_serialised() {
    assert_eq!(stream(2_500, 0).snapshots, 0);
}
