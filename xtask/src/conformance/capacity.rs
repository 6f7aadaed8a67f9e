//! The capacity search in real time, against servers with a known capacity.
//!
//! The server's queue fault serves one request at a time, with exponential (M/M/1) or constant (M/D/1) service times
//! of mean 0.5 ms. The objective is the p90 that 1600 arrivals per second just keep
//! (M/D/1; the formula is in the tests of `bucketload_core::capacity`), so a search is right if its bracket contains 1600/s.
//!
//! Trials last 2 s. At load 0.8 the queue forgets its history within 1/(μ(1-√ρ)²) = 45 ms, so a trial holds some 44
//! independent samples and determines its p90 to about 20 %. The p90 of M/M/1 grows as 1/(μ-λ): 1 % of rate moves it
//! by 4 %. One trial therefore determines the rate to within 5 %, and the search, with 3 confirmations at either end,
//! leaves brackets with a mean ratio of 1.16. In virtual time 99 of 100 such brackets contain the true capacity
//! (`short_searches_of_a_fast_queue_are_sound` in `bucketload-core`), so the demand for 9 of 10 has a power of 0.99.
//! Two searches run at a time; each uses less than a tenth of a core.

use std::collections::VecDeque;
use std::sync::Mutex;

use crate::files::{self, TempDir};
use crate::program::{Serve, program};
use crate::sh::{Result, none_of};

/// The capacity of every server, operations per second.
const TRUTH: f64 = 1600.0;
/// Number of searches that must be right.
const RIGHT: usize = 9;
/// Number of concurrent searches.
const AT_A_TIME: usize = 2;

/// Distribution of the service times, and the objective that yields the capacity.
const LAWS: [(&str, &str); 2] = [("exp", "p90<5756463ns"), ("const", "p90<3005756ns")];

const WORKLOAD: &str = r#"
name = "queue"
description = "small reads"
[keysets.objects]
count = 100
size = "1KiB"
[phases.run]
rate = "100/s"
arrival = "poisson"
max-in-flight = 4000
steady-state = false
duration = "2s"
drain = "5s"
mix = { get = 100 }
"#;

/// Ten searches, five per distribution; nine brackets must contain the true capacity.
pub(crate) fn all() -> Result {
    // Build the program before the threads need it.
    program()?;
    let dir = TempDir::new("capacity")?;
    let file = dir.file("queue.toml");
    files::write(&file, WORKLOAD)?;
    let jobs: Mutex<VecDeque<(usize, usize)>> =
        Mutex::new((0..10).map(|seed| (seed, seed % LAWS.len())).collect());
    let outcomes = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let job = jobs.lock().ok().and_then(|mut jobs| jobs.pop_front());
                    let Some((seed, law)) = job else { return };
                    let outcome = search(&dir, &file, seed, law);
                    if let Ok(mut outcomes) = outcomes.lock() {
                        outcomes.push((seed, law, outcome));
                    }
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().map_err(|e| e.to_string())?;
    outcomes.sort_by_key(|(seed, ..)| *seed);
    let (mut right, mut failures) = (0, Vec::new());
    for (seed, law, outcome) in outcomes {
        let law = LAWS[law].0;
        match outcome {
            Ok((low, high)) => {
                let holds = low <= TRUTH && TRUTH <= high;
                right += usize::from(holds);
                let word = if holds { "holds" } else { "misses" };
                eprintln!("seed {seed} {law}: {low:.0} to {high:.0}/s {word} {TRUTH}/s");
            }
            Err(what) => failures.push(format!("seed {seed} {law}: {what}")),
        }
    }
    if right >= RIGHT {
        return Ok(());
    }
    failures.insert(0, format!("{right} of 10 brackets hold the capacity"));
    none_of(&failures)
}

fn search(dir: &TempDir, file: &str, seed: usize, law: usize) -> Result<(f64, f64)> {
    let (service, slo) = LAWS[law];
    let rule = format!("queue,rate=2000/s,service={service},op=get,seed={seed}");
    let server = Serve::start(&format!("--store memory --fault {rule}"))?;
    let out = dir.file(&format!("search-{seed}"));
    let result = server.measured(&format!(
        "capacity {file} --slo '{slo}' --start-rate 500/s --trial-duration 2s --quick --seed {seed} \
         --target s3://capacity/t --create-bucket --no-calibration --threads 1 --cores none --out {out}"
    ))?;
    let rate = |side: &str| result["outcome"][side]["rate"].as_f64();
    match (rate("low"), rate("high")) {
        (Some(low), Some(high)) => Ok((low, high)),
        _ => Err(format!("no bracket in {}", result["outcome"])),
    }
}
