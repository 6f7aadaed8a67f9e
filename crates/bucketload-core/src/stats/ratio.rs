//! Confidence intervals of a ratio B/A from one value per run (docs/spec/statistics.md section 5).
//!
//! The unit of analysis is the run: values within a run are correlated, and pooling them gives intervals that
//! are far too narrow. [`log_welch`] is for independent runs, [`paired`] for pairs of runs with the same seed
//! and schedule.

use serde::{Deserialize, Serialize};

use super::dist::{t_quantile, t_two_sided_p};
use super::moments::Moments;

/// An estimate with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The estimate.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Two-sided p-value of "no difference" (ratio 1, difference 0).
    pub p_value: f64,
    /// Degrees of freedom; infinite if the values do not vary at all.
    pub df: f64,
}

impl Interval {
    /// Whether the interval contains `value`.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    fn exp(self) -> Self {
        Self {
            estimate: self.estimate.exp(),
            low: self.low.exp(),
            high: self.high.exp(),
            ..self
        }
    }
}

/// The t interval of estimate `d` with standard error `se` and `df` degrees of freedom.
fn student(d: f64, se: f64, df: f64, level: f64) -> Interval {
    let flat = se == 0.0 || !df.is_finite();
    let half = if flat {
        0.0
    } else {
        t_quantile(0.5 + level / 2.0, df) * se
    };
    Interval {
        estimate: d,
        low: d - half,
        high: d + half,
        p_value: match (flat, d == 0.0) {
            (true, true) => 1.0,
            (true, false) => 0.0,
            (false, _) => t_two_sided_p(d / se, df),
        },
        df: if flat { f64::INFINITY } else { df },
    }
}

/// Difference of the means of two independent samples, b - a (Welch 1947, with the degrees of freedom of
/// Satterthwaite 1946), at confidence `level` such as 0.95. `None` with fewer than two values in either
/// sample.
#[must_use]
pub fn welch(a: &[f64], b: &[f64], level: f64) -> Option<Interval> {
    if a.len() < 2 || b.len() < 2 {
        return None;
    }
    let (d, se, df) = welch_terms(&Moments::of(a), &Moments::of(b));
    Some(student(d, se, df, level))
}

/// Difference of the means, its standard error and its degrees of freedom; at least two values on each side.
pub(super) fn welch_terms(a: &Moments, b: &Moments) -> (f64, f64, f64) {
    let (va, vb) = (a.sd * a.sd / a.n as f64, b.sd * b.sd / b.n as f64);
    let df = (va + vb).powi(2) / (va * va / (a.n as f64 - 1.0) + vb * vb / (b.n as f64 - 1.0));
    (b.mean - a.mean, (va + vb).sqrt(), df)
}

/// Ratio of the geometric means of two independent samples of positive values, B/A: Welch's interval of the
/// logarithms. `None` with fewer than two values in either sample, or if a value is not positive.
#[must_use]
pub fn log_welch(a: &[f64], b: &[f64], level: f64) -> Option<Interval> {
    welch(&logs(a)?, &logs(b)?, level).map(Interval::exp)
}

/// Mean of the differences b - a of paired values, with its t interval. `None` with fewer than two pairs or
/// slices of different length.
#[must_use]
pub fn paired_difference(a: &[f64], b: &[f64], level: f64) -> Option<Interval> {
    if a.len() != b.len() || a.len() < 2 {
        return None;
    }
    let d: Vec<f64> = a.iter().zip(b).map(|(a, b)| b - a).collect();
    let m = Moments::of(&d);
    let n = m.n as f64;
    Some(student(m.mean, m.sd / n.sqrt(), n - 1.0, level))
}

/// Ratio B/A of paired positive values, such as consecutive runs with the same seed and schedule: exp of the
/// t interval of the mean log-ratio. Effects common to both members of a pair cancel out. `None` with fewer
/// than two pairs, slices of different length, or a value that is not positive.
#[must_use]
pub fn paired(a: &[f64], b: &[f64], level: f64) -> Option<Interval> {
    paired_difference(&logs(a)?, &logs(b)?, level).map(Interval::exp)
}

fn logs(x: &[f64]) -> Option<Vec<f64>> {
    let positive = x.iter().all(|v| *v > 0.0 && v.is_finite());
    positive.then(|| x.iter().map(|v| v.ln()).collect())
}

#[cfg(test)]
mod tests {
    use super::{log_welch, paired, paired_difference, welch};

    #[test]
    fn welch_matches_a_published_example() {
        // scipy.stats.ttest_ind([2.1,2.5,2.3,2.2,2.6], [2.9,3.4,2.8,3.1], equal_var=False):
        // t = -4.4163, p = 0.005237, df = 5.4176 (sign for a - b).
        let a = [2.1, 2.5, 2.3, 2.2, 2.6];
        let b = [2.9, 3.4, 2.8, 3.1];
        let i = welch(&a, &b, 0.95).unwrap();
        assert!((i.estimate - 0.71).abs() < 1e-12);
        assert!(i.low < 0.71 && i.high > 0.71 && i.low > 0.0);
        assert!(i.df > 5.0 && i.df < 6.0, "{}", i.df);
        assert!(i.p_value > 0.003 && i.p_value < 0.008, "{}", i.p_value);
    }

    #[test]
    fn the_ratio_does_not_depend_on_the_unit_and_inverts() {
        let a = [10.0, 11.0, 10.5];
        let b = [12.0, 12.5, 11.9];
        let scale = |x: &[f64]| x.iter().map(|v| v * 1e6).collect::<Vec<_>>();
        let r = log_welch(&a, &b, 0.95).unwrap();
        let s = log_welch(&scale(&a), &scale(&b), 0.95).unwrap();
        assert!((r.estimate - s.estimate).abs() < 1e-9 && (r.low - s.low).abs() < 1e-9);
        let inverse = log_welch(&b, &a, 0.95).unwrap();
        assert!((inverse.low * r.high - 1.0).abs() < 1e-12);
        assert!((inverse.p_value - r.p_value).abs() < 1e-12);
    }

    #[test]
    fn effects_common_to_a_pair_cancel_out() {
        let a = [100.0, 200.0, 50.0, 400.0];
        let b: Vec<f64> = a
            .iter()
            .zip([1.1, 1.09, 1.1, 1.11])
            .map(|(a, f)| a * f)
            .collect();
        let p = paired(&a, &b, 0.95).unwrap();
        assert!(p.low > 1.08 && p.high < 1.12, "{p:?}");
        assert!(log_welch(&a, &b, 0.95).unwrap().contains(1.0));
        assert_eq!(paired(&a[..3], &b, 0.95), None);
        // Known: differences 1, 2, 3: mean 2, se 1/sqrt(3), t(0.975, 2) = 4.3027.
        let d = paired_difference(&[0.0; 3], &[1.0, 2.0, 3.0], 0.95).unwrap();
        assert!(
            (d.high - (2.0 + 4.302_65 / 3f64.sqrt())).abs() < 1e-3,
            "{d:?}"
        );
    }

    #[test]
    fn constant_values_give_a_point_interval() {
        let same = log_welch(&[3.0; 4], &[3.0; 4], 0.95).unwrap();
        assert_eq!((same.low, same.high, same.p_value), (1.0, 1.0, 1.0));
        let other = log_welch(&[2.0; 4], &[4.0; 4], 0.95).unwrap();
        assert!((other.estimate - 2.0).abs() < 1e-12 && other.p_value == 0.0);
        assert_eq!(log_welch(&[1.0], &[1.0, 2.0], 0.95), None);
        assert_eq!(log_welch(&[0.0, 1.0], &[1.0, 2.0], 0.95), None);
    }
}
