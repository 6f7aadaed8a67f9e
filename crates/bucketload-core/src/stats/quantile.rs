//! How reliable a percentile is.
//!
//! The interval is distribution-free: of n independent values, the number below the q-quantile is binomially
//! distributed, so two order statistics enclose it with known probability (David and Nagaraja, *Order
//! Statistics*, section 7.1; docs/spec/statistics.md section 1).

use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, DiscreteCDF};

/// Whether and how a percentile is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Print {
    /// Fewer than 10 values lie beyond it: not shown.
    Omit,
    /// Shown.
    Plain,
    /// At least 100 values lie beyond it: shown as reliable.
    Bold,
}

/// The print rule of docs/spec/statistics.md section 1: print when n·(1-q) ≥ 10, bold when ≥ 100.
#[must_use]
pub fn print_rule(n: u64, q: f64) -> Print {
    // The tolerance keeps 1000 · (1 - 0.99) from being 9.999….
    let beyond = n as f64 * (1.0 - q) + 1e-6;
    if beyond >= 100.0 {
        Print::Bold
    } else if beyond >= 10.0 {
        Print::Plain
    } else {
        Print::Omit
    }
}

/// Minimum number of values for which a two-sided 95 % interval of the `q`-quantile exists, n ≥ ln 0.025 / ln
/// max(q, 1-q).
///
/// # Panics
/// If `q` is not inside 0..1.
#[must_use]
pub fn min_n(q: f64) -> u64 {
    assert!(q > 0.0 && q < 1.0, "quantile {q} is outside 0..1");
    (0.025f64.ln() / q.max(1.0 - q).ln()).ceil() as u64
}

/// Ranks (from 1) of the order statistics that enclose the `q`-quantile of `n` independent values with at
/// least 95 % probability: the binomial(n, q) quantiles at 2.5 % and at 97.5 % plus 1. `None` if there is no
/// such pair.
///
/// Values of one run are correlated, so the interval is too narrow for them.
///
/// # Panics
/// If `q` is not inside 0..1.
#[must_use]
pub fn ci_ranks(n: u64, q: f64) -> Option<(u64, u64)> {
    if n < min_n(q) {
        return None;
    }
    // Above this, the Gaussian approximates the binomial more finely than a rank matters.
    let (low, high) = if n > 1_000_000 {
        let (mean, sd) = (n as f64 * q, (n as f64 * q * (1.0 - q)).sqrt());
        let at = |z: f64| (mean + z * sd).ceil().max(0.0) as u64;
        (at(-1.959_964), at(1.959_964) + 1)
    } else {
        let binomial = Binomial::new(q, n).ok()?;
        (binomial.inverse_cdf(0.025), binomial.inverse_cdf(0.975) + 1)
    };
    (low >= 1 && high <= n).then_some((low, high))
}

#[cfg(test)]
mod tests {
    use super::{Print, ci_ranks, min_n, print_rule};
    use crate::stats::testing::Noise;

    #[test]
    fn minimum_n_matches_the_published_table() {
        // docs/spec/statistics.md section 1.
        assert_eq!(
            [0.9, 0.95, 0.99, 0.999, 0.9999].map(min_n),
            [36, 72, 368, 3688, 36_887]
        );
        for q in [0.5, 0.9, 0.99] {
            assert_eq!(ci_ranks(min_n(q) - 1, q), None);
            assert!(ci_ranks(min_n(q), q).is_some(), "{q}");
        }
    }

    #[test]
    fn known_ranks() {
        // Binomial quantiles at 2.5 % and 97.5 % (scipy.stats.binom.ppf): (100, 0.5) 40 and 60,
        // (1000, 0.99) 983 and 996.
        assert_eq!(ci_ranks(100, 0.5), Some((40, 61)));
        assert_eq!(ci_ranks(1000, 0.99), Some((983, 997)));
    }

    #[test]
    fn the_gaussian_branch_agrees_with_the_exact_one() {
        let exact = ci_ranks(1_000_000, 0.999).unwrap();
        let gauss = ci_ranks(1_000_001, 0.999).unwrap();
        assert!(exact.0.abs_diff(gauss.0) <= 3 && exact.1.abs_diff(gauss.1) <= 3);
        assert!(ci_ranks(10_000_000_000, 0.5).is_some());
    }

    #[test]
    fn ranks_cover_the_quantile() {
        let mut noise = Noise::new(71);
        let (lo, hi) = ci_ranks(400, 0.95).unwrap();
        let covered = (0..2000)
            .filter(|_| {
                let mut x: Vec<f64> = (0..400).map(|_| noise.uniform()).collect();
                x.sort_unstable_by(f64::total_cmp);
                x[lo as usize - 1] <= 0.95 && 0.95 <= x[hi as usize - 1]
            })
            .count();
        // At least 95 % nominal; 4 standard errors of 2000 trials are 2 %.
        assert!(covered >= 1860, "{covered}");
    }

    #[test]
    fn print_rule_at_its_thresholds() {
        assert_eq!(print_rule(999, 0.99), Print::Omit);
        assert_eq!(print_rule(1000, 0.99), Print::Plain);
        assert_eq!(print_rule(9999, 0.99), Print::Plain);
        assert_eq!(print_rule(10_000, 0.99), Print::Bold);
        assert_eq!(print_rule(100_000, 0.999), Print::Bold);
        assert_eq!(print_rule(19, 0.5), Print::Omit);
    }
}
