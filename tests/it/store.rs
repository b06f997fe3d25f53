//! The database under faults: what is damaged is found, said, and survived.

use e2e::daemon::{Daemon, Home};
use serde_json::{Value, json};

/// A home whose model says one thing for ever.
fn home() -> Home {
    let home = Home::new();
    home.script(&json!({"loop": true, "steps": [[{"text": "said"}]]}));
    home
}

/// Runs a statement on the database from outside.
#[track_caller]
fn sql(home: &Home, statement: &str) {
    let script = "import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1])\ndb.executescript(sys.argv[2])\ndb.close()";
    let ran = e2e::command("python3").args(["-c", script]).arg(home.state().join("agentd.db")).arg(statement).output();
    let ran = ran.unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

fn session_with_a_turn(daemon: &Daemon) -> String {
    let mut client = daemon.connect();
    let session = client.session(&daemon.home.work());
    assert_eq!(client.turn(&session, "go")["state"], "completed");
    session
}

#[test]
fn the_doctor_finds_what_was_changed_and_says_where() {
    let daemon = home().start();
    let (bad, good) = (session_with_a_turn(&daemon), session_with_a_turn(&daemon));
    let well = daemon.home.ctl(&["doctor"]);
    assert!(well.status.success(), "{well:?}");
    let change = format!(
        "DROP TRIGGER event_never_changes; UPDATE event SET ts = ts + 1 WHERE session_id = '{bad}' AND seq = 3;"
    );
    sql(&daemon.home, &change);
    let ill = daemon.home.ctl(&["doctor", "--json"]);
    assert_eq!(ill.status.code(), Some(1), "{ill:?}");
    let found: Value = serde_json::from_slice(&ill.stdout).unwrap();
    let of = |id: &str| found["sessions"].as_array().unwrap().iter().find(|it| it["sessionId"] == id).unwrap().clone();
    assert_eq!(of(&bad)["brokenAt"], 3);
    assert_eq!(of(&good)["sound"], true);
    let text = String::from_utf8(daemon.home.ctl(&["doctor"]).stdout).unwrap();
    assert!(text.contains(&bad) && text.contains("damaged at event 3"), "{text}");
}
