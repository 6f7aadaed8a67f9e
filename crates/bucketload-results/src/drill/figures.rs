//! The figures of a drill (docs/spec/drills.md section 3).

use std::path::Path;

use bucketload_core::capacity::{Bound, Slo, Timing};
use bucketload_core::drill::DrillPlan;
use bucketload_core::oracle::Finding;
use bucketload_core::plan::PhaseKind;
use serde::{Deserialize, Serialize};

use super::band::Band;
use super::course::Course;
use super::data::{DataTruth, Instants};
use super::journal::read_journal;
use super::slots::{Part, Slot, Slots, Spans, Wave, baseline, slots};
use crate::error::ResultsError;
use crate::result::{ErrorCount, OracleResult};
use crate::rundir::RunDir;

/// Points of the picture at most.
const POINTS: u64 = 600;
/// Share of failed operations that objectives allow if they name none.
const BUDGET: f64 = 0.001;
pub(super) const SECOND: f64 = 1e9;
/// The period of an error budget: 30 days.
const BUDGET_S: f64 = 30.0 * 86_400.0;

/// The result of a drill. Instants are seconds since the start of the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DrillResult {
    /// What was planned; `None` in results that lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<DrillPlan>,
    /// Whether the baseline allowed anything to be broken; `None` if the run ended before that was known.
    pub valid: Option<bool>,
    /// The verdict on the baseline in words.
    pub why: String,
    /// Length of an interval, the resolution of all times, seconds.
    pub resolution_s: f64,
    /// Start and end of the baseline.
    pub baseline_s: (f64, f64),
    /// When each fault was on, in order of time.
    pub faults: Vec<FaultSpan>,
    /// Median throughput of the baseline, successes per second.
    pub ops_per_s: f64,
    /// Median response time of the baseline, nanoseconds.
    pub p50_ns: u64,
    /// Its 99th percentile.
    pub p99_ns: u64,
    /// Response time within which an operation counts as answered in time, nanoseconds.
    pub deadline_ns: u64,
    /// From the first break to the first interval out of the band; `None` if there was none.
    pub detect: Option<Times>,
    /// From the last mend to the first instant from which everything stayed inside the band long enough; `None` if that
    /// did not happen, or nothing was out.
    pub recover: Option<Times>,
    /// The longest time without a success since the first break; 0 if every interval had one.
    pub longest_gap: Times,
    /// Median throughput during the faults over that of the baseline; `None` if nothing broke.
    pub throughput_ratio: Option<f64>,
    /// The same for the median response time of successes; `None` also if there were none.
    pub p50_ratio: Option<f64>,
    /// The same for the 99th percentile.
    pub p99_ratio: Option<f64>,
    /// Availability in the baseline.
    pub available_before: Share,
    /// From the first break to the last mend.
    pub available_during: Share,
    /// From the first break to the end.
    pub available_since: Share,
    /// Share of failed operations that the objectives allow.
    pub budget: f64,
    /// Share of an error budget of 30 days at the baseline's rate that the drill burnt.
    pub budget_burnt: f64,
    /// Failures since the first break, by kind, most frequent first.
    pub errors: Vec<ErrorCount>,
    /// Attempts beyond the first since the first break.
    pub retries: u64,
    /// Load of each endpoint; empty if there is only one.
    pub endpoints: Vec<EndpointShift>,
    /// Most operations that had fallen due and had not ended, since the first break.
    pub backlog: u64,
    /// From the last mend until the backlog was no larger than in the baseline; `None` if it never was.
    pub worked_off: Option<Times>,
    /// Whether commands failed, in words.
    pub hooks: Vec<String>,
    /// What the consistency oracle found, by stage; `None` without one, or if nothing broke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataTruth>,
    /// What the fault line cost; `None` without one, or if the run was killed.
    pub line: Option<LineCost>,
    /// The picture.
    pub waves: Waves,
}

/// A time with the bounds that its resolution leaves, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// The time.
    pub s: f64,
    /// It was at least this.
    pub from_s: f64,
    /// And at most this.
    pub to_s: f64,
}

/// Operations answered rightly and in time, of those that fell due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Answered rightly within the deadline.
    pub good: u64,
    /// Fell due, or ended if more ended.
    pub of: u64,
    /// Their ratio; 1 if nothing fell due.
    pub share: f64,
}

/// When a fault was on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FaultSpan {
    /// Its name.
    pub name: String,
    /// What it does.
    pub what: String,
    /// Start.
    pub from_s: f64,
    /// End; the end of the load if it was not mended before.
    pub to_s: f64,
}

/// Load of an endpoint before and during the faults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndpointShift {
    /// Its number, in the order of the target.
    pub endpoint: u64,
    /// Its share of the operations that ended in the baseline.
    pub before: f64,
    /// During the faults.
    pub during: f64,
    /// Its failures since the first break.
    pub failed: u64,
}

/// What the fault line cost while the load ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LineCost {
    /// CPU time of its process, seconds.
    pub cpu_s: f64,
    /// Bytes carried, both directions.
    pub bytes: u64,
    /// Connections carried, those of the preparation too.
    pub connections: u64,
    /// CPU time per operation of the measured phase, microseconds.
    pub cpu_us_per_op: f64,
    /// CPU time per GiB carried, seconds; 0 in results that lack it.
    #[serde(default)]
    pub cpu_s_per_gib: f64,
}

/// Curves over time, one value per point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Waves {
    /// Starts.
    pub t_s: Vec<f64>,
    /// Operations that fell due per second.
    pub offered_per_s: Vec<f64>,
    /// Operations that succeeded per second.
    pub ok_per_s: Vec<f64>,
    /// Operations that failed per second.
    pub failed_per_s: Vec<f64>,
    /// Median response time of successes, nanoseconds; 0 without any.
    pub p50_ns: Vec<f64>,
    /// 99th percentile.
    pub p99_ns: Vec<f64>,
    /// Availability.
    pub available: Vec<f64>,
}

/// The figures of the drill in the run directory of `run`; `None` if the run was no drill. `oracle` has the findings of the
/// run and all that were recorded.
///
/// # Errors
/// When a file cannot be read.
pub fn result(
    run: &RunDir,
    dir: &Path,
    slo: Option<&Slo>,
    oracle: Option<(&OracleResult, &[Finding])>,
) -> Result<Option<DrillResult>, ResultsError> {
    let journal = read_journal(dir)?;
    let Some(course) = Course::of(&journal) else {
        return Ok(None);
    };
    let plan = &run.manifest().plan;
    let phase = plan
        .phases
        .iter()
        .position(|phase| phase.kind == PhaseKind::Run)
        .unwrap_or(0);
    let drill = course.plan;
    let end = course.began + drill.duration_ns();
    let from = course.first_break.unwrap_or(end);
    let until = course.last_mend.unwrap_or(end).max(from);
    let baseline_ns = (
        course.began + drill.warm_ns,
        course.began + drill.baseline_end_ns(),
    );
    let spans = Spans {
        // A plan has fewer phases.
        phase: phase as u16,
        baseline: baseline_ns,
        fault: (from, until),
        wave_ns: (SECOND as u64).max(drill.duration_ns() / POINTS),
        not_found_is_failure: plan.not_found_is_failure,
    };
    let response = baseline(run, &spans)?;
    // A quarter above what 99 % of the baseline keep.
    let limit_ns = response.quantile_ns(0.99).saturating_mul(5) / 4;
    let usual_ns = response.quantile_ns(0.75).saturating_mul(5) / 4;
    let deadline_ns = match drill.deadline_ns {
        0 => objective_ns(slo).unwrap_or(limit_ns),
        deadline => deadline,
    };
    let all = slots(run, &spans, (usual_ns, limit_ns), deadline_ns)?;
    let budget = budget_of(slo);
    let mut result = DrillResult {
        plan: Some(drill.clone()),
        valid: course.valid,
        why: course.why.clone(),
        resolution_s: drill.interval_ns as f64 / SECOND,
        baseline_s: (
            drill.warm_ns as f64 / SECOND,
            drill.baseline_end_ns() as f64 / SECOND,
        ),
        faults: course.spans(end),
        p50_ns: response.quantile_ns(0.5),
        p99_ns: response.quantile_ns(0.99),
        deadline_ns,
        budget,
        hooks: course.hooks.clone(),
        waves: waves(&all.waves, course.began),
        ..DrillResult::default()
    };
    let is_baseline = |slot: &&Slot| slot.start_ns >= baseline_ns.0 && slot.end_ns <= baseline_ns.1;
    let before: Vec<Slot> = all.slots.iter().filter(is_baseline).copied().collect();
    result.ops_per_s = median_rate(&before);
    result.available_before = share(before.iter());
    if course.first_break.is_some() {
        result.broken(&all, &before, &spans, drill);
        let mended = course.last_mend.unwrap_or(u64::MAX);
        let recovered = result.recover.map(|time| (time.s * SECOND) as u64);
        let instants = Instants {
            broken: from,
            mended,
            recovered: recovered.map_or(u64::MAX, |ns| mended.saturating_add(ns)),
        };
        result.data = oracle.map(|(oracle, all)| DataTruth::of(oracle, all, instants));
    }
    let ended: u64 = all
        .slots
        .iter()
        .map(|slot| slot.ok + slot.failed + slot.cancelled)
        .sum();
    result.line = course.cost.map(|(cpu_ns, bytes, connections)| LineCost {
        cpu_s: cpu_ns as f64 / SECOND,
        bytes,
        connections,
        cpu_us_per_op: cpu_ns as f64 / 1e3 / ended.max(1) as f64,
        cpu_s_per_gib: cpu_ns as f64 / SECOND / bytes.max(1) as f64 * (1u64 << 30) as f64,
    });
    Ok(Some(result))
}

impl DrillResult {
    /// The figures since the first break.
    fn broken(&mut self, all: &Slots, before: &[Slot], spans: &Spans, drill: &DrillPlan) {
        let (from, until) = spans.fault;
        let since: Vec<Slot> = all
            .slots
            .iter()
            .filter(|slot| slot.end_ns > from)
            .copied()
            .collect();
        let band = Band::of(before);
        let out = band.out(&since);
        let s = |ns: u64| ns as f64 / SECOND;
        if let Some(first) = out.iter().position(|out| *out) {
            let slot = &since[first];
            let to_s = s(slot.end_ns.saturating_sub(from));
            self.detect = Some(Times {
                s: to_s,
                from_s: s(slot.start_ns.saturating_sub(from)),
                to_s,
            });
            self.recover = recovered(&since, &out, until, drill);
        }
        self.longest_gap = longest_gap(&since, from);
        let during: Vec<Slot> = since
            .iter()
            .filter(|slot| slot.start_ns < until)
            .copied()
            .collect();
        self.throughput_ratio = ratio(median_rate(&during), self.ops_per_s);
        let quantile = |q: f64| match all.fault.response.is_empty() {
            true => None,
            false => ratio(
                all.fault.response.quantile_ns(q) as f64,
                all.baseline.response.quantile_ns(q) as f64,
            ),
        };
        (self.p50_ratio, self.p99_ratio) = (quantile(0.5), quantile(0.99));
        self.available_during = share(during.iter());
        self.available_since = share(since.iter());
        let lost = self.available_since.of - self.available_since.good;
        let allowed = self.budget * self.ops_per_s * BUDGET_S;
        self.budget_burnt = if allowed > 0.0 {
            lost as f64 / allowed
        } else {
            0.0
        };
        self.errors = errors(&all.fault, &all.after);
        self.retries = since.iter().map(|slot| slot.retries).sum();
        self.endpoints = shift(all);
        self.backlog = since.iter().map(|slot| slot.backlog).max().unwrap_or(0);
        let off = since
            .iter()
            .position(|slot| slot.end_ns > until && slot.backlog <= band.backlog().max(1));
        self.worked_off = off.map(|at| {
            let to_s = s(since[at].end_ns - until);
            Times {
                s: to_s,
                from_s: s(since[at].start_ns.saturating_sub(until)),
                to_s,
            }
        });
    }
}

/// From the last mend at `mend` to the first instant from which no interval is out for as long as the drill holds.
pub(super) fn recovered(
    since: &[Slot],
    out: &[bool],
    mend: u64,
    drill: &DrillPlan,
) -> Option<Times> {
    let s = |ns: u64| ns as f64 / SECOND;
    let end = since.last()?.end_ns;
    let mut at = since.iter().position(|slot| slot.end_ns > mend)?;
    loop {
        let from = since.get(at)?.start_ns.max(mend);
        if from + drill.hold_ns > end {
            return None;
        }
        let held = (at..since.len()).take_while(|i| since[*i].start_ns < from + drill.hold_ns);
        match held.filter(|i| out[*i]).last() {
            Some(last) => at = last + 1,
            None => {
                let before = at
                    .checked_sub(1)
                    .filter(|i| out[*i])
                    .map_or(from, |i| since[i].start_ns);
                return Some(Times {
                    s: s(from - mend),
                    from_s: s(before.saturating_sub(mend)),
                    to_s: s(from - mend),
                });
            }
        }
    }
}

/// The longest time without a success that begins at or after the interval of `from`.
pub(super) fn longest_gap(since: &[Slot], from: u64) -> Times {
    let s = |ns: u64| ns as f64 / SECOND;
    let mut longest = Times::default();
    let mut last: Option<&Slot> = None;
    for slot in since.iter().filter(|slot| slot.ok > 0) {
        let (low, high) = match last {
            // The last success may lie anywhere in its interval, and so may the next.
            Some(last) => (slot.start_ns - last.end_ns, slot.end_ns - last.start_ns),
            None => (
                slot.start_ns.saturating_sub(from),
                slot.end_ns - from.min(slot.end_ns),
            ),
        };
        let gap = Times {
            s: s(low + high) / 2.0,
            from_s: s(low),
            to_s: s(high),
        };
        if low > 0 && gap.s > longest.s {
            longest = gap;
        }
        last = Some(slot);
    }
    if let (Some(end), Some(last)) = (since.last(), last) {
        let low = end.end_ns - last.end_ns;
        let high = end.end_ns - last.start_ns;
        // After the last operation nothing falls due, so silence is no gap.
        let owed = since
            .iter()
            .any(|slot| slot.start_ns >= last.end_ns && slot.offered > 0);
        if owed && s(low + high) / 2.0 > longest.s {
            longest = Times {
                s: s(low + high) / 2.0,
                from_s: s(low),
                to_s: s(high),
            };
        }
    }
    if last.is_none()
        && let (Some(first), Some(end)) = (since.first(), since.last())
    {
        let all = s(end.end_ns - first.start_ns.max(from));
        longest = Times {
            s: all,
            from_s: all,
            to_s: all,
        };
    }
    longest
}

/// Answered rightly and in time, of what fell due (or ended, if more ended: arrivals of earlier intervals).
fn share<'s>(slots: impl Iterator<Item = &'s Slot>) -> Share {
    let (mut good, mut offered, mut ended) = (0, 0, 0);
    for slot in slots {
        good += slot.good;
        offered += slot.offered;
        ended += slot.ok + slot.failed + slot.cancelled;
    }
    let of = offered.max(ended);
    Share {
        good,
        of,
        share: if of == 0 {
            1.0
        } else {
            good as f64 / of as f64
        },
    }
}

/// The median of successes per second.
fn median_rate(slots: &[Slot]) -> f64 {
    // Single intervals have too few operations: tenths of the span, or intervals if there are fewer.
    let group = (slots.len() / 10).max(1);
    let mut rates: Vec<f64> = slots
        .chunks(group)
        .map(|chunk| {
            let ok: u64 = chunk.iter().map(|slot| slot.ok).sum();
            let ns = chunk[chunk.len() - 1].end_ns - chunk[0].start_ns;
            ok as f64 * SECOND / ns.max(1) as f64
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(0.0)
}

fn ratio(a: f64, b: f64) -> Option<f64> {
    (b > 0.0).then(|| a / b)
}

fn errors(during: &Part, after: &Part) -> Vec<ErrorCount> {
    let mut sums = during.errors.clone();
    for (kind, count) in &after.errors {
        *sums.entry(*kind).or_default() += count;
    }
    let mut errors: Vec<ErrorCount> = sums
        .into_iter()
        .map(|(kind, count)| ErrorCount { kind, count })
        .collect();
    errors.sort_by_key(|error| std::cmp::Reverse(error.count));
    errors
}

fn shift(all: &Slots) -> Vec<EndpointShift> {
    let sum = |part: &Part| {
        part.endpoints
            .iter()
            .map(|(ok, failed)| ok + failed)
            .sum::<u64>()
            .max(1) as f64
    };
    let (before, during) = (sum(&all.baseline), sum(&all.fault));
    let of = |part: &Part, i: usize| part.endpoints.get(i).copied().unwrap_or_default();
    let count = all.baseline.endpoints.len().max(all.fault.endpoints.len());
    let each = (0..count).map(|i| {
        let (b, d, a) = (of(&all.baseline, i), of(&all.fault, i), of(&all.after, i));
        EndpointShift {
            endpoint: i as u64,
            before: (b.0 + b.1) as f64 / before,
            during: (d.0 + d.1) as f64 / during,
            failed: d.1 + a.1,
        }
    });
    each.collect()
}

/// The shortest response time among the objectives on all operations.
fn objective_ns(slo: Option<&Slo>) -> Option<u64> {
    let bounds = slo
        .iter()
        .flat_map(|slo| &slo.objectives)
        .filter(|o| o.class.is_none());
    let times = bounds.filter_map(|o| match o.bound {
        Bound::Duration {
            of: Timing::Response,
            ns,
            ..
        } => Some(ns),
        _ => None,
    });
    times.min()
}

fn budget_of(slo: Option<&Slo>) -> f64 {
    let bounds = slo
        .iter()
        .flat_map(|slo| &slo.objectives)
        .filter(|o| o.class.is_none());
    let share = bounds.filter_map(|o| match o.bound {
        Bound::Errors { share } => Some(share),
        _ => None,
    });
    share
        .fold(None, |least: Option<f64>, share| {
            Some(least.map_or(share, |l| l.min(share)))
        })
        .unwrap_or(BUDGET)
}

fn waves(all: &[Wave], began: u64) -> Waves {
    let mut waves = Waves::default();
    for wave in all {
        let seconds = (wave.end_ns - wave.start_ns) as f64 / SECOND;
        waves
            .t_s
            .push(wave.start_ns.saturating_sub(began) as f64 / SECOND);
        waves.offered_per_s.push(wave.offered as f64 / seconds);
        waves.ok_per_s.push(wave.ok as f64 / seconds);
        waves.failed_per_s.push(wave.failed as f64 / seconds);
        waves.p50_ns.push(wave.p50_ns as f64);
        waves.p99_ns.push(wave.p99_ns as f64);
        waves
            .available
            .push((wave.good as f64 / wave.offered.max(1) as f64).min(1.0));
    }
    waves
}
