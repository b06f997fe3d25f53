//! The join of what the daemon told, what its journal says, what the model was sent and what really happened.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use e2e::strict::Seen;
use serde_json::Value;

use crate::journal::Event;
use crate::load::Told;
use crate::script::{content, file, number};
use crate::tally::Tally;

/// What is known of one call.
#[derive(Default, Debug)]
struct Call<'a> {
    started: bool,
    result: Option<&'a Value>,
}

/// Checks a home of which no turn is open.
pub(crate) fn all(tally: &Tally, work: &Path, events: &[Event], told: &Told, seen: &Seen) {
    order(tally, events);
    turns(tally, events, told);
    sends(tally, events, told);
    effects(tally, work, &calls(events), told);
    let requests = seen.requests;
    tally.check("D04 what the model is sent is valid", seen.violations.is_empty(), || {
        format!("in {requests} requests: {:?}", seen.violations)
    });
    for (id, call) in calls(events) {
        let text = call.result.map(|result| result["content"].to_string()).unwrap_or_default();
        if text.contains("UNKNOWN_OUTCOME") {
            let is_whole = text.contains("started ") && text.contains("check before repeating");
            tally.check("D09 unknown says so, and since when", is_whole, || format!("{id}: {text}"));
        }
    }
}

fn parts<'a>(events: &'a [Event], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let parts =
        events.iter().flat_map(|event| event.body["data"]["message"]["content"].as_array().into_iter().flatten());
    parts.filter(move |part| part["type"] == kind)
}

fn calls(events: &[Event]) -> BTreeMap<&str, Call<'_>> {
    let mut calls = BTreeMap::<&str, Call<'_>>::new();
    for part in parts(events, "tool_use") {
        calls.entry(part["id"].as_str().unwrap_or_default()).or_default();
    }
    for event in events.iter().filter(|event| event.kind == "tool.started") {
        calls.entry(event.body["data"]["toolUseId"].as_str().unwrap_or_default()).or_default().started = true;
    }
    for part in parts(events, "tool_result") {
        calls.entry(part["toolUseId"].as_str().unwrap_or_default()).or_default().result = Some(part);
    }
    calls
}

fn order(tally: &Tally, events: &[Event]) {
    let mut last = ("", 0);
    for event in events {
        let expected = if last.0 == event.session { last.1 + 1 } else { 1 };
        tally.check("D15 no gap in seq", event.seq == expected, || format!("{} at {}", event.session, event.seq));
        tally.check("D17 the chain holds", event.is_chained, || format!("{} at {}", event.session, event.seq));
        last = (&event.session, event.seq);
    }
}

fn turns(tally: &Tally, events: &[Event], told: &Told) {
    let mut ends = BTreeMap::<&str, (u32, u32)>::new();
    for event in events {
        let turn = event.body["turnId"].as_str().unwrap_or_default();
        match event.kind.as_str() {
            "turn.started" => ends.entry(turn).or_default().0 += 1,
            "turn.ended" => ends.entry(turn).or_default().1 += 1,
            _ => {}
        }
    }
    for (turn, counts) in ends {
        tally.check("a turn starts once and ends once", counts == (1, 1), || format!("{turn}: {counts:?}"));
    }
    for (turn, seq) in &told.stopped {
        let late = events.iter().find(|event| {
            event.kind == "tool.started" && event.seq > *seq && event.body["turnId"].as_str() == Some(turn)
        });
        tally.check("D14 nothing starts after a stop", late.is_none(), || format!("{turn} stopped at {seq}: {late:?}"));
    }
}

fn sends(tally: &Tally, events: &[Event], told: &Told) {
    for send in &told.sends {
        let is_it = |event: &&Event| {
            let message = &event.body["data"]["message"];
            message["role"] == "user" && message["content"][0]["text"].as_str() == Some(&send.key)
        };
        let count = events.iter().filter(is_it).count();
        tally.check("D01 D02 what was sent is said once", count == 1, || format!("{}: {count} times", send.key));
    }
}

fn effects(tally: &Tally, work: &Path, calls: &BTreeMap<&str, Call<'_>>, told: &Told) {
    let ledger = std::fs::read_to_string(work.join("ledger")).unwrap_or_default();
    let lines: Vec<u64> = ledger.lines().filter_map(|line| line.strip_prefix('e')?.parse().ok()).collect();
    let happened: BTreeSet<u64> = lines.iter().copied().collect();
    tally.check("D05 no effect twice", lines.len() == happened.len(), || format!("{lines:?}"));
    let by_number: BTreeMap<u64, &Call<'_>> = calls.iter().filter_map(|(id, call)| Some((number(id)?, call))).collect();
    for effect in &happened {
        let started = by_number.get(effect).is_some_and(|call| call.started);
        tally.check("D06 no effect without a start in the journal", started, || format!("e{effect}"));
    }
    for (number, call) in &by_number {
        let Some(result) = call.result else { continue };
        let text = result["content"].to_string();
        let path = work.join(file(*number));
        let (has_file, has_line) = (path.exists(), happened.contains(number));
        if text.contains("was not run:") || text.contains("changed nothing") {
            tally.check("D07 what was not run has no effect", !has_line && !has_file, || format!("e{number}: {text}"));
        }
        if has_file {
            let is_whole = std::fs::read_to_string(&path).is_ok_and(|found| found == content(*number));
            tally.check("D10 a file is whole or not there", is_whole, || path.display().to_string());
        }
        if result["isError"] != true && !text.contains("那个") {
            let is_there = has_line || has_file;
            tally.check("D08 what is reported done has its effect", is_there, || format!("e{number}: {text}"));
        }
    }
    for (_, call) in &told.denied {
        let ran = number(call).is_some_and(|number| happened.contains(&number) || work.join(file(number)).exists());
        tally.check("D13 what was refused does not happen", !ran, || call.clone());
    }
}
