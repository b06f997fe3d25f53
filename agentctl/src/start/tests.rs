//! Starting the daemon, with small shell scripts in its place.

use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::fake::world;

fn program(dir: &Path, script: &str) {
    let path = dir.join("agentd");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_daemon_gets_its_places_and_keys_and_no_secret_beside() {
    let all = [
        "PATH",
        "HOME",
        "LANG",
        "XDG_STATE_HOME",
        "AGENTD_X",
        "OPENAI_API_KEY",
        "OLLAMA_BASE_URL",
        "STRIPE_API_KEY",
        "INTERNAL_BASE_URL",
        "AWS_SECRET",
        "SSH_AUTH_SOCK",
    ];
    let all: Vec<_> = all.iter().map(|name| (OsString::from(name), OsString::from("v"))).collect();
    let passed: Vec<_> = environment(&all).map(|(name, _)| name.to_str().unwrap()).collect();
    assert_eq!(passed, ["PATH", "HOME", "LANG", "XDG_STATE_HOME", "AGENTD_X", "OPENAI_API_KEY", "OLLAMA_BASE_URL"]);
}

#[tokio::test]
async fn a_daemon_that_dies_at_once_is_shown_with_its_last_words() {
    let dir = tempfile::tempdir().unwrap();
    program(dir.path(), "echo 'database is newer than this program' >&2; exit 3");
    let failure = connect_or_start(&world(dir.path())).await.unwrap_err();
    let sentence = failure.sentence();
    assert_eq!(failure.exit().code(), 7);
    assert!(
        sentence.contains("database is newer than this program") && sentence.contains("exit status: 3"),
        "{sentence}"
    );
    let mode = |name: &str| std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("state"), mode("state/agentd.log"), mode("state/start.lock")), (0o700, 0o600, 0o600));
}

#[tokio::test]
async fn without_a_daemon_anywhere_the_way_out_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let failure = connect_or_start(&world(dir.path())).await.unwrap_err();
    assert_eq!(failure.exit().code(), 7);
    assert!(failure.sentence().contains("install agentd"), "{}", failure.sentence());
}

#[tokio::test]
async fn a_socket_without_anybody_behind_it_counts_as_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    assert!(matches!(connect(&socket).await, Err(ConnectError::Nobody(_))));
    assert!(matches!(connect(Path::new(&"x".repeat(200))).await, Err(ConnectError::Path(_))));
}

#[tokio::test]
async fn a_daemon_that_finds_another_one_starting_leads_to_that_one() {
    let dir = tempfile::tempdir().unwrap();
    let world = world(dir.path());
    // The loser says so and ends; the winner listens a moment later.
    program(dir.path(), "touch \"$AGENTD_SOCKET.seen\"; exit 75");
    let socket = world.socket.clone();
    let winner = async {
        let seen = dir.path().join("s.seen");
        while !seen.exists() {
            tokio::task::yield_now().await;
        }
        tokio::net::UnixListener::bind(&socket).unwrap()
    };
    let (connected, _winner) = tokio::join!(connect_or_start(&world), winner);
    assert!(connected.is_ok());
}
