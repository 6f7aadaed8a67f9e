//! Issue times of a replayed trace, in real time.

use std::fmt::Write as _;

use crate::files::{self, TempDir};
use crate::machine::{TimeLimits, undisturbed};
use crate::program::{Env, measured, percentile_ns, run_phase, whole};
use crate::random::Random;
use crate::sh::Result;

/// Requests in the trace.
const RECORDS: u32 = 1_000_000;
/// Requests per second in the trace, which is replayed ten times as fast.
const RATE: f64 = 2_000.0;
/// Limit on the 99th percentile of the difference between intended and actual times, in µs.
const LAG_US: f64 = 1_000.0;
/// Limit on the resident memory of the replaying process, in bytes.
const MEMORY: f64 = 100.0 * 1024.0 * 1024.0;

/// Replays 10^6 records at ten times their speed, 20 000 per second, on a target that answers at once. The 99th
/// percentile of the difference between intended and actual times must stay below 1 ms, and memory below 100 MiB
/// (docs/spec/traces.md section 7).
pub(crate) fn instants() -> Result {
    let dir = TempDir::new("replay")?;
    let trace = dir.file("trace.csv");
    files::write(&trace, lines())?;
    let mut chance = 0;
    undisturbed("replay", 3, || {
        chance += 1;
        replay(&trace, &dir.file(&format!("run{chance}")))
    })
}

/// A trace with exponential gaps on 10 000 keys; a tenth of the requests are writes.
fn lines() -> String {
    let mut random = Random(1);
    let (mut text, mut now_ns) = (String::new(), 0.0);
    for number in 0..RECORDS {
        now_ns += random.gap(1e9 / RATE);
        let op = if number % 10 == 0 { "PUT" } else { "GET" };
        let key = random.next() % 10_000;
        let _ = writeln!(text, "{now_ns:.0},{op},k{key:05},4096");
    }
    text
}

fn replay(trace: &str, out: &str) -> Result<TimeLimits> {
    let result = measured(
        &format!(
            "replay {trace} --format csv --map ts=1,op=2,key=3,size=4 --time-unit ns --speed 10 --target null: \
             --threads 1 --no-calibration --quiet --out {out}"
        ),
        &Env::new(),
    )?;
    let phase = run_phase(&result)?;
    let lag = |q| percentile_ns(&phase["lag"], q).map(|ns| ns / 1e3);
    let (p50, p99, p999) = (lag(0.5)?, lag(0.99)?, lag(0.999)?);
    let ok = whole(&phase["totals"]["ok"]);
    let memory = phase["client"]["rss_max_bytes"]
        .as_f64()
        .unwrap_or(f64::NAN);
    let line = format!(
        "{ok} of {RECORDS} requests replayed; actual - intended: p50 {p50:.0} µs, p99 {p99:.0} µs, p99.9 {p999:.0} µs; \
         memory {:.0} MiB",
        memory / f64::from(1 << 20)
    );
    eprintln!("{line}");
    // An unknown value counts as above its limit.
    let whole = ok == u64::from(RECORDS) && memory < MEMORY;
    match (whole, p99 < LAG_US) {
        (false, _) => Err(line),
        (true, false) => Ok(TimeLimits::Missed(line)),
        (true, true) => Ok(TimeLimits::Kept),
    }
}
