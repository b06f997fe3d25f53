//! The index can be made again from the journal, and only durable events reach it.

use std::path::Path;

use protocol::{ApprovalState, Ground, QuestionState, SessionStatus, Todo, TodoStatus, TurnId};
use rusqlite::types::Value;

use crate::store::tests::house::{House, approval, entry, entry_of, new_event, notice, question, turn};

use super::*;

const INDEX: [&str; 6] = ["session", "turn", "message", "approval", "question", "todo"];

/// All rows of all tables of the index.
fn dump(path: &Path) -> Vec<(&'static str, Vec<Value>)> {
    let db = Connection::open(path).unwrap();
    let mut all = Vec::new();
    for table in INDEX {
        let mut statement = db.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            all.push((table, (0..columns).map(|column| row.get(column).unwrap()).collect()));
        }
    }
    all
}

/// One event of every durable type, and some of them twice.
fn everything(session: &Session) -> Vec<(Option<TurnId>, EventBody)> {
    let (first, second) = (turn(session), turn(session));
    let usage = Usage { input_tokens: 7, cost_usd: Some(0.25), ..Usage::default() };
    let asked = approval(session, first.id, ApprovalState::Pending);
    let settled = Approval { state: ApprovalState::Denied, ..asked.clone() };
    let question = question(session, first.id, QuestionState::Pending);
    let answered = QuestionRequest { state: QuestionState::Answered, ..question.clone() };
    let todos = vec![Todo { id: "1".into(), content: "test".into(), status: TodoStatus::Pending }];
    let updated = Session { title: "renamed".into(), archived: true, ..session.clone() };
    let bodies = vec![
        EventBody::TurnQueued { turn: Turn { state: TurnState::Queued, ..first.clone() } },
        EventBody::TurnStarted { turn: first.clone() },
        EventBody::SessionStatus { status: SessionStatus::Running },
        EventBody::Message { message: Message::user_text("hello") },
        EventBody::ToolStarted {
            tool_use_id: asked.tool_use_id.clone(),
            name: "bash".into(),
            title: "ls".into(),
            input: serde_json::json!({}),
            allowed_by: Some(Ground::Rule { rule: "bash(ls)".into() }),
        },
        EventBody::ApprovalRequested { approval: asked.clone() },
        EventBody::ApprovalResolved { approval: settled },
        EventBody::ToolFinished {
            tool_use_id: asked.tool_use_id,
            is_error: false,
            code: None,
            duration_ms: 1,
            summary: "ok".into(),
            detail: None,
            denied_by: None,
        },
        EventBody::QuestionRequested { question },
        EventBody::QuestionResolved { question: answered },
        EventBody::TodosUpdated { todos: vec![] },
        EventBody::TodosUpdated { todos },
        notice("a notice"),
        EventBody::Other { kind: "moon.rose".into(), data: serde_json::json!({"phase": 3}) },
        EventBody::TurnEnded { state: TurnState::Completed, usage, error: None },
        EventBody::SessionUpdated { session: updated },
    ];
    let mut events: Vec<_> = bodies.into_iter().map(|body| (Some(first.id), body)).collect();
    events.push((Some(second.id), EventBody::TurnStarted { turn: second }));
    events.push((None, EventBody::SessionStatus { status: SessionStatus::Idle }));
    events
}

#[tokio::test]
async fn the_index_made_again_is_the_same() {
    let house = House::new();
    let (owner, other) = (house.session().await, house.session().await);
    for session in [&owner, &other] {
        let events = (2..).zip(everything(session));
        let events = events.map(|(seq, (turn, body))| new_event(session, seq, turn, body)).collect();
        house.store.append(entry_of(session, events)).await.unwrap();
    }
    let before = dump(&house.path());
    for table in INDEX {
        assert!(before.iter().any(|(name, _)| *name == table), "{table} is empty");
    }
    let db = Connection::open(house.path()).unwrap();
    let spoil =
        "UPDATE session SET title = 'wrong', last_seq = 1; DELETE FROM message; UPDATE turn SET state = 'queued'";
    db.execute_batch(spoil).unwrap();
    assert_ne!(dump(&house.path()), before);
    house.store.rebuild(owner.id).await.unwrap();
    house.store.rebuild(other.id).await.unwrap();
    assert_eq!(dump(&house.path()), before);
}

#[tokio::test]
async fn an_index_that_cannot_be_made_again_stays_as_it_was() {
    let house = House::new();
    let owner = house.session().await;
    house.tell(&owner, vec![notice("a"), notice("b")]).await;
    let before = dump(&house.path());
    let db = Connection::open(house.path()).unwrap();
    db.execute_batch("DROP TRIGGER event_never_changes; UPDATE event SET payload = '{' WHERE seq = 2").unwrap();
    assert_eq!(house.store.rebuild(owner.id).await.unwrap_err().kind(), "corrupt");
    assert_eq!(dump(&house.path()), before);
}

#[tokio::test]
async fn what_contradicts_the_journal_is_refused_whole() {
    let house = House::new();
    let owner = house.session().await;
    let ended = EventBody::TurnEnded { state: TurnState::Completed, usage: Usage::default(), error: None };
    let table = [
        (EventBody::Snapshot { message: Message::user_text("so far"), rev: 1 }, "`snapshot` is not a durable event"),
        (EventBody::StreamSynced { seq: 1 }, "`stream.synced` is not a durable event"),
        (ended, "cannot end, it never began"),
    ];
    for (body, why) in table {
        let refused = house.store.append(entry(&owner, 2, vec![notice("before"), body])).await.unwrap_err();
        assert!(refused.kind() == "refused" && refused.to_string().contains(why), "{refused}");
        assert_eq!(house.store.session(owner.id).await.unwrap().unwrap().last_seq, 1);
    }
}
