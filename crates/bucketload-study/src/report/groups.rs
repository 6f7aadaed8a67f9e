//! Cells with all their repetitions: the data of figures and tables.
//!
//! ```text
//!  plan, journal ─► groups (experiment, target, value) ─ per cell: its directory ─► Run, Extra
//! ```
//!
//! Commands that measure several things themselves (`study-grid`, `s3-hpc`) leave directories of trials. Each of their
//! rows becomes a group of its own, so the same code draws all of them. Groups are read one after another.

use std::collections::BTreeMap;
use std::path::Path;

use bucketload_core::ai::AiFigures;
use bucketload_core::verdict::Word;
use bucketload_results::capacity::{CapacityResult, CapacityStudy};
use bucketload_results::io500::parse::Recorded;
use bucketload_results::result::{Ossperf, PhaseResult, PopularityId, RunResult};
use bucketload_results::study;

use super::balance::{self, Balance};
use super::curves::Curve;
use super::digest::{self, Facts, Histograms, Run};
use super::read::Files;
use super::show::distinct;
use super::trials;
use super::workbench::{self, Stage};
use crate::model::{Cell, Command, Experiment, FigureKind};

/// Limit on the values of throughput per second that are kept per run.
const PER_SECOND: usize = 2000;

/// A cell with its repetitions.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// Name of the target, or of the row of a comparison.
    pub target: String,
    /// Its display name.
    pub label: String,
    /// Number of its look: the position of its target.
    pub look: usize,
    /// Value of the swept field as written; empty for none.
    pub value: String,
    /// The value as a number (bytes for sizes); `None` for categories.
    pub number: Option<f64>,
    /// Number of processes, if the command sweeps them itself; otherwise 0.
    pub processes: u32,
    /// Number of planned cells.
    pub planned: usize,
    /// The runs that were measured, in the order of repetitions.
    pub runs: Vec<Run>,
    /// Cells without a run: identifier and reason.
    pub missing: Vec<(String, String)>,
    /// Further results that the figures need.
    pub extra: Extra,
}

/// Results that only some kinds of cells have.
#[derive(Clone, Debug, Default)]
pub struct Extra {
    /// Distributions of the response time over all repetitions, by phase and class.
    pub curves: BTreeMap<(String, String), Curve>,
    /// Throughput per second inside the windows of all repetitions: operations and bytes, by phase.
    pub per_second: BTreeMap<String, PerSecond>,
    /// Results of capacity searches.
    pub capacity: Vec<CapacityResult>,
    /// Results of IO500.
    pub io500: Vec<Recorded>,
    /// Phases of MD-Workbench, each of one run.
    pub workbench: Vec<Stage>,
    /// The steps of OSSperf, with the number of clients.
    pub ossperf: Vec<(u32, Ossperf)>,
    /// Load balance of each run (and phase) for which it is known.
    pub balance: Vec<Balance>,
    /// Why the balance of a run is unknown although its placement was recorded or requested.
    pub unplaced: Option<String>,
    /// Popularity of keys as realised, of each run.
    pub popularity: Vec<PopularityId>,
    /// What a cell trained, wrote or cached, of its first run; empty for other commands.
    pub ai: AiSetup,
    /// Files of each process and their size, for the grid.
    pub files: Option<(u64, u64)>,
}

/// What was trained, written or cached.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AiSetup {
    /// Name of the model; empty if it is not known.
    pub model: String,
    /// Accelerators of a training, ranks of a checkpoint, requests of a cache.
    pub number: u64,
    /// Bytes of a checkpoint; 0 for others.
    pub bytes: u64,
    /// Of the runs of the cell, how many reached the model's mark, for trainings.
    pub passed: usize,
}

impl AiSetup {
    fn add(&mut self, result: &RunResult) {
        let cache = result.measured().find_map(|phase| phase.kvcache.as_ref());
        if let Some(train) = result.train.first() {
            self.model.clone_from(&result.run.workload);
            self.number = u64::from(train.accelerators);
            self.passed += usize::from(train.passed);
        } else if let Some(checkpoint) = &result.checkpoint {
            self.model.clone_from(&checkpoint.model);
            self.number = u64::from(checkpoint.ranks);
            self.bytes = checkpoint.bytes;
        } else if let Some(cache) = cache {
            self.number = cache.counts.requests;
        }
    }
}

/// Throughput per second.
#[derive(Clone, Debug, Default)]
pub struct PerSecond {
    /// Operations per second.
    pub ops: Vec<f64>,
    /// Bytes per second.
    pub bytes: Vec<f64>,
    /// Variation of completed over offered bytes, for each run that has it.
    pub excess: Vec<f64>,
    /// Time that a value covers, seconds.
    pub bin_s: f64,
}

impl Group {
    /// The runs that figures are based on: those whose verdict is not INCOMPLETE.
    pub fn counted(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.word != Word::Incomplete)
    }

    /// The worst verdict; `None` without runs.
    #[must_use]
    pub fn word(&self) -> Option<Word> {
        self.runs.iter().map(|run| run.word).max()
    }

    /// True if a run is not VALID.
    #[must_use]
    pub fn flawed(&self) -> bool {
        self.word().is_some_and(|word| word != Word::Valid)
    }

    /// Short reason why there is no figure.
    #[must_use]
    pub fn why_none(&self) -> &'static str {
        let has = |what: &str| self.missing.iter().any(|(_, why)| why.starts_with(what));
        match () {
            () if !self.runs.is_empty() => "no figure",
            () if has("failed") => "failed",
            () if has("skipped") => "skipped",
            () => "not measured",
        }
    }
}

/// An experiment with its groups.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The experiment.
    pub experiment: Experiment,
    /// Its groups, by target, value, processes.
    pub groups: Vec<Group>,
}

impl Measured {
    /// The group of `target` at `value`; with several numbers of processes, the first.
    #[must_use]
    pub fn group(&self, target: &str, value: &str) -> Option<&Group> {
        let mut groups = self.groups.iter();
        groups.find(|g| g.target == target && g.value == value)
    }

    /// The values of the sweep, in order; a single empty one if nothing was swept.
    #[must_use]
    pub fn values(&self) -> Vec<&str> {
        distinct(self.groups.iter().map(|g| g.value.as_str()))
    }
}

/// Facts over all runs of a study, for the methods.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The facts of every run, by experiment.
    pub facts: BTreeMap<String, Vec<Facts>>,
}

/// Reads the cells of every experiment.
#[must_use]
pub fn load(files: &Files) -> (Vec<Measured>, Summary) {
    let mut summary = Summary::default();
    let experiments = files.study.experiments.iter().map(|experiment| {
        let groups = groups(files, experiment, &mut summary);
        Measured {
            experiment: experiment.clone(),
            groups,
        }
    });
    (experiments.collect(), summary)
}

fn groups(files: &Files, experiment: &Experiment, summary: &mut Summary) -> Vec<Group> {
    let cells = files.plan.cells.iter();
    let own: Vec<&Cell> = cells.filter(|c| c.experiment == experiment.name).collect();
    let keys = own.iter().map(|cell| {
        let target = files.target(&cell.target).map_or(usize::MAX, |(at, _)| at);
        let values = &experiment.values;
        let value = values.iter().position(|value| *value == cell.value);
        let value = value.unwrap_or(usize::MAX);
        (target, value, &*cell.target, &*cell.value)
    });
    let mut keys = distinct(keys);
    keys.sort_unstable();
    let mut out: Vec<Group> = Vec::new();
    for (look, _, target, value) in keys {
        let same = own
            .iter()
            .filter(|c| c.target == target && c.value == value);
        let mut own: Vec<&Cell> = same.copied().collect();
        own.sort_by_key(|cell| (cell.repetition, cell.block));
        let group = Group {
            target: target.to_owned(),
            label: files.label(target),
            look: look.min(files.study.targets.len()),
            value: value.to_owned(),
            number: number(value),
            planned: own.len(),
            ..Group::default()
        };
        match experiment.command {
            Command::StudyGrid | Command::S3Hpc => {
                trials::expand(files, experiment.command, group, &own, &mut out);
            }
            _ => out.push(read_group(files, experiment, group, &own, summary)),
        }
    }
    out
}

fn read_group(
    files: &Files,
    experiment: &Experiment,
    mut group: Group,
    cells: &[&Cell],
    summary: &mut Summary,
) -> Group {
    let mut merged = Histograms::new();
    for cell in cells {
        let read = files.measured(cell).and_then(|dir| {
            let read = read_cell(&mut group, experiment, cell, &dir, &mut merged);
            read.map_err(|why| format!("failed: {why}"))
        });
        match read {
            Ok(Some(facts)) => {
                let known = summary.facts.entry(experiment.name.clone()).or_default();
                if !known.contains(&facts) {
                    known.push(facts);
                }
            }
            Ok(None) => {}
            Err(why) => group.missing.push((cell.id.clone(), why)),
        }
    }
    balance::align(&mut group.extra.balance);
    if experiment.shows_balance() && group.extra.unplaced.is_none() {
        let why = group.runs.iter().find_map(|run| files.unplaced(&run.cell));
        group.extra.unplaced = why.map(str::to_owned);
    }
    merged.retain(|_, histogram| !histogram.is_empty());
    let curves = merged.into_iter().map(|(key, all)| (key, Curve::of(&all)));
    group.extra.curves = curves.collect();
    group
}

/// Adds the run of a cell to its group; returns its facts (`None` for a search).
fn read_cell(
    group: &mut Group,
    experiment: &Experiment,
    cell: &Cell,
    dir: &Path,
    merged: &mut Histograms,
) -> Result<Option<Facts>, String> {
    let run = |word, rules, slots, ai| Run {
        cell: cell.id.clone(),
        repetition: cell.repetition,
        word,
        rules,
        slots,
        ai,
    };
    if cell.command == Command::Capacity {
        let (result, word) = capacity(dir)?;
        group.extra.capacity.push(result);
        let none = run(word, Vec::new(), Vec::new(), AiFigures::new());
        group.runs.push(none);
        return Ok(None);
    }
    let wants = |kinds: &[FigureKind]| experiment.figures.iter().any(|f| kinds.contains(&f.kind));
    let seen = digest::read(dir)?;
    let word = seen.result.verdict.word;
    if wants(&[FigureKind::LatencyCdf, FigureKind::LatencyDensity]) && word != Word::Incomplete {
        for (key, histogram) in seen.histograms {
            merged.entry(key).or_default().merge(&histogram);
        }
    }
    if wants(&[FigureKind::ThroughputPdf]) {
        for phase in seen.result.measured() {
            let all = &mut group.extra.per_second;
            add_seconds(all.entry(phase.name.clone()).or_default(), phase);
        }
    }
    extras(&mut group.extra, dir, cell, &seen.result, seen.workers);
    let reasons = seen.result.verdict.reasons.iter();
    let rules = distinct(reasons.map(|reason| reason.rule.clone()));
    let ai = seen.result.ai();
    group.runs.push(run(word, rules, seen.slots, ai));
    Ok(Some(seen.facts))
}

/// The result of a search and its verdict. The verdict is derived from how the search ended; its trials are partly meant to fail.
fn capacity(dir: &Path) -> Result<(CapacityResult, Word), String> {
    use bucketload_core::capacity::Limit;
    let files = study::read::<CapacityStudy>(dir).map_err(|e| e.to_string())?;
    let result = CapacityResult::new(files);
    let word = match result.outcome.as_ref().map(|outcome| outcome.limit) {
        Some(Limit::Client) => Word::ClientBound,
        Some(Limit::Unconfirmed) => Word::Degraded,
        Some(_) => Word::Valid,
        None => Word::Incomplete,
    };
    Ok((result, word))
}

fn extras(extra: &mut Extra, dir: &Path, cell: &Cell, result: &RunResult, workers: u32) {
    if result.verdict.word != Word::Incomplete {
        extra.ai.add(result);
    }
    if let Some(ossperf) = &result.ossperf {
        extra.ossperf.push((workers, ossperf.clone()));
    }
    if cell.command == Command::Io500
        && let Ok(text) = std::fs::read_to_string(dir.join("result.txt"))
        && let Ok(recorded) = Recorded::parse(&text)
    {
        extra.io500.push(recorded);
    }
    if cell.command == Command::MdWorkbench {
        extra.workbench.extend(workbench::stages(dir));
    }
    extra
        .popularity
        .extend(result.run.popularity.iter().cloned());
    match balance::of(dir, result) {
        Ok(found) => extra.balance.extend(found),
        Err(why) => extra.unplaced = Some(why),
    }
}

/// Adds the throughput of the seconds inside the window of `phase`.
fn add_seconds(all: &mut PerSecond, phase: &PhaseResult) {
    let from = phase.window.start_ns.saturating_sub(phase.started_ns) as f64 / 1e9;
    let to = phase.window.end_ns.saturating_sub(phase.started_ns) as f64 / 1e9;
    let series = &phase.series;
    let step = series.t_s.windows(2).map(|w| w[1] - w[0]).next();
    let step = step.unwrap_or(1.0);
    let seconds = series.t_s.iter().enumerate();
    let inside = seconds.filter(|(_, t)| **t >= from - 1e-9 && **t + step <= to + 1e-6);
    for (i, _) in inside.take(PER_SECOND) {
        let at = |values: &[f64]| values.get(i).copied().unwrap_or(0.0);
        all.ops.push(at(&series.ops_per_s));
        all.bytes.push(at(&series.bytes_per_s));
    }
    all.bin_s = step;
    let excess = phase
        .throughput
        .as_ref()
        .and_then(|t| t.excess_bytes.as_ref());
    all.excess.extend(excess.map(|e| e.ratio));
}

/// A swept value as a number: sizes in bytes, plain numbers unchanged; `None` for others.
#[must_use]
pub fn number(value: &str) -> Option<f64> {
    let value = value.trim();
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%' || c == '/');
    let number: f64 = digits.trim().parse().ok().filter(|n: &f64| n.is_finite())?;
    let factor = match &value[digits.len()..] {
        "" | "B" | "/s" | "%" | "s" => 1.0,
        "k" | "K" | "kB" | "KB" => 1e3,
        "m" | "M" | "MB" => 1e6,
        "g" | "G" | "GB" => 1e9,
        "KiB" | "Ki" => 1024.0,
        "MiB" | "Mi" => 1_048_576.0,
        "GiB" | "Gi" => 1_073_741_824.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        _ => return None,
    };
    Some(number * factor)
}

/// True if values of `field` are sizes in bytes.
#[must_use]
pub fn is_size(field: &str, values: &[&str]) -> bool {
    let unit = |value: &&str| value.trim_end().ends_with('B');
    field.contains("size") || !values.is_empty() && values.iter().all(unit)
}

#[cfg(test)]
mod tests {
    use super::{is_size, number};

    #[test]
    fn values_that_look_like_numbers_are_numbers() {
        let values = [
            "4",
            "64KiB",
            "1.5 MiB",
            "4kB",
            "200/s",
            "zipf(0.99)",
            "",
            "5ms",
            "1e3",
        ];
        let numbers = values.map(number);
        let kib = 1024.0;
        assert_eq!(
            numbers,
            [
                Some(4.0),
                Some(64.0 * kib),
                Some(1.5 * kib * kib),
                Some(4000.0),
                Some(200.0),
                None,
                None,
                Some(0.005),
                Some(1000.0)
            ]
        );
        assert!(is_size("object-size", &["1024"]));
        assert!(is_size("x", &["4KiB", "1MiB"]));
        assert!(!is_size("workers", &["4", "8"]));
    }
}
