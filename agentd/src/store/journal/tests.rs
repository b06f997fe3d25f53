//! Order, pages and the chain of the journal.

use protocol::SessionStatus;

use crate::store::tests::house::{House, created, entry, entry_of, new_event, notice, session};

use super::*;

#[tokio::test]
async fn only_the_next_event_of_its_own_session_is_taken() {
    let house = House::new();
    let (owner, other) = (house.session().await, house.session().await);
    let none = Event { seq: None, ..new_event(&owner, 2, None, notice("x")).event };
    let table = [
        (entry(&owner, 1, vec![notice("again")]), Some(1)),
        (entry(&owner, 3, vec![notice("gap")]), Some(3)),
        (entry_of(&owner, vec![new_event(&other, 2, None, notice("foreign"))]), Some(2)),
        (entry_of(&owner, vec![NewEvent { event: none, json: "{}".into() }]), None),
    ];
    for (wrong, found) in table {
        let refused = house.store.append(wrong).await.unwrap_err();
        assert_eq!(refused, StoreError::Sequence { session: owner.id, expected: 2, found });
    }
    let unknown = session("nobody");
    let refused = house.store.append(entry(&unknown, 1, vec![notice("x")])).await.unwrap_err();
    assert_eq!(refused.kind(), "refused");
    house.store.append(entry(&owner, 2, vec![notice("right")])).await.unwrap();
}

/// A session of ten events.
async fn ten(house: &House) -> SessionId {
    let owner = house.session().await;
    let texts = (2..=10).map(|n| notice(&format!("event {n}"))).collect();
    house.tell(&owner, texts).await;
    owner.id
}

#[tokio::test]
async fn pages_of_history_meet_without_gap_or_overlap() {
    let house = House::new();
    let id = ten(&house).await;
    let table = [
        (None, None, 4, vec![1, 2, 3, 4], Some(4)),
        (Some(4), None, 4, vec![5, 6, 7, 8], Some(8)),
        (Some(8), None, 4, vec![9, 10], None),
        (Some(10), None, 4, vec![], None),
        (None, Some(11), 4, vec![7, 8, 9, 10], Some(7)),
        (None, Some(7), 6, vec![1, 2, 3, 4, 5, 6], None),
        (None, Some(7), 5, vec![2, 3, 4, 5, 6], Some(2)),
        (Some(3), Some(6), 9, vec![4, 5], None),
    ];
    for (after, before, limit, seqs, next_seq) in table {
        let page = house.store.history(id, after, before, limit).await.unwrap();
        let found: Vec<Seq> = page.events.iter().map(|event| event.seq).collect();
        assert_eq!((found, page.next_seq), (seqs, next_seq), "{after:?} {before:?} {limit}");
    }
}

#[tokio::test]
async fn a_page_ends_at_four_mebibytes_but_holds_at_least_one_event() {
    let house = House::new();
    let owner = house.session().await;
    let sizes = [1_600_000, 1_600_000, 1_600_000, 5_000_000];
    house.tell(&owner, sizes.iter().map(|size| notice(&"x".repeat(*size))).collect()).await;
    let (mut after, mut pages) = (1, Vec::new());
    loop {
        let page = house.store.history(owner.id, Some(after), None, 100).await.unwrap();
        pages.push(page.events.len());
        let Some(next) = page.next_seq else { break };
        after = next;
    }
    assert_eq!(pages, [2, 1, 1]);
}

#[tokio::test]
async fn a_hash_covers_the_payload_and_all_that_was_before() {
    let house = House::new();
    let id = ten(&house).await;
    let db = Connection::open(house.path()).unwrap();
    let sql = "SELECT prev_hash, hash, payload FROM event WHERE session_id = ?1 ORDER BY seq";
    let mut statement = db.prepare(sql).unwrap();
    let rows = statement.query_map([Text(id)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    let mut before = [0_u8; 32];
    for row in rows {
        let (previous, hash, payload): ([u8; 32], [u8; 32], String) = row.unwrap();
        assert_eq!(previous, before);
        assert_eq!(hash, *blake3::hash(&[&before, payload.as_bytes()].concat()).as_bytes());
        before = hash;
    }
    assert_ne!(before, [0; 32]);
}

/// What damage to the file is noticed at which event.
async fn check(damage: &str, expected: Option<Seq>) {
    let house = House::new();
    let (id, other) = (ten(&house).await, ten(&house).await);
    let db = Connection::open(house.path()).unwrap();
    db.execute_batch("DROP TRIGGER event_never_changes").unwrap();
    db.execute(&format!("{damage} AND session_id = ?1"), [Text(id)]).unwrap();
    let found = match house.store.verify_chain(id).await {
        Ok(()) => None,
        Err(StoreError::Chain { session, seq, .. }) if session == id => Some(seq),
        Err(other) => panic!("{other}"),
    };
    assert_eq!(found, expected, "{damage}");
    house.store.verify_chain(other).await.unwrap();
}

#[tokio::test]
async fn the_chain_tells_where_it_was_damaged() {
    for (damage, expected) in [
        ("UPDATE event SET ts = 0 WHERE FALSE", None),
        ("UPDATE event SET payload = replace(payload, 'event 5', 'event 4') WHERE seq = 5", Some(5)),
        ("UPDATE event SET payload = CAST(CAST(payload AS BLOB) || x'ff' AS TEXT) WHERE seq = 10", Some(10)),
        ("UPDATE event SET hash = zeroblob(32) WHERE seq = 3", Some(3)),
        ("UPDATE event SET prev_hash = x'00' WHERE seq = 7", Some(7)),
        ("DELETE FROM event WHERE seq = 4", Some(4)),
        ("DELETE FROM event WHERE seq = 1", Some(1)),
        ("DELETE FROM event WHERE seq > 8", Some(9)),
        ("DELETE FROM event WHERE seq > 0", Some(1)),
    ] {
        check(damage, expected).await;
    }
}

#[tokio::test]
async fn a_chain_of_many_stretches_is_checked_to_its_end() {
    let house = House::new();
    let owner = house.session().await;
    house.tell(&owner, (0..1200).map(|n| notice(&n.to_string())).collect()).await;
    house.store.verify_chain(owner.id).await.unwrap();
    let db = Connection::open(house.path()).unwrap();
    db.execute_batch("DROP TRIGGER event_never_changes; UPDATE event SET payload = '{}' WHERE seq = 1101").unwrap();
    assert!(matches!(house.store.verify_chain(owner.id).await, Err(StoreError::Chain { seq: 1101, .. })));
}

#[tokio::test]
async fn a_stored_event_cannot_be_changed_by_accident() {
    let house = House::new();
    house.session().await;
    let db = Connection::open(house.path()).unwrap();
    let refused = db.execute("UPDATE event SET payload = '{}'", []).unwrap_err();
    assert!(refused.to_string().contains("append-only"), "{refused}");
}

#[tokio::test]
async fn an_event_that_cannot_be_read_is_told_as_damage() {
    let house = House::new();
    let owner = house.session().await;
    let db = Connection::open(house.path()).unwrap();
    db.execute_batch("DROP TRIGGER event_never_changes; UPDATE event SET payload = '{'").unwrap();
    assert_eq!(house.store.session(owner.id).await.unwrap_err().kind(), "corrupt");
    // Other sessions go on.
    let next = session("next");
    house.store.append(entry(&next, 1, vec![created(&next)])).await.unwrap();
    assert_eq!(house.store.session(next.id).await.unwrap().unwrap().status, SessionStatus::Idle);
}
