//! A damaged database is kept, replaced, and what can be saved of it is saved.

use std::os::unix::fs::FileExt;

use protocol::EventBody;

use crate::store::tests::house::{House, entry, notice, session};

use super::*;

fn overwrite(path: &Path, at: u64, len: usize) {
    fs::File::options().write(true).open(path).unwrap().write_all_at(&vec![0x5a; len], at).unwrap();
}

#[tokio::test]
async fn a_replacement_that_a_crash_cut_off_is_finished_and_no_old_log_comes_into_it() {
    let house = House::new();
    let owner = house.session().await;
    let copy = house.store.back_up().unwrap();
    house.tell(&owner, vec![notice("after the copy")]).await;
    // As after a kill: the copy stands ready, the old database has its log of writes still.
    let ready = house.dir.path().join("agentd.db.ready");
    std::fs::copy(&copy, &ready).unwrap();
    let wal = house.dir.path().join("agentd.db-wal");
    let left = std::fs::read(&wal).unwrap();
    house.store.close().await;
    std::fs::write(&wal, left).unwrap();
    let store = Store::open_or_rescue(&house.path()).unwrap();
    assert_eq!(store.session(owner.id).await.unwrap().unwrap().last_seq, 1, "what the copy has, and nothing else");
    assert!(!ready.exists());
    store.verify_chain(owner.id).await.unwrap();
}

#[tokio::test]
async fn without_a_copy_a_new_database_takes_the_place_of_a_damaged_one() {
    let house = House::new();
    let session = house.session().await;
    house.store.close().await;
    overwrite(&house.path(), 0, 64);
    let store = Store::open_or_rescue(&house.path()).unwrap();
    let rescue = store.rescue().unwrap();
    assert_eq!((&rescue.restored, rescue.salvaged), (&None, 0));
    assert!(!rescue.lost.is_empty());
    assert!(rescue.moved_to.join("agentd.db").exists());
    assert_eq!(store.session(session.id).await.unwrap(), None);
    store.close().await;
    assert_eq!(Store::open_or_rescue(&house.path()).unwrap().rescue(), None, "once is enough");
}

#[tokio::test]
async fn the_newest_sound_copy_takes_its_place() {
    let house = House::new();
    let session = house.session().await;
    let good = house.store.back_up().unwrap();
    let bad = house.store.back_up().unwrap();
    overwrite(&bad, 0, 64);
    house.store.close().await;
    overwrite(&house.path(), 0, 64);
    let store = Store::open_or_rescue(&house.path()).unwrap();
    assert_eq!(store.rescue().unwrap().restored, Some(good));
    assert_eq!(store.session(session.id).await.unwrap().unwrap().last_seq, 1);
    assert!(bad.exists(), "nothing is deleted");
}

#[tokio::test]
async fn what_still_chains_of_the_newer_events_is_added_to_the_copy() {
    let house = House::new();
    let (whole, cut, fresh) = (house.session().await, house.session().await, session("later"));
    house.store.back_up().unwrap();
    house.tell(&whole, (0..20).map(|_| notice("kept")).collect()).await;
    house.tell(&cut, (0..20).map(|_| notice("kept")).collect()).await;
    house.store.append(entry(&fresh, 1, vec![EventBody::SessionCreated { session: fresh.clone() }])).await.unwrap();
    house.store.close().await;
    let db = Connection::open(house.path()).unwrap();
    let change = format!(
        "DROP TRIGGER event_never_changes; UPDATE event SET payload = '{{}}' WHERE seq = 9 AND session_id = '{}'",
        cut.id
    );
    db.execute_batch(&change).unwrap();
    drop(db);
    let rescue = rescue(&house.path(), "for a test".into()).unwrap();
    assert_eq!(rescue.salvaged, 20 + 7 + 1);
    assert_eq!(rescue.lost, [format!("session {} from event 9 on", cut.id)]);
    let store = Store::open(&house.path()).unwrap();
    for (session, last) in [(&whole, 21), (&cut, 8), (&fresh, 1)] {
        assert_eq!(store.session(session.id).await.unwrap().unwrap().last_seq, last);
        store.verify_chain(session.id).await.unwrap();
    }
}
