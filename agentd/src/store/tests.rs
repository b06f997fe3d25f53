//! What is appended can be read back, by every way there is to ask for it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::{Actor, CallId, EventBody, Mode, SessionStatus, TodoStatus, TurnState, Usage};
use serde_json::json;

use super::*;
use house::{House, approval, at, created, entry, entry_of, new_event, notice, question, session, turn};

pub(super) mod house;

fn call(session: &Session, turn: TurnId, id: &str, state: CallState) -> CallRow {
    CallRow {
        attempt: 1,
        session: session.id,
        call_id: CallId(id.into()),
        turn,
        ordinal: 2,
        name: "bash".into(),
        class: 'X',
        state,
        started_at: Some(at(5)),
        finished_at: None,
        result: None,
        files: vec![],
    }
}

#[tokio::test]
async fn a_session_is_as_its_newest_events_tell() {
    let house = House::new();
    let first = house.session().await;
    let renamed = Session { title: "second".into(), mode: Mode::Plan, attached: 7, ..first.clone() };
    let waiting = EventBody::SessionStatus { status: SessionStatus::WaitingApproval };
    house.tell(&first, vec![EventBody::SessionUpdated { session: renamed.clone() }, waiting, notice("hi")]).await;
    let expected =
        Session { status: SessionStatus::WaitingApproval, last_seq: 4, updated_at: at(104), attached: 0, ..renamed };
    assert_eq!(house.store.session(first.id).await.unwrap(), Some(expected));
    assert_eq!(house.store.session(SessionId::new()).await.unwrap(), None);
    assert_eq!(house.store.session_counts().await.unwrap(), SessionTotals { total: 1, running: 1 });
}

#[tokio::test]
async fn a_turn_keeps_its_input_and_gets_its_end() {
    let house = House::new();
    let owner = house.session().await;
    let queued = Turn { state: TurnState::Queued, ..turn(&owner) };
    let running = turn(&owner);
    let usage = Usage { input_tokens: 10, output_tokens: 3, cost_usd: Some(0.5), ..Usage::default() };
    let error: protocol::TurnError = serde_json::from_value(
        json!({"message": "it broke", "kind": "internal_error", "retryable": false, "hint": "look", "extra": 1}),
    )
    .unwrap();
    let ended = EventBody::TurnEnded { state: TurnState::Failed, usage, error: Some(error.clone()) };
    let events = vec![
        new_event(&owner, 2, Some(queued.id), EventBody::TurnQueued { turn: queued.clone() }),
        new_event(&owner, 3, Some(running.id), EventBody::TurnStarted { turn: running.clone() }),
        new_event(&owner, 4, Some(running.id), ended),
    ];
    house.store.append(entry_of(&owner, events)).await.unwrap();

    let failed = Turn { state: TurnState::Failed, ended_at: Some(at(104)), usage, error: Some(error), ..running };
    assert_eq!(house.store.turn(failed.id).await.unwrap(), Some(failed.clone()));
    assert_eq!(house.store.open_turns(owner.id).await.unwrap(), [(queued.clone(), Some(Actor::Daemon))]);
    assert_eq!(house.store.sessions_with_turn(TurnState::Running).await.unwrap(), []);
    assert_eq!(house.store.last_turn(owner.id).await.unwrap().map(|turn| turn.id), Some(failed.id));
    assert_eq!(house.store.turns(owner.id).await.unwrap(), [queued, failed]);
}

#[tokio::test]
async fn the_transcript_has_the_messages_in_order() {
    let house = House::new();
    let owner = house.session().await;
    let messages =
        [Message::user_text("hello"), Message::tool_results(vec![]), Message::user_text("ünïcode \u{1f980}")];
    for message in &messages {
        house.tell(&owner, vec![notice("between"), EventBody::Message { message: message.clone() }]).await;
    }
    assert_eq!(house.store.transcript(owner.id).await.unwrap(), messages);
}

#[tokio::test]
async fn asks_are_found_by_session_and_state() {
    let house = House::new();
    let (owner, other, turn) = (house.session().await, house.session().await, TurnId::new());
    let asked = approval(&owner, turn, ApprovalState::Pending);
    let settled = Approval { state: ApprovalState::Allowed, ..asked.clone() };
    let pending = approval(&other, turn, ApprovalState::Pending);
    let (open, closed) =
        (question(&owner, turn, QuestionState::Pending), question(&owner, turn, QuestionState::Answered));
    let ask = |approval: &Approval| EventBody::ApprovalRequested { approval: approval.clone() };
    house.tell(&owner, vec![ask(&asked), EventBody::ApprovalResolved { approval: settled.clone() }]).await;
    house.tell(&other, vec![ask(&pending)]).await;
    house.tell(&owner, vec![EventBody::QuestionRequested { question: open.clone() }]).await;
    house.tell(&owner, vec![EventBody::QuestionResolved { question: closed.clone() }]).await;

    let store = &house.store;
    assert_eq!(store.approval(asked.id).await.unwrap(), Some(settled.clone()));
    assert_eq!(store.approvals(None, Some(ApprovalState::Pending)).await.unwrap(), std::slice::from_ref(&pending));
    assert_eq!(store.approvals(Some(owner.id), None).await.unwrap(), std::slice::from_ref(&settled));
    assert_eq!(store.approvals(Some(owner.id), Some(ApprovalState::Pending)).await.unwrap(), []);
    assert_eq!(store.approvals(None, None).await.unwrap(), [settled, pending]);
    assert_eq!(store.question(open.id).await.unwrap(), Some(open.clone()));
    assert_eq!(
        store.questions(Some(owner.id), Some(QuestionState::Pending)).await.unwrap(),
        std::slice::from_ref(&open)
    );
    assert_eq!(store.questions(None, None).await.unwrap(), [open, closed]);
}

#[tokio::test]
async fn the_newest_todos_count() {
    let house = House::new();
    let owner = house.session().await;
    assert_eq!(house.store.todos(owner.id).await.unwrap(), []);
    let todo = |status| Todo { id: "1".into(), content: "test".into(), status };
    let updated = |status| EventBody::TodosUpdated { todos: vec![todo(status)] };
    house.tell(&owner, vec![updated(TodoStatus::Pending), updated(TodoStatus::Completed)]).await;
    assert_eq!(house.store.todos(owner.id).await.unwrap(), [todo(TodoStatus::Completed)]);
}

#[tokio::test]
async fn a_call_keeps_what_its_start_said_and_its_result_is_final() {
    let house = House::new();
    let (owner, turn) = (house.session().await, TurnId::new());
    let put = async |row: CallRow| {
        house.store.append(Entry { calls: vec![row], ..entry(&owner, 0, vec![]) }).await.map_err(|e| e.kind())
    };
    let started = call(&owner, turn, "call_1", CallState::Started);
    put(started.clone()).await.unwrap();
    put(call(&owner, turn, "call_2", CallState::Started)).await.unwrap();
    assert_eq!(house.store.open_calls(turn).await.unwrap().len(), 2);

    let bare = CallRow {
        ordinal: 0,
        name: String::new(),
        class: ' ',
        started_at: None,
        finished_at: Some(at(9)),
        result: Some("{}".into()),
        ..call(&owner, turn, "call_1", CallState::Finished)
    };
    put(bare.clone()).await.unwrap();
    let finished =
        CallRow { state: CallState::Finished, finished_at: Some(at(9)), result: Some("{}".into()), ..started.clone() };
    assert_eq!(house.store.calls(turn).await.unwrap()[0], finished);
    let open = house.store.open_calls(turn).await.unwrap();
    assert_eq!(open, [call(&owner, turn, "call_2", CallState::Started)]);
    assert_eq!(put(started).await, Err("refused"));
    assert_eq!(put(bare).await, Err("refused"));
}

#[tokio::test]
async fn a_client_message_id_is_good_once_in_its_session() {
    let house = House::new();
    let (owner, other) = (house.session().await, house.session().await);
    let receipt = |session: &Session, hash: &str| ReceiptRow {
        session: session.id,
        client_message_id: "m1".into(),
        payload_hash: hash.into(),
        turn_id: TurnId::new(),
        state: TurnState::Running,
        seq: 2,
    };
    let put = async |session: &Session, seq, row: &ReceiptRow| {
        let entry = Entry { receipts: vec![row.clone()], ..entry(session, seq, vec![notice("sent")]) };
        house.store.append(entry).await.map_err(|e| e.kind())
    };
    let first = receipt(&owner, "aa");
    put(&owner, 2, &first).await.unwrap();
    put(&other, 2, &receipt(&other, "aa")).await.unwrap();
    assert_eq!(put(&owner, 3, &receipt(&owner, "bb")).await, Err("refused"));
    assert_eq!(house.store.receipt(owner.id, "m1").await.unwrap(), Some(first));
    assert_eq!(house.store.receipt(owner.id, "m2").await.unwrap(), None);
    // The event of the refused entry is not there either.
    assert_eq!(house.store.session(owner.id).await.unwrap().unwrap().last_seq, 2);
}

#[tokio::test]
async fn a_rule_is_granted_once_for_its_session() {
    let house = House::new();
    let (owner, other) = (house.session().await, house.session().await);
    let grant = |rule: &str, second| GrantRow { created_at: at(second), ..GrantRow::new(owner.id, "bash", rule) };
    for row in [grant("make", 5), grant("ls", 6), grant("make", 7)] {
        house.store.append(Entry { grants: vec![row], ..entry(&owner, 0, vec![]) }).await.unwrap();
    }
    assert_eq!(house.store.grants(owner.id).await.unwrap(), [grant("make", 5), grant("ls", 6)]);
    assert_eq!(house.store.grants(other.id).await.unwrap(), []);
}

#[track_caller]
fn check_titles(found: &[Session], expected: &str) {
    let titles: Vec<&str> = found.iter().map(|session| session.title.as_str()).collect();
    assert_eq!(titles.join(" | "), expected);
}

#[tokio::test]
async fn a_listing_filters_and_goes_page_by_page_from_the_newest() {
    let house = House::new();
    for (title, cwd, archived) in
        [("Fix the Ärger", "/a", false), ("old one", "/b", true), ("fix it", "/a", false), ("last", "/a", false)]
    {
        let session = Session { cwd: cwd.into(), archived, ..session(title) };
        house.store.append(entry(&session, 1, vec![created(&session)])).await.unwrap();
    }
    let all = SessionFilter { limit: 10, ..SessionFilter::default() };
    let list = async |filter: SessionFilter| house.store.sessions(filter).await.unwrap();
    check_titles(&list(all.clone()).await.0, "last | fix it | old one | Fix the Ärger");
    let cwd = Some(PathBuf::from("/a"));
    check_titles(&list(SessionFilter { cwd, ..all.clone() }).await.0, "last | fix it | Fix the Ärger");
    check_titles(&list(SessionFilter { archived: Some(true), ..all.clone() }).await.0, "old one");
    let query = Some("ärger FIX".into());
    check_titles(&list(SessionFilter { query, ..all.clone() }).await.0, "Fix the Ärger");

    let (first, cursor) = list(SessionFilter { archived: Some(false), limit: 2, ..all.clone() }).await;
    check_titles(&first, "last | fix it");
    let rest = SessionFilter { archived: Some(false), limit: 2, cursor, ..all.clone() };
    let (second, cursor) = list(rest).await;
    check_titles(&second, "Fix the Ärger");
    assert_eq!(cursor, None);
    let bad = house.store.sessions(SessionFilter { cursor: Some("moon".into()), ..all }).await.unwrap_err();
    assert_eq!(bad.kind(), "cursor");
}

#[tokio::test]
async fn a_deleted_session_leaves_no_row_behind() {
    let house = House::new();
    let (owner, kept, turn) = (house.session().await, house.session().await, turn(&house.session().await));
    for session in [&owner, &kept] {
        let turn = Turn { id: TurnId::new(), session_id: session.id, ..turn.clone() };
        let bodies = vec![
            EventBody::TurnStarted { turn: turn.clone() },
            EventBody::Message { message: Message::user_text("hello") },
            EventBody::ApprovalRequested { approval: approval(session, turn.id, ApprovalState::Pending) },
            EventBody::ApprovalResolved { approval: approval(session, turn.id, ApprovalState::Denied) },
            EventBody::QuestionRequested { question: question(session, turn.id, QuestionState::Pending) },
            EventBody::TodosUpdated { todos: vec![] },
        ];
        let receipt = ReceiptRow {
            session: session.id,
            client_message_id: "m1".into(),
            payload_hash: "aa".into(),
            turn_id: turn.id,
            state: TurnState::Running,
            seq: 2,
        };
        let entry = Entry {
            calls: vec![call(session, turn.id, "call_1", CallState::Started)],
            receipts: vec![receipt],
            grants: vec![GrantRow::new(session.id, "bash", "make")],
            workbench: WorkbenchRows {
                seen: vec![("/w/a".into(), Some(blake3::hash(b"a")))],
                directory: Some("/w".into()),
            },
            ..entry(session, 2, bodies)
        };
        house.store.append(entry).await.unwrap();
        house.store.keep_drafts(session.id, vec![("message".into(), "hel".into())]).await.unwrap();
        house.store.begin_attempt(session.id).await.unwrap();
    }
    let before = rows_of(&house.path(), owner.id);
    assert_eq!(before.len(), 15, "a table of a session is missing in {before:?}");
    assert!(before.iter().all(|(table, rows)| *rows > 0 || panic!("{table} is empty")));
    house.store.delete_session(owner.id).await.unwrap();
    assert!(rows_of(&house.path(), owner.id).iter().all(|(_, rows)| *rows == 0));
    assert_eq!(rows_of(&house.path(), kept.id), before);
    house.store.verify_chain(kept.id).await.unwrap();
}

/// How many rows of a session each table has.
fn rows_of(path: &Path, id: SessionId) -> Vec<(String, u32)> {
    let db = Connection::open(path).unwrap();
    let mut tables = db
        .prepare(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('meta') AND name NOT LIKE 'sqlite_%'",
        )
        .unwrap();
    let tables: Vec<String> = tables.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let count = |table: String| {
        let column = if table == "session" { "id" } else { "session_id" };
        let sql = format!("SELECT count(*) FROM {table} WHERE {column} = ?1");
        let rows = db.query_row(&sql, [id.to_string()], |row| row.get(0)).unwrap();
        (table, rows)
    };
    tables.into_iter().map(count).collect()
}

#[tokio::test]
async fn a_closed_store_says_so_and_opens_again_as_the_same() {
    let house = House::new();
    let owner = house.session().await;
    let unfinished = house.store.append(entry(&owner, 2, vec![notice("last words")]));
    let (stored, ()) = tokio::join!(unfinished, house.store.close());
    stored.unwrap();
    assert_eq!(house.store.session(owner.id).await.unwrap_err().kind(), "closed");
    assert_eq!(house.store.append(entry(&owner, 3, vec![notice("late")])).await.unwrap_err().kind(), "closed");
    let files = std::fs::read_dir(house.dir.path()).unwrap().map(|file| file.unwrap().file_name());
    let files: BTreeSet<_> = files.collect();
    assert_eq!(files, ["agentd.db", "agentd.reserve"].map(Into::into).into(), "the WAL was not taken in");

    let again = Store::open(&house.path()).unwrap();
    assert_eq!(again.epoch(), house.store.epoch());
    assert_ne!(again.epoch(), House::new().store.epoch());
    assert_eq!(again.session(owner.id).await.unwrap().unwrap().last_seq, 2);
}

#[tokio::test]
async fn a_read_that_panics_ends_alone() {
    let house = House::new();
    let owner = house.session().await;
    for _ in 0..4 {
        let failed = house.store.read(|_| -> Result<(), Fault> { panic!("boom") }).await.unwrap_err();
        assert_eq!(failed.kind(), "other");
    }
    assert!(house.store.session(owner.id).await.unwrap().is_some());
}

#[test]
fn every_failure_names_the_file_the_fact_and_the_next_step() {
    let file = PathBuf::from("/data/agentd.db");
    let text = StoreError::TooNew { file: file.clone(), found: 3, supported: 1 }.to_string();
    assert_eq!(
        text,
        "/data/agentd.db: has schema version 3, this agentd knows versions up to 1 \
         (hint: update agentd, or use the copy that was made before the update)"
    );
    let full = StoreError::Full { file }.to_string();
    assert!(full.starts_with("/data/agentd.db: no space") && full.contains("free some space"), "{full}");
}

#[tokio::test]
async fn the_same_bytes_come_back() {
    let house = House::new();
    let owner = house.session().await;
    // Not how we would write it: order, spaces, escapes and numbers stay as they are.
    let raw = format!(
        r#"{{ "ts":"2026-12-01T03:00:00Z","seq":2, "sessionId":"{}","type":"notice", "data":{{"text":"\u00fc 1.0e2 \/","level":"info","later":1e400}}}}"#,
        owner.id
    );
    let event = new_event(&owner, 2, None, notice("ü")).event;
    let json: Arc<str> = raw.as_str().into();
    house.store.append(entry_of(&owner, vec![NewEvent { event, json }])).await.unwrap();
    let page = house.store.history(owner.id, Some(1), None, 10).await.unwrap();
    assert_eq!((page.events[0].kind.as_str(), &*page.events[0].json), ("notice", raw.as_str()));
}

#[tokio::test]
async fn what_tools_remember_is_as_it_was_told_last() {
    let house = House::new();
    let owner = house.session().await;
    let put = async |seen: &[(&str, Option<&[u8]>)], directory: Option<&str>| {
        let seen = seen.iter().map(|(path, content)| (path.into(), content.map(blake3::hash))).collect();
        let workbench = WorkbenchRows { seen, directory: directory.map(Into::into) };
        house.store.append(Entry { workbench, ..entry(&owner, 0, vec![]) }).await.unwrap();
        house.store.workbench(owner.id).await.unwrap()
    };
    assert_eq!(put(&[], None).await, WorkbenchRows::default());
    put(&[("/w/a", Some(b"one")), ("/w/b", Some(b"two"))], Some("/w")).await;
    let kept = put(&[("/w/a", Some(b"three")), ("/w/b", None)], None).await;
    let seen = vec![("/w/a".into(), Some(blake3::hash(b"three")))];
    assert_eq!(kept, WorkbenchRows { seen, directory: Some("/w".into()) });
}
