//! Mann-Whitney U on run-level values: a check without distribution assumptions, and the probability of
//! superiority as an effect size (docs/spec/statistics.md section 5).

use serde::{Deserialize, Serialize};

use super::dist::normal_cdf;

/// Above this product of sample sizes the normal approximation is accurate to three digits.
const EXACT: usize = 2_500;

/// Outcome of the Mann-Whitney test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MannWhitney {
    /// U of B: pairs in which B's value is larger; ties count half.
    pub u: f64,
    /// U / (m·k): the probability that a run of B has a larger value than a run of A.
    pub superiority: f64,
    /// Two-sided p-value.
    pub p_value: f64,
    /// Whether the p-value is exact: no ties and small samples.
    pub exact: bool,
}

/// Compares two independent samples by ranks (Mann and Whitney 1947). `None` if either is empty.
#[must_use]
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Option<MannWhitney> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let mut u = 0.0;
    let mut ties = false;
    for y in b {
        for x in a {
            u += match y.total_cmp(x) {
                std::cmp::Ordering::Greater => 1.0,
                std::cmp::Ordering::Equal => {
                    ties = true;
                    0.5
                }
                std::cmp::Ordering::Less => 0.0,
            };
        }
    }
    let (m, k) = (a.len(), b.len());
    let pairs = (m * k) as f64;
    let exact = !ties && m * k <= EXACT;
    let p_value = if exact {
        exact_p(m, k, u as usize)
    } else {
        approximate_p(a, b, u)
    };
    Some(MannWhitney {
        u,
        superiority: u / pairs,
        p_value,
        exact,
    })
}

/// Two-sided p-value from the number of arrangements with an equally extreme U: the coefficients of the
/// Gaussian binomial, by the recursion f(m, k, u) = f(m-1, k, u-k) + f(m, k-1, u).
fn exact_p(m: usize, k: usize, u: usize) -> f64 {
    let most = m * k;
    // rows[j][u] for j = 0..=k, built up over m.
    let mut rows = vec![vec![0.0; most + 1]; k + 1];
    rows.iter_mut().for_each(|row| row[0] = 1.0);
    for _ in 1..=m {
        let before = rows.clone();
        for j in 1..=k {
            for u in 0..=most {
                let shifted = if u >= j { before[j][u - j] } else { 0.0 };
                rows[j][u] = shifted + rows[j - 1][u];
            }
        }
    }
    let counts = &rows[k];
    let all: f64 = counts.iter().sum();
    let tail = u.min(most - u);
    let extreme: f64 = counts[..=tail].iter().sum();
    (2.0 * extreme / all).min(1.0)
}

/// Normal approximation with corrections for ties and continuity.
fn approximate_p(a: &[f64], b: &[f64], u: f64) -> f64 {
    let (m, k) = (a.len() as f64, b.len() as f64);
    let n = m + k;
    let mut all: Vec<f64> = a.iter().chain(b).copied().collect();
    all.sort_unstable_by(f64::total_cmp);
    let ties: f64 = all
        .chunk_by(|x, y| x == y)
        .map(|group| {
            let t = group.len() as f64;
            t * t * t - t
        })
        .sum();
    let variance = m * k / 12.0 * (n + 1.0 - ties / (n * (n - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let distance = ((u - m * k / 2.0).abs() - 0.5).max(0.0);
    (2.0 * normal_cdf(-distance / variance.sqrt())).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::{exact_p, mann_whitney};

    #[test]
    fn smallest_attainable_p_values_match_the_published_ones() {
        // docs/spec/statistics.md section 5: 0.10 for 3 v 3, 0.029 for 4 v 4, 0.0079 for 5 v 5.
        for (n, expected) in [(3, 0.10), (4, 0.028_571), (5, 0.007_937)] {
            let p = exact_p(n, n, 0);
            assert!((p - expected).abs() < 1e-6, "{n}: {p}");
        }
    }

    #[test]
    fn exact_p_values_match_scipy() {
        // scipy.stats.mannwhitneyu(method="exact"): (3, 4) with U = 2: 0.228571; (5, 5) with U = 4:
        // 0.095238.
        assert!((exact_p(3, 4, 2) - 8.0 / 35.0).abs() < 1e-12);
        assert!((exact_p(5, 5, 4) - 24.0 / 252.0).abs() < 1e-12);
        assert_eq!(exact_p(2, 2, 2), 1.0);
    }

    #[test]
    fn superiority_counts_pairs_and_ties_half() {
        let w = mann_whitney(&[1.0, 2.0], &[3.0, 4.0]).unwrap();
        assert_eq!((w.u, w.superiority, w.exact), (4.0, 1.0, true));
        let tied = mann_whitney(&[1.0, 2.0], &[2.0, 1.0]).unwrap();
        assert_eq!((tied.superiority, tied.exact), (0.5, false));
        assert!(tied.p_value > 0.9);
        assert_eq!(mann_whitney(&[5.0; 4], &[5.0; 4]).unwrap().p_value, 1.0);
        assert_eq!(mann_whitney(&[], &[1.0]), None);
    }

    #[test]
    fn the_approximation_agrees_with_the_exact_values() {
        let a: Vec<f64> = (0..20).map(f64::from).collect();
        let b: Vec<f64> = (0..20).map(|i| f64::from(i) + 4.5).collect();
        let exact = mann_whitney(&a, &b).unwrap();
        let near = super::approximate_p(&a, &b, exact.u);
        assert!(
            exact.exact && (exact.p_value - near).abs() < 0.005,
            "{exact:?} {near}"
        );
    }
}
