//! However a turn was cut off, the next request is one that a strict provider takes: each call has one id of its own
//! and one result, right behind it, and reasoning goes back to nobody but the model that wrote it, whole.

use e2e::client::Client;
use e2e::daemon::{Daemon, Home};
use e2e::strict::{Say, StrictModel};
use serde_json::{Value, json};

/// How a turn comes to its end.
#[derive(Clone, Copy)]
enum End {
    /// By itself, in this state.
    Itself(&'static str),
    Interrupt,
    /// The daemon is killed, and the next message is what ends the turn.
    Crash,
    /// The daemon is killed, and the turn is told to go on.
    Resume,
    /// The daemon is stopped as a service manager does it.
    Stop,
}

/// A turn that begins with "go" and is cut off.
struct Turn<'a> {
    name: &'a str,
    mode: &'a str,
    /// What the model says to "go"; to all else it says "fine".
    says: Vec<Say>,
    /// The end comes when that many events of this type that have this text in them were seen.
    reached: (&'a str, &'a str, usize),
    end: End,
    /// The calls that the history has at the end.
    calls: usize,
    /// How often a command has written into the ledger.
    ran: usize,
}

fn text(text: &str) -> Say {
    Say::Text(text.to_owned())
}

fn thinking(text: &str) -> Say {
    Say::Thinking(text.to_owned())
}

fn bash(id: &str, command: &str) -> Say {
    Say::Call { id: id.to_owned(), name: "bash", input: json!({"description": "work", "command": command}) }
}

const SLOW: &str = "echo ran >> ledger; sleep 60";
const QUICK: &str = "echo ran >> ledger";

/// A daemon with a strict model of two names.
fn daemon(model: &StrictModel) -> Daemon {
    let home = Home::new();
    let models =
        json!({"m": {"contextWindow": 200_000, "maxOutput": 4096}, "n": {"contextWindow": 200_000, "maxOutput": 4096}});
    home.settings(&json!({"model": "fake/m", "providers": {"fake":
        {"api": "anthropic", "baseUrl": model.base, "retries": {"max": 0}, "models": models}}}));
    home.start()
}

/// Answers to "go" with this, to all else with "fine".
fn model(says: Vec<Say>) -> StrictModel {
    StrictModel::start(move |messages| if asked(messages, "go") { says.clone() } else { vec![text("fine")] })
}

/// Whether the newest thing in the transcript is this message of the user.
fn asked(messages: &[Value], input: &str) -> bool {
    let newest = messages.last().and_then(|message| message["content"].as_array()?.last());
    newest.is_some_and(|block| block["text"] == input)
}

fn session(client: &mut Client, daemon: &Daemon, mode: &str) -> String {
    let shown = client.ok("session/new", &json!({"cwd": daemon.home.work(), "mode": mode}));
    shown["session"]["id"].as_str().unwrap().to_owned()
}

/// The newest request's calls and their results, in order.
fn pairs(model: &StrictModel) -> (Vec<String>, Vec<(String, String)>) {
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    for block in model.seen().last.iter().flat_map(|message| message["content"].as_array().into_iter().flatten()) {
        match block["type"].as_str() {
            Some("tool_use") => calls.push(block["id"].as_str().unwrap().to_owned()),
            Some("tool_result") => {
                let content = block["content"].as_str().unwrap().to_owned();
                results.push((block["tool_use_id"].as_str().unwrap().to_owned(), content));
            }
            _ => {}
        }
    }
    (calls, results)
}

/// All requests were valid, and the newest has so many calls, each answered once and in order. The results' texts.
#[track_caller]
fn check_requests(name: &str, model: &StrictModel, expected: usize) -> Vec<String> {
    let seen = model.seen();
    assert_eq!(seen.violations, Vec::<String>::new(), "{name}");
    let (calls, results) = pairs(model);
    let (ids, texts): (Vec<String>, Vec<String>) = results.into_iter().unzip();
    assert_eq!(ids, calls, "{name}: the results stand in the order of their calls");
    assert_eq!(calls.len(), expected, "{name}: {:?}", seen.last);
    texts
}

#[track_caller]
fn check(turn: Turn<'_>) {
    let Turn { name, mode, says, reached: (kind, part, count), end, calls, ran } = turn;
    let model = model(says);
    let mut daemon = daemon(&model);
    let mut client = daemon.connect();
    let session = session(&mut client, &daemon, mode);
    let mut watcher = daemon.connect();
    watcher.subscribe(&session, &json!({"kind": "live"}));
    let id = client.ok("turn/start", &json!({"sessionId": session, "input": "go"}))["turnId"].clone();
    for _ in 0..count {
        watcher.events_until(|event| event["type"] == kind && event.to_string().contains(part));
    }
    // A command that is said to have started has not yet written.
    if ran > 0 {
        e2e::eventually("the commands' effects", || (ledger(&daemon) == ran).then_some(()));
    }
    let state = match end {
        End::Itself(state) => state,
        End::Interrupt => {
            client.ok("turn/interrupt", &json!({"sessionId": session}));
            "interrupted"
        }
        End::Crash | End::Resume => {
            daemon.kill();
            daemon = daemon.restart();
            client = daemon.connect();
            if matches!(end, End::Resume) { "completed" } else { "recoverable" }
        }
        End::Stop => {
            daemon = daemon.restart();
            client = daemon.connect();
            "recoverable"
        }
    };
    if matches!(end, End::Resume) {
        client.ok("turn/resume", &json!({"turnId": id, "action": "continue"}));
    }
    assert_eq!(client.ended(&session, &id)["state"], state, "{name}");
    // The session lives on: with the same model, with another one, and with the first again.
    for (number, model) in ["fake/m", "fake/n", "fake/m"].iter().enumerate() {
        client.ok("session/update", &json!({"sessionId": session, "model": model}));
        assert_eq!(client.turn(&session, &format!("more {number}"))["state"], "completed", "{name}: {model}");
    }
    check_requests(name, &model, calls);
    assert_eq!(ledger(&daemon), ran, "{name}: nothing was run again");
}

/// How often a command has written.
fn ledger(daemon: &Daemon) -> usize {
    daemon.home.read("ledger").lines().filter(|line| *line == "ran").count()
}

/// Every place at which a turn can be cut off from outside.
fn places(end: End) -> Vec<Turn<'static>> {
    let place = |name, says, reached, calls, ran| Turn { name, mode: "bypass", says, reached, end, calls, ran };
    let three = || vec![thinking("three"), bash("a", SLOW), bash("b", SLOW), bash("c", SLOW)];
    let asking = Turn { mode: "ask", ..place("waiting for consent", three(), ("approval.requested", "", 3), 3, 0) };
    vec![
        place("in three calls", three(), ("tool.started", "", 3), 3, 3),
        place(
            "in one of two calls, the other has its result",
            vec![bash("a", QUICK), bash("b", SLOW)],
            ("tool.finished", "", 1),
            2,
            2,
        ),
        asking,
    ]
}

/// Every place in which an answer can break off.
fn breaks(end: End, last: &Say, reached: (&'static str, &'static str, usize)) -> Vec<Turn<'static>> {
    let place = |name, says: Vec<Say>, part: &'static str| {
        let says = says.into_iter().chain([last.clone()]).collect();
        let reached = if reached.0 == "snapshot" { ("snapshot", part, 1) } else { reached };
        Turn { name, mode: "bypass", says, reached, end, calls: 0, ran: 0 }
    };
    vec![
        place("in text", vec![text("so far")], "so far"),
        place("in reasoning", vec![thinking("so far")], "so far"),
        place("in text behind reasoning", vec![thinking("whole"), text("so far")], "so far"),
        place("in reasoning behind text", vec![text("whole"), thinking("so far")], "so far"),
        place("in a call", vec![text("whole"), bash("a", SLOW)], "whole"),
        place("in a call behind a whole call", vec![thinking("whole"), bash("a", SLOW), bash("b", SLOW)], "bash"),
    ]
}

#[test]
fn a_turn_that_is_interrupted_leaves_a_history_that_can_be_sent() {
    places(End::Interrupt).into_iter().for_each(check);
    breaks(End::Interrupt, &Say::Hold, ("snapshot", "", 1)).into_iter().for_each(check);
}

#[test]
fn a_turn_that_a_crash_cut_off_leaves_a_history_that_can_be_sent() {
    places(End::Crash).into_iter().for_each(check);
    breaks(End::Crash, &Say::Hold, ("snapshot", "", 1)).into_iter().for_each(check);
}

#[test]
fn a_turn_that_goes_on_after_a_crash_or_a_stop_sends_each_result_once() {
    for end in [End::Resume, End::Stop] {
        let [three, one_of_two, asking] = places(end).try_into().unwrap_or_else(|_| panic!("three places"));
        match end {
            // What asked asks again, with nobody there to answer.
            End::Resume => [three, one_of_two].into_iter().for_each(check),
            _ => check(asking),
        }
    }
    for turn in breaks(End::Stop, &Say::Hold, ("snapshot", "", 1)) {
        check(turn);
    }
}

#[test]
fn a_connection_that_the_provider_cuts_leaves_a_history_that_can_be_sent() {
    breaks(End::Itself("failed"), &Say::Cut, ("turn.ended", "", 1)).into_iter().for_each(check);
}

/// A turn that comes to its end alone.
#[track_caller]
fn check_alone(name: &str, says: Vec<Say>, calls: usize, ran: usize) {
    let (reached, end) = (("turn.ended", "", 1), End::Itself("completed"));
    check(Turn { name, mode: "bypass", says, reached, end, calls, ran });
}

#[test]
fn calls_that_are_odd_have_one_id_and_one_result_each() {
    let other = |name, input| Say::Call { id: "x".into(), name, input };
    check_alone("an id twice in one answer", vec![bash("a", QUICK), bash("a", QUICK)], 2, 2);
    check_alone("no ids", vec![bash("", QUICK), bash("", QUICK)], 2, 2);
    check_alone("ids that other providers refuse", vec![bash("bash:0", QUICK), bash("das Ö", QUICK)], 2, 2);
    check_alone("no such tool", vec![other("frobnicate", json!({})), bash("a", QUICK)], 2, 1);
    check_alone("arguments that are no object", vec![other("bash", json!([1])), bash("a", QUICK)], 2, 1);
    check_alone("arguments that do not fit", vec![other("bash", json!({"command": 7})), bash("a", QUICK)], 2, 1);
    check_alone("no arguments", vec![other("bash", json!({})), bash("a", QUICK)], 2, 1);
    check_alone("nothing said", Vec::new(), 0, 0);
    check_alone("nothing but reasoning", vec![thinking("hm")], 0, 0);
    check_alone("nothing but blanks", vec![text(" \n")], 0, 0);
}

#[test]
fn ids_that_repeat_in_each_turn_are_told_apart() {
    let model = StrictModel::start(|messages| {
        let turn = (0..3).find(|turn| asked(messages, &format!("go {turn}")));
        turn.map_or(vec![text("fine")], |turn| vec![thinking("again"), bash("bash_0", &format!("echo said {turn}"))])
    });
    let daemon = daemon(&model);
    let mut client = daemon.connect();
    let session = session(&mut client, &daemon, "bypass");
    for turn in 0..3 {
        assert_eq!(client.turn(&session, &format!("go {turn}"))["state"], "completed");
    }
    let results = check_requests("three turns", &model, 3);
    assert!((0..3).all(|turn| results[turn].contains(&format!("said {turn}"))), "{results:?}");
    let history = client.history(&session);
    for kind in ["tool.started", "tool.finished"] {
        let ids: std::collections::BTreeSet<String> =
            history.iter().filter(|it| it["type"] == kind).map(|it| it["data"]["toolUseId"].to_string()).collect();
        assert_eq!(ids.len(), 3, "three calls are shown: {kind}");
    }
}

#[test]
fn a_call_that_fails_takes_none_of_its_siblings_with_it() {
    let commands = ["echo one", "grep nothing /dev/null", "echo three", "echo four", "echo five"];
    let calls = ["a", "b", "c", "d", "e"].iter().zip(commands).map(|(id, command)| bash(id, command));
    let model = model(calls.collect());
    let daemon = daemon(&model);
    let mut client = daemon.connect();
    let session = session(&mut client, &daemon, "bypass");
    assert_eq!(client.turn(&session, "go")["state"], "completed");
    let results = check_requests("five calls", &model, 5);
    for (place, words) in
        ["one\nexit code 0", "exit code 1", "three\nexit code 0", "four\n", "five\n"].iter().enumerate()
    {
        assert!(results[place].starts_with(words), "{words:?} in {results:?}");
    }
    let flags = |message: &Value| {
        message["content"].as_array().unwrap().iter().map(|it| it["is_error"] == true).collect::<Vec<_>>()
    };
    assert_eq!(flags(&model.seen().last[2]), [false, true, false, false, false]);
}

#[test]
fn a_turn_at_its_step_limit_leaves_a_history_that_can_be_sent() {
    let model = StrictModel::start(|messages| {
        if asked(messages, "more") { vec![text("fine")] } else { vec![thinking("on and on"), bash("a", QUICK)] }
    });
    let daemon = daemon(&model);
    let mut client = daemon.connect();
    let session = session(&mut client, &daemon, "bypass");
    let start = json!({"sessionId": session, "input": "go", "maxSteps": 3});
    let id = client.ok("turn/start", &start)["turnId"].clone();
    let turn = client.ended(&session, &id);
    assert_eq!(turn["state"], "limit", "{turn}");
    assert_eq!(ledger(&daemon), 2, "the third step's call was not run, nor was the one in the closing words");
    assert_eq!(client.turn(&session, "more")["state"], "completed");
    check_requests("at the limit", &model, 4);
}

#[test]
fn a_message_that_steers_goes_behind_the_results() {
    let model = StrictModel::start(|messages| {
        let calls = vec![bash("a", "echo ran >> ledger; until test -e goes-on; do sleep 0.02; done")];
        if asked(messages, "go") { calls } else { vec![text("fine")] }
    });
    let daemon = daemon(&model);
    let mut client = daemon.connect();
    let session = session(&mut client, &daemon, "bypass");
    let id = client.ok("turn/start", &json!({"sessionId": session, "input": "go"}))["turnId"].clone();
    e2e::eventually("the command", || (ledger(&daemon) == 1).then_some(()));
    client.ok("turn/start", &json!({"sessionId": session, "input": "also", "delivery": "steer"}));
    daemon.home.write("goes-on", "");
    assert_eq!(client.ended(&session, &id)["state"], "completed");
    check_requests("steered", &model, 1);
    assert!(asked(&model.seen().last, "also"), "{:?}", model.seen().last);
}
