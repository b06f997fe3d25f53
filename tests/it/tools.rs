//! Tools in a turn, where that shows more than the tool alone does.

use e2e::daemon::Home;
use serde_json::json;

#[test]
fn long_output_is_kept_whole_and_read_in_pieces_until_the_session_is_deleted() {
    let home = Home::new();
    let run = json!({"name": "bash", "input": {"description": "much", "command": "seq 1 20000"}});
    let read = json!({"name": "read_output", "input": {"description": "more", "outputId": "o1", "startByte": 50000,
        "maxBytes": 30}});
    let steps = json!([[{"toolCalls": [run]}], [{"toolCalls": [read]}], [{"text": "after"}]]);
    home.script(&json!({"steps": steps}));
    home.add_settings(&json!({"permissions": {"allow": ["bash"]}}));
    let daemon = home.start();
    let mut client = daemon.connect();
    let session = client.session(&daemon.home.work());
    assert_eq!(client.turn(&session, "go")["state"], "completed");
    let history = client.history(&session);
    let results: Vec<_> = history.iter().filter(|event| event["data"]["message"]["role"] == "tool").collect();
    let text = |place: usize| results[place]["data"]["message"]["content"][0]["content"].as_str().unwrap();
    assert!(text(0).contains("[all 108894 bytes of output are kept: read_output with outputId o1]"), "{}", text(0));
    assert!(text(0).len() <= 12_000, "{}", text(0).len());
    let all: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
    let expected = format!("[bytes 50000 to 50030 of 108894 of output o1]\n{}", &all[50_000..50_030]);
    assert!(text(1).starts_with(&expected) && text(1).contains("[more from startByte 50030 on]"), "{}", text(1));
    let kept = daemon.home.state().join("outputs").join(&session).join("o1");
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), all);
    client.ok("session/delete", &json!({"sessionId": session}));
    assert!(!kept.exists());
}
