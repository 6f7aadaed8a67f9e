//! Run directories: the report and all other results follow from manifest, events, intervals and histograms.

use std::path::Path;

use bucketload_core::generate::fingerprint::schedule_hash;
use bucketload_results::bundle::Role;
use bucketload_results::io500::phases;
use bucketload_results::result::RunResult;
use bucketload_results::rundir::{MANIFEST, Manifest, Status, VerdictSummary};
use bucketload_results::{output, report};

use super::kinds::{Emit, Kind};
use crate::commands::mdworkbench;
use crate::exit::{Failure, OrFail};
use crate::{io500, job};

/// A run directory.
pub(super) struct Run;

/// Files that were recorded.
const DATA: [&str; 10] = [
    MANIFEST,
    "events.jsonl",
    "intervals.jsonl",
    "oracle.jsonl",
    bucketload_results::drill::JOURNAL,
    "slowest.jsonl",
    "agents.json",
    job::PLACEMENT,
    job::SERVED,
    // The configuration that the user gave to IO500.
    "config-orig.ini",
];
/// Files that follow from the recorded ones.
const DERIVED: [&str; 8] = [
    "report.html",
    "result.json",
    "result.csv",
    "config.ini",
    "timestampfile",
    "result.txt",
    "result_summary.txt",
    mdworkbench::LINES,
];

impl Kind for Run {
    fn name(&self) -> &'static str {
        "run"
    }

    fn is(&self, dir: &Path) -> bool {
        dir.join(MANIFEST).is_file()
    }

    fn role(&self, path: &str) -> Option<Role> {
        let between = |start: &str, end: &str| {
            let number = path.strip_prefix(start)?.strip_suffix(end)?;
            (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some(())
        };
        let log = between("ops-", ".parquet").or_else(|| between("ops-", ".csv.zst"));
        if DATA.contains(&path) || log.or_else(|| between("hist/phase-", ".hlog")).is_some() {
            return Some(Role::Data);
        }
        // The extended list includes the standard phases.
        let phase = |name: &str| phases(true).iter().any(|phase| phase.name == name);
        let stem = path
            .strip_suffix(".csv")
            .or_else(|| path.strip_suffix(".txt"));
        let follows = DERIVED.contains(&path) || stem.is_some_and(phase);
        follows.then_some(Role::Derived)
    }

    fn derive(&self, dir: &Path, emit: &mut Emit<'_>) -> Result<(), Failure> {
        let result = job::result(dir)?;
        emit("report.html", report::html(&result).into_bytes())?;
        emit("result.json", output::json(&result).into_bytes())?;
        emit("result.csv", output::csv(&result).into_bytes())?;
        emit(MANIFEST, manifest(dir, &result)?)?;
        if io500::is_io500(dir) {
            for (name, text) in io500::files(dir, result_dir(dir))?.1 {
                emit(&name, text.into_bytes())?;
            }
        }
        if result.run.profile == crate::mdworkbench::PROFILE {
            emit(mdworkbench::LINES, lines(dir)?.into_bytes())?;
        }
        Ok(())
    }
}

/// The manifest with its derived parts computed again: seed, hashes and verdict.
fn manifest(dir: &Path, result: &RunResult) -> Result<Vec<u8>, Failure> {
    let usage = |e: String| Failure::usage(format!("{}: {e}", dir.join(MANIFEST).display()));
    let stored = std::fs::read(dir.join(MANIFEST)).map_err(|e| usage(e.to_string()))?;
    let read = Manifest::read(dir).or_usage()?;
    let mut computed = read.clone();
    computed.seed = computed.plan.seed;
    computed.scenario_hash = computed.plan.scenario_hash();
    if !read.schedule_hash.is_empty() {
        computed.schedule_hash = schedule_hash(&computed.plan).unwrap_or_default();
        // Trials of a campaign append the number of their own schedule.
        if let Some((_, number)) = read.schedule_hash.split_once('.') {
            computed.schedule_hash += &format!(".{number}");
        }
    }
    // A run that was killed or aborted may have no verdict yet.
    if read.verdict.is_some() || read.status == Status::Finished {
        computed.verdict = Some(VerdictSummary::from(&result.verdict));
    }
    if computed == read {
        return Ok(stored);
    }
    let mut text = serde_json::to_vec_pretty(&computed).map_err(|e| usage(e.to_string()))?;
    text.push(b'\n');
    Ok(text)
}

/// The directory that IO500's result names: the one it was written in, which this copy may not be.
fn result_dir(dir: &Path) -> Option<String> {
    let text = std::fs::read_to_string(dir.join("result.txt")).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(" = "));
    let found = lines.find(|(key, _)| key.trim() == "result-dir");
    found.map(|(_, value)| value.to_owned())
}

/// The output lines of MD-Workbench. Which details the user asked for is not recorded, so each choice is tried until
/// one reproduces the stored file.
fn lines(dir: &Path) -> Result<String, Failure> {
    let stored = std::fs::read_to_string(dir.join(mdworkbench::LINES)).unwrap_or_default();
    let mut plain = None;
    for details in [(false, false), (true, false), (false, true), (true, true)] {
        let (text, _) = mdworkbench::lines(dir, details, |_| {})?;
        if text == stored {
            return Ok(text);
        }
        plain.get_or_insert(text);
    }
    Ok(plain.unwrap_or_default())
}
