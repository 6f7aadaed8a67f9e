//! What does not grow: memory and time of runs that are far larger than usual ones.
//!
//! Objects that are only planned, an operation log, a run of many days, its bundle. CPU time is the kernel's account of the
//! finished process, so it holds beside other work. The null driver answers at once: what is measured is ours alone.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use serde_json::Value;

use super::{finish, option};
use crate::files::{self, TempDir};
use crate::process::{Used, accounted};
use crate::program::{bucketload, run_phase, whole};
use crate::sh::Result;

/// Flags of all runs.
const RUN: &str = "run get --target null: --size 4KiB --workers 8 --no-calibration --quiet";
const MIB: f64 = 1_048_576.0;

/// A figure, its unit and the most (or least, if `least`) that it may be.
struct Row {
    what: String,
    unit: &'static str,
    measured: f64,
    goal: f64,
    least: bool,
}

impl Row {
    fn most(what: impl Into<String>, unit: &'static str, measured: f64, goal: f64) -> Self {
        let (what, least) = (what.into(), false);
        Self {
            what,
            unit,
            measured,
            goal,
            least,
        }
    }

    fn is_missed(&self) -> bool {
        match self.least {
            true => self.measured < self.goal,
            false => self.measured > self.goal,
        }
    }
}

/// Measures all rows. `--scale N` divides the numbers of objects, operations and intervals (default 1: 10^9, 10^8, 10^6),
/// `--write` puts the table into `docs/performance.md`.
pub(super) fn main(args: &[String]) -> Result {
    let scale = u64::from(option(args, "--scale", 1)?);
    let dir = TempDir::new("bench-scale")?;
    let mut rows = objects(&dir, 1_000_000_000 / scale)?;
    rows.extend(op_log(&dir, 100_000_000 / scale)?);
    rows.extend(long_run(&dir, 1_000_000 / scale)?);
    let mut table = String::from("| what | goal | measured |\n|---|--:|--:|\n");
    let mut missed = Vec::new();
    for row in &rows {
        let Row {
            what,
            unit,
            measured,
            goal,
            least,
        } = row;
        let sign = if *least { '≥' } else { '≤' };
        let _ = writeln!(
            table,
            "| {what} | {sign} {goal} {unit} | {measured:.3} {unit} |"
        );
        if row.is_missed() {
            missed.push(format!("{what}: {measured:.3} {unit}, goal {sign} {goal}"));
        }
    }
    finish("scale", args, &table, &missed)
}

/// What `line` used, and its result.
fn used(line: &str) -> Result<(Used, Value)> {
    let (said, used) = accounted(&mut bucketload(line)?)?;
    // Some verbs print no JSON.
    Ok((used, serde_json::from_str(&said).unwrap_or_default()))
}

/// Objects that the null driver prepares: they are functions of an index, so a thousand times as many take no memory.
fn objects(dir: &TempDir, objects: u64) -> Result<Vec<Row>> {
    let line = |objects: u64, name: &str| {
        let out = dir.file(name);
        format!("{RUN} --objects {objects} --ops 100000 --output json --out {out}")
    };
    let (few_used, few) = used(&line(objects / 1000, "few"))?;
    let (many_used, many) = used(&line(objects, "many"))?;
    let rss = |result: &Value| -> Result<f64> {
        Ok(whole(&run_phase(result)?["client"]["rss_max_bytes"]) as f64 / MIB)
    };
    let more = (objects - objects / 1000) as f64;
    let count = units(objects);
    Ok(vec![
        Row::most(
            format!("prepare {count} objects: CPU time of an object"),
            "µs",
            (many_used.cpu_s - few_used.cpu_s) * 1e6 / more,
            0.3,
        ),
        Row::most(
            format!("prepare {count} objects: resident memory"),
            "MiB",
            rss(&many)?,
            (rss(&few)? + 4.0).round(),
        ),
    ])
}

/// An operation log, and the bundle of the run that has it.
fn op_log(dir: &TempDir, ops: u64) -> Result<Vec<Row>> {
    let run = format!("{RUN} --objects 1000000 --ops {ops} --duration 1h --output json");
    let cpu_s = |line: &str| used(line).map(|(used, _)| used.cpu_s);
    let plain_s = cpu_s(&format!("{run} --out {}", dir.file("plain")))?;
    let out = dir.file("logged");
    let logged_s = cpu_s(&format!("{run} --op-log --out {out}"))?;
    let sizes = files::below(Path::new(&out))?.into_iter().map(|file| {
        let path = Path::new(&out).join(file);
        let about = path.metadata().map_err(files::at(&path))?;
        Ok(about.len() as f64)
    });
    let bytes: f64 = sizes.sum::<Result<f64>>()?;
    let bundle = dir.file("bundle");
    let pack_s = cpu_s(&format!("bundle {out} --out {bundle}"))?;
    let verify_s = cpu_s(&format!("verify-bundle {bundle}"))?;
    let rate = |what: &str, seconds: f64| Row {
        what: format!("{what} {:.0} MB", bytes / 1e6),
        unit: "MB/s of CPU time",
        measured: bytes / 1e6 / seconds,
        goal: 500.0,
        least: true,
    };
    Ok(vec![
        Row::most(
            format!("operation log of {} rows: CPU time of a row", units(ops)),
            "µs",
            (logged_s - plain_s) * 1e6 / ops as f64,
            0.15,
        ),
        rate("bundle of", pack_s),
        rate("verify-bundle of", verify_s),
    ])
}

/// The report of a run of `intervals` seconds: the intervals of a short run again and again.
fn long_run(dir: &TempDir, intervals: u64) -> Result<Vec<Row>> {
    let short = dir.file("short");
    used(&format!(
        "run online-service --target null: --duration 30s --no-calibration --quiet --output json --out {short}"
    ))?;
    lengthen(Path::new(&short), intervals)?;
    let (report, _) = used(&format!("report {short} --output json"))?;
    let count = units(intervals);
    Ok(vec![
        Row::most(
            format!("report of {count} intervals: CPU time"),
            "s",
            report.cpu_s,
            10.0,
        ),
        Row::most(
            format!("report of {count} intervals: resident memory"),
            "MiB",
            report.rss_bytes as f64 / MIB,
            300.0,
        ),
    ])
}

/// Repeats the intervals of the last phase until there are `intervals` of them. They share their histograms.
fn lengthen(run: &Path, intervals: u64) -> Result {
    let path = run.join("intervals.jsonl");
    let lines: Vec<Value> = files::read(&path)?
        .lines()
        .map(|line| serde_json::from_str(line).map_err(|e| e.to_string()))
        .collect::<Result<_>>()?;
    let last = lines.last().map(|line| whole(&line["phase"]));
    let (own, before): (Vec<_>, Vec<_>) =
        (lines.into_iter()).partition(|line| Some(whole(&line["phase"])) == last);
    let first_ns = own.first().map_or(0, |line| whole(&line["start_ns"]));
    let file = std::fs::File::create(&path).map_err(files::at(&path))?;
    let mut out = std::io::BufWriter::new(file);
    for line in before {
        writeln!(out, "{line}").map_err(files::at(&path))?;
    }
    for (index, mut line) in (0..intervals).zip(own.iter().cycle().cloned()) {
        let start_ns = first_ns + index * 1_000_000_000;
        line["index"] = index.into();
        line["start_ns"] = start_ns.into();
        line["end_ns"] = (start_ns + 1_000_000_000).into();
        writeln!(out, "{line}").map_err(files::at(&path))?;
    }
    out.flush().map_err(files::at(&path))
}

/// A round number in words.
fn units(number: u64) -> String {
    match number {
        n if n >= 1_000_000 => format!("{} million", n / 1_000_000),
        n => n.to_string(),
    }
}
