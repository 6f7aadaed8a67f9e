//! The measured part of a phase.

use bucketload_core::plan::{PhaseKind, PhasePlan};
use bucketload_core::sink::PhaseEnd;
use bucketload_core::stats::steady::{Correlation, State, assess};

use super::bins::Counts;
use super::scan::PhaseScan;
use crate::result::{SteadySeries, Window};

/// Start and end of a phase, from its events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) started_ns: Option<u64>,
    /// Instant of the last offer, reason for the end, and instant of the last completion.
    pub(crate) ended: Option<(u64, PhaseEnd, u64)>,
}

/// True if any work has arrivals that do not wait for the store.
pub(crate) fn is_open(plan: &PhasePlan) -> bool {
    plan.works
        .iter()
        .any(|work| work.model.open_cap().is_some())
}

/// The instant at which offering ended.
///
/// A phase with a fixed amount of work is measured until all of it is done, an open schedule until its last
/// arrival, a timed phase until its time limit. Operations that drain later are not throughput.
pub(crate) fn offered_until(plan: &PhasePlan, marks: &Marks, start_ns: u64, end_ns: u64) -> u64 {
    match marks.ended {
        None => end_ns,
        Some((_, PhaseEnd::TimeLimit, _)) if plan.limits.duration_ns > 0 => {
            start_ns + plan.limits.duration_ns
        }
        Some((_, PhaseEnd::Complete, drained_ns)) if !is_open(plan) => drained_ns,
        Some((at_ns, ..)) => at_ns,
    }
}

/// True if an interval counts towards rates: it starts inside the window, and at least nine tenths of it lie
/// before the window's end.
pub(crate) const fn counts(start_ns: u64, end_ns: u64, from_ns: u64, until_ns: u64) -> bool {
    let length = end_ns.saturating_sub(start_ns);
    let outside = end_ns.saturating_sub(until_ns);
    start_ns >= from_ns && outside <= length / 10 && start_ns < until_ns
}

/// The bins that count; all of them if none does (a phase shorter than an interval).
pub(crate) fn inside(bins: &[Counts], from_ns: u64, until_ns: u64) -> Vec<Counts> {
    let chosen: Vec<Counts> = bins
        .iter()
        .filter(|b| counts(b.start_ns, b.end_ns, from_ns, until_ns))
        .copied()
        .collect();
    if chosen.is_empty() {
        bins.to_vec()
    } else {
        chosen
    }
}

/// Finds the warm-up, and assesses steadiness if the plan asks for it.
///
/// Closed loops are judged by their completed operations. In open loops these only mirror the offered
/// schedule, which varies by design; there the median service time of the most frequent class and the
/// operations in flight are judged.
pub(crate) fn find(
    plan: &PhasePlan,
    scan: &PhaseScan,
    start_ns: u64,
    until_ns: u64,
) -> (Window, Vec<SteadySeries>) {
    let bins = inside(scan.series.bins(), start_ns, until_ns);
    let series = if plan.steady_state && plan.kind == PhaseKind::Run {
        assessed(plan, scan, &bins, start_ns, until_ns)
    } else {
        Vec::new()
    };
    let steady = series
        .iter()
        .all(|(s, _)| s.assessment.state != State::NonStationary);
    let from_ns = series
        .iter()
        .filter(|_| steady)
        .map(|&(_, cut_ns)| cut_ns)
        .max()
        .unwrap_or(start_ns)
        .max(start_ns);
    let kept = inside(&bins, from_ns, until_ns);
    let window = Window {
        start_ns: from_ns,
        end_ns: kept.last().map_or(until_ns, |b| b.end_ns),
        warmup_ns: from_ns - start_ns,
        intervals: kept.iter().map(|b| b.intervals).sum(),
    };
    (window, series.into_iter().map(|(s, _)| s).collect())
}

/// The assessed series, each with the end of its warm-up.
fn assessed(
    plan: &PhasePlan,
    scan: &PhaseScan,
    bins: &[Counts],
    start_ns: u64,
    until_ns: u64,
) -> Vec<(SteadySeries, u64)> {
    let bin_ns = bins.first().map_or(0, |b| b.len_ns);
    let one = |name: String, values: &[f64], starts: &[u64], correlation| {
        let assessment = assess(values, correlation);
        let cut_ns = match starts.get(assessment.cut_bins as usize) {
            Some(&ns) if assessment.cut_bins > 0 => ns,
            _ => start_ns,
        };
        let series = SteadySeries {
            name,
            bin_ns,
            assessment,
        };
        (series, cut_ns)
    };
    let starts: Vec<u64> = bins.iter().map(|b| b.start_ns).collect();
    if !is_open(plan) {
        let done: Vec<f64> = bins.iter().map(|b| b.per_s(b.ok)).collect();
        let name = "completed operations".to_owned();
        return vec![one(name, &done, &starts, Correlation::Checked)];
    }
    let offered: Vec<f64> = bins.iter().map(|b| b.per_s(b.offered)).collect();
    let correlation = Correlation::under(&offered);
    let mut series = Vec::new();
    if let Some(((_, class), most)) = scan.classes.iter().max_by_key(|(_, c)| c.ok) {
        let medians: Vec<_> = most
            .medians
            .bins()
            .iter()
            .filter(|m| counts(m.start_ns, m.end_ns, start_ns, until_ns))
            .collect();
        let values: Vec<f64> = medians.iter().map(|m| m.value()).collect();
        let starts: Vec<u64> = medians.iter().map(|m| m.start_ns).collect();
        let name = format!("service p50 of {class}");
        series.push(one(name, &values, &starts, correlation));
    }
    let in_flight: Vec<f64> = bins.iter().map(Counts::mean_in_flight).collect();
    let name = "operations in flight".to_owned();
    series.push(one(name, &in_flight, &starts, correlation));
    series
}

#[cfg(test)]
mod tests {
    use super::{counts, inside};
    use crate::analyze::bins::Counts;

    #[test]
    fn intervals_count_when_nine_tenths_lie_inside() {
        assert!(counts(10, 20, 10, 20) && counts(10, 20, 10, 19));
        assert!(!counts(10, 20, 10, 18) && !counts(9, 20, 10, 30) && !counts(20, 30, 10, 20));
    }

    #[test]
    fn a_phase_shorter_than_an_interval_counts_entirely() {
        let bin = Counts {
            start_ns: 10,
            end_ns: 20,
            ..Counts::default()
        };
        assert_eq!(inside(&[bin], 10, 12), [bin]);
    }
}
