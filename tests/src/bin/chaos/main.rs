//! Kills the real daemon again and again, and looks from outside whether it kept its promises.
//!
//! `chaos [--kills N] [--seed N] [--short] [--worlds N]`. The same seed plans the same rounds; what the clock makes of
//! them differs. Exit code 0 means that nothing was violated; a named place that was not come to is told.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a rig that cannot go on says so; it prints for people")]

mod check;
mod dice;
mod journal;
mod load;
mod plan;
mod script;
mod tally;
mod wire;
mod world;

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use dice::Dice;
use plan::{Death, Job};
use tally::Tally;
use world::World;

/// Rounds in one home: enough for a past, few enough for the checks to stay quick.
const ROUNDS: usize = 8;

struct Options {
    kills: u32,
    seed: u64,
    short: bool,
    worlds: usize,
}

fn options() -> Result<Options, String> {
    let mut options = Options { kills: 0, seed: 1, short: false, worlds: 4 };
    let mut kills = None;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--short" {
            options.short = true;
            continue;
        }
        let number = words.next().and_then(|value| value.parse::<u32>().ok());
        let number = number.ok_or_else(|| format!("{word}: a number is missing"))?;
        match word.as_str() {
            "--kills" => kills = Some(number),
            "--seed" => options.seed = number.into(),
            "--worlds" => options.worlds = usize::try_from(number.max(1)).unwrap_or(1),
            _ => return Err(format!("{word}: say --kills N, --seed N, --worlds N or --short")),
        }
    }
    options.kills = kills.unwrap_or(if options.short { 30 } else { 200 });
    Ok(options)
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(error) => {
            println!("{error}");
            return ExitCode::from(2);
        }
    };
    let (begun, tally, missed) = (Instant::now(), Tally::default(), Mutex::new(Vec::new()));
    let jobs = plan::jobs(options.kills, options.seed, options.short);
    let shares: Vec<Vec<&Job>> =
        (0..options.worlds).map(|world| jobs.iter().skip(world).step_by(options.worlds).collect()).collect();
    let is_whole = std::thread::scope(|scope| {
        let runs: Vec<_> =
            shares.iter().map(|share| scope.spawn(|| run(share, options.seed, &tally, &missed))).collect();
        runs.into_iter().map(std::thread::ScopedJoinHandle::join).filter(Result::is_err).count() == 0
    });
    tally.check("the rig itself came to its end", is_whole, || "a world broke off, see above".to_owned());
    let violations = tally.print();
    let missed = missed.into_inner().unwrap_or_else(PoisonError::into_inner);
    missed.iter().for_each(|missed| println!("not come to: {missed:?}"));
    println!(
        "{violations} violations, {} of {} rounds as planned, seed {}, {} s",
        jobs.len() - missed.len(),
        jobs.len(),
        options.seed,
        begun.elapsed().as_secs()
    );
    ExitCode::from(u8::from(violations > 0))
}

fn run(jobs: &[&Job], seed: u64, tally: &Tally, missed: &Mutex<Vec<Death>>) {
    for rounds in jobs.chunks(ROUNDS) {
        let first = rounds.first().map_or(0, |job| job.index);
        let mut world = World::new(tally, Dice::new(seed, 1_000_000 + first as u64));
        for job in rounds {
            // What a place needs is not always at hand when it is waited for.
            let died = (0..5).any(|_| world.run(job) || matches!(job.death, Death::Chance));
            if !died && !matches!(job.death, Death::Chance) {
                missed.lock().unwrap_or_else(PoisonError::into_inner).push(job.death.clone());
            }
        }
    }
}
