//! Each class of call as a crash may leave it, and the ends of turns.

use jiff::Timestamp;
use protocol::{SessionId, TurnId};
use serde_json::json;

use super::*;

fn answer() -> Message {
    serde_json::from_value(json!({
        "id": protocol::MessageId::new(), "role": "assistant", "stopReason": "tool_use",
        "content": [{"type": "tool_use", "id": "c", "name": "tool", "input": {}}],
    }))
    .unwrap()
}

fn row(class: char, attempt: u32) -> CallRow {
    CallRow {
        session: SessionId::new(),
        call_id: CallId("c".into()),
        turn: TurnId::new(),
        ordinal: 0,
        name: "tool".into(),
        class,
        state: CallState::Started,
        attempt,
        started_at: Some(Timestamp::UNIX_EPOCH),
        finished_at: None,
        result: None,
        files: Vec::new(),
    }
}

/// What becomes of a begun call: the words that its result, or the note on its second run, must have.
#[track_caller]
fn check(row: CallRow, disk: &OnDisk, output: &str, expected: &str, words: &[&str]) {
    let output = HashMap::from([("c".to_owned(), output.to_owned())]);
    let found = sort(&answer(), &[row], |_| disk.clone(), &output).remove(0).2;
    let (kind, text) = match &found {
        Found::Over(part) => ("over", part),
        Found::Settled { part, .. } => ("settled", part),
        Found::Again(note) => {
            return assert!(expected == "again" && words.iter().all(|word| note.contains(word)), "{note}");
        }
        Found::NotBegun => return assert_eq!(expected, "not begun"),
    };
    let text = serde_json::to_string(text).unwrap();
    assert_eq!(kind, expected, "{text}");
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}

#[test]
fn what_reads_may_begin_again_but_not_for_ever() {
    let disk = OnDisk::Unknown(String::new());
    check(row('R', 1), &disk, "", "again", &["interrupted", "run again"]);
    check(row('R', READ_ATTEMPTS), &disk, "", "settled", &["CANCELLED", "3 times"]);
    check(row('G', 1), &disk, "", "again", &[]);
    check(row('G', GET_ATTEMPTS), &disk, "", "settled", &["CANCELLED"]);
}

#[test]
fn what_changes_files_is_settled_by_them() {
    check(row('H', 1), &OnDisk::NotApplied, "", "again", &["before this took effect"]);
    check(row('H', 1), &OnDisk::Applied, "", "settled", &["done", "\"toolUseId\":\"c\""]);
    check(row('H', 1), &OnDisk::Unknown("a.txt: abc".into()), "", "settled", &["UNKNOWN_OUTCOME", "a.txt: abc"]);
}

#[test]
fn what_may_do_anything_is_said_to_be_unknown_with_all_that_is_known() {
    let words = ["UNKNOWN_OUTCOME", "1970-01-01", "partly", "check before repeating", "so far\\n"];
    check(row('X', 1), &OnDisk::NotApplied, "so far\n", "settled", &words);
}

#[test]
fn a_result_that_was_kept_stands_and_what_never_began_is_open() {
    let part = json!({"type": "tool_result", "toolUseId": "c", "content": "mine"});
    let over = CallRow { state: CallState::Finished, result: Some(part.to_string()), ..row('X', 1) };
    check(over, &OnDisk::Applied, "", "over", &["mine"]);
    let other = CallRow { call_id: CallId("d".into()), ..row('X', 1) };
    check(other, &OnDisk::Applied, "", "not begun", &[]);
}

#[test]
fn a_turn_that_does_not_go_on_answers_all_its_calls() {
    let found = |found| vec![(CallId("c".into()), "tool".to_owned(), found)];
    let text = |message: Option<Message>| serde_json::to_string(&message).unwrap();
    assert_eq!(close(Vec::new()), None);
    assert!(text(close(found(Found::NotBegun))).contains("was not run"));
    assert!(text(close(found(Found::Again(String::new())))).contains("changed nothing"));
    let unknown = sort(&answer(), &[row('X', 1)], |_| OnDisk::Applied, &HashMap::new());
    assert!(text(close(unknown)).contains("\"synthetic\":\"unknown_outcome\""));
}

#[test]
fn a_whole_last_answer_is_the_end_of_its_turn() {
    let message = |value| serde_json::from_value::<Message>(value).unwrap();
    let said = |stop: &str| {
        message(json!({"id": protocol::MessageId::new(), "role": "assistant", "content": [], "stopReason": stop}))
    };
    let limit = Message { synthetic: Some("limit".into()), ..said("end") };
    let table = [
        (None, None),
        (Some(Message::user_text("go")), None),
        (Some(answer()), None),
        (Some(said("end")), Some(TurnState::Completed)),
        (Some(said("interrupted")), Some(TurnState::Interrupted)),
        (Some(limit), Some(TurnState::Limit)),
    ];
    for (last, expected) in table {
        assert_eq!(ended_by(last.as_ref()), expected, "{last:?}");
    }
}
