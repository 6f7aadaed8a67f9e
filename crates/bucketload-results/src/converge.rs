//! The stopping rule of a phase (docs/spec/statistics.md section 3), evaluated while it runs.
//!
//! A rule that is checked every second stops at lucky moments. This one is therefore checked only when the
//! measured window has grown by a tenth since the last check, and only a steady window counts.

use bucketload_core::histogram::Histogram;
use bucketload_core::plan::{PhasePlan, StopRule};
use bucketload_core::stats::batch::estimate;
use bucketload_core::stats::steady::{Correlation, State, assess};
use bucketload_core::tally::Interval;

use crate::analyze::fold::{Bin, Fold};

/// Limit on the bins that are kept.
const BINS: usize = 4096;
/// Number of batches that makes up for a window shorter than the rule's.
const BATCHES: u64 = 30;
/// Number of values required beyond the highest percentile.
const BEYOND: f64 = 100.0;
/// Growth of the window between two checks.
const GROWTH: f64 = 1.1;

#[derive(Clone, Copy, Debug)]
struct Point {
    len_ns: u64,
    ok: u64,
    offered: u64,
    service_p50_ns: f64,
    intervals: u64,
}

impl Bin for Point {
    fn absorb(&mut self, next: &Self) {
        self.len_ns += next.len_ns;
        self.ok += next.ok;
        self.offered += next.offered;
        self.service_p50_ns += next.service_p50_ns;
        self.intervals += next.intervals;
    }
}

/// Decides when a phase has been measured precisely enough. Memory is bounded.
#[derive(Clone, Debug)]
pub struct Convergence {
    rule: StopRule,
    open_loop: bool,
    points: Fold<Point>,
    service: Histogram,
    elapsed_ns: u64,
    next_check_ns: u64,
}

impl Convergence {
    /// The state of `phase` before its first interval; `None` without a stopping rule.
    #[must_use]
    pub fn new(phase: &PhasePlan) -> Option<Self> {
        phase.stop.map(|rule| Self {
            rule,
            open_loop: phase
                .works
                .iter()
                .any(|work| work.model.open_cap().is_some()),
            points: Fold::new(BINS),
            service: Histogram::new(),
            elapsed_ns: 0,
            next_check_ns: 0,
        })
    }

    /// Adds an interval of the phase. Returns `true` if the rule is satisfied: the series is steady after its
    /// warm-up, the measured window has the rule's length or 30 batches, the 95 % interval of the throughput is
    /// narrow enough, and at least 100 values lie beyond the rule's percentile in the measured window.
    pub fn interval(&mut self, interval: &Interval) -> bool {
        self.service.clear();
        for cell in &interval.tally.cells {
            self.service.merge(&cell.service);
        }
        let len_ns = interval.end_ns.saturating_sub(interval.start_ns).max(1);
        self.points.push(&Point {
            len_ns,
            ok: interval.tally.ok(),
            offered: interval.tally.offered,
            service_p50_ns: self.service.quantile_ns(0.5) as f64,
            intervals: 1,
        });
        self.elapsed_ns += len_ns;
        if self.elapsed_ns < self.next_check_ns {
            return false;
        }
        self.next_check_ns = (self.elapsed_ns as f64 * GROWTH) as u64;
        self.is_satisfied()
    }

    fn is_satisfied(&self) -> bool {
        let points = self.points.bins();
        let per_s = |count: fn(&Point) -> u64| -> Vec<f64> {
            let rate = |p: &Point| count(p) as f64 * 1e9 / p.len_ns as f64;
            points.iter().map(rate).collect()
        };
        let done = per_s(|p| p.ok);
        let assessment = if self.open_loop {
            let medians: Vec<f64> = points
                .iter()
                .map(|p| p.service_p50_ns / p.intervals as f64)
                .collect();
            assess(&medians, Correlation::under(&per_s(|p| p.offered)))
        } else {
            assess(&done, Correlation::Checked)
        };
        if assessment.state != State::Steady {
            return false;
        }
        let cut = assessment.cut_bins as usize;
        let window_ns: u64 = points[cut..].iter().map(|p| p.len_ns).sum();
        let ok: u64 = points[cut..].iter().map(|p| p.ok).sum();
        let rate = estimate(&done[cut..]);
        let long = window_ns >= self.rule.min_window_ns || rate.batches >= BATCHES;
        let narrow = rate
            .relative_half_width()
            .is_some_and(|share| share <= self.rule.half_width);
        // The tolerance keeps 10 000 · (1 - 0.99) from being 99.999….
        let many = ok as f64 * (1.0 - self.rule.quantile) + 1e-6 >= BEYOND;
        rate.is_sound() && long && narrow && many
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::op::OpClass;
    use bucketload_core::plan::{Accounting, ClosedPlan, Limits, PhaseKind, StopRule, WorkPlan};
    use bucketload_core::tally::{Gauges, Tally};

    use super::*;

    fn phase(half_width: f64, quantile: f64) -> PhasePlan {
        PhasePlan {
            name: "main".to_owned(),
            kind: PhaseKind::Run,
            works: vec![WorkPlan {
                name: "w".to_owned(),
                model: ClosedPlan::without_pauses(4).into(),
                mix: Vec::new(),
            }],
            limits: Limits::default(),
            steady_state: true,
            stop: Some(StopRule {
                min_window_ns: 40_000_000_000,
                half_width,
                quantile,
            }),
            accounting: Accounting::default(),
        }
    }

    /// Seconds until the rule is satisfied, at most 600; `ops` gives the operations per second.
    fn stops_after(phase: &PhasePlan, ops: impl Fn(u64) -> u64) -> Option<u64> {
        let mut convergence = Convergence::new(phase).unwrap();
        let mut tally = Tally::new();
        (0..600).find(|&s| {
            tally.clear();
            let cell = tally.cell_mut(0, OpClass::Get);
            cell.ok = ops(s);
            cell.service.record_n(1_000_000, cell.ok);
            let interval = Interval {
                phase: 0,
                index: s,
                start_ns: s * 1_000_000_000,
                end_ns: (s + 1) * 1_000_000_000,
                tally: std::mem::take(&mut tally),
                gauges: Gauges::default(),
            };
            let stop = convergence.interval(&interval);
            tally = interval.tally;
            stop
        })
    }

    /// Non-repeating noise of ±10 %.
    fn noise(s: u64) -> u64 {
        900 + (s * 7919 + s * s * 104_729) % 201
    }

    #[test]
    fn stops_when_all_conditions_hold() {
        let s = stops_after(&phase(0.05, 0.99), noise).unwrap();
        assert!((20..60).contains(&s), "{s}");
        // ± 1 % needs more seconds; 100 values beyond p99.9 need 100 of them.
        let narrow = stops_after(&phase(0.01, 0.99), noise).unwrap();
        assert!(narrow > s && narrow < 400, "{narrow}");
        let tail = stops_after(&phase(0.05, 0.999), noise).unwrap();
        assert!((99..130).contains(&tail), "{tail}");
    }

    #[test]
    fn goes_on_while_the_series_drifts() {
        assert_eq!(stops_after(&phase(0.05, 0.99), |s| 500 + 10 * s), None);
        assert!(
            Convergence::new(&PhasePlan {
                stop: None,
                ..phase(0.05, 0.99)
            })
            .is_none()
        );
    }
}
