//! The same bytes, cut anywhere, give the same events.

use futures_util::stream;
use proptest::prelude::*;

use super::*;

fn timeouts() -> Timeouts {
    Timeouts { first_byte: Duration::from_secs(30), idle: Duration::from_secs(10), ..Timeouts::default() }
}

fn bytes(pieces: Vec<Vec<u8>>) -> ByteStream {
    stream::iter(pieces).map(|piece| Ok(Bytes::from(piece))).boxed()
}

async fn read(mut events: Events) -> Vec<Result<String, String>> {
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        seen.push(event.map_err(|fault| fault.to_string()));
    }
    seen
}

fn run(pieces: Vec<Vec<u8>>) -> Vec<Result<String, String>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { read(Events::new(bytes(pieces), timeouts())).await })
}

#[track_caller]
fn check(wire: &str, expected: &[&str]) {
    let expected: Vec<_> = expected.iter().map(|data| Ok((*data).to_owned())).collect();
    for wire in [wire.to_owned(), wire.replace('\n', "\r\n"), wire.replace('\n', "\r")] {
        assert_eq!(run(vec![wire.clone().into_bytes()]), expected, "whole: {wire:?}");
        assert_eq!(run(wire.bytes().map(|byte| vec![byte]).collect()), expected, "byte by byte: {wire:?}");
    }
}

#[test]
fn comments_names_and_unfinished_events_are_left_out() {
    check("data: a\n\ndata: b\n\n", &["a", "b"]);
    check(": ping\n\nevent: x\ndata: 那个 😀 é\n\n", &["那个 😀 é"]);
    check("data: one\ndata: two\n\n", &["one\ntwo"]);
    check("event: only a name\n\nretry: soon\ndata:tight\n\n", &["tight"]);
    check("data: a\n\ndata: no blank line\n", &["a"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn cuts_make_no_difference(wire in prop::collection::vec(
        prop::sample::select(vec!["data: é\n", "data:x\r\n", "\n", "\r\n", "\r", ": c\n", "id: 1\n", "data", "😀"]), 0..30),
        size in 1usize..7,
    ) {
        let wire = wire.concat().into_bytes();
        let pieces = wire.chunks(size).map(<[u8]>::to_vec).collect();
        prop_assert_eq!(run(vec![wire]), run(pieces));
    }
}

#[test]
fn an_endless_event_is_refused_and_many_small_ones_are_not() {
    let endless = (0..17).map(|_| vec![b'x'; 1 << 20]).collect();
    assert_eq!(run(endless), [Err("an event is longer than 16 MiB".to_owned())]);
    let small = format!("data: {}\r\n\r\n", "y".repeat(1 << 20)).into_bytes();
    assert_eq!(run(vec![small; 20]).len(), 20);
}

#[tokio::test(start_paused = true)]
async fn silence_has_a_longer_limit_before_the_answer_begins() {
    let silent = || Events::new(stream::pending().boxed(), timeouts());
    let started = Instant::now();
    assert!(matches!(silent().next().await, Some(Err(Fault::Silent(limit))) if limit.as_secs() == 30));
    assert_eq!(started.elapsed().as_secs(), 30);

    let one = stream::iter([Ok(Bytes::from("data: a\n\n"))]);
    let mut events = Events::new(one.chain(stream::pending()).boxed(), timeouts());
    assert!(events.next().await.unwrap().is_ok());
    events.begin();
    let started = Instant::now();
    assert!(matches!(events.next().await, Some(Err(Fault::Silent(limit))) if limit.as_secs() == 10));
    assert_eq!(started.elapsed().as_secs(), 10);
}
