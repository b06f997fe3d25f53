//! The daemon dies at a named place, and whoever asks again gets the one answer.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use e2e::daemon::Home;
use serde_json::{Value, json};

#[test]
fn a_message_handed_in_again_after_a_crash_exists_once_wherever_the_crash_was() {
    for place in ["commit.before.turn.started", "commit.after.turn.started", "reply.before.turn/start"] {
        let mut home = Home::new();
        home.env.push(("AGENTD_FAILPOINTS".into(), format!("{place}=1*kill")));
        let mut daemon = home.start();
        let session = daemon.connect().session(&daemon.home.work());
        let start = json!({"sessionId": session, "input": "hello", "clientMessageId": "once"});
        let mut stream = UnixStream::connect(daemon.home.socket()).unwrap();
        let line = json!({"jsonrpc": "2.0", "id": 1, "method": "turn/start", "params": start});
        writeln!(stream, "{line}").unwrap();
        let mut answer = String::new();
        let _reset_or_end = BufReader::new(stream).read_line(&mut answer);
        assert_eq!(answer, "", "{place}: no answer came");
        assert_eq!(daemon.ended(), None, "{place}: it was killed");
        daemon.home.env.clear();
        let daemon = daemon.restart();
        let mut client = daemon.connect();
        let turns: HashSet<String> = (0..3).map(|_| client.ok("turn/start", &start)["turnId"].to_string()).collect();
        assert_eq!(turns.len(), 1, "{place}: the same receipt each time");
        let history = client.history(&session);
        let is_said = |event: &&Value| event["data"]["message"]["role"] == "user";
        assert_eq!(history.iter().filter(is_said).count(), 1, "{place}: said once");
    }
}
