//! Several clients of one daemon: whoever is slow, gone or rude costs nobody else anything, and nobody misses anything.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};

use e2e::client::Client;
use e2e::daemon::{Daemon, Home};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// A session whose events are as many and as large as a test wants, and cost nothing else: while its turn waits for
/// consent, each change of a message in its queue is one event that holds that message.
struct Emitter {
    client: Client,
    session: String,
    queued: Value,
}

impl Emitter {
    fn new(daemon: &Daemon) -> Self {
        let mut client = daemon.connect();
        let session = client.session(&daemon.home.work());
        let start = |input: &str, delivery: &str| json!({"sessionId": session, "input": input, "delivery": delivery});
        client.ok("turn/start", &start("run echo hi", "start"));
        client.ok("turn/wait", &json!({"sessionId": session, "until": "approval"}));
        let queued = client.ok("turn/start", &start("later", "queue"))["turnId"].clone();
        Self { client, session, queued }
    }

    fn emit(&mut self, bytes: usize) {
        self.client.request("queue/update", &json!({"turnId": self.queued, "input": "x".repeat(bytes)}));
        // As text: what is megabytes long takes a debug build long to read.
        let answer = self.client.line().unwrap();
        assert!(answer.contains("\"result\":{"), "{}", beginning(&answer));
    }

    fn subscribed(&self, daemon: &Daemon) -> Client {
        let mut client = daemon.connect();
        client.subscribe(&self.session, &json!({"kind": "live"}));
        client
    }
}

fn rss_mib(client: &mut Client) -> u64 {
    client.ok("daemon/status", &json!({}))["memoryBytes"].as_u64().unwrap() >> 20
}

fn seqs(events: &[Value]) -> Vec<u64> {
    events.iter().filter_map(|event| event["seq"].as_u64()).collect()
}

/// The numbers of the emitter's events, up to that one.
fn until(client: &mut Client, last: u64) -> Vec<u64> {
    let mut seqs = Vec::new();
    while seqs.last() != Some(&last) {
        let line = client.line().unwrap();
        if line.contains("\"queue.changed\"") {
            let (_, seq) = line.rsplit_once("\"seq\":").unwrap();
            seqs.push(seq[..seq.find(|it: char| !it.is_ascii_digit()).unwrap()].parse().unwrap());
        }
    }
    seqs
}

fn beginning(line: &str) -> &str {
    &line[..line.floor_char_boundary(300)]
}

#[test]
fn a_client_that_does_not_read_costs_others_nothing_and_the_daemon_little_and_misses_nothing() {
    let daemon = Daemon::start();
    let mut emitter = Emitter::new(&daemon);
    let mut stalled: Vec<Client> = (0..2).map(|_| emitter.subscribed(&daemon)).collect();
    let mut reader = emitter.subscribed(&daemon);
    let first = emitter.client.ok("session/get", &json!({"sessionId": emitter.session}))["seq"].as_u64().unwrap() + 1;
    let last = first + 49;
    emitter.emit(1 << 20);
    let before = rss_mib(&mut emitter.client);
    let read = std::thread::spawn(move || until(&mut reader, last));
    for _ in 1..50 {
        emitter.emit(1 << 20);
    }
    let all: Vec<u64> = (first..=last).collect();
    assert_eq!(read.join().unwrap(), all, "who reads sees all at once");
    // Those who come back from far behind, and read no more than a beginning, are as cheap.
    let cursor = cursor(&mut emitter.client, &emitter.session, first);
    for _ in 0..2 {
        let mut client = daemon.connect();
        client.subscribe(&emitter.session, &json!({"kind": "cursor", "cursor": cursor}));
        client.line().unwrap();
        stalled.push(client);
    }
    let grown = rss_mib(&mut emitter.client).saturating_sub(before);
    assert!(grown < 80, "{grown} MiB more, where queues without an end would hold 200");
    for (number, client) in stalled.iter_mut().enumerate() {
        let seen = until(client, last);
        assert_eq!(seen, if number < 2 { &all } else { &all[2..] }, "who reads late misses nothing");
    }
}

/// A number that is not easily foreseen, the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

#[test]
fn whoever_is_cut_off_fifty_times_and_resumes_sees_each_event_once_and_what_still_asks() {
    const TURNS: u64 = 25;
    let daemon = Daemon::start();
    let mut driver = daemon.connect();
    let session = driver.session(&daemon.home.work());
    let (id, first) = (session.clone(), driver.history(&session)[0].clone());
    let driving = std::thread::spawn(move || {
        for turn in 0.. {
            let started = driver.ok("turn/start", &json!({"sessionId": id, "input": format!("run echo {turn}")}));
            driver.ok("turn/wait", &json!({"sessionId": id, "until": "approval"}));
            let asked = driver.ok("approval/list", &json!({}))["approvals"][0].clone();
            if turn == TURNS {
                return asked;
            }
            driver.ok("approval/respond", &json!({"approvalId": asked["id"], "decision": "allow"}));
            driver.ended(&id, &started["turnId"]);
        }
        unreachable!("it returns before");
    });
    let mut dice = Dice(7);
    let mut seen = vec![first];
    for cut in 0..50 {
        let mut client = daemon.connect();
        client.subscribe(&session, &json!({"kind": "cursor", "cursor": seen.last().unwrap()["cursor"]}));
        // Now and then it is cut off again before it has seen anything.
        let wanted = if cut % 7 == 0 { 0 } else { dice.below(9) };
        for _ in 0..wanted {
            seen.extend(Some(client.event()).filter(|event| event["seq"].is_number()));
        }
        client.cut(usize::try_from(dice.below(300)).unwrap());
    }
    let mut client = daemon.connect();
    client.subscribe(&session, &json!({"kind": "cursor", "cursor": seen.last().unwrap()["cursor"]}));
    let asked = driving.join().unwrap();
    let is_last = |event: &Value| event["data"]["approval"]["id"] == asked["id"];
    if !seen.iter().any(is_last) {
        seen.extend(client.events_until(is_last).into_iter().filter(|event| event["seq"].is_number()));
    }
    let history = client.history(&session);
    assert_eq!(seen[..], history[..seen.len()], "no gap, no double, and the very events");
    let open = seen.iter().rfind(|event| event["type"] == "approval.requested").unwrap();
    assert_eq!(open["data"]["approval"], asked, "what asks can be seen");
    // So it can by who comes behind that event, or knows nothing.
    for from in [json!({"kind": "snapshot"}), json!({"kind": "cursor", "cursor": history.last().unwrap()["cursor"]})] {
        let mut late = daemon.connect();
        late.subscribe(&session, &from);
        assert_eq!(late.ok("approval/list", &json!({"sessionId": session}))["approvals"], json!([asked]), "{from}");
    }
}

/// Two who watch, and one who comes late and is told what is open; the first settles it in one of the ways that there
/// are, all see it vanish, with who did it, and nobody can answer any more.
#[track_caller]
fn check_settled(way: &str, state: &str, ran: bool) {
    let home = Home::new();
    home.settings(
        &json!({"model": "offline/rules", "approvals": {"expireAfterSecs": if way == "expire" { 1 } else { 3600 }}}),
    );
    let daemon = home.start();
    let mut first = daemon.connect();
    first.ok("initialize", &json!({"client": {"name": "first"}}));
    let session = first.session(&daemon.home.work());
    let mut second = daemon.connect();
    second.subscribe(&session, &json!({"kind": "live"}));
    let start = json!({"sessionId": session, "input": "run echo ran >> ledger"});
    let turn = first.ok("turn/start", &start)["turnId"].clone();
    let asked = second.event_of("approval.requested")["data"]["approval"].clone();
    let mut third = daemon.connect();
    third.subscribe(&session, &json!({"kind": "snapshot"}));
    if way != "expire" {
        assert_eq!(third.event_of("approval.requested")["data"]["approval"], asked, "{way}");
    }
    let answer = |decision: &str| json!({"approvalId": asked["id"], "decision": decision});
    match way {
        "interrupt" => drop(first.ok("turn/interrupt", &json!({"sessionId": session}))),
        "expire" => {}
        decision => drop(first.ok("approval/respond", &answer(decision))),
    }
    for watcher in [&mut second, &mut third] {
        let settled = watcher.event_of("approval.resolved")["data"]["approval"].clone();
        assert_eq!((&settled["id"], &settled["state"]), (&asked["id"], &json!(state)), "{way}");
        let by = &settled["resolution"]["by"];
        let expected = if way == "expire" { by["policy"].is_string() } else { by.to_string().contains("first") };
        assert!(expected, "{way}: who did it is not in {settled}");
        let late = watcher.call("approval/respond", &answer("allow")).unwrap_err();
        assert_eq!(late["data"]["kind"], "approval_resolved", "{way}");
        assert_eq!(late["data"]["resolution"], settled["resolution"], "{way}: and is told the same");
    }
    first.ended(&session, &turn);
    let mut last = daemon.connect();
    last.subscribe(&session, &json!({"kind": "snapshot"}));
    let events = last.events_until(|event| event["type"] == "stream.synced");
    assert!(events.iter().all(|event| event["type"] != "approval.requested"), "{way}: {events:?}");
    assert_eq!(daemon.home.work().join("ledger").exists(), ran, "{way}");
}

#[test]
fn what_was_settled_elsewhere_vanishes_everywhere_with_who_did_it() {
    check_settled("allow", "allowed", true);
    check_settled("deny", "denied", false);
    check_settled("cancel_turn", "cancelled", false);
    check_settled("interrupt", "cancelled", false);
    check_settled("expire", "expired", false);
}

/// A client with a process of its own that follows the session; what it hears fills its pipe and no more is taken.
fn watching(daemon: &Daemon, session: &str) -> Child {
    let mut process = daemon.home.command("agentctl").args(["watch", session]).stdout(Stdio::piped()).spawn().unwrap();
    // The first that comes is that it is up to date.
    process.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    process
}

/// Waits until the daemon has that many connections.
fn connected(client: &mut Client, count: usize) {
    e2e::eventually("those who are gone to be forgotten", || {
        (client.ok("daemon/status", &json!({}))["clients"] == count).then_some(())
    });
}

fn signal(process: &Child, signal: Signal) {
    kill_process(Pid::from_child(process), signal).unwrap();
}

#[test]
fn clients_that_are_killed_in_mid_line_or_stopped_hurt_nobody() {
    let daemon = Daemon::start();
    let mut emitter = Emitter::new(&daemon);
    let (session, mut bystander) = (emitter.session.clone(), daemon.connect());
    // One process does not run for the whole time.
    let mut stopped = watching(&daemon, &session);
    signal(&stopped, Signal::STOP);
    for round in 0..20 {
        let mut processes: Vec<Child> = (0..5).map(|_| watching(&daemon, &session)).collect();
        // Far more than their pipes hold: each is in the middle of a line.
        emitter.emit(300_000);
        for process in &mut processes {
            process.stdout.as_mut().unwrap().read_exact(&mut [0; 4096]).unwrap();
            signal(process, Signal::KILL);
            process.wait().unwrap();
        }
        assert_eq!(bystander.ok("ping", &json!({})), json!({}), "round {round}");
    }
    // The emitter, the bystander and who is stopped.
    connected(&mut bystander, 3);
    signal(&stopped, Signal::CONT);
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(stopped.stdout.take().unwrap()));
    let last = bystander.ok("session/get", &json!({"sessionId": session}))["seq"].as_u64().unwrap();
    // Of the first line a byte has been read.
    let mut missed = lines.by_ref().skip(1).map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    assert!(missed.any(|event| event["seq"] == last), "who was stopped reads on to the end");
    stopped.kill().unwrap();
    stopped.wait().unwrap();
}

/// What a client does that has not read the protocol, or means no good.
fn rude(daemon: &Daemon, act: &str, session: &str) -> Option<UnixStream> {
    let mut stream = UnixStream::connect(daemon.home.socket()).unwrap();
    let ask = |method: &str| {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{{\"sessionId\":\"{session}\"}}}}\n")
    };
    let said = match act {
        "says nothing" => Vec::new(),
        "half a frame" => br#"{"jsonrpc":"2.0","id":1,"method":"pi"#.to_vec(),
        "half a frame of half a letter" => b"{\"jsonrpc\":\"2.0\",\"id\":\"\xc3".to_vec(),
        "no UTF-8" => b"\xff\xfe\x00{}\n".repeat(1000),
        "nothing but newlines" => b"\n".repeat(1 << 20),
        "a huge line" => vec![b'x'; 100 << 20],
        "deep nesting" => b"[".repeat(1 << 20),
        "follows and never reads" => ask("session/subscribe").into_bytes(),
        "asks and never reads" => ask("session/history").repeat(500).into_bytes(),
        other => panic!("{other} is no act"),
    };
    // The daemon may close the connection in the middle, or read no further.
    stream.set_write_timeout(Some(std::time::Duration::from_millis(500))).unwrap();
    let _as_far_as_it_goes = stream.write_all(&said);
    act.contains("reads").then_some(stream)
}

#[test]
fn clients_that_vanish_or_talk_nonsense_or_never_read_hurt_nobody() {
    let daemon = Daemon::start();
    let mut emitter = Emitter::new(&daemon);
    let (session, mut bystander) = (emitter.session.clone(), daemon.connect());
    let mut watcher = emitter.subscribed(&daemon);
    let acts = [
        "says nothing",
        "half a frame",
        "half a frame of half a letter",
        "no UTF-8",
        "nothing but newlines",
        "a huge line",
        "deep nesting",
        "follows and never reads",
        "asks and never reads",
    ];
    let mut kept = Vec::new();
    for act in acts {
        kept.extend(rude(&daemon, act, &session));
        assert_eq!(bystander.ok("ping", &json!({})), json!({}), "{act}");
        emitter.emit(100_000);
        let last = bystander.ok("session/get", &json!({"sessionId": session}))["seq"].as_u64().unwrap();
        assert_eq!(until(&mut watcher, last).last(), Some(&last), "{act}");
    }
    drop(kept);
    // The bystander, the emitter and its watcher.
    connected(&mut bystander, 3);
}

/// Adds events to the end of a session's journal, from outside and as the daemon would have: what a long life leaves.
fn grow(home: &Home, session: &str, more: impl Iterator<Item = (&'static str, Value)>) {
    let mut db = rusqlite::Connection::open(home.state().join("agentd.db")).unwrap();
    let tx = db.transaction().unwrap();
    let head = "SELECT seq, hash, payload FROM event WHERE session_id = ?1 ORDER BY seq DESC LIMIT 1";
    let (mut seq, mut hash, payload): (i64, Vec<u8>, String) =
        tx.query_row(head, [session], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    let mut event: Value = serde_json::from_str(&payload).unwrap();
    let epoch = event["cursor"].as_str().unwrap().rsplit_once('.').unwrap().0.to_owned();
    let ts = "SELECT ts FROM event WHERE session_id = ?1 AND seq = ?2";
    let ts: i64 = tx.query_row(ts, (session, seq), |row| row.get(0)).unwrap();
    for (kind, data) in more {
        seq += 1;
        (event["type"], event["data"], event["seq"]) = (json!(kind), data, json!(seq));
        event["cursor"] = json!(format!("{epoch}.{seq}"));
        let payload = event.to_string();
        let next = blake3::Hasher::new().update(&hash).update(payload.as_bytes()).finalize().as_bytes().to_vec();
        tx.prepare_cached("INSERT INTO event VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")
            .and_then(|mut insert| insert.execute((session, seq, kind, ts, &hash, &next, payload)))
            .unwrap();
        hash = next;
    }
    tx.execute("UPDATE session SET last_seq = ?2 WHERE id = ?1", (session, seq)).unwrap();
    tx.commit().unwrap();
}

#[test]
fn a_huge_history_comes_in_pages_and_the_connection_and_its_other_subscriptions_live_on() {
    const EVENTS: u64 = 30_000;
    const HUGE: u64 = 12 << 20;
    let mut daemon = Daemon::start();
    let session = daemon.connect().session(&daemon.home.work());
    let first = daemon.connect().history(&session).len() as u64;
    daemon.terminate();
    let result = json!({"type": "tool_result", "toolUseId": "call_1", "content": "x".repeat(HUGE as usize)});
    let message = json!({"id": uuid::Uuid::now_v7(), "role": "tool", "content": [result]});
    let notice = |number| ("notice", json!({"level": "info", "text": format!("notice {number}")}));
    let huge = EVENTS / 2;
    let more = (first + 1..=EVENTS)
        .map(|seq| if seq == huge { ("message", json!({"message": message})) } else { notice(seq) });
    grow(&daemon.home, &session, more);
    let daemon = daemon.restart();
    let mut emitter = Emitter::new(&daemon);
    let mut client = emitter.subscribed(&daemon);
    assert_eq!(client.ok("daemon/verify", &json!({"sessionId": session}))["sound"], true);
    // Forwards, and backwards: each page is of a size that can be borne, all of them are the whole.
    for (towards, start) in [("after", 0), ("before", EVENTS + 1)] {
        let (mut place, mut all) = (json!(start), Vec::new());
        while !place.is_null() {
            let before = client.bytes;
            let page = client.ok("session/history", &json!({"sessionId": session, towards: place, "limit": 10_000}));
            assert!(client.bytes - before < 20 << 20, "{towards} {place}: {} bytes", client.bytes - before);
            let mut seqs = seqs(page["events"].as_array().unwrap());
            assert!(!seqs.is_empty() && seqs.len() <= 10_000, "{towards} {place}");
            if towards == "before" {
                seqs.reverse();
            }
            all.extend(seqs);
            place = page["nextSeq"].clone();
            emitter.emit(10);
            client.event_of("queue.changed");
        }
        if towards == "before" {
            all.reverse();
        }
        assert!(all.iter().copied().eq(1..=EVENTS), "{towards}: {} events", all.len());
    }
    // All of it as a stream, and what the other one has to say in between.
    let start = cursor(&mut client, &session, 1);
    let id = client.subscribe(&session, &json!({"kind": "cursor", "cursor": start}));
    emitter.emit(10);
    let (mut next, mut others) = (2, 0);
    while next <= EVENTS || others == 0 {
        let line = client.line().unwrap();
        let head = beginning(&line);
        if head.contains("queue.changed") {
            others += 1;
        } else if head.contains(&format!("\"subscription\":\"{id}\"")) && !head.contains("stream.synced") {
            assert!(line.contains(&format!("\"seq\":{next},")), "{next} is missing before {head}");
            next += 1;
        }
    }
    assert_eq!(client.ok("ping", &json!({})), json!({}));
}

/// The cursor of an event.
fn cursor(client: &mut Client, session: &str, seq: u64) -> Value {
    client.ok("session/history", &json!({"sessionId": session, "after": seq - 1, "limit": 1}))["events"][0]["cursor"]
        .clone()
}

#[test]
fn an_event_that_cannot_be_read_ends_its_own_stream_and_no_other() {
    let mut daemon = Daemon::start();
    let mut client = daemon.connect();
    let session = client.session(&daemon.home.work());
    client.turn(&session, "hello");
    let start = cursor(&mut client, &session, 1);
    daemon.terminate();
    let db = rusqlite::Connection::open(daemon.home.state().join("agentd.db")).unwrap();
    db.execute_batch("DROP TRIGGER event_never_changes").unwrap();
    db.execute("UPDATE event SET payload = '{\"broken\n' WHERE session_id = ?1 AND seq = 4", [&session]).unwrap();
    drop(db);
    let daemon = daemon.restart();
    let mut emitter = Emitter::new(&daemon);
    let mut client = emitter.subscribed(&daemon);
    // By itself, and as a page that ends before it.
    let page = |after: u64| json!({"sessionId": session, "after": after});
    let error = client.call("session/history", &page(3)).unwrap_err();
    assert_eq!(error["data"]["kind"], "storage_error");
    assert!(error["message"].as_str().unwrap().ends_with("is damaged at event 4"), "{error}");
    let before = client.ok("session/history", &page(0));
    assert_eq!((seqs(before["events"].as_array().unwrap()), &before["nextSeq"]), (vec![1, 2, 3], &json!(3)));
    assert_eq!(seqs(client.ok("session/history", &page(4))["events"].as_array().unwrap())[0], 5, "the rest is there");
    // As a stream: it ends with a word, and the other goes on.
    client.subscribe(&session, &json!({"kind": "cursor", "cursor": start}));
    let events = client.events_until(|event| event["type"] == "notice" && event["sessionId"] == session.as_str());
    let of_it: Vec<Value> = events.into_iter().filter(|event| event["sessionId"] == session.as_str()).collect();
    assert_eq!(seqs(&of_it), [2, 3]);
    let said = of_it.last().unwrap()["data"]["text"].as_str().unwrap().to_owned();
    assert!(said.contains("events after 3 cannot be read") && said.contains("event 4"), "{said}");
    emitter.emit(10);
    client.event_of("queue.changed");
    assert_eq!(client.ok("ping", &json!({})), json!({}));
}
