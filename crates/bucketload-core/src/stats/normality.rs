//! A fitted Gaussian and the Anderson-Darling test of normality.
//!
//! Stephens, "EDF statistics for goodness of fit", JASA 1974, for the case of estimated mean and
//! variance; p-values after D'Agostino and Stephens, *Goodness-of-Fit Techniques* (1986), table 4.9.

use serde::{Deserialize, Serialize};

use super::dist::normal_cdf;
use super::moments::Moments;

/// A Gaussian fitted to a sample and how well it fits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GaussianFit {
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub sd: f64,
    /// A² adjusted for the sample size, A²·(1 + 0.75/n + 2.25/n²).
    pub anderson_darling: f64,
    /// Probability of a larger value if the sample were Gaussian.
    pub p_value: f64,
}

impl GaussianFit {
    /// Fits `x`. `None` for fewer than eight values or zero spread, where the test does not apply.
    #[must_use]
    pub fn of(x: &[f64]) -> Option<Self> {
        let m = Moments::of(x);
        if m.n < 8 || m.sd <= 0.0 {
            return None;
        }
        let mut z: Vec<f64> = x.iter().map(|v| (v - m.mean) / m.sd).collect();
        z.sort_unstable_by(f64::total_cmp);
        let n = z.len() as f64;
        // ln(1 - Φ(z)) is computed as ln Φ(-z): no cancellation in the upper tail.
        let ln_cdf = |v: f64| normal_cdf(v).max(f64::MIN_POSITIVE).ln();
        let sum: f64 = z
            .iter()
            .zip(z.iter().rev())
            .enumerate()
            .map(|(i, (low, high))| (2.0 * i as f64 + 1.0) * (ln_cdf(*low) + ln_cdf(-high)))
            .sum();
        let a2 = (-n - sum / n) * (1.0 + 0.75 / n + 2.25 / (n * n));
        Some(Self {
            mean: m.mean,
            sd: m.sd,
            anderson_darling: a2,
            p_value: p_value(a2),
        })
    }

    /// Whether normality is not rejected at 1 %.
    #[must_use]
    pub fn is_plausible(&self) -> bool {
        self.p_value >= 0.01
    }
}

fn p_value(a: f64) -> f64 {
    let p = if a < 0.2 {
        1.0 - (-13.436 + 101.14 * a - 223.73 * a * a).exp()
    } else if a < 0.34 {
        1.0 - (-8.318 + 42.796 * a - 59.938 * a * a).exp()
    } else if a < 0.6 {
        (0.9177 - 4.279 * a - 1.38 * a * a).exp()
    } else if a < 13.0 {
        (1.2937 - 5.709 * a + 0.0186 * a * a).exp()
    } else {
        // The fit's quadratic term would rise far outside the range it was made for.
        0.0
    };
    p.clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::{GaussianFit, p_value};
    use crate::stats::testing::Noise;

    #[test]
    fn critical_values_match_stephens() {
        // Stephens (1974), table 1.3, case of unknown mean and variance: upper tail points.
        for (a, p) in [
            (0.561, 0.15),
            (0.631, 0.10),
            (0.752, 0.05),
            (0.873, 0.025),
            (1.035, 0.01),
        ] {
            assert!(
                (p_value(a) / p - 1.0).abs() < 0.04,
                "A² {a}: {}",
                p_value(a)
            );
        }
        assert_eq!(p_value(200.0), 0.0);
    }

    #[test]
    fn known_statistic() {
        // scipy.stats.anderson(range(1, 9), dist='norm') = 0.134000458818.
        let fit = GaussianFit::of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]).unwrap();
        let a2 = fit.anderson_darling / (1.0 + 0.75 / 8.0 + 2.25 / 64.0);
        assert!((a2 - 0.134_000_459).abs() < 1e-6, "{a2}");
        assert!(fit.p_value > 0.9);
    }

    #[test]
    fn rejects_at_its_nominal_rate_and_finds_other_laws() {
        let mut noise = Noise::new(81);
        let count = |noise: &mut Noise, draw: fn(&mut Noise) -> f64| {
            (0..1000)
                .filter(|_| {
                    let x: Vec<f64> = (0..60).map(|_| draw(noise)).collect();
                    !GaussianFit::of(&x).unwrap().is_plausible()
                })
                .count()
        };
        // Binomial(1000, 0.01): at most 10 + 4 · 3.1.
        assert!(count(&mut noise, Noise::normal) <= 23);
        assert!(count(&mut noise, |n| -n.uniform().ln()) >= 990);
    }

    #[test]
    fn does_not_apply_to_few_or_equal_values() {
        assert_eq!(GaussianFit::of(&[1.0, 2.0, 3.0]), None);
        assert_eq!(GaussianFit::of(&[7.0; 100]), None);
    }
}
