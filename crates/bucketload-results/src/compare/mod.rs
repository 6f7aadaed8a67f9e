//! Comparison of two sets of runs, A and B, with run-level statistics (docs/spec/statistics.md section 5).
//!
//! ```text
//! directories ──runs──> Run (manifest, result) ──check──> refusal, or the permitted differences
//!                                   └──metrics──> one value per run ──analysis──> Comparison
//!                                                                        └──> text, json, csv, page
//! ```
//!
//! The unit of analysis is the run. Every ratio is B over A.

mod analysis;
mod check;
mod diff;
mod metrics;
mod runs;
mod shift;

use bucketload_core::stats::decide::{Better, DEFAULT_MARGIN, Decision};
use bucketload_core::stats::ranks::MannWhitney;
use bucketload_core::stats::ratio::Interval;
use serde::Serialize;

pub use analysis::{LEVEL, judge};
pub use check::{Refusal, UsableVerdict, comparable, usable};
pub use diff::Difference;
pub use runs::{Run, find};
pub use shift::{Shift, ShiftPoint};

pub use crate::result::figure::Unit;

/// Version of the JSON format.
pub const SCHEMA: u32 = 1;

/// A point on which two drivers differ in what an operation means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Meaning {
    /// The topic.
    pub topic: &'static str,
    /// The meaning on side A.
    pub a: &'static str,
    /// The meaning on side B.
    pub b: &'static str,
}

/// Settings of a comparison.
#[derive(Clone, Debug)]
pub struct Options {
    /// Looks up the differences in meaning between two drivers by their names; empty for unknown drivers.
    pub meanings: fn(&str, &str) -> Vec<Meaning>,
    /// Largest difference that does not matter, as a share such as 0.05.
    pub margin: f64,
    /// Whether the runs form pairs: first with first, and so on.
    pub paired: bool,
    /// Permitted differences between the sides: `workload`, `verdict`, or the path of a field such as
    /// `phases.run.works`.
    pub allow: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            meanings: |_, _| Vec::new(),
            margin: DEFAULT_MARGIN,
            paired: false,
            allow: Vec::new(),
        }
    }
}

/// Method of a ratio's interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Welch's interval on the logarithms, for independent runs.
    LogWelch,
    /// t interval on the log-ratios of pairs.
    Paired,
}

impl Method {
    /// The method as text.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::LogWelch => "log-Welch over independent runs",
            Self::Paired => "paired log-ratios of runs with the same seed and schedule",
        }
    }
}

/// How two sides are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// As B / A.
    Ratio,
    /// As B - A: shares, which may be 0.
    Difference,
}

/// A quantity that is compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Quantity {
    /// Stable name: phase, work if there are several, class, figure, joined by `/`.
    pub id: String,
    /// Name for readers.
    pub name: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Which direction is better.
    pub better: Better,
    /// How the sides are compared.
    pub effect: Effect,
    /// Whether it is one of the few on which the overall decision rests: the throughput of a closed loop, the
    /// median response times of an open one.
    pub primary: bool,
    /// Whether a worse value makes the comparison worse. The client's own cost does not.
    pub gate: bool,
}

/// A quantity with its value in every run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// The quantity.
    #[serde(flatten)]
    pub quantity: Quantity,
    /// Values of A's runs.
    pub a: Vec<f64>,
    /// Values of B's runs.
    pub b: Vec<f64>,
}

/// The comparison of one quantity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The values.
    #[serde(flatten)]
    pub sample: Sample,
    /// Geometric mean of A's runs (arithmetic mean for differences).
    pub a_mean: f64,
    /// The same for B.
    pub b_mean: f64,
    /// Run-to-run coefficient of variation of A; `None` for a single run or a mean of 0.
    pub a_cv: Option<f64>,
    /// The same for B.
    pub b_cv: Option<f64>,
    /// Ratio or difference with its 95 % interval and uncorrected p-value; `None` with one run on a side.
    pub interval: Option<Interval>,
    /// p-value corrected for multiple testing (Holm, weighted); 1 without an interval.
    pub adjusted_p: f64,
    /// Rank test, which assumes no distribution.
    pub ranks: Option<MannWhitney>,
    /// The decision.
    pub decision: Decision,
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// `A` or `B`.
    pub label: &'static str,
    /// The target.
    pub target: String,
    /// The workload.
    pub workload: String,
    /// Its profile; empty when it has none.
    pub profile: String,
    /// Hash of the scenario that was measured.
    pub scenario_hash: String,
    /// Driver and engine.
    pub driver: String,
    /// Version of the tool.
    pub version: String,
    /// The runs.
    pub runs: Vec<RunRow>,
}

/// One run of a side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunRow {
    /// Its directory.
    pub directory: String,
    /// Its identifier.
    pub run_id: String,
    /// Its start, RFC 3339 in UTC.
    pub started: String,
    /// Its verdict.
    pub verdict: String,
    /// The rules that led to it.
    pub rules: Vec<String>,
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Version of this format, [`SCHEMA`].
    pub schema: u32,
    /// The decision on B relative to A.
    pub decision: Decision,
    /// Largest difference that does not matter.
    pub margin: f64,
    /// Confidence of the intervals.
    pub level: f64,
    /// Method of the intervals.
    pub method: Method,
    /// Schedule of the runs, if this program made them; empty otherwise.
    pub schedule: String,
    /// The baseline.
    pub a: Side,
    /// The side compared with the baseline.
    pub b: Side,
    /// Every quantity, primary ones first.
    pub quantities: Vec<Compared>,
    /// How the distribution of each duration is shifted.
    pub shifts: Vec<Shift>,
    /// Permitted differences between the sides.
    pub differences: Vec<Difference>,
    /// What operations mean on each side, if the sides use different APIs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub semantics: Vec<Meaning>,
    /// Notes for readers.
    pub notes: Vec<String>,
}

/// Compares the runs of `a` with those of `b`.
///
/// # Errors
/// When they cannot be compared: too few runs, different runs, or runs that are not valid.
pub fn compare(a: &[Run], b: &[Run], options: &Options) -> Result<Comparison, Refusal> {
    let (differences, mut notes) = check::check(a, b, options)?;
    let (samples, missing) = metrics::samples(a, b);
    notes.extend(missing);
    if samples.is_empty() {
        return Err(Refusal::NothingInCommon);
    }
    let (decision, mut quantities) = judge(samples, options.paired, options.margin);
    quantities.sort_by_key(|q| !q.sample.quantity.primary);
    if a.len().min(b.len()) < 2 {
        notes.push(
            "only one run on a side: run-to-run variation is unknown, so nothing can be concluded; use at \
             least 3 runs per side"
                .to_owned(),
        );
    } else if a.len().min(b.len()) < 5 {
        notes.push(format!(
            "{} and {} runs: intervals are wide; 5 per side is the usual number",
            a.len(),
            b.len()
        ));
    }
    if decision == Decision::Inconclusive {
        let needed = quantities.iter().filter(|q| q.sample.quantity.primary);
        if let Some(runs) = needed
            .filter_map(|q| analysis::runs_needed(q, options))
            .max()
        {
            notes.push(format!(
                "with the variation seen here, about {runs} runs per side would be enough to detect a difference of {}",
                crate::units::percent(options.margin)
            ));
        }
    }
    Ok(Comparison {
        schema: SCHEMA,
        decision,
        margin: options.margin,
        level: LEVEL,
        method: if options.paired {
            Method::Paired
        } else {
            Method::LogWelch
        },
        schedule: String::new(),
        a: side("A", a),
        b: side("B", b),
        quantities,
        shifts: shift::shifts(a, b, options.paired),
        differences,
        semantics: (options.meanings)(driver_of(a), driver_of(b)),
        notes,
    })
}

fn driver_of(runs: &[Run]) -> &str {
    &runs[0].result.run.driver.driver
}

fn side(label: &'static str, runs: &[Run]) -> Side {
    let first = &runs[0].result.run;
    Side {
        label,
        target: first.target.clone(),
        workload: first.workload.clone(),
        profile: first.profile.clone(),
        scenario_hash: first.scenario_hash.clone(),
        driver: format!("{} ({})", first.driver.driver, first.driver.engine),
        version: first.version.clone(),
        runs: runs
            .iter()
            .map(|run| RunRow {
                directory: run.directory.display().to_string(),
                run_id: run.result.run.run_id.clone(),
                started: run.result.run.started.clone(),
                verdict: run.result.verdict.word.to_string(),
                rules: run
                    .result
                    .verdict
                    .reasons
                    .iter()
                    .map(|reason| reason.rule.clone())
                    .collect(),
            })
            .collect(),
    }
}
