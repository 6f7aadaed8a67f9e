//! Curves over the time of a phase.
//!
//! A value holds for a whole interval, so a curve runs through the middles of its intervals, from the start of the
//! first to the end of the last. An interval that the end of the load cut short is not drawn: its value is of another
//! kind, and a curve that plunges there tells nothing about the store.

use crate::kit::svg::Point;
use crate::kit::{Axis, Unit};
use crate::result::{ClassResult, LatencyOverTime, PhaseResult};

/// Share of an interval by which it may exceed the end of the load: intervals are read by a clock that is not exact.
const TOLERANCE: f64 = 0.1;
/// Number of values that must lie beyond a percentile (docs/spec/statistics.md section 3).
const BEYOND: f64 = 10.0;

/// The intervals of a phase that are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Drawn {
    /// Number of intervals, from the first.
    pub(super) count: usize,
    /// Length of an interval, seconds.
    pub(super) step: f64,
    /// End of the last one, seconds since the start of the phase.
    pub(super) end: f64,
}

impl Drawn {
    /// Those of the `starts`, in seconds since the start of a phase that offered load for `load_s`.
    pub(super) fn of(starts: &[f64], load_s: f64) -> Self {
        let step = match starts {
            [] => 1.0,
            [_] => load_s,
            [first, .., last] => (last - first) / (starts.len() - 1) as f64,
        };
        let ends_before = |limit: f64| starts.iter().filter(|&&t| t < limit).count();
        let whole = ends_before(load_s - step * (1.0 - TOLERANCE) + 1e-9);
        match whole {
            // A phase shorter than an interval: better an incomplete one than nothing.
            0 => Self {
                count: ends_before(load_s).max(starts.len().min(1)),
                step,
                end: load_s,
            },
            count => Self {
                count,
                step,
                end: (starts[count - 1] + step).min(load_s.max(step)),
            },
        }
    }

    /// Those of the phase's series.
    pub(super) fn series(phase: &PhaseResult) -> Self {
        Self::of(&phase.series.t_s, load_s(phase))
    }

    /// Those of the columns of latency over time.
    pub(super) fn columns(phase: &PhaseResult, class: &ClassResult) -> Self {
        Self::of(&class.over_time.t_s, load_s(phase))
    }

    /// The axis of their time.
    pub(super) fn axis(&self) -> Axis {
        Axis {
            ends: (self.end > 0.0).then_some((0.0, self.end)),
            ..Axis::linear("time", Unit::Seconds)
        }
    }

    /// A curve through the `points` of the intervals, which start at `starts`. A value that is NaN is a gap.
    pub(super) fn curve(&self, starts: &[f64], point: impl Fn(usize) -> Point) -> Vec<Point> {
        let count = self.count.min(starts.len());
        let mut out = Vec::with_capacity(count + 2);
        let end = |i: usize| match starts.get(i + 1).filter(|_| i + 1 < count) {
            Some(next) => *next,
            None => self.end.max(starts[i]),
        };
        for (i, &start) in starts[..count].iter().enumerate() {
            let p = point(i);
            if i == 0 {
                out.push(Point { x: start, ..p });
            }
            let x = f64::midpoint(start, end(i));
            out.push(Point { x, ..p });
            if i + 1 == count {
                out.push(Point { x: end(i), ..p });
            }
        }
        out
    }

    /// The interval for readers, such as `3 s`.
    pub(super) fn every(&self) -> String {
        match self.step {
            s if (s - s.round()).abs() < 0.05 => format!("{:.0} s", s.round()),
            s => format!("{s:.1} s"),
        }
    }
}

/// How long the phase offered load, seconds.
fn load_s(phase: &PhaseResult) -> f64 {
    phase.offered_until_ns.saturating_sub(phase.started_ns) as f64 / 1e9
}

/// A percentile over time; a column that has fewer than ten values beyond it is a gap.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Percentiles {
    /// Its name, such as `p99`.
    pub(super) name: &'static str,
    /// A value per column, nanoseconds.
    pub(super) ns: Vec<f64>,
}

/// The median, where there are enough operations for it.
pub(super) fn median(over: &LatencyOverTime) -> Percentiles {
    percentiles(over, 0.5, "p50", &over.p50_ms)
}

/// The highest of p99 and p90 for which nearly all columns with operations among the first `count` have enough of
/// them; `None` if neither.
pub(super) fn tail(over: &LatencyOverTime, count: usize) -> Option<Percentiles> {
    let used = over.n.iter().take(count).filter(|&&n| n > 0).count();
    [(0.99, "p99", &over.p99_ms), (0.9, "p90", &over.p90_ms)]
        .into_iter()
        .map(|(q, name, ms)| percentiles(over, q, name, ms))
        .find(|p| {
            let known = p.ns.iter().take(count).filter(|ns| ns.is_finite()).count();
            known > 0 && known * 10 >= used * 9
        })
}

fn percentiles(over: &LatencyOverTime, q: f64, name: &'static str, ms: &[f64]) -> Percentiles {
    let columns = ms.iter().zip(&over.n);
    let ns = columns.map(|(ms, &n)| match n as f64 * (1.0 - q) >= BEYOND - 1e-6 {
        true => ms * 1e6,
        false => f64::NAN,
    });
    Percentiles {
        name,
        ns: ns.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Drawn, tail};
    use crate::kit::svg::Point;
    use crate::result::LatencyOverTime;

    fn starts(n: usize, step: f64) -> Vec<f64> {
        (0..n).map(|i| i as f64 * step).collect()
    }

    #[test]
    fn the_interval_that_the_end_cuts_short_is_not_drawn() {
        // Twelve seconds of load and the drain.
        let drawn = Drawn::of(&starts(13, 1.0), 12.0);
        assert_eq!((drawn.count, drawn.end), (12, 12.0));
        // A clock that is late by a little loses no second.
        assert_eq!(Drawn::of(&starts(13, 1.0005), 12.0).count, 12);
        // The load ends inside the sixth second.
        let drawn = Drawn::of(&starts(6, 1.0), 5.4);
        assert_eq!((drawn.count, drawn.end), (5, 5.0));
        // Shorter than one interval: all there is.
        assert_eq!(Drawn::of(&starts(2, 1.0), 0.3).count, 1);
        assert_eq!(Drawn::of(&[], 0.0).count, 0);
    }

    #[test]
    fn a_curve_reaches_from_the_first_start_to_the_last_end() {
        let at = starts(4, 1.0);
        let drawn = Drawn::of(&at, 3.0);
        let curve = drawn.curve(&at, |i| Point::from((0.0, i as f64)));
        let xy: Vec<(f64, f64)> = curve.iter().map(|p| (p.x, p.y)).collect();
        assert_eq!(
            xy,
            [(0.0, 0.0), (0.5, 0.0), (1.5, 1.0), (2.5, 2.0), (3.0, 2.0)]
        );
    }

    #[test]
    fn a_percentile_needs_ten_values_beyond_it() {
        let over = |n: u64| LatencyOverTime {
            t_s: starts(10, 1.0),
            n: vec![n; 10],
            p50_ms: vec![1.0; 10],
            p90_ms: vec![2.0; 10],
            p99_ms: vec![3.0; 10],
            p999_ms: vec![4.0; 10],
            max_ms: vec![5.0; 10],
            intervals_per_column: 1,
        };
        let name = |n| tail(&over(n), 10).map(|p| p.name);
        assert_eq!(
            [1000, 999, 100, 99].map(name),
            [Some("p99"), Some("p90"), Some("p90"), None]
        );
        // A column with too few operations is a gap, and so many of them rule the percentile out.
        let mut few = over(1000);
        few.n[3] = 58;
        let p99 = tail(&few, 10).unwrap();
        assert!(p99.name == "p99" && p99.ns[3].is_nan() && p99.ns[4] == 3e6);
        few.n[4] = 58;
        assert_eq!(tail(&few, 10), None);
    }
}
