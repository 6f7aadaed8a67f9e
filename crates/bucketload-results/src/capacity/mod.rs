//! The result of a capacity search.
//!
//! Everything is computed from the request ([`Header`]) and the trials ([`Record`]). The search itself is
//! replayed with the trials' findings, so an interrupted search is reported by the same code.
//! [`text`] and [`page`] render it.

pub mod page;
pub mod text;

use bucketload_core::ai::AiFigure;
use bucketload_core::capacity::Statistic;
use bucketload_core::capacity::{
    Bound, CheckedObjective, Judgement, Objective, Outcome, Search, Settings, Slo, Threshold,
    Timing, Trial, TrialEvidence, TrialFinding, TrialMeaning, TrialResult, eval,
};
use bucketload_core::histogram::Histogram;
use bucketload_core::plan::Plan;
use bucketload_core::stats::knee::{Knee, Saturation, kneedle, power, saturation};
use bucketload_core::stats::quantile::ci_ranks;
use bucketload_core::tally::Tally;
use bucketload_core::verdict;
use serde::{Deserialize, Serialize};

use crate::result::{RunResult, ai};
use crate::study::{Study, StudyFiles};

/// Version of the JSON format.
pub const SCHEMA: u32 = 1;

/// The kind of study with a capacity search.
#[derive(Debug)]
pub struct CapacityStudy;

impl Study for CapacityStudy {
    const HEADER: &'static str = "capacity.json";
    type Header = Header;
    type Record = Record;
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
    /// The objectives as written.
    pub slo: Slo,
    /// Parameters of the search.
    pub settings: Settings,
    /// Length of the trials in seconds, if the user set it; `None` for the length that the objectives
    /// need (docs/spec/statistics.md section 6).
    pub trial_s: Option<f64>,
    /// Whether the user asked for a quick answer: short trials, fewer references.
    pub quick: bool,
    /// The command line.
    pub command_line: Vec<String>,
    /// What whole loads count if it is not accelerators, such as `users`; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
}

/// A percentile of the response time. Failures are censored at the timeout.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentile {
    /// Value, nanoseconds.
    pub ns: u64,
    /// 95 % interval from order statistics, nanoseconds; optimistic, because operations of one run
    /// are correlated. `None` with too few values.
    pub ci_ns: Option<(u64, u64)>,
}

/// The measurements of one trial.
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
    pub p50: Percentile,
    /// 99th percentile of the response time.
    pub p99: Percentile,
    /// The statistic of the first objective on a duration; the 99th percentile if there is none.
    pub primary: Percentile,
    /// The run's verdict.
    pub verdict: verdict::Word,
    /// Rules with a finding.
    pub rules: Vec<String>,
    /// The objectives compared with the measurements.
    pub judgement: Judgement,
}

impl Record {
    /// The record of a trial in run directory `dir`; `tally` is from its only measuring phase.
    /// `None` if the result has no measured phase.
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
        let ai = result.ai();
        let evidence = TrialEvidence {
            tally,
            ok_per_s,
            timeout_ns: plan.timeout_ns,
            not_found_is_failure: plan.not_found_is_failure,
            ai: &ai,
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
                    Statistic::Mean => Percentile {
                        ns: times.mean_ns() as u64,
                        ci_ns: None,
                    },
                    Statistic::Max => Percentile {
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
            judgement: believed(slo, eval::judge(slo, &evidence)),
        })
    }

    /// Utilisation of the accelerators, 0 to 1, if an objective concerns it.
    #[must_use]
    pub fn utilisation(&self) -> Option<f64> {
        let mut checked = self.judgement.checked.iter();
        checked.find(|c| figure(c) == Some(AiFigure::Au))?.value
    }

    /// The trial's finding, as the search needs it.
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

/// A client that is too busy only lowers the utilisation of accelerators, so a trial that reaches the objective has
/// shown what the store can do.
fn believed(slo: &Slo, judged: Judgement) -> Judgement {
    let reached = slo.wants_utilisation() && judged.checked.iter().all(|c| c.holds);
    match judged.meaning {
        TrialMeaning::Client { .. } if reached => Judgement {
            meaning: TrialMeaning::Pass,
            ..judged
        },
        _ => judged,
    }
}

fn point(times: &Histogram, q: f64) -> Percentile {
    let n = times.count();
    let at_rank = |rank: u64| times.quantile_ns((rank as f64 - 0.5) / n as f64);
    Percentile {
        ns: times.quantile_ns(q),
        ci_ns: ci_ranks(n, q).map(|(low, high)| (at_rank(low), at_rank(high))),
    }
}

/// A rate of the latency-against-load curve, aggregated over its trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LoadPoint {
    /// Offered load, operations per second.
    pub rate: f64,
    /// Operations that succeeded, per second: mean over the trials.
    pub ok_per_s: f64,
    /// Median response time, nanoseconds: median over the trials.
    pub p50_ns: u64,
    /// 99th percentile of the response time, nanoseconds: median over the trials.
    pub p99_ns: u64,
    /// The objective's statistic, nanoseconds: median over the trials.
    pub primary_ns: u64,
    /// Band of the objective's statistic: lowest to highest over several trials, or the interval from the
    /// order statistics for a single one.
    pub band_ns: (u64, u64),
    /// Utilisation of the accelerators, 0 to 1: mean over the trials; `None` unless an objective concerns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<f64>,
    /// Trials.
    pub trials: u32,
    /// Number of these trials that met the objectives.
    pub passes: u32,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CapacityResult {
    /// The request.
    pub header: Header,
    /// How it ended; `None` when it was interrupted.
    pub outcome: Option<Outcome>,
    /// Why the client was the limit; `None` if it was not.
    pub client_limit: Option<String>,
    /// The capacity by logistic regression over all trials of the search.
    pub threshold: Option<Threshold>,
    /// Latency against load, by rate.
    pub curve: Vec<LoadPoint>,
    /// Knee of the curve of the objective's statistic, by Kneedle: descriptive only.
    pub knee: Option<Knee>,
    /// The point of maximum power, throughput over median latency: descriptive only.
    pub power: Option<Knee>,
    /// Throughput of the store under overload.
    pub saturation: Option<Saturation>,
    /// The trials, in order.
    pub trials: Vec<Record>,
    /// Unreadable lines of the file of trials.
    pub damaged: u64,
}

impl CapacityResult {
    /// Computes the result from the request and the trials.
    #[must_use]
    pub fn new(files: StudyFiles<CapacityStudy>) -> Self {
        let StudyFiles {
            header,
            trials,
            damaged,
        } = files;
        let mut search = Search::new(header.settings.clone());
        for record in &trials {
            // After a lost line, the remaining trials do not fit the replayed search.
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
        let of_curve = |y: fn(&LoadPoint) -> u64| -> Vec<(f64, f64)> {
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

fn curve<'a>(records: impl Iterator<Item = &'a Record>) -> Vec<LoadPoint> {
    let mut sorted: Vec<&Record> = records.collect();
    sorted.sort_by(|a, b| a.trial.rate.total_cmp(&b.trial.rate));
    sorted
        .chunk_by(|a, b| a.trial.rate == b.trial.rate)
        .map(|group| {
            let median = |figure: fn(&Record) -> u64| {
                let mut values: Vec<u64> = group.iter().map(|r| figure(r)).collect();
                values.sort_unstable();
                values[values.len() / 2]
            };
            let values = || group.iter().map(|r| r.primary.ns);
            let single = group[0].primary;
            let extremes = (values().min().unwrap_or(0), values().max().unwrap_or(0));
            LoadPoint {
                rate: group[0].trial.rate,
                ok_per_s: group.iter().map(|r| r.ok_per_s).sum::<f64>() / group.len() as f64,
                p50_ns: median(|r| r.p50.ns),
                p99_ns: median(|r| r.p99.ns),
                primary_ns: median(|r| r.primary.ns),
                band_ns: match group.len() {
                    1 => single.ci_ns.unwrap_or((single.ns, single.ns)),
                    _ => extremes,
                },
                utilisation: {
                    let of = |r: &&Record| r.utilisation();
                    let all: Vec<f64> = group.iter().filter_map(of).collect();
                    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
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

impl Header {
    /// What whole loads count.
    #[must_use]
    pub fn unit(&self) -> &str {
        match self.unit.as_str() {
            "" => "accelerators",
            unit => unit,
        }
    }

    /// A load in words: a rate, or a number of accelerators or users.
    #[must_use]
    pub fn load(&self, load: f64) -> String {
        match (self.settings.whole, load) {
            (false, rate) => format!("{}/s", crate::units::rate(rate)),
            (true, 1.0) => format!("1 {}", self.unit().trim_end_matches('s')),
            (true, number) => format!("{} {}", crate::units::number(number), self.unit()),
        }
    }
}

/// The figure of training, checkpoints or a cache that an objective concerns, if any.
fn figure(checked: &CheckedObjective) -> Option<AiFigure> {
    let objective: Objective = checked.objective.parse().ok()?;
    objective.ai_figure()
}

/// A measured value in the unit of its objective.
fn value(checked: &CheckedObjective) -> String {
    let Some(value) = checked.value else {
        return "nothing measured".to_owned();
    };
    if let Some(figure) = figure(checked) {
        return ai::unit(figure).show(value);
    }
    match checked.objective.as_str() {
        o if o.contains("errors") => crate::units::percent(value),
        o if o.contains("throughput") => format!("{}/s", crate::units::rate(value)),
        _ => crate::units::ns(value),
    }
}
