//! A copy holds what was there, is sound or is no copy, and the newest three stay.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::store::tests::house::{House, notice};

use super::*;

#[tokio::test]
async fn three_copies_stay_and_only_their_owner_can_read_them() {
    let house = House::new();
    house.session().await;
    assert!(house.store.is_backup_due());
    let copies: Vec<PathBuf> = (0..5).map(|_| house.store.back_up().unwrap()).collect();
    assert!(!house.store.is_backup_due());
    let kept = newest_first(&place(&house.path()));
    assert_eq!(kept, [copies[4].clone(), copies[3].clone(), copies[2].clone()]);
    assert_eq!(fs::metadata(&kept[0]).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_copy_of_damage_is_no_copy() {
    let house = House::new();
    let session = house.session().await;
    house.tell(&session, vec![notice("one"), notice("two")]).await;
    let db = Connection::open(house.path()).unwrap();
    db.execute_batch("DROP TRIGGER event_never_changes; UPDATE event SET ts = 5 WHERE seq = 2").unwrap();
    let error = house.store.back_up().unwrap_err();
    assert_eq!(error.kind(), "corrupt");
    assert_eq!(newest_first(&place(&house.path())), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn what_is_restored_is_what_was_copied_under_a_new_epoch() {
    let house = House::new();
    let session = house.session().await;
    house.store.back_up().unwrap();
    house.tell(&session, vec![notice("after the copy")]).await;
    let epoch = house.store.epoch().to_owned();
    house.store.close().await;
    let nothing = restore(&house.path(), Some(&house.dir.path().join("none.db"))).unwrap_err();
    assert_eq!(nothing.kind(), "refused");
    assert!(house.path().exists(), "a refusal touches nothing");
    let (_, aside) = restore(&house.path(), None).unwrap();
    let store = Store::open(&house.path()).unwrap();
    assert_eq!(store.session(session.id).await.unwrap().unwrap().last_seq, 1);
    assert_ne!(store.epoch(), epoch);
    let old = Store::open(&aside.unwrap().join("agentd.db")).unwrap();
    assert_eq!(old.session(session.id).await.unwrap().unwrap().last_seq, 2);
}
