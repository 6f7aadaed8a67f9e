//! What the native drivers cost per request, beside the S3 driver: runs the drivers' example `gets`, which
//! measures them in turn against a thread that answers everything alike.

use crate::sh::{Result, cargo, output};

/// Most that a driver may cost, as a ratio to the S3 driver's cost of a GET of 4 KiB.
const GOAL: f64 = 1.3;
/// Repetitions, each of all drivers.
const REPETITIONS: &str = "9";

/// Measures, prints a table, and writes it into `docs/performance.md` with `--write`.
pub(super) fn main(args: &[String]) -> Result {
    let printed = output(&mut cargo([
        "run",
        "--release",
        "--quiet",
        "--locked",
        "-p",
        "bucketload-drivers",
        "--example",
        "gets",
        "--",
        REPETITIONS,
    ]))?;
    let mut table = String::from(
        "| driver | goal | cost of a GET of 4 KiB, S3 = 1: median (range, n) | CPU time |\n|---|--:|--:|--:|\n",
    );
    let mut missed = Vec::new();
    for line in printed.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, median, least, most, cost_ns] = fields.as_slice() else {
            return Err(format!("gets printed {line:?}"));
        };
        let number = |text: &str| text.parse::<f64>().map_err(|e| format!("{line:?}: {e}"));
        table.push_str(&format!(
            "| {name} | ≤ {GOAL} | {:.2} ({:.2}-{:.2}, n={REPETITIONS}) | {:.2} µs |\n",
            number(median)?,
            number(least)?,
            number(most)?,
            number(cost_ns)? / 1e3
        ));
        if number(median)? > GOAL {
            missed.push(format!("{name}: {median} is above {GOAL}"));
        }
    }
    println!("{table}");
    if args.iter().any(|arg| arg == "--write") {
        super::write_table("drivers", &table)?;
    }
    if missed.is_empty() {
        Ok(())
    } else {
        Err(missed.join("\n"))
    }
}
