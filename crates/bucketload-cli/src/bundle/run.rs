//! Run directories: the report and every other result follow from manifest, events, intervals and histograms.

use std::path::Path;

use bucketload_core::generate::fingerprint::schedule_hash;
use bucketload_results::bundle::Role;
use bucketload_results::io500::phases;
use bucketload_results::result::RunResult;
use bucketload_results::rundir::{MANIFEST, Manifest, Status, VerdictSummary};
use bucketload_results::{output, report};

use super::kinds::{Give, Kind};
use crate::commands::mdworkbench;
use crate::exit::{Failure, OrFail};
use crate::{io500, job};

/// A run directory.
pub(super) struct Run;

/// What was recorded.
const DATA: [&str; 9] = [
    MANIFEST,
    "events.jsonl",
    "intervals.jsonl",
    "oracle.jsonl",
    "slowest.jsonl",
    "agents.json",
    job::PLACEMENT,
    job::SERVED,
    // What the user gave to IO500.
    "config-orig.ini",
];
/// What follows.
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
        // The extended list holds the others.
        let phase = |name: &str| phases(true).iter().any(|phase| phase.name == name);
        let stem = path
            .strip_suffix(".csv")
            .or_else(|| path.strip_suffix(".txt"));
        let follows = DERIVED.contains(&path) || stem.is_some_and(phase);
        follows.then_some(Role::Derived)
    }

    fn derive(&self, dir: &Path, give: &mut Give<'_>) -> Result<(), Failure> {
        let result = job::result(dir)?;
        give("report.html", report::html(&result).into_bytes())?;
        give("result.json", output::json(&result).into_bytes())?;
        give("result.csv", output::csv(&result).into_bytes())?;
        give(MANIFEST, manifest(dir, &result)?)?;
        if io500::is_io500(dir) {
            for (name, text) in io500::files(dir, place(dir))?.1 {
                give(&name, text.into_bytes())?;
            }
        }
        if result.run.profile == crate::mdworkbench::PROFILE {
            give(mdworkbench::LINES, lines(dir)?.into_bytes())?;
        }
        Ok(())
    }
}

/// The manifest with all of it computed that follows from the rest: identities and the verdict.
fn manifest(dir: &Path, result: &RunResult) -> Result<Vec<u8>, Failure> {
    let usage = |e: String| Failure::usage(format!("{}: {e}", dir.join(MANIFEST).display()));
    let stored = std::fs::read(dir.join(MANIFEST)).map_err(|e| usage(e.to_string()))?;
    let read = Manifest::read(dir).or_usage()?;
    let mut computed = read.clone();
    computed.seed = computed.plan.seed;
    computed.scenario_hash = computed.plan.scenario_hash();
    if !read.schedule_hash.is_empty() {
        computed.schedule_hash = schedule_hash(&computed.plan).unwrap_or_default();
        // Trials of a campaign have the number of their own schedule behind it.
        if let Some((_, number)) = read.schedule_hash.split_once('.') {
            computed.schedule_hash += &format!(".{number}");
        }
    }
    // A run that was killed or broke may have none yet.
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

/// What IO500's result says of where it was written: not this copy of the directory.
fn place(dir: &Path) -> Option<String> {
    let text = std::fs::read_to_string(dir.join("result.txt")).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(" = "));
    let found = lines.find(|(key, _)| key.trim() == "result-dir");
    found.map(|(_, value)| value.to_owned())
}

/// The lines of MD-Workbench. Which of them were asked for is not recorded: the file that is there says it.
fn lines(dir: &Path) -> Result<String, Failure> {
    let stored = std::fs::read_to_string(dir.join(mdworkbench::LINES)).unwrap_or_default();
    let mut plain = None;
    for asked in [(false, false), (true, false), (false, true), (true, true)] {
        let (text, _) = mdworkbench::lines(dir, asked, |_| {})?;
        if text == stored {
            return Ok(text);
        }
        plain.get_or_insert(text);
    }
    Ok(plain.unwrap_or_default())
}
