//! The result of a sweep: one field of a workload takes several values, with several runs at each.
//!
//! Everything is computed from the request ([`Header`]) and the trials ([`Record`]). Where the
//! field counts workers or endpoints, the Universal Scalability Law is fitted to the run means
//! ([`bucketload_core::stats::usl`]); where it is a rate, the curve is one of latency against load.
//! [`text`] and [`page`] render it.

pub mod page;
pub mod text;

use std::collections::BTreeMap;

use bucketload_core::ai::{AiFigure, AiFigures};
use bucketload_core::histogram::Histogram;
use bucketload_core::stats::dist::t_quantile;
use bucketload_core::stats::knee::{Knee, Saturation, kneedle, power, saturation};
use bucketload_core::stats::moments::Moments;
use bucketload_core::stats::usl::{self, Efficiency, UslFit};
use bucketload_core::tally::Tally;
use bucketload_core::verdict::Word;
use serde::{Deserialize, Serialize};

use crate::result::RunResult;
use crate::study::{Study, StudyFiles};

/// Version of the JSON format.
pub const SCHEMA: u32 = 1;

/// The kind of study with a sweep.
#[derive(Debug)]
pub struct SweepStudy;

impl Study for SweepStudy {
    const HEADER: &'static str = "sweep.json";
    type Header = Header;
    type Record = Record;
}

/// The kind of field that is swept; it decides the analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Axis {
    /// Workers or endpoints: throughput scales with it.
    Concurrency,
    /// Offered operations per second.
    Rate,
    /// Another number, such as a size.
    Number,
    /// Not a number.
    Category,
}

/// The request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Version of this format, [`SCHEMA`].
    pub schema: u32,
    /// Version of the tool.
    pub version: String,
    /// Name of the workload.
    pub workload: String,
    /// Its profile; empty when it has none.
    pub profile: String,
    /// Description of the target.
    pub target: String,
    /// Wall-clock start, RFC 3339 in UTC.
    pub started: String,
    /// Name of the field.
    pub field: String,
    /// Kind of the field.
    pub axis: Axis,
    /// Its values, in the order given.
    pub values: Vec<String>,
    /// Runs at each value.
    pub repetitions: u32,
    /// The command line.
    pub command_line: Vec<String>,
}

/// The measurements of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The field's value.
    pub value: String,
    /// The value as a number; `None` for categories.
    pub number: Option<f64>,
    /// Number of the run at this value, from 0.
    pub repetition: u32,
    /// The run directory, inside the study's.
    pub dir: String,
    /// Operations that fell due, per second.
    pub offered_per_s: f64,
    /// Operations that succeeded, per second.
    pub ok_per_s: f64,
    /// Object bytes of these, per second.
    pub bytes_per_s: f64,
    /// Operations that succeeded.
    pub n: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Mean response time, nanoseconds.
    pub mean_ns: f64,
    /// Median response time, nanoseconds.
    pub p50_ns: u64,
    /// 99th percentile of the response time, nanoseconds.
    pub p99_ns: u64,
    /// The run's verdict.
    pub verdict: Word,
    /// Figures of training, checkpoints or a cache, by name.
    #[serde(default, skip_serializing_if = "AiFigures::is_empty")]
    pub ai: AiFigures,
}

impl Record {
    /// The record of a run in directory `dir`; `tally` is from its measuring phase. `None` if the result
    /// has no measured phase.
    #[must_use]
    pub fn of(
        value: &str,
        number: Option<f64>,
        repetition: u32,
        dir: String,
        result: &RunResult,
        tally: &Tally,
    ) -> Option<Self> {
        let phase = result.measured().next()?;
        let mut response = Histogram::new();
        tally.cells.iter().for_each(|c| response.merge(&c.response));
        Some(Self {
            value: value.to_owned(),
            number,
            repetition,
            dir,
            offered_per_s: phase.rates.offered_ops_per_s,
            ok_per_s: phase.rates.ops_per_s.mean,
            bytes_per_s: phase.rates.bytes_per_s.mean,
            n: tally.ok(),
            failed: tally.failures(),
            mean_ns: response.mean_ns(),
            p50_ns: response.quantile_ns(0.5),
            p99_ns: response.quantile_ns(0.99),
            verdict: result.verdict.word,
            ai: result.ai(),
        })
    }
}

/// The mean of a figure over the runs at one value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MeanOverRuns {
    /// The mean.
    pub mean: f64,
    /// Half-width of the 95 % interval over runs (Student's t); `None` for a single run.
    pub half_width: Option<f64>,
}

impl MeanOverRuns {
    fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let moments = Moments::of(values);
        Self {
            mean: moments.mean,
            half_width: (values.len() > 1)
                .then(|| t_quantile(0.975, n - 1.0) * moments.sd / n.sqrt()),
        }
    }

    /// The interval; `None` if there are too few runs to tell: a single one, or an interval wider than the mean
    /// itself, which would include negative values.
    #[must_use]
    pub fn interval(&self) -> Option<(f64, f64)> {
        let half = self.half_width.filter(|half| *half < self.mean)?;
        Some((self.mean - half, self.mean + half))
    }
}

/// The runs at one value of the field.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The value as written.
    pub value: String,
    /// The value as a number; `None` for categories.
    pub number: Option<f64>,
    /// Operations that succeeded, per second.
    pub ok_per_s: MeanOverRuns,
    /// Their object bytes, per second.
    pub bytes_per_s: MeanOverRuns,
    /// Median response time, nanoseconds.
    pub p50_ns: MeanOverRuns,
    /// 99th percentile of the response time, nanoseconds.
    pub p99_ns: MeanOverRuns,
    /// Runs.
    pub runs: u64,
    /// The worst verdict among them.
    pub verdict: Word,
    /// Figures of training, checkpoints or a cache, by name, as far as every run has them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub ai: BTreeMap<AiFigure, MeanOverRuns>,
}

impl Point {
    /// True if one of its figures has an interval wider than itself.
    #[must_use]
    pub fn is_uncertain(&self) -> bool {
        let figures = [self.ok_per_s, self.bytes_per_s, self.p50_ns, self.p99_ns];
        let figures = figures.iter().chain(self.ai.values());
        let wide =
            |f: &MeanOverRuns| f.mean > 0.0 && f.half_width.is_some_and(|half| half >= f.mean);
        figures.into_iter().any(wide)
    }
}

/// The result of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweepResult {
    /// The request.
    pub header: Header,
    /// The values that have runs, in the order given.
    pub points: Vec<Point>,
    /// The fitted Universal Scalability Law, for workers and endpoints; `None` if the runs do not suffice.
    pub usl: Option<UslFit>,
    /// Throughput per unit relative to the smallest value, for workers and endpoints.
    pub efficiency: Vec<Efficiency>,
    /// Knee of the p99 by Kneedle, for rates: descriptive only.
    pub knee: Option<Knee>,
    /// The point of maximum power, throughput over mean latency, for rates: descriptive only.
    pub power: Option<Knee>,
    /// Throughput of the store under overload, for rates.
    pub saturation: Option<Saturation>,
    /// The runs, in order.
    pub trials: Vec<Record>,
    /// Unreadable lines of the file of trials.
    pub damaged: u64,
}

impl SweepResult {
    /// Computes the result from the request and the trials.
    #[must_use]
    pub fn new(files: StudyFiles<SweepStudy>) -> Self {
        let StudyFiles {
            header,
            trials,
            damaged,
        } = files;
        let points: Vec<Point> = header
            .values
            .iter()
            .filter_map(|value| point(value, &trials))
            .collect();
        // A run that the client limited says nothing about the store's scaling.
        let scaling: Vec<usl::Point> = trials
            .iter()
            .filter(|t| header.axis == Axis::Concurrency && t.verdict != Word::ClientBound)
            .filter_map(|t| {
                Some(usl::Point {
                    n: t.number?,
                    x: t.ok_per_s,
                })
            })
            .collect();
        let rates = || trials.iter().filter(|_| header.axis == Axis::Rate);
        let curve = |y: fn(&Record) -> f64| -> Vec<(f64, f64)> {
            rates().filter_map(|t| Some((t.number?, y(t)))).collect()
        };
        let loads: Vec<(f64, f64)> = rates().map(|t| (t.offered_per_s, t.ok_per_s)).collect();
        Self {
            usl: usl::fit(&scaling),
            efficiency: usl::efficiency(&scaling),
            knee: kneedle(&curve(|t| t.p99_ns as f64)),
            power: power(&curve(|t| t.mean_ns)),
            saturation: saturation(&loads),
            points,
            header,
            trials,
            damaged,
        }
    }

    /// The figures of training, checkpoints or a cache that the runs at some value have.
    #[must_use]
    pub fn ai_figures(&self) -> Vec<AiFigure> {
        let known = |figure: &&AiFigure| self.points.iter().any(|p| p.ai.contains_key(figure));
        AiFigure::ALL.iter().filter(known).copied().collect()
    }

    /// Number of runs that the request has.
    #[must_use]
    pub fn wanted(&self) -> usize {
        self.header.values.len() * self.header.repetitions as usize
    }

    /// True if the client limited every run: then the sweep says nothing about the store.
    #[must_use]
    pub fn is_client_bound(&self) -> bool {
        !self.trials.is_empty() && self.client_bound() == self.trials.len()
    }

    /// Number of runs that the client limited. They are shown but excluded from the fit.
    #[must_use]
    pub fn client_bound(&self) -> usize {
        let bound = |t: &&Record| t.verdict == Word::ClientBound;
        self.trials.iter().filter(bound).count()
    }
}

fn point(value: &str, trials: &[Record]) -> Option<Point> {
    let runs: Vec<&Record> = trials.iter().filter(|t| t.value == value).collect();
    let first = runs.first()?;
    let over = |figure: fn(&Record) -> f64| {
        MeanOverRuns::of(&runs.iter().map(|t| figure(t)).collect::<Vec<_>>())
    };
    Some(Point {
        value: value.to_owned(),
        number: first.number,
        ok_per_s: over(|t| t.ok_per_s),
        bytes_per_s: over(|t| t.bytes_per_s),
        p50_ns: over(|t| t.p50_ns as f64),
        p99_ns: over(|t| t.p99_ns as f64),
        runs: runs.len() as u64,
        verdict: runs.iter().map(|t| t.verdict).max().unwrap_or(Word::Valid),
        ai: first
            .ai
            .keys()
            .filter_map(|figure| {
                let values: Option<Vec<f64>> =
                    runs.iter().map(|t| t.ai.get(figure).copied()).collect();
                Some((*figure, MeanOverRuns::of(&values?)))
            })
            .collect(),
    })
}
