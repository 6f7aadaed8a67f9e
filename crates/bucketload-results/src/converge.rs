//! The stopping rule of a phase (docs/spec/statistics.md section 3), evaluated while it runs.
//!
//! A rule that is checked every second stops at lucky moments. This one is therefore checked only when the
//! measured window has grown by a tenth since the last check, and only a steady window counts.
//!
//! The interval of a mean or a percentile comes from sections of the window: each has its own value, and their
//! spread gives the interval, as with batch means.

use bucketload_core::capacity::{Statistic, Timing};
use bucketload_core::histogram::Histogram;
use bucketload_core::plan::{PhasePlan, StopFigure, StopRule};
use bucketload_core::stats::batch::{Estimate, estimate};
use bucketload_core::stats::quantile::{Print, print_rule};
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

/// Limit on the sections that are kept, each with a histogram.
const SECTIONS: usize = 64;

/// The times of consecutive intervals.
#[derive(Clone, Debug)]
struct Section {
    len_ns: u64,
    times: Histogram,
}

impl Bin for Section {
    fn absorb(&mut self, next: &Self) {
        self.len_ns += next.len_ns;
        self.times.merge(&next.times);
    }
}

/// Decides when a phase has been measured precisely enough. Memory is bounded.
#[derive(Clone, Debug)]
pub struct Convergence {
    rule: StopRule,
    open_loop: bool,
    points: Fold<Point>,
    service: Histogram,
    /// Empty if the rule's figure is the throughput.
    sections: Fold<Section>,
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
            sections: Fold::new(SECTIONS),
            elapsed_ns: 0,
            next_check_ns: 0,
        })
    }

    /// Adds an interval of the phase. Returns `true` if the rule is satisfied: the series is steady after its
    /// warm-up, the measured window has the rule's length or 30 batches, the 95 % interval of the rule's figure is
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
        if let StopFigure::Duration { class, of, .. } = self.rule.figure {
            let mut times = Histogram::new();
            let cells = interval.tally.cells.iter();
            for cell in cells.filter(|cell| class.is_none_or(|class| cell.class == class)) {
                times.merge(match of {
                    Timing::Response => &cell.response,
                    Timing::Ttfb => &cell.ttfb,
                });
            }
            self.sections.push(&Section { len_ns, times });
        }
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
        let figure = match self.rule.figure {
            StopFigure::Throughput => Some(estimate(&done[cut..])),
            StopFigure::Duration { statistic, .. } => {
                let cut_ns = points[..cut].iter().map(|p| p.len_ns).sum();
                self.spread(cut_ns, statistic)
            }
        };
        let Some(figure) = figure else {
            return false;
        };
        let long = window_ns >= self.rule.min_window_ns || figure.batches >= BATCHES;
        let narrow = figure
            .relative_half_width()
            .is_some_and(|share| share <= self.rule.half_width);
        // The tolerance keeps 10 000 · (1 - 0.99) from being 99.999….
        let many = ok as f64 * (1.0 - self.rule.quantile) + 1e-6 >= BEYOND;
        figure.is_sound() && long && narrow && many
    }

    /// Estimates a statistic from the sections that begin after `cut_ns`. `None` if one of them has too few values
    /// to support it: its percentile would be biased.
    fn spread(&self, cut_ns: u64, statistic: Statistic) -> Option<Estimate> {
        let mut start_ns = 0;
        let mut values = Vec::with_capacity(SECTIONS);
        let sections = self.sections.bins();
        // The last one may be shorter than the others; while each is one interval, it is not.
        let whole = sections.len() - usize::from(self.sections.stride() > 1);
        for section in &sections[..whole] {
            if start_ns >= cut_ns {
                let times = &section.times;
                values.push(match statistic {
                    Statistic::Quantile(q) => {
                        let few = |q| print_rule(times.count(), q) == Print::Omit;
                        if few(q) || few(1.0 - q) {
                            return None;
                        }
                        times.quantile_ns(q) as f64
                    }
                    _ if times.count() == 0 => return None,
                    _ => times.mean_ns(),
                });
            }
            start_ns += section.len_ns;
        }
        Some(estimate(&values))
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
                figure: StopFigure::Throughput,
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

    /// Seconds until the interval of `name` is within `half_width`; each second has `ops` operations, whose times
    /// are spread around `ms`.
    fn precise_after(
        name: &str,
        half_width: f64,
        ops: u64,
        ms: impl Fn(u64) -> u64,
    ) -> Option<u64> {
        let mut phase = phase(half_width, 0.0);
        let rule = phase.stop.as_mut().unwrap();
        rule.figure = StopFigure::parse(name).unwrap();
        rule.min_window_ns = 300_000_000_000;
        let mut convergence = Convergence::new(&phase).unwrap();
        (0..600).find(|&s| {
            let mut tally = Tally::new();
            let cell = tally.cell_mut(0, OpClass::Get);
            cell.ok = ops;
            for i in 0..ops {
                let spread = (i * 7919 + s * 104_729) % 1000;
                cell.response.record(ms(s) * (500_000 + 1000 * spread));
                cell.service.record(1_000_000);
            }
            convergence.interval(&Interval {
                phase: 0,
                index: s,
                start_ns: s * 1_000_000_000,
                end_ns: (s + 1) * 1_000_000_000,
                tally,
                gauges: Gauges::default(),
            })
        })
    }

    #[test]
    fn a_percentile_is_precise_once_its_sections_agree() {
        let even = precise_after("p99", 0.02, 2000, |_| 5).unwrap();
        assert!((29..45).contains(&even), "{even}");
        // Seconds that differ by up to 100 % need more of them than seconds that are alike.
        let rough = |s: u64| 5 + (s * 7919 + s * s * 104_729) % 6;
        let mean = precise_after("get.mean", 0.05, 50, rough).unwrap();
        assert!(mean > even && mean < 300, "{mean}");
        // A second has too few values for its p99; sections of several seconds have enough.
        let few = precise_after("p99", 0.05, 400, |_| 5).unwrap();
        assert!(few > even, "{few}");
        // A class that is not performed has no interval.
        assert_eq!(precise_after("put.p50", 0.5, 50, |_| 5), None);
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
