//! Group commit: many writes share a commit, and none suffers from another.

use std::fs;
use std::sync::mpsc as blocking;

use futures_util::future::join_all;
use protocol::Session;
use tokio::task::JoinSet;

use crate::store::Store;
use crate::store::tests::house::{House, entry, notice};

use super::*;

/// Occupies the writer until the sender is used or dropped, so that what is written meanwhile has to wait.
async fn hold(store: &Store, tasks: &mut JoinSet<()>) -> blocking::Sender<()> {
    let (release, held) = blocking::channel();
    let (began, begun) = oneshot::channel();
    let holder = store.clone();
    tasks.spawn(async move {
        let once = Mutex::new(Some((began, held)));
        let write: Write = Box::new(move |_| {
            let (began, held) = once.lock().unwrap().take().unwrap();
            began.send(()).unwrap();
            let _released = held.recv();
            Ok(())
        });
        holder.inner.writer.write(write).await.unwrap();
    });
    begun.await.unwrap();
    release
}

async fn wait_for_queue(store: &Store, length: usize) {
    while QUEUE - store.inner.writer.sender.capacity() < length {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_hundred_writes_that_wait_share_two_commits() {
    let house = House::new();
    let sessions: Vec<Session> = join_all((0..10).map(|_| house.session())).await;
    let mut tasks = JoinSet::new();
    let release = hold(&house.store, &mut tasks).await;
    let before = house.store.commits();
    for session in sessions.clone() {
        let store = house.store.clone();
        tasks.spawn(async move {
            let appends = (2..12).map(|seq| store.append(entry(&session, seq, vec![notice(&seq.to_string())])));
            join_all(appends).await.into_iter().for_each(Result::unwrap);
        });
    }
    wait_for_queue(&house.store, 100).await;
    release.send(()).unwrap();
    tasks.join_all().await;
    // One of the write that held the others up, then 64 and 36.
    assert_eq!(house.store.commits() - before, 3);
    for session in sessions {
        let page = house.store.history(session.id, None, None, 100).await.unwrap();
        assert!(page.events.iter().map(|event| event.seq).eq(1..=11));
        house.store.verify_chain(session.id).await.unwrap();
    }
}

#[tokio::test]
async fn a_write_that_fails_or_panics_loses_nothing_else_of_its_group() {
    let house = House::new();
    let (one, two) = (house.session().await, house.session().await);
    let mut tasks = JoinSet::new();
    let release = hold(&house.store, &mut tasks).await;
    let before = house.store.commits();
    let panics: Write = Box::new(|tx| {
        tx.execute("DELETE FROM event", [])?;
        panic!("boom")
    });
    let wrong = entry(&one, 7, vec![notice("wrong")]);
    let (store, queue) = (&house.store, house.store.clone());
    let (first, wrong, panicked, last, ()) = tokio::join!(
        store.append(entry(&one, 2, vec![notice("first")])),
        store.append(wrong),
        store.inner.writer.write(panics),
        store.append(entry(&two, 2, vec![notice("last")])),
        async move {
            wait_for_queue(&queue, 4).await;
            release.send(()).unwrap();
        },
    );
    first.unwrap();
    last.unwrap();
    assert_eq!(wrong, Err(StoreError::Sequence { session: one.id, expected: 3, found: Some(7) }));
    assert_eq!(panicked.unwrap_err().kind(), "other");
    assert_eq!(house.store.commits() - before, 2);
    for session in [one, two] {
        assert_eq!(house.store.session(session.id).await.unwrap().unwrap().last_seq, 2);
        house.store.verify_chain(session.id).await.unwrap();
    }
}

#[tokio::test]
async fn a_full_disk_refuses_the_write_and_takes_it_once_there_is_room() {
    let house = House::new();
    let owner = house.session().await;
    let limit = |pages: u32| -> Write {
        Box::new(move |tx| Ok(tx.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?))
    };
    let long = || entry(&owner, 2, vec![notice(&"x".repeat(1_000_000))]);
    house.store.inner.writer.write(limit(1)).await.unwrap();
    assert_eq!(house.store.append(long()).await, Err(StoreError::Full { file: house.path() }));
    assert!(!house.store.broken().is_cancelled(), "there may be room again");
    assert_eq!(house.store.session(owner.id).await.unwrap().unwrap().last_seq, 1);
    house.store.inner.writer.write(limit(1_000_000)).await.unwrap();
    house.store.append(long()).await.unwrap();
    house.store.verify_chain(owner.id).await.unwrap();
}

#[tokio::test]
async fn nothing_is_acknowledged_that_went_into_a_file_which_is_gone() {
    let house = House::new();
    let owner = house.session().await;
    let gone = Err(StoreError::Unlinked { file: house.path() });
    fs::remove_file(house.path()).unwrap();
    assert_eq!(house.store.append(entry(&owner, 2, vec![notice("x")])).await, gone);
    // Another file in its place is not that file.
    fs::write(house.path(), "").unwrap();
    assert_eq!(house.store.append(entry(&owner, 2, vec![notice("x")])).await, gone);
}

#[tokio::test]
async fn a_probe_finds_a_file_that_is_gone_and_everybody_is_told() {
    let house = House::new();
    let broken = house.store.broken();
    house.store.probe().await.unwrap();
    assert!(!broken.is_cancelled());
    fs::remove_file(house.path()).unwrap();
    assert_eq!(house.store.probe().await, Err(StoreError::Unlinked { file: house.path() }));
    assert!(broken.is_cancelled() && house.store.broken().is_cancelled());
    house.store.close().await;
    assert_eq!(house.store.probe().await.unwrap_err().kind(), "closed");
}

#[tokio::test]
async fn a_file_that_was_away_is_not_written_again_when_it_is_back() {
    let house = House::new();
    let (owner, aside) = (house.session().await, house.dir.path().join("aside"));
    let gone = Err(StoreError::Unlinked { file: house.path() });
    fs::rename(house.path(), &aside).unwrap();
    assert_eq!(house.store.append(entry(&owner, 2, vec![notice("x")])).await, gone);
    fs::rename(&aside, house.path()).unwrap();
    assert_eq!(house.store.append(entry(&owner, 2, vec![notice("x")])).await, gone);
    assert_eq!(house.store.session(owner.id).await.unwrap().unwrap().last_seq, 1);
}

#[tokio::test]
async fn a_write_whose_caller_has_gone_is_done_all_the_same() {
    let house = House::new();
    let owner = house.session().await;
    let mut tasks = JoinSet::new();
    let release = hold(&house.store, &mut tasks).await;
    let (store, orphan) = (house.store.clone(), entry(&owner, 2, vec![notice("orphan")]));
    let caller = tasks.spawn(async move { store.append(orphan).await.unwrap() });
    wait_for_queue(&house.store, 1).await;
    caller.abort();
    release.send(()).unwrap();
    house.store.append(entry(&owner, 3, vec![notice("next")])).await.unwrap();
}
