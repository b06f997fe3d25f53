//! `agentctl chat` as a person uses it: in a terminal, with an edit that asks.

use e2e::daemon::Home;
use e2e::terminal::Terminal;

fn edit(answer: &str) -> (Home, String) {
    let home = Home::new();
    home.write("hello.txt", "good morning\n");
    let mut chat = Terminal::start(&home, &["chat"]);
    chat.see("offline");
    chat.type_in("replace \"morning\" with \"evening\" in hello.txt");
    // The whole diff stands there before anything is asked.
    chat.see("-good morning").see("+good evening");
    chat.see("yes, this once").see("? ").type_in(answer);
    chat.see("hello.txt");
    chat.see("── done");
    chat.ctrl('d');
    chat.end();
    let content = home.read("hello.txt");
    (home, content)
}

#[test]
fn a_yes_lets_the_edit_happen() {
    assert_eq!(edit("y").1, "good evening\n");
}

#[test]
fn a_no_leaves_the_file_as_it_was_and_the_model_is_told() {
    let (home, content) = edit("n not that file");
    assert_eq!(content, "good morning\n");
    let mut client = home.connect();
    let sessions = client.ok("session/list", &serde_json::json!({}));
    let session = sessions["sessions"][0]["id"].as_str().unwrap().to_owned();
    let history = client.history(&session);
    let result = history.iter().rfind(|event| event["data"]["message"]["role"] == "tool");
    let last = result.unwrap()["data"]["message"].to_string();
    assert!(last.contains("DENIED") && last.contains("not that file"), "{last}");
}

#[test]
fn an_empty_answer_means_no() {
    assert_eq!(edit("").1, "good morning\n");
}
