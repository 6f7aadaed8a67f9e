//! The result of a capacity search.
//!
//! Everything is computed from what was asked for ([`Header`]) and the trials ([`Record`]): the search
//! itself is replayed with their findings, so an interrupted search is reported by the same code.
//! [`text`] and [`page`] render it.

pub mod page;
pub mod text;

use bucketload_core::capacity::Statistic;
use bucketload_core::capacity::{
    Bound, CheckedObjective, Judgement, Outcome, Search, Settings, Slo, Threshold, Timing, Trial,
    TrialEvidence, TrialFinding, TrialMeaning, TrialResult, eval,
};
use bucketload_core::histogram::Histogram;
use bucketload_core::plan::Plan;
use bucketload_core::stats::knee::{Knee, Saturation, kneedle, power, saturation};
use bucketload_core::stats::quantile::ci_ranks;
use bucketload_core::tally::Tally;
use bucketload_core::verdict;
use serde::{Deserialize, Serialize};

use crate::result::RunResult;
use crate::study::{Study, StudyFiles};

/// Version of the JSON form.
pub const SCHEMA: u32 = 1;

/// Studies of this kind.
#[derive(Debug)]
pub struct CapacityStudy;

impl Study for CapacityStudy {
    const HEADER: &'static str = "capacity.json";
    type Header = Header;
    type Record = Record;
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Version of this form, [`SCHEMA`].
    pub schema: u32,
    /// Version of the tool.
    pub version: String,
    /// Name of the workload.
    pub workload: String,
    /// Its profile; empty when it has none.
    pub profile: String,
    /// The target, in words.
    pub target: String,
    /// Wall-clock start, RFC 3339 in UTC.
    pub started: String,
    /// The objectives as written.
    pub slo: Slo,
    /// How the search goes.
    pub settings: Settings,
    /// Length of the trials, seconds, where the user has set it; `None` for what the objectives
    /// deserve (docs/spec/statistics.md section 6).
    pub trial_s: Option<f64>,
    /// Whether the user asked for a quick answer: short trials, fewer references.
    pub quick: bool,
    /// The command line.
    pub command_line: Vec<String>,
}

/// A percentile of the response time, failures censored at the timeout.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Value, nanoseconds.
    pub ns: u64,
    /// 95 % interval from order statistics, nanoseconds; optimistic, because operations of one run
    /// are correlated. `None` with too few values.
    pub ci_ns: Option<(u64, u64)>,
}

/// What a trial showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Number, rate and purpose.
    pub trial: Trial,
    /// Its run directory, inside the study's.
    pub dir: String,
    /// Length of the measured window, seconds.
    pub window_s: f64,
    /// Operations that fell due, per second.
    pub offered_per_s: f64,
    /// Operations that succeeded, per second.
    pub ok_per_s: f64,
    /// Operations that ended.
    pub n: u64,
    /// Median response time.
    pub p50: Point,
    /// 99th percentile of the response time.
    pub p99: Point,
    /// The figure of the first objective about a duration; the 99th percentile without one.
    pub primary: Point,
    /// The run's verdict.
    pub verdict: verdict::Word,
    /// Rules that found something.
    pub rules: Vec<String>,
    /// The objectives against what was measured.
    pub judgement: Judgement,
}

impl Record {
    /// The record of a trial in run directory `dir`, whose only measuring phase left `tally`.
    /// `None` when the result has no measured phase.
    #[must_use]
    pub fn of(
        trial: Trial,
        dir: String,
        slo: &Slo,
        plan: &Plan,
        result: &RunResult,
        tally: &Tally,
    ) -> Option<Self> {
        let phase = result.measured().next()?;
        let ok_per_s = phase.rates.ops_per_s.mean;
        let evidence = TrialEvidence {
            tally,
            ok_per_s,
            timeout_ns: plan.timeout_ns,
            not_found_is_failure: plan.not_found_is_failure,
            verdict: &result.verdict,
        };
        let times = |timing| {
            let cells = tally.cells.iter();
            eval::censored(cells, timing, plan.timeout_ns, plan.not_found_is_failure).0
        };
        let response = times(Timing::Response);
        let primary = match slo.primary().map(|o| (o.class, o.bound)) {
            Some((class, Bound::Duration { of, statistic, .. })) => {
                let cells = tally
                    .cells
                    .iter()
                    .filter(|c| class.is_none_or(|class| c.class == class));
                let (times, ..) =
                    eval::censored(cells, of, plan.timeout_ns, plan.not_found_is_failure);
                match statistic {
                    Statistic::Quantile(q) => point(&times, q),
                    Statistic::Mean => Point {
                        ns: times.mean_ns() as u64,
                        ci_ns: None,
                    },
                    Statistic::Max => Point {
                        ns: times.max_ns(),
                        ci_ns: None,
                    },
                }
            }
            _ => point(&response, 0.99),
        };
        Some(Self {
            trial,
            dir,
            window_s: phase.window.seconds(),
            offered_per_s: phase.rates.offered_ops_per_s,
            ok_per_s,
            n: tally.ended(),
            p50: point(&response, 0.5),
            p99: point(&response, 0.99),
            primary,
            verdict: result.verdict.word,
            rules: result
                .verdict
                .reasons
                .iter()
                .map(|r| r.rule.clone())
                .collect(),
            judgement: eval::judge(slo, &evidence),
        })
    }

    /// The finding that the search records.
    #[must_use]
    pub fn finding(&self) -> TrialFinding {
        TrialFinding {
            result: match self.judgement.meaning {
                TrialMeaning::Pass => TrialResult::Pass,
                TrialMeaning::Client { .. } => TrialResult::Client,
                TrialMeaning::Fail { .. } | TrialMeaning::Broken { .. } => TrialResult::Fail,
            },
            p50_ns: self.p50.ns as f64,
        }
    }
}

fn point(times: &Histogram, q: f64) -> Point {
    let n = times.count();
    let at_rank = |rank: u64| times.quantile_ns((rank as f64 - 0.5) / n as f64);
    Point {
        ns: times.quantile_ns(q),
        ci_ns: ci_ranks(n, q).map(|(low, high)| (at_rank(low), at_rank(high))),
    }
}

/// A rate of the latency-against-load curve, over all trials at it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Load {
    /// Offered load, operations per second.
    pub rate: f64,
    /// Operations that succeeded, per second: mean over the trials.
    pub ok_per_s: f64,
    /// Median response time, nanoseconds: median over the trials.
    pub p50_ns: u64,
    /// 99th percentile of the response time, nanoseconds: median over the trials.
    pub p99_ns: u64,
    /// The figure of the objective, nanoseconds: median over the trials.
    pub primary_ns: u64,
    /// Band of the figure of the objective: from the lowest to the highest over several trials, the
    /// interval of the order statistics for a single one.
    pub band_ns: (u64, u64),
    /// Trials.
    pub trials: u32,
    /// Of these, trials that kept the objectives.
    pub passes: u32,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CapacityResult {
    /// What was asked for.
    pub header: Header,
    /// How it ended; `None` when it was interrupted.
    pub outcome: Option<Outcome>,
    /// Why the client was the limit, where it was.
    pub client_limit: Option<String>,
    /// The capacity by logistic regression over all trials of the search.
    pub threshold: Option<Threshold>,
    /// Latency against load, by rate.
    pub curve: Vec<Load>,
    /// Kneedle on the curve of the objective's figure: a description.
    pub knee: Option<Knee>,
    /// The point of the largest throughput over mean latency: a description.
    pub power: Option<Knee>,
    /// What the store delivered where it was asked for too much.
    pub saturation: Option<Saturation>,
    /// The trials, in order.
    pub trials: Vec<Record>,
    /// Lines of the file of trials that cannot be read.
    pub damaged: u64,
}

impl CapacityResult {
    /// Computes everything from what was asked for and the trials.
    #[must_use]
    pub fn new(files: StudyFiles<CapacityStudy>) -> Self {
        let StudyFiles {
            header,
            trials,
            damaged,
        } = files;
        let mut search = Search::new(header.settings.clone());
        for record in &trials {
            // A line that was lost makes the rest another search's.
            if search.ask() != Some(record.trial) {
                break;
            }
            search.record(record.finding());
        }
        let searched = || {
            trials
                .iter()
                .filter(|r| !r.trial.purpose.is_reference())
                .filter(|r| r.finding().result != TrialResult::Client)
        };
        let passes: Vec<(f64, bool)> = searched()
            .map(|r| (r.trial.rate, r.finding().result == TrialResult::Pass))
            .collect();
        let loads: Vec<(f64, f64)> = searched().map(|r| (r.offered_per_s, r.ok_per_s)).collect();
        let curve = curve(searched());
        let of_curve = |y: fn(&Load) -> u64| -> Vec<(f64, f64)> {
            curve.iter().map(|l| (l.rate, y(l) as f64)).collect()
        };
        Self {
            outcome: search.outcome(),
            client_limit: trials
                .iter()
                .rev()
                .find_map(|r| match &r.judgement.meaning {
                    TrialMeaning::Client { reason } => Some(reason.clone()),
                    _ => None,
                }),
            threshold: Threshold::fit(&passes),
            knee: kneedle(&of_curve(|l| l.primary_ns)),
            power: power(&of_curve(|l| l.p50_ns)),
            saturation: saturation(&loads),
            curve,
            header,
            trials,
            damaged,
        }
    }
}

fn curve<'a>(records: impl Iterator<Item = &'a Record>) -> Vec<Load> {
    let mut sorted: Vec<&Record> = records.collect();
    sorted.sort_by(|a, b| a.trial.rate.total_cmp(&b.trial.rate));
    sorted
        .chunk_by(|a, b| a.trial.rate == b.trial.rate)
        .map(|group| {
            let middle = |figure: fn(&Record) -> u64| {
                let mut values: Vec<u64> = group.iter().map(|r| figure(r)).collect();
                values.sort_unstable();
                values[values.len() / 2]
            };
            let values = || group.iter().map(|r| r.primary.ns);
            let alone = group[0].primary;
            let extremes = (values().min().unwrap_or(0), values().max().unwrap_or(0));
            Load {
                rate: group[0].trial.rate,
                ok_per_s: group.iter().map(|r| r.ok_per_s).sum::<f64>() / group.len() as f64,
                p50_ns: middle(|r| r.p50.ns),
                p99_ns: middle(|r| r.p99.ns),
                primary_ns: middle(|r| r.primary.ns),
                band_ns: match group.len() {
                    1 => alone.ci_ns.unwrap_or((alone.ns, alone.ns)),
                    _ => extremes,
                },
                trials: group.len() as u32,
                passes: group
                    .iter()
                    .filter(|r| r.finding().result == TrialResult::Pass)
                    .count() as u32,
            }
        })
        .collect()
}

/// A measured value in the unit of its objective.
fn value(checked: &CheckedObjective) -> String {
    let Some(value) = checked.value else {
        return "nothing measured".to_owned();
    };
    match checked.objective.as_str() {
        o if o.contains("errors") => crate::units::percent(value),
        o if o.contains("throughput") => format!("{}/s", crate::units::rate(value)),
        _ => crate::units::ns(value),
    }
}
