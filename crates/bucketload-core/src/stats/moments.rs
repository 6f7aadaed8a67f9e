//! Moments of a sample, and the dispersion of counts over time.

use serde::{Deserialize, Serialize};

/// Mean, spread and shape of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// Number of values.
    pub n: u64,
    /// Arithmetic mean; 0 for an empty sample.
    pub mean: f64,
    /// Standard deviation with divisor n - 1; 0 for fewer than two values.
    pub sd: f64,
    /// Skewness g1 = m3 / m2^(3/2) with central moments of divisor n; 0 without spread.
    pub skewness: f64,
    /// Excess kurtosis g2 = m4 / m2² - 3 with central moments of divisor n (0 for a Gaussian);
    /// 0 without spread.
    pub excess_kurtosis: f64,
}

impl Moments {
    /// The moments of `x`, in two passes, so that a large mean loses no digits.
    #[must_use]
    pub fn of(x: &[f64]) -> Self {
        if x.is_empty() {
            return Self::default();
        }
        let n = x.len() as f64;
        let mean = mean(x);
        let (mut m2, mut m3, mut m4) = (0.0, 0.0, 0.0);
        for v in x {
            let d = v - mean;
            m2 += d * d;
            m3 += d * d * d;
            m4 += d * d * d * d;
        }
        let sd = if x.len() < 2 {
            0.0
        } else {
            (m2 / (n - 1.0)).sqrt()
        };
        let (m2, m3, m4) = (m2 / n, m3 / n, m4 / n);
        let shaped = m2 > 0.0;
        Self {
            n: x.len() as u64,
            mean,
            sd,
            skewness: if shaped { m3 / m2.powf(1.5) } else { 0.0 },
            excess_kurtosis: if shaped { m4 / (m2 * m2) - 3.0 } else { 0.0 },
        }
    }

    /// Coefficient of variation sd/mean; `None` if the mean is 0.
    #[must_use]
    pub fn cv(&self) -> Option<f64> {
        (self.mean != 0.0).then(|| self.sd / self.mean.abs())
    }
}

/// Arithmetic mean; 0 for an empty slice.
#[must_use]
pub fn mean(x: &[f64]) -> f64 {
    if x.is_empty() {
        0.0
    } else {
        x.iter().sum::<f64>() / x.len() as f64
    }
}

/// Index of dispersion of counts, Var/Mean over windows of `group` consecutive bins (Cox and Lewis 1966): 1
/// for Poisson arrivals, 0 for a perfectly even stream. An incomplete last window is dropped. `None` with
/// fewer than two windows or a mean of 0.
#[must_use]
pub fn index_of_dispersion(counts: &[f64], group: usize) -> Option<f64> {
    let sums: Vec<f64> = counts
        .chunks_exact(group.max(1))
        .map(|window| window.iter().sum())
        .collect();
    let m = Moments::of(&sums);
    (m.n >= 2 && m.mean > 0.0).then(|| m.sd * m.sd / m.mean)
}

#[cfg(test)]
mod tests {
    use super::{Moments, index_of_dispersion};
    use crate::stats::testing::Noise;

    #[test]
    fn known_values() {
        let m = Moments::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((m.n, m.mean), (8, 5.0));
        assert!((m.sd - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
        // m2 = 4, m3 = 5.25, m4 = 44.5.
        assert!((m.skewness - 5.25 / 8.0).abs() < 1e-12);
        assert!((m.excess_kurtosis - (44.5 / 16.0 - 3.0)).abs() < 1e-12);
        assert_eq!(Moments::of(&[3.0; 5]).sd, 0.0);
        assert_eq!(Moments::of(&[3.0; 5]).cv(), Some(0.0));
        assert_eq!(Moments::of(&[]).cv(), None);
    }

    #[test]
    fn a_large_offset_loses_no_digits() {
        let m = Moments::of(&[1e9 + 1.0, 1e9 + 2.0, 1e9 + 3.0]);
        assert!((m.sd - 1.0).abs() < 1e-9);
        assert!(m.skewness.abs() < 1e-9);
    }

    #[test]
    fn gaussian_and_exponential_shapes() {
        // Standard errors at n = 200 000: skewness sqrt(6/n) = 0.0055, kurtosis sqrt(24/n) = 0.011
        // for the Gaussian; 4 of them are the bounds.
        let mut noise = Noise::new(1);
        let gauss: Vec<f64> = (0..200_000).map(|_| noise.normal()).collect();
        let m = Moments::of(&gauss);
        assert!(
            m.skewness.abs() < 0.022 && m.excess_kurtosis.abs() < 0.044,
            "{m:?}"
        );
        let exponential: Vec<f64> = (0..200_000).map(|_| -noise.uniform().ln()).collect();
        let m = Moments::of(&exponential);
        assert!(
            (m.skewness - 2.0).abs() < 0.15 && (m.excess_kurtosis - 6.0).abs() < 2.0,
            "{m:?}"
        );
    }

    #[test]
    fn dispersion_of_even_and_clustered_counts() {
        assert_eq!(index_of_dispersion(&[5.0; 20], 1), Some(0.0));
        assert_eq!(index_of_dispersion(&[0.0; 20], 1), None);
        assert_eq!(index_of_dispersion(&[1.0, 2.0, 3.0], 2), None);
        // Alternating 0 and 10: bursty over one bin, even over two.
        let x: Vec<f64> = (0..40).map(|i| f64::from(i % 2) * 10.0).collect();
        assert!(index_of_dispersion(&x, 1).unwrap() > 5.0);
        assert_eq!(index_of_dispersion(&x, 2), Some(0.0));
    }
}
