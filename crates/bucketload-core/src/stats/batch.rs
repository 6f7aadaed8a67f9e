//! Batch means: the mean of a correlated series with a realistic confidence interval.
//!
//! A series of bins is cut into batches long enough to be nearly uncorrelated; the spread of the batch means
//! gives the interval (Law, *Simulation Modeling and Analysis*, section 9.5.3; docs/spec/statistics.md
//! section 3).

use serde::{Deserialize, Serialize};

use super::dist::t_quantile;
use super::moments::{Moments, mean};

/// Minimum number of batches for a reliable interval or check.
pub const MIN_BATCHES: usize = 20;
/// Largest lag-1 autocorrelation of batch means that is accepted as independence.
pub const MAX_LAG1: f64 = 0.3;

/// A mean with the uncertainty due to fluctuation within one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half-width of the 95 % confidence interval; `None` with fewer than two batches.
    pub half_width: Option<f64>,
    /// Number of batches. With fewer than [`MIN_BATCHES`] the interval is only a rough guide.
    pub batches: u64,
    /// Bins per batch.
    pub batch_len: u64,
    /// Lag-1 autocorrelation of the batch means. Above [`MAX_LAG1`] the interval is too narrow.
    pub lag1: f64,
}

impl Estimate {
    /// Half-width as a share of the mean.
    #[must_use]
    pub fn relative_half_width(&self) -> Option<f64> {
        self.half_width
            .filter(|_| self.mean != 0.0)
            .map(|h| h / self.mean.abs())
    }

    /// Whether the interval has its nominal meaning: enough batches and little correlation.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.batches >= MIN_BATCHES as u64 && self.lag1 <= lag1_limit(self.batches as usize)
    }
}

/// Lag-1 autocorrelation r1 = Σ (x_i - m)(x_{i+1} - m) / Σ (x_i - m)² (Box and Jenkins); 0 for a
/// series without spread.
#[must_use]
pub fn lag1(x: &[f64]) -> f64 {
    let m = mean(x);
    let total: f64 = x.iter().map(|v| (v - m) * (v - m)).sum();
    if total <= 0.0 {
        return 0.0;
    }
    x.windows(2).map(|w| (w[0] - m) * (w[1] - m)).sum::<f64>() / total
}

/// Largest lag-1 autocorrelation of `batches` means that is no evidence of correlation: [`MAX_LAG1`], or the
/// value that independent means exceed in 0.5 % of cases if that is larger.
///
/// r1 of n independent values has mean -1/n and standard deviation about 1/√n (Bartlett 1946), so
/// with 20 batches the bare threshold of 0.3 would reject one steady series in eighteen.
#[must_use]
pub fn lag1_limit(batches: usize) -> f64 {
    let n = batches.max(1) as f64;
    MAX_LAG1.max(2.576 / n.sqrt() - 1.0 / n)
}

/// Means of consecutive batches of `len` bins; an incomplete last batch is dropped.
///
/// # Panics
/// If `len` is 0.
#[must_use]
pub fn means(x: &[f64], len: usize) -> Vec<f64> {
    x.chunks_exact(len).map(mean).collect()
}

/// Batch means of `x`. Batches start with `first_len` bins and double until their lag-1 autocorrelation is
/// within [`lag1_limit`], as long as [`MIN_BATCHES`] remain. Returns the batch length and the means.
#[must_use]
pub fn uncorrelated_means(x: &[f64], first_len: usize) -> (usize, Vec<f64>) {
    let mut len = first_len.max(1);
    let mut z = means(x, len);
    while z.len() / 2 >= MIN_BATCHES && lag1(&z) > lag1_limit(z.len()) {
        len *= 2;
        z = means(x, len);
    }
    (len, z)
}

/// Mean of `x` with a 95 % confidence interval from batch means,
/// mean ± t(b-1, 0.975) · sd / √b.
#[must_use]
pub fn estimate(x: &[f64]) -> Estimate {
    let (batch_len, z) = uncorrelated_means(x, 1);
    let m = Moments::of(&z);
    let b = m.n as f64;
    Estimate {
        mean: mean(x),
        half_width: (m.n >= 2).then(|| t_quantile(0.975, b - 1.0) * m.sd / b.sqrt()),
        batches: m.n,
        batch_len: batch_len as u64,
        lag1: lag1(&z),
    }
}

#[cfg(test)]
mod tests {
    use super::{MIN_BATCHES, estimate, lag1, lag1_limit, means, uncorrelated_means};
    use crate::stats::testing::Noise;

    #[test]
    fn known_autocorrelation() {
        // m = 3, Σ d² = 10, Σ d_i d_{i+1} = 2 + 0 + 0 + 2 = 4.
        assert!((lag1(&[1.0, 2.0, 3.0, 4.0, 5.0]) - 0.4).abs() < 1e-12);
        assert_eq!(lag1(&[2.0; 9]), 0.0);
        assert!(lag1(&[1.0, -1.0, 1.0, -1.0, 1.0, -1.0]) < -0.8);
    }

    #[test]
    fn an_incomplete_batch_is_dropped() {
        assert_eq!(means(&[1.0, 3.0, 5.0, 7.0, 100.0], 2), [2.0, 6.0]);
    }

    #[test]
    fn known_interval() {
        let e = estimate(&[9.0, 11.0, 10.0, 10.0]);
        // sd = sqrt(2/3), t(3, 0.975) = 3.182446.
        let expected = 3.182_446 * (2.0f64 / 3.0).sqrt() / 2.0;
        assert_eq!((e.mean, e.batches, e.batch_len), (10.0, 4, 1));
        assert!((e.half_width.unwrap() - expected).abs() < 1e-5);
        assert!(!e.is_sound());
        assert_eq!(estimate(&[5.0]).half_width, None);
        assert_eq!(estimate(&[]).mean, 0.0);
    }

    #[test]
    fn correlated_series_get_longer_batches() {
        let x = Noise::new(5).ar1(2000, 0.8, 1.0);
        let (len, z) = uncorrelated_means(&x, 1);
        assert!(len >= 4 && z.len() >= MIN_BATCHES && lag1(&z) <= lag1_limit(z.len()));
        let iid = Noise::new(6).series(2000, 1.0, 0.1);
        assert_eq!(uncorrelated_means(&iid, 1).0, 1);
    }

    #[test]
    fn intervals_cover_the_mean_at_their_nominal_rate() {
        let mut noise = Noise::new(11);
        let covered = |rho: f64, noise: &mut Noise| {
            (0..1000)
                .filter(|_| {
                    let e = estimate(&noise.ar1(300, rho, 1.0));
                    e.mean.abs() <= e.half_width.unwrap()
                })
                .count()
        };
        // Binomial(1000, 0.95): 950 ± 4 · 6.9. With AR(1) 0.6 batches remain slightly correlated
        // (r1 up to 0.3 is accepted), which costs some coverage.
        let independent = covered(0.0, &mut noise);
        assert!((922..=978).contains(&independent), "{independent}");
        let correlated = covered(0.6, &mut noise);
        assert!((850..=978).contains(&correlated), "{correlated}");
    }
}
