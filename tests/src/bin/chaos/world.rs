//! One home with a daemon that dies again and again, and what is to be true of it each time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use e2e::daemon::{Daemon, Home};
use e2e::strict::StrictModel;
use serde_json::json;

use crate::check;
use crate::dice::Dice;
use crate::journal::Journal;
use crate::load::{Told, answer_all, work};
use crate::plan::{Death, Job};
use crate::script::Script;
use crate::tally::Tally;
use crate::wire::{Fail, Wire};

const SESSIONS: usize = 3;
const CLIENTS: u64 = 3;
/// How long a daemon gets to come to a named place.
const POINT_PATIENCE: Duration = Duration::from_millis(2500);
/// How long anything may take to come to rest.
const SETTLE: Duration = Duration::from_secs(60);
const PLAN: &str = "AGENTD_FAILPOINTS";

pub(crate) struct World<'a> {
    daemon: Daemon,
    model: StrictModel,
    sessions: Vec<String>,
    told: Mutex<Told>,
    /// How many of the sends have been tried again already.
    retried: usize,
    /// How often the daemon has lived here under load, so that no message is named twice.
    lives: u32,
    tally: &'a Tally,
}

impl<'a> World<'a> {
    pub(crate) fn new(tally: &'a Tally, dice: Dice) -> Self {
        let script = Script::new(dice);
        let model = StrictModel::start(move |messages| script.answer(messages));
        let home = Home::new();
        home.settings(&json!({
            "model": "fake/m",
            "permissions": {"allow": ["bash"], "ask": ["bash(echo asked *)"]},
            "providers": {"fake": {"api": "anthropic", "baseUrl": model.base,
                "models": {"m": {"contextWindow": 200_000, "maxOutput": 4096}}}},
        }));
        home.write("note.txt", "那个\n");
        let daemon = home.start();
        let mut client = daemon.connect();
        let new = json!({"cwd": daemon.home.work(), "mode": "accept-edits"});
        let sessions =
            (0..SESSIONS).filter_map(|_| client.ok("session/new", &new)["session"]["id"].as_str().map(str::to_owned));
        let sessions = sessions.collect();
        drop(client);
        Self { daemon, model, sessions, told: Mutex::default(), retried: 0, lives: 0, tally }
    }

    /// One life under load, its death, and what must be true after it. Whether a named place was come to.
    pub(crate) fn run(&mut self, job: &Job) -> bool {
        let mut dice = job.dice.fork(u64::from(self.lives));
        let died = match &job.death {
            Death::Chance => {
                self.live(job, Duration::from_millis(30 + dice.below(700)));
                false
            }
            Death::Point(name, times) => {
                self.daemon.kill();
                self.start(Some(format!("{name}={times}*kill")));
                self.live(job, POINT_PATIENCE)
            }
            Death::Recovery(name, times) => {
                self.live(job, Duration::from_millis(200 + dice.below(300)));
                self.start(Some(format!("{name}={times}*kill")));
                // It dies while sessions are taken up, or while they are brought to rest.
                let rested = self.settle(&mut dice);
                let died = rested.is_err() && wait_for(|| self.daemon.is_over());
                self.daemon.kill();
                died
            }
        };
        self.restart_and_compare();
        self.rest(&mut dice);
        died
    }

    fn start(&mut self, points: Option<String>) {
        self.daemon.home.env = points.into_iter().map(|points| (PLAN.to_owned(), points)).collect();
        self.daemon.respawn();
    }

    /// Clients work until the daemon dies, or is killed after a while. Whether it died by itself.
    fn live(&mut self, job: &Job, patience: Duration) -> bool {
        self.lives += 1;
        let (begun, over) = (Instant::now(), AtomicBool::new(false));
        let life = format!("{}-{}", job.index, self.lives);
        let life = life.as_str();
        let (socket, sessions, told) = (self.daemon.home.socket(), &self.sessions, &self.told);
        let daemon = &mut self.daemon;
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (mut dice, over, socket) = (job.dice.fork(client + 1), &over, &socket);
                scope.spawn(move || {
                    for connection in 0_u32.. {
                        work(socket, sessions, &format!("{life}-{client}-{connection}"), &mut dice, told);
                        if over.load(Ordering::Relaxed) {
                            return;
                        }
                        pause();
                    }
                });
            }
            while begun.elapsed() < patience && !daemon.is_over() {
                pause();
            }
            let died = daemon.is_over();
            daemon.kill();
            over.store(true, Ordering::Relaxed);
            died
        })
    }

    fn journal(&self) -> Journal {
        Journal::open(&self.daemon.home.state().join("agentd.db")).expect("the database opens")
    }

    /// What was asked before the restart is asked after it, unless its turn is over; nothing answered itself.
    fn restart_and_compare(&mut self) {
        let before = self.journal().approvals().expect("approvals");
        self.start(None);
        // Taken up at the start, so once it answers the comparison is fair.
        let listed = self.wire().and_then(|mut wire| wire.call("approval/list", &json!({})));
        self.tally.check("the daemon comes up again", listed.is_ok(), || format!("{listed:?}"));
        let journal = self.journal();
        let (after, open) = (journal.approvals().expect("approvals"), journal.open_turns().expect("turns"));
        let turns = journal.approval_turns().expect("turns of approvals");
        for (id, state) in &before {
            let now = after.get(id).map_or("gone", String::as_str);
            let is_over = turns.get(id).is_some_and(|turn| !open.iter().any(|(open, ..)| open == turn));
            let same = now == state || (state == "pending" && now == "cancelled" && is_over);
            self.tally.check("D11 D13 what is asked stays as it was", same, || format!("{id}: {state}, then {now}"));
        }
    }

    fn wire(&mut self) -> Result<Wire, Fail> {
        let (begun, socket) = (Instant::now(), self.daemon.home.socket());
        loop {
            match Wire::connect(&socket) {
                Ok(wire) => return Ok(wire),
                Err(_) if self.daemon.is_over() || begun.elapsed() > SETTLE => return Err(Fail::Gone),
                Err(_) => pause(),
            }
        }
    }

    /// Brings every turn to its end: says yes and no, lets go on what was cut off, or drops it.
    fn settle(&mut self, dice: &mut Dice) -> Result<bool, Fail> {
        let (mut wire, journal, begun) = (self.wire()?, self.journal(), Instant::now());
        while begun.elapsed() < SETTLE {
            answer_all(&mut wire, dice, &self.told)?;
            let open = journal.open_turns().map_err(|_| Fail::Gone)?;
            if open.is_empty() {
                return Ok(true);
            }
            for (turn, session, state) in &open {
                let waits = |(_, other, state): &(String, String, String)| other == session && state != "queued";
                let action = match state.as_str() {
                    "recoverable" if dice.percent(30) => "discard",
                    "recoverable" => "continue",
                    "queued" if !open.iter().any(waits) => "continue",
                    _ => continue,
                };
                // Somebody's answer may have let it go on meanwhile.
                if let Err(Fail::Gone) = wire.call("turn/resume", &json!({"turnId": turn, "action": action})) {
                    return Err(Fail::Gone);
                }
            }
            pause();
        }
        Ok(false)
    }

    /// Brings all to rest, hands every message in again, and looks at everything.
    fn rest(&mut self, dice: &mut Dice) {
        let rested = self.settle(dice);
        self.tally.check("all turns come to their end", matches!(rested, Ok(true)), || {
            format!("{rested:?}, open: {:?}", self.journal().open_turns())
        });
        self.send_again(dice);
        let verified = self.wire().and_then(|mut wire| wire.call("daemon/verify", &json!({"rebuild": true})));
        let is_sound = verified.as_ref().is_ok_and(|found| found["sound"] == true);
        self.tally.check("D16 an index made anew is the same", is_sound, || format!("{verified:?}"));
        let alone = wait_for(|| e2e::running_in(&self.daemon.home.work()) <= 1);
        self.tally.check("no process is left", alone, || self.daemon.home.work().display().to_string());
        let (work, events) = (self.daemon.home.work(), self.journal().events().expect("events"));
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        check::all(self.tally, &work, &events, &told, &self.model.seen());
    }

    fn send_again(&mut self, dice: &mut Dice) {
        let sends: Vec<_> = self.told.lock().unwrap_or_else(PoisonError::into_inner).sends[self.retried..].to_vec();
        self.retried += sends.len();
        for send in sends {
            let mut turn = send.turn.clone();
            for _ in 0..2 {
                let again = self.wire().and_then(|mut wire| wire.call("turn/start", &send.params()));
                let again = again.ok().and_then(|answer| answer["turnId"].as_str().map(str::to_owned));
                let same = again.is_some() && (turn.is_none() || turn == again);
                self.tally.check("D01 D02 the same message gets the same turn", same, || {
                    format!("{}: {turn:?}, then {again:?}", send.key)
                });
                turn = again.or(turn);
            }
            let other = self.wire().and_then(|mut wire| wire.call("turn/start", &send.changed()));
            let is_refused = matches!(&other, Err(Fail::Said(kind)) if kind == "idempotency_conflict");
            self.tally.check("D03 another message under its name is refused", is_refused, || {
                format!("{}: {other:?}", send.key)
            });
            if send.turn.is_none() {
                // It may only now have become a turn, and the next of its session finds it busy.
                drop(self.settle(dice));
            }
        }
    }
}

fn wait_for(mut is_so: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(10) {
        if is_so() {
            return true;
        }
        pause();
    }
    false
}

#[expect(clippy::disallowed_methods, reason = "the rig is blocking on purpose")]
fn pause() {
    std::thread::sleep(Duration::from_millis(3));
}
