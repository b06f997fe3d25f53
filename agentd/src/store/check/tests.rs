//! Whatever byte of the journal changes is noticed, and nothing is worse off for looking.

use std::fs;
use std::path::Path;

use protocol::EventBody;
use protocol::Message;
use rusqlite::OpenFlags;
use rusqlite::types::Value;

use crate::store::tests::house::{House, notice};

use super::*;

const FLIPS: u64 = 600;

/// The next number of a fixed row of them.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

fn open(path: &Path) -> Connection {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
}

/// The whole journal as SQLite reads it.
fn journal_of(db: &Connection) -> rusqlite::Result<Vec<Vec<Value>>> {
    let mut events = db.prepare("SELECT * FROM event ORDER BY session_id, seq")?;
    events.query_map([], |row| (0..7).map(|column| row.get(column)).collect())?.collect()
}

fn faults(db: &Connection) -> Vec<String> {
    let mut found: Vec<String> = file(db).into_iter().collect();
    match names(db) {
        Ok(names) => {
            let verdicts = names.iter().filter_map(|name| session(db, name, true));
            found.extend(verdicts.filter(|verdict| !verdict.is_sound()).map(|verdict| format!("{verdict:?}")));
        }
        Err(error) => found.push(error.to_string()),
    }
    found
}

/// A closed database with three sessions, in one file.
async fn written() -> House {
    let house = House::new();
    for _ in 0..3 {
        let session = house.session().await;
        let message = |n: usize| EventBody::Message { message: Message::user_text("what was said ".repeat(n * 9)) };
        house.tell(&session, (0..40).map(message).chain([notice("end")]).collect()).await;
    }
    house.store.close().await;
    house
}

#[tokio::test]
async fn a_sound_store_has_no_faults() {
    let house = written().await;
    assert_eq!(faults(&open(&house.path())), Vec::<String>::new());
}

#[tokio::test]
async fn a_flipped_byte_anywhere_in_the_journal_is_reported() {
    let house = written().await;
    let sound = fs::read(house.path()).unwrap();
    let before = journal_of(&open(&house.path())).unwrap();
    let copy = house.dir.path().join("flipped.db");
    let (mut state, mut changed) = (2026, 0);
    for flip in 0..FLIPS {
        let mut bytes = sound.clone();
        // Behind the header page, which the daemon's start looks at.
        let at = 4096 + usize::try_from(next(&mut state)).unwrap() % (bytes.len() - 4096);
        bytes[at] ^= u8::try_from(1 + next(&mut state) % 255).unwrap();
        fs::write(&copy, bytes).unwrap();
        let db = open(&copy);
        let is_as_before = journal_of(&db).is_ok_and(|now| now == before);
        let found = faults(&db);
        changed += u64::from(!is_as_before);
        assert!(is_as_before || !found.is_empty(), "flip {flip} at byte {at} was not noticed");
    }
    assert!(changed > FLIPS / 3, "only {changed} of {FLIPS} flips changed the journal: the test looks elsewhere");
}

#[tokio::test]
async fn a_changed_row_is_reported_with_its_session_and_number() {
    for (change, seq) in [
        ("UPDATE event SET payload = replace(payload, 'what', 'that') WHERE seq = 7", 7),
        ("UPDATE event SET type = 'notice' WHERE seq = 9", 9),
        ("UPDATE event SET ts = ts + 1 WHERE seq = 11", 11),
        ("UPDATE event SET hash = prev_hash WHERE seq = 12", 12),
        ("DELETE FROM event WHERE seq = 20", 20),
        ("DELETE FROM event WHERE seq > 30", 31),
        ("DELETE FROM event", 1),
    ] {
        let house = written().await;
        let db = Connection::open(house.path()).unwrap();
        db.execute_batch("DROP TRIGGER event_never_changes").unwrap();
        db.execute_batch(change).unwrap();
        for name in names(&db).unwrap() {
            let verdict = session(&db, &name, true).unwrap();
            assert_eq!((verdict.session, verdict.broken_at), (name, Some(seq)), "{change}");
        }
    }
}

#[tokio::test]
async fn an_index_that_says_something_else_is_reported() {
    let house = written().await;
    let db = Connection::open(house.path()).unwrap();
    db.execute_batch("UPDATE session SET title = 'another'").unwrap();
    let name = names(&db).unwrap().remove(0);
    assert!(session(&db, &name, false).unwrap().is_sound());
    let fault = session(&db, &name, true).unwrap().fault.unwrap();
    assert_eq!(fault, "the index `session` does not say what the journal says");
}
