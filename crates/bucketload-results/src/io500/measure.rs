//! Computes the scores of the phases from a run directory (docs/spec/io500-mdworkbench.md sections A.2 and A.3).
//!
//! Times span from the start of the first operation to the end of the last one over all ranks, including the
//! wear-out.

use std::collections::BTreeMap;
use std::path::Path;

use bucketload_core::plan::{PhaseKind, RanksPlan};
use bucketload_core::ranks::PhaseRanks;
use bucketload_core::sink::{Event, PhaseEnd};

use super::score::PhaseScore;
use super::workbench;
use super::{IO500_VERSION, Phase, Tool};
use crate::error::ResultsError;
use crate::rundir::{Manifest, RunDir};

/// A run of IO500.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Program and the version of IO500 that it follows.
    pub version: String,
    /// Hash of the configuration.
    pub config_hash: String,
    /// Directory of the results.
    pub result_dir: String,
    /// Mapping of files to objects.
    pub mapping: String,
    /// Number of ranks.
    pub ranks: u32,
    /// Whether it ran the phases of the extended mode.
    pub extended: bool,
    /// Start, seconds since 1970.
    pub start_unix_s: i64,
    /// End, seconds since 1970.
    pub end_unix_s: i64,
    /// The phases, in order of execution; phases that did not run have a score of 0.
    pub phases: Vec<PhaseScore>,
    /// Measurements of the ranks, in the order of `phases`.
    pub ranks_of: Vec<Option<PhaseRanks>>,
}

/// Facts from the configuration that the run directory lacks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Hash of the configuration.
    pub config_hash: String,
    /// Whether the extended mode is on.
    pub extended: bool,
    /// The required stonewall, nanoseconds: 300 s, or 30 s for student clusters.
    pub required_ns: u64,
    /// Whether the stonewall is the required one.
    pub stonewall_ok: bool,
    /// Whether files may hold back phases.
    pub pauses: bool,
    /// Phases that do not run, by name, with the reason.
    pub skipped: Vec<(String, String)>,
}

/// Data of a phase from the events of a run.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) started_ns: Option<u64>,
    pub(super) ended: Option<(u64, PhaseEnd)>,
    pub(super) ranks: Option<PhaseRanks>,
}

/// Whether `planned`, a phase of a plan, is IO500's `phase` or an iteration of it.
#[must_use]
pub fn is_of(planned: &str, phase: &str) -> bool {
    let rest = planned.strip_prefix(phase);
    rest.is_some_and(|rest| matches!(rest, "" | FIRST | SECOND))
}

/// True if a phase of the plan is the iteration of MD-Workbench's benchmark that counts.
fn is_second(planned: &str, phase: &Phase) -> bool {
    planned.strip_prefix(phase.name) == Some(SECOND)
}

/// Suffix of the first iteration of MD-Workbench's benchmark.
pub const FIRST: &str = "-0";
/// Suffix of the second iteration of MD-Workbench's benchmark, which is the one that counts.
pub const SECOND: &str = "-1";

/// Computes the scores of the run in `dir`.
///
/// # Errors
/// When the directory cannot be read.
pub fn measure(dir: &Path, settings: &Settings) -> Result<Report, ResultsError> {
    let run = RunDir::open(dir)?;
    let (events, _) = run.events()?;
    let manifest = run.manifest();
    let mut seen: BTreeMap<u16, Seen> = BTreeMap::new();
    for event in events {
        match event {
            Event::PhaseStarted { phase, at_ns } => {
                seen.entry(phase).or_default().started_ns = Some(at_ns);
            }
            Event::PhaseEnded {
                phase,
                drained_ns,
                end,
                ..
            } => {
                seen.entry(phase).or_default().ended = Some((drained_ns, end));
            }
            Event::Ranks(ranks) => {
                let phase = ranks.phase;
                seen.entry(phase).or_default().ranks = Some(ranks);
            }
            _ => {}
        }
    }
    let phases_of = super::phases(settings.extended);
    let mut mapping = String::new();
    let mut ranks = 0;
    let mut ranks_of: Vec<Option<PhaseRanks>> = vec![None; phases_of.len()];
    let phases = phases_of.iter().enumerate().map(|(at, phase)| {
        let planned = manifest.plan.phases.iter().enumerate();
        let found = planned
            .filter(|(_, plan)| plan.kind == PhaseKind::Run)
            .find(|(_, plan)| plan.name == phase.name || is_second(&plan.name, phase));
        let Some((index, plan)) = found else {
            return not_planned(phase, settings);
        };
        let all = &seen;
        let seen = u16::try_from(index).ok().and_then(|index| all.get(&index));
        let model = plan.works.first().and_then(|work| work.model.ranks());
        let Some(model) = model else {
            return not_planned(phase, settings);
        };
        mapping = model.mapping.name().to_owned();
        ranks = model.ranks;
        if let Some(seen) = seen {
            ranks_of[at].clone_from(&seen.ranks);
            if let Some(of) = &mut ranks_of[at] {
                of.ranks.retain(|rank| rank.rank < model.searchers());
            }
        }
        if phase.tool == Tool::Workbench {
            // The first iteration of the benchmark precedes the one that counts.
            let first = index
                .checked_sub(1)
                .and_then(|index| u16::try_from(index).ok());
            let first = first.filter(|_| phase.extended != super::Group::None);
            let first = first.and_then(|index| all.get(&index));
            return workbench::score(phase, model, (first, seen), manifest);
        }
        score(
            phase,
            model,
            seen.unwrap_or(&Seen::default()),
            manifest,
            settings,
        )
    });
    let phases: Vec<PhaseScore> = phases.collect();
    let seconds = |ns: u64| i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX);
    let ended = manifest.ended_unix_ns;
    Ok(Report {
        version: format!("bucketload-{}-{IO500_VERSION}", manifest.version),
        config_hash: settings.config_hash.clone(),
        result_dir: dir.display().to_string(),
        mapping,
        ranks,
        extended: settings.extended,
        start_unix_s: seconds(manifest.started_unix_ns),
        end_unix_s: seconds(ended),
        phases,
        ranks_of,
    })
}

/// An instant of the run in seconds since 1970.
pub(super) fn wall_s(manifest: &Manifest, at_ns: u64) -> i64 {
    let at = manifest.started_unix_ns.saturating_add(at_ns);
    i64::try_from(at / 1_000_000_000).unwrap_or(i64::MAX)
}

fn not_planned(phase: &Phase, settings: &Settings) -> PhaseScore {
    let why = settings.skipped.iter().find(|(name, _)| name == phase.name);
    let (invalid, lines) = match (phase.tool, phase.group, why) {
        (Tool::Timestamp, _, _) => (Vec::new(), Vec::new()),
        // The phase belongs to no score, so its absence invalidates none.
        (_, super::Group::None, Some((_, why))) => {
            (Vec::new(), vec![("not-run".to_owned(), why.clone())])
        }
        (_, _, Some((_, why))) => (vec![format!("Not run: {why}")], Vec::new()),
        (_, _, None) => (vec!["Not run".to_owned()], Vec::new()),
    };
    PhaseScore {
        name: phase.name.to_owned(),
        invalid,
        lines,
        ..PhaseScore::default()
    }
}

fn score(
    phase: &Phase,
    model: &RanksPlan,
    seen: &Seen,
    manifest: &Manifest,
    settings: &Settings,
) -> PhaseScore {
    let mut out = PhaseScore {
        name: phase.name.to_owned(),
        ..PhaseScore::default()
    };
    let (Some(started_ns), Some((ended_ns, end)), Some(ranks)) =
        (seen.started_ns, seen.ended, &seen.ranks)
    else {
        out.invalid.push("Not run to completion".to_owned());
        return out;
    };
    (out.start_unix_s, out.end_unix_s) = (wall_s(manifest, started_ns), wall_s(manifest, ended_ns));
    out.seconds = ended_ns.saturating_sub(started_ns) as f64 / 1e9;
    let length_ns = ranks.length_ns();
    let per_second = |amount: u64, ns: u64, unit: f64| match ns {
        0 => 0.0,
        ns => amount as f64 / unit / (ns as f64 / 1e9),
    };
    let mut line = |key: &str, value: String| out.lines.push((key.to_owned(), value));
    line("mapping", model.mapping.name().to_owned());
    line(
        "requests",
        ranks.sum(|rank| rank.ops + rank.failed).to_string(),
    );
    let (amount, at_wall, unit): (u64, u64, f64) = match phase.tool {
        Tool::Ior => (
            ranks.sum(|rank| rank.bytes),
            ranks.sum(|rank| rank.wall_bytes),
            f64::from(1u32 << 30),
        ),
        Tool::Mdtest | Tool::Workbench | Tool::Timestamp => (
            ranks.sum(|rank| rank.good),
            ranks.sum(|rank| rank.wall_good),
            1000.0,
        ),
        Tool::Find => (ranks.sum(|rank| rank.seen), 0, 1000.0),
    };
    if ranks.ranks.iter().any(|rank| rank.wall_ns > 0) {
        // Ranks that finished earlier count with all of their work.
        let early = |rank: &&bucketload_core::ranks::RankSum| rank.wall_ns == 0;
        let before: u64 = ranks
            .ranks
            .iter()
            .filter(early)
            .map(|rank| match phase.tool {
                Tool::Ior => rank.bytes,
                _ => rank.good,
            })
            .sum();
        let first = ranks
            .ranks
            .iter()
            .map(|rank| rank.first_ns)
            .min()
            .unwrap_or(0);
        let last = ranks
            .ranks
            .iter()
            .map(|rank| rank.wall_ns)
            .max()
            .unwrap_or(0);
        let rate = per_second(at_wall + before, last.saturating_sub(first), unit);
        let key = match phase.tool {
            Tool::Ior => "throughput-stonewall",
            _ => "rate-stonewall",
        };
        line(key, format!("{rate:.2}"));
    }
    if phase.tool == Tool::Find {
        let found = ranks.sum(|rank| rank.found);
        line("nproc", model.searchers().to_string());
        line("found", found.to_string());
        line("total-files", amount.to_string());
        if found == 0 {
            out.invalid.push("No file was found".to_owned());
        }
    }
    out.score = per_second(amount, length_ns, unit);
    let failed = ranks.sum(|rank| rank.failed);
    if failed > 0 {
        out.invalid.push(format!("{failed} requests failed"));
    }
    if end != PhaseEnd::Complete {
        out.invalid.push("Stopped before its end".to_owned());
    }
    if out.score <= 0.0 {
        out.invalid.push("Score of 0".to_owned());
    }
    if settings.pauses {
        let text = "pause-dir is set, so phases may have waited";
        out.invalid.push(text.to_owned());
    }
    if phase.writes {
        if !settings.stonewall_ok {
            let need = settings.required_ns as f64 / 1e9;
            let has = model.stonewall_ns as f64 / 1e9;
            out.invalid
                .push(format!("stonewall-time is {has} s instead of {need} s"));
        }
        if length_ns < settings.required_ns {
            let text = "Runtime is smaller than expected minimum runtime";
            out.invalid.push(text.to_owned());
        }
    }
    out
}
