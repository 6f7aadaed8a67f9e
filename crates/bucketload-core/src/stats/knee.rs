//! Where a latency-against-load curve bends: descriptions, not objectives (docs/spec/statistics.md section
//! 7).
//!
//! A knee without an objective is arbitrary and depends on the range that was swept, so both functions return
//! the range with the point. [`saturation`] is the throughput of a store that is offered more than it can
//! handle.

use serde::{Deserialize, Serialize};

use super::dist::t_quantile;
use super::moments::Moments;

/// Kneedle's sensitivity for curves that are known completely (Satopaa et al. 2011, section IV).
const SENSITIVITY: f64 = 1.0;
/// Largest share of the offered operations that a saturated store completes.
const SATURATED: f64 = 0.95;

/// A point of a curve, and the range in which it was found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    /// The load at the knee.
    pub x: f64,
    /// The latency there.
    pub y: f64,
    /// Lowest and highest load of the curve.
    pub range: (f64, f64),
}

/// Sorts by load and averages points of equal load.
fn curve(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut sorted: Vec<(f64, f64)> = points
        .iter()
        .copied()
        .filter(|(x, y)| x.is_finite() && y.is_finite())
        .collect();
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut out: Vec<(f64, f64, f64)> = Vec::new();
    for (x, y) in sorted {
        match out.last_mut() {
            Some((last, sum, n)) if *last == x => {
                *sum += y;
                *n += 1.0;
            }
            _ => out.push((x, y, 1.0)),
        }
    }
    out.into_iter().map(|(x, sum, n)| (x, sum / n)).collect()
}

/// Kneedle (Satopaa, Albrecht, Irwin, Raghavan: "Finding a 'Kneedle' in a haystack", ICDCSW 2011) on a rising
/// latency curve of (load, latency) points. `None` for fewer than five loads, a flat curve, or a curve
/// without a bend.
#[must_use]
pub fn kneedle(points: &[(f64, f64)]) -> Option<Knee> {
    let curve = curve(points);
    if curve.len() < 5 {
        return None;
    }
    let (x_min, x_max) = (curve.first()?.0, curve.last()?.0);
    let y_min = curve.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
    let y_max = curve.iter().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max);
    if y_max <= y_min {
        return None;
    }
    // Rotated by 180 degrees, a curve with increasing slope becomes one with decreasing slope.
    let turned: Vec<(f64, f64)> = curve
        .iter()
        .rev()
        .map(|&(x, y)| ((x_max - x) / (x_max - x_min), (y_max - y) / (y_max - y_min)))
        .collect();
    let difference: Vec<f64> = turned.iter().map(|(x, y)| y - x).collect();
    let steps = turned.len() - 1;
    let mean_step = (turned[steps].0 - turned[0].0) / steps as f64;
    let peak = |i: usize| {
        difference[i] > 0.0
            && difference[i] >= difference[i - 1]
            && difference[i] > difference[i + 1]
    };
    let candidates: Vec<usize> = (1..steps).filter(|&i| peak(i)).collect();
    let knee = candidates.iter().enumerate().find(|&(at, &i)| {
        let threshold = difference[i] - SENSITIVITY * mean_step;
        let until = candidates.get(at + 1).copied().unwrap_or(difference.len());
        difference[i + 1..until].iter().any(|&d| d < threshold)
    });
    let (_, &at) = knee?;
    let (x, y) = curve[steps - at];
    Some(Knee {
        x,
        y,
        range: (x_min, x_max),
    })
}

/// The point of largest power, throughput divided by latency (Kleinrock 1979), among (throughput, latency)
/// points. `None` without points of positive latency.
#[must_use]
pub fn power(points: &[(f64, f64)]) -> Option<Knee> {
    let curve = curve(points);
    let (x, y) = curve
        .iter()
        .copied()
        .filter(|&(_, y)| y > 0.0)
        .max_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)))?;
    Some(Knee {
        x,
        y,
        range: (curve.first()?.0, curve.last()?.0),
    })
}

/// The throughput of a saturated store.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Saturation {
    /// Mean throughput of the saturated trials, per second.
    pub per_s: f64,
    /// Half-width of its 95 % interval over trials; `None` with a single trial.
    pub half_width: Option<f64>,
    /// Number of saturated trials.
    pub trials: u64,
}

/// Mean throughput over all trials, each (offered, achieved), that achieved less than 95 % of the offered
/// load. `None` if there are none.
#[must_use]
pub fn saturation(trials: &[(f64, f64)]) -> Option<Saturation> {
    let saturated: Vec<f64> = trials
        .iter()
        .filter(|(offered, achieved)| *offered > 0.0 && achieved / offered < SATURATED)
        .map(|(_, achieved)| *achieved)
        .collect();
    let n = saturated.len();
    let moments = Moments::of(&saturated);
    (n > 0).then(|| Saturation {
        per_s: moments.mean,
        half_width: (n > 1)
            .then(|| t_quantile(0.975, n as f64 - 1.0) * moments.sd / (n as f64).sqrt()),
        trials: n as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::{kneedle, power, saturation};
    use crate::stats::testing::Noise;

    /// Mean response of M/M/1, in service times, at loads from `from` to `to`.
    fn mm1(from: f64, to: f64) -> Vec<(f64, f64)> {
        (0..=93)
            .map(|i| from + (to - from) * f64::from(i) / 93.0)
            .map(|load| (load, 1.0 / (1.0 - load)))
            .collect()
    }

    #[test]
    fn kneedle_on_mm1_depends_on_the_range() {
        // docs/spec/statistics.md section 7: between 5 % and 98 % load it returns load 0.87. The slope of
        // the chord is 48.95/0.93, reached at load 1 - sqrt(0.93/48.95) = 0.862.
        let knee = kneedle(&mm1(0.05, 0.98)).unwrap();
        assert!((0.855..0.875).contains(&knee.x), "{knee:?}");
        assert_eq!(knee.range, (0.05, 0.98));
        let narrower = kneedle(&mm1(0.05, 0.8)).unwrap();
        assert!(narrower.x < 0.7, "{narrower:?}");
    }

    #[test]
    fn power_on_mm1_is_half_load() {
        let point = power(&mm1(0.05, 0.98)).unwrap();
        assert!((point.x - 0.5).abs() < 0.011, "{point:?}");
    }

    #[test]
    fn curves_without_a_bend_have_no_knee() {
        let line: Vec<(f64, f64)> = (1..20).map(|i| (f64::from(i), f64::from(i))).collect();
        assert_eq!(kneedle(&line), None);
        let flat: Vec<(f64, f64)> = (1..20).map(|i| (f64::from(i), 3.0)).collect();
        assert_eq!(kneedle(&flat), None);
        assert_eq!(kneedle(&mm1(0.05, 0.98)[..4]), None);
        assert_eq!(power(&[]), None);
    }

    #[test]
    fn noise_of_a_percent_does_not_move_the_knee_far() {
        let mut noise = Noise::new(5);
        for _ in 0..20 {
            let noisy: Vec<(f64, f64)> = mm1(0.05, 0.98)
                .into_iter()
                .map(|(x, y)| (x, y * (1.0 + 0.01 * noise.normal())))
                .collect();
            let knee = kneedle(&noisy).unwrap();
            assert!((0.8..0.92).contains(&knee.x), "{knee:?}");
        }
    }

    #[test]
    fn saturation_is_the_mean_of_saturated_trials() {
        let trials = [
            (100.0, 100.0),
            (400.0, 290.0),
            (800.0, 310.0),
            (200.0, 191.0),
        ];
        let s = saturation(&trials).unwrap();
        assert_eq!((s.per_s, s.trials), (300.0, 2));
        // t(0.975, 1) = 12.706; sd 14.14.
        assert!((s.half_width.unwrap() - 127.06).abs() < 0.1, "{s:?}");
        assert_eq!(saturation(&trials[..1]), None);
        assert_eq!(saturation(&trials[..2]).unwrap().half_width, None);
    }
}
