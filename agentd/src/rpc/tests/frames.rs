//! What a hostile or broken client sends, and what it does to the others: nothing.

use serde_json::json;

use super::{Peer, Rig, check_error};

async fn check_alive(peer: &mut Peer) {
    assert_eq!(peer.ask("sum", &json!([1, 2])).await, 3);
}

#[tokio::test]
async fn a_bad_line_gets_its_error_and_the_connection_goes_on() {
    let cases: [(&[u8], i64, &str); 11] = [
        (b"\xff\xfe{}\n", -32700, "parse_error"),
        (b"{\"jsonrpc\":\"2.0\",\"method\":\"a\xff\",\"id\":1}\n", -32700, "parse_error"),
        (b"\x00\x01\x02\n", -32700, "parse_error"),
        (b"hello\n", -32700, "parse_error"),
        (b"{} {}\n", -32700, "parse_error"),
        (b"42\n", -32600, "invalid_request"),
        (b"{\"jsonrpc\":\"1.0\",\"method\":\"sum\",\"id\":1}\n", -32600, "invalid_request"),
        (b"{\"method\":\"sum\",\"id\":1}\n", -32600, "invalid_request"),
        (b"{\"jsonrpc\":\"2.0\",\"method\":\"sum\",\"id\":{}}\n", -32600, "invalid_request"),
        (b"{\"jsonrpc\":\"2.0\",\"method\":\"sum\",\"method\":\"sum\",\"id\":1}\n", -32600, "invalid_request"),
        (b"{\"jsonrpc\":\"2.0\",\"method\":\"sum\",\"params\":7,\"id\":1}\n", -32600, "invalid_request"),
    ];
    let rig = Rig::new();
    let mut peer = rig.connect();
    for (bytes, code, kind) in cases {
        peer.send_bytes(bytes).await;
        check_error(&peer.line().await, code, kind);
        check_alive(&mut peer).await;
    }
}

#[tokio::test]
async fn deep_nesting_is_an_error_and_not_a_stack_overflow() {
    let rig = Rig::new();
    let mut peer = rig.connect();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(peer.call(&deep).await[0]["error"]["code"], -32600);
    let answer = peer.call(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tell","params":{deep}}}"#)).await;
    check_error(&answer, -32602, "invalid_params");
    check_alive(&mut peer).await;
}

#[tokio::test]
async fn carriage_returns_blank_lines_and_a_last_line_without_its_newline_are_fine() {
    let rig = Rig::new();
    let mut peer = rig.connect();
    peer.send_bytes(b"\r\n\n  \n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sum\",\"params\":[1]}\r\n").await;
    peer.send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"sum\",\"params\":[2]}").await;
    peer.close_writing().await;
    assert_eq!(peer.line().await["result"], 1);
    assert_eq!(peer.line().await["result"], 2);
    assert_eq!(peer.rest().await, "");
}

#[tokio::test]
async fn http_and_tls_are_turned_away_on_their_first_bytes() {
    let rig = Rig::new();
    let http = b"POST / HTTP/1.1\r\nHost: a\r\n\r\n{\"jsonrpc\":\"2.0\",\"method\":\"tell\",\"params\":[1]}\n";
    for bytes in [http.as_slice(), b"\x16\x03\x01\x00\xa5\x01\x00"] {
        let mut peer = rig.connect();
        peer.send_bytes(bytes).await;
        check_error(&peer.line().await, -32600, "invalid_request");
        assert_eq!(peer.text().await, None);
    }
    assert!(rig.house.told.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_line_over_the_limit_is_refused_while_it_comes_and_closes_only_its_own_connection() {
    let rig = Rig::new();
    let (mut bad, mut good) = (rig.connect(), rig.connect());
    let megabyte = vec![b'x'; 1 << 20];
    for _ in 0..16 {
        bad.send_bytes(&megabyte).await;
        check_alive(&mut good).await;
    }
    bad.send_bytes(b"over").await;
    let answer = bad.line().await;
    check_error(&answer, -32006, "frame_too_large");
    assert_eq!(answer["id"], json!(null));
    assert_eq!(bad.text().await, None);
    check_alive(&mut good).await;
}

#[tokio::test]
async fn a_large_request_within_the_limit_is_answered() {
    let rig = Rig::new();
    let mut peer = rig.connect();
    assert_eq!(peer.ask("tell", &json!(["x".repeat(12 << 20)])).await, 1);
}

#[tokio::test]
async fn half_a_line_from_a_client_that_vanishes_leaves_nothing_behind() {
    let rig = Rig::new();
    let mut good = rig.connect();
    for _ in 0..50 {
        let mut peer = rig.connect();
        peer.send_bytes(b"{\"jsonrpc\":\"2.0\",\"meth").await;
    }
    check_alive(&mut good).await;
    drop(good);
    rig.tasks.close();
    tokio::time::timeout(super::PATIENCE, rig.tasks.wait()).await.expect("a connection outlived its client");
}
