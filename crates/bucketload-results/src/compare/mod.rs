//! Comparison of two sets of runs, A and B, with run-level statistics (docs/spec/statistics.md section 5).
//!
//! ```text
//! directories ──runs──> Run (manifest, result) ──check──> refusal, or the differences allowed
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

/// Version of the JSON form.
pub const SCHEMA: u32 = 1;

/// One thing that two drivers do in different ways.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Meaning {
    /// What it is about.
    pub topic: &'static str,
    /// What it means on side A.
    pub a: &'static str,
    /// What it means on side B.
    pub b: &'static str,
}

/// What the user decides about a comparison, and what the program knows of drivers.
#[derive(Clone, Debug)]
pub struct Options {
    /// What two drivers, by their names in results, do in different ways; nothing for drivers that are not known.
    pub meanings: fn(&str, &str) -> Vec<Meaning>,
    /// Largest difference without consequence, as a share such as 0.05.
    pub margin: f64,
    /// Whether the runs belong together in pairs, first with first.
    pub paired: bool,
    /// Differences between the sides that the user wants: `workload`, `verdict`, or the path of a
    /// field such as `phases.run.works`.
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

/// How the interval of a ratio was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Welch's interval of the logarithms, for independent runs.
    LogWelch,
    /// t interval of the log-ratios of pairs.
    Paired,
}

impl Method {
    /// The method in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::LogWelch => "log-Welch over independent runs",
            Self::Paired => "paired log-ratios of runs with the same seed and schedule",
        }
    }
}

/// How two sides are set against each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// As B / A.
    Ratio,
    /// As B - A: shares, which may be 0.
    Difference,
}

/// What a quantity is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Quantity {
    /// Stable name: phase, work where there are several, class, figure, joined by `/`.
    pub id: String,
    /// Name for readers.
    pub name: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Which direction is good.
    pub better: Better,
    /// How the sides are compared.
    pub effect: Effect,
    /// Whether it belongs to the few that the overall word rests on: the throughput of a closed
    /// loop, the median response times of an open one.
    pub primary: bool,
    /// Whether a worse value makes the comparison worse. The client's own cost does not.
    pub gate: bool,
}

/// One quantity with its value in every run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// What it is.
    #[serde(flatten)]
    pub quantity: Quantity,
    /// Values of A's runs.
    pub a: Vec<f64>,
    /// Values of B's runs.
    pub b: Vec<f64>,
}

/// What the runs say about one quantity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The values.
    #[serde(flatten)]
    pub sample: Sample,
    /// Geometric mean of A's runs (arithmetic for differences).
    pub a_mean: f64,
    /// The same of B's.
    pub b_mean: f64,
    /// Run-to-run coefficient of variation of A; `None` with one run or a mean of 0.
    pub a_cv: Option<f64>,
    /// The same of B.
    pub b_cv: Option<f64>,
    /// Ratio or difference with its 95 % interval and p-value, not corrected; `None` with one run
    /// on a side.
    pub interval: Option<Interval>,
    /// p-value corrected for all quantities (Holm, weighted); 1 without an interval.
    pub adjusted_p: f64,
    /// A check by ranks, without any distribution.
    pub ranks: Option<MannWhitney>,
    /// The word.
    pub decision: Decision,
}

/// One side.
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
    /// Identity of what is measured.
    pub scenario_hash: String,
    /// Driver and engine.
    pub driver: String,
    /// Version of the tool.
    pub version: String,
    /// The runs.
    pub runs: Vec<RunRow>,
}

/// One run.
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
    /// The rules behind it.
    pub rules: Vec<String>,
}

/// The outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Version of this form, [`SCHEMA`].
    pub schema: u32,
    /// B seen from A.
    pub decision: Decision,
    /// Largest difference without consequence.
    pub margin: f64,
    /// Confidence of the intervals.
    pub level: f64,
    /// How they were made.
    pub method: Method,
    /// How the runs were made, where this program made them; empty otherwise.
    pub schedule: String,
    /// The baseline.
    pub a: Side,
    /// What is compared with it.
    pub b: Side,
    /// Every quantity, primary ones first.
    pub quantities: Vec<Compared>,
    /// How the distribution of each duration is shifted.
    pub shifts: Vec<Shift>,
    /// Differences between the sides that were allowed.
    pub differences: Vec<Difference>,
    /// What operations mean on either side, where the sides speak different APIs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub semantics: Vec<Meaning>,
    /// What readers should know.
    pub notes: Vec<String>,
}

/// Compares the runs of `a` with those of `b`.
///
/// # Errors
/// When they cannot be compared: too few, not alike, or not valid.
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
            "one run on a side: its variation from run to run is unknown, so nothing can be \
             concluded; make at least 3 runs per side"
                .to_owned(),
        );
    } else if a.len().min(b.len()) < 5 {
        notes.push(format!(
            "{} and {} runs: intervals are wide; 5 per side are the usual number",
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
                "with the variation seen here, about {runs} runs per side would tell a difference of {}",
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
