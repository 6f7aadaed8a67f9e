//! How evenly load is spread over nodes or endpoints (docs/spec/statistics.md section 8).
//!
//! [`Indices`] describe one distribution of load, [`Null`] describes the effect of chance under even routing,
//! [`Attribution`] separates the workload's part from the system's, and [`windows`] covers changes over time.
//! All are pure functions of loads per node.

mod attribution;
pub mod windows;

pub use attribution::{Attribution, NodeLoads, PlacementTable, one_key_bound};

use serde::{Deserialize, Serialize};
use statrs::distribution::{ChiSquared, ContinuousCDF, Normal};

/// Indices of how unevenly `n` nodes are loaded. Even load and a single hot node are the ends of each scale.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Indices {
    /// Number of nodes.
    pub nodes: u32,
    /// Sum of the loads.
    pub total: f64,
    /// Largest load divided by the mean: 1 (even) to n.
    pub peak: f64,
    /// Coefficient of variation with the population's standard deviation: 0 to sqrt(n - 1).
    pub cv: f64,
    /// Jain, Chiu, Hawe 1984: (sum q)^2 / (n * sum q^2), 1 to 1/n.
    pub jain: f64,
    /// Gini coefficient: 0 to (n - 1)/n.
    pub gini: f64,
    /// Entropy of the shares divided by ln n: 1 to 0.
    pub entropy: f64,
    /// Number of evenly loaded nodes with the same effect, 1 / sum p^2: n to 1.
    pub effective: f64,
    /// Share of the nodes' total capacity that is usable when the busiest node is full, mean divided by
    /// maximum: 1 to 1/n.
    pub usable: f64,
}

impl Indices {
    /// The indices of `loads`, one value of at least 0 per node; `None` for fewer than two nodes or zero
    /// total load.
    #[must_use]
    pub fn of(loads: &[f64]) -> Option<Self> {
        let n = loads.len() as f64;
        let total: f64 = loads.iter().sum();
        let sound = loads.iter().all(|q| q.is_finite() && *q >= 0.0);
        if loads.len() < 2 || total <= 0.0 || !sound {
            return None;
        }
        let mean = total / n;
        let max = loads.iter().copied().fold(0.0, f64::max);
        let variance = loads.iter().map(|q| (q - mean).powi(2)).sum::<f64>() / n;
        let squares: f64 = loads.iter().map(|q| q * q).sum();
        let mut ascending = loads.to_vec();
        ascending.sort_by(f64::total_cmp);
        let ranked = ascending.iter().enumerate();
        let gini: f64 = ranked
            .map(|(i, q)| (2.0 * (i + 1) as f64 - n - 1.0) * q)
            .sum();
        let shares = loads.iter().map(|q| q / total).filter(|p| *p > 0.0);
        Some(Self {
            nodes: u32::try_from(loads.len()).unwrap_or(u32::MAX),
            total,
            peak: max / mean,
            cv: variance.sqrt() / mean,
            jain: total * total / (n * squares),
            gini: gini / (n * total),
            entropy: (-shares.map(|p| p * p.ln()).sum::<f64>() / n.ln()).clamp(0.0, 1.0),
            effective: total * total / squares,
            usable: mean / max,
        })
    }
}

/// The effect of chance on `requests` requests routed independently, each to node i with probability
/// `share[i]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Null {
    /// Expected coefficient of variation under even routing, about sqrt((n - 1) / m).
    pub cv: f64,
    /// Upper 95 % bound of the coefficient of variation under even routing.
    pub cv_bound: f64,
    /// Upper 95 % bound of the peak factor under even routing, from the normal approximation of
    /// the largest of n counts.
    pub peak_bound: f64,
    /// Chi-square statistic of the observed counts against the shares.
    pub chi_square: f64,
    /// Its degrees of freedom, n - 1.
    pub df: f64,
    /// Probability of a statistic at least as large if routing follows the shares. With millions of requests
    /// every deviation is significant: read the indices instead.
    pub p_value: f64,
}

impl Null {
    /// Tests whole numbers of requests per node against even routing; `None` for fewer than two
    /// nodes or no requests.
    #[must_use]
    pub fn even(requests: &[u64]) -> Option<Self> {
        Self::shares(requests, &vec![1.0; requests.len()])
    }

    /// Tests whole numbers of requests per node against routing in proportion to `shares`, one
    /// positive value per node.
    #[must_use]
    pub fn shares(requests: &[u64], shares: &[f64]) -> Option<Self> {
        let nodes = requests.len();
        let m = requests.iter().sum::<u64>() as f64;
        let sum: f64 = shares.iter().sum();
        if nodes < 2 || shares.len() != nodes || m <= 0.0 || shares.iter().any(|s| *s <= 0.0) {
            return None;
        }
        let df = (nodes - 1) as f64;
        let chi_square = requests
            .iter()
            .zip(shares)
            .map(|(&q, s)| (q as f64 - m * s / sum).powi(2) / (m * s / sum))
            .sum();
        // The degrees of freedom are positive.
        let law = ChiSquared::new(df).ok()?;
        let each = 0.95_f64.powf(1.0 / nodes as f64);
        Some(Self {
            cv: (df / m).sqrt(),
            cv_bound: (law.inverse_cdf(0.95) / m).sqrt(),
            peak_bound: 1.0 + Normal::standard().inverse_cdf(each) * (df / m).sqrt(),
            chi_square,
            df,
            p_value: law.sf(chi_square),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Indices, Null};
    use crate::generate::rng::mix64;

    fn close(a: f64, b: f64, tolerance: f64) -> bool {
        (a - b).abs() <= tolerance
    }

    #[test]
    fn the_published_experiment() {
        // docs/spec/scenarios.md section 8, figure 8: requests per node, in 10^4.
        let i = Indices::of(&[6.2, 18.5, 6.2, 5.9, 2.5, 60.5]).unwrap();
        assert!(close(i.peak, 3.64, 0.005), "{i:?}");
        assert!(close(i.cv, 1.22, 0.005), "{i:?}");
        assert!(close(i.gini, 0.55, 0.005), "{i:?}");
        assert!(close(i.jain, 0.40, 0.005), "{i:?}");
        assert!(close(i.effective, 2.4, 0.05), "{i:?}");
        assert!(close(i.usable, 0.27, 0.006), "{i:?}");
    }

    #[test]
    fn the_ends_of_the_scales() {
        for n in [2usize, 6, 100] {
            let nf = n as f64;
            let even = Indices::of(&vec![7.0; n]).unwrap();
            let expected = [1.0, 0.0, 1.0, 0.0, 1.0, nf, 1.0];
            assert_indices(&even, expected);
            let mut hot = vec![0.0; n];
            hot[n / 2] = 3.0;
            let hot = Indices::of(&hot).unwrap();
            let expected = [
                nf,
                (nf - 1.0).sqrt(),
                1.0 / nf,
                (nf - 1.0) / nf,
                0.0,
                1.0,
                1.0 / nf,
            ];
            assert_indices(&hot, expected);
        }
        assert_eq!(Indices::of(&[1.0]), None);
        assert_eq!(Indices::of(&[0.0, 0.0]), None);
    }

    fn assert_indices(i: &Indices, expected: [f64; 7]) {
        let got = [
            i.peak,
            i.cv,
            i.jain,
            i.gini,
            i.entropy,
            i.effective,
            i.usable,
        ];
        for (g, e) in got.into_iter().zip(expected) {
            assert!(close(g, e, 1e-9), "{i:?} instead of {expected:?}");
        }
    }

    /// Simulated even routing: the stated bounds hold in 95 % of the runs, within three standard errors of
    /// 2000 runs (1.5 percentage points), and reproduce docs/spec/statistics.md section 8.
    #[test]
    fn bounds_of_even_routing_hold() {
        let (nodes, requests, runs) = (6usize, 10_000u64, 2_000u64);
        let bounds = Null::even(&[requests, 0, 0, 0, 0, 0]).unwrap();
        assert!(close(bounds.peak_bound, 1.054, 0.001), "{bounds:?}");
        let mut within = [0u64; 3];
        let mut word = 1u64;
        for _ in 0..runs {
            let mut loads = vec![0u64; nodes];
            for _ in 0..requests {
                word = word.wrapping_add(1);
                let node = (u128::from(mix64(mix64(word))) * nodes as u128) >> 64;
                loads[node as usize] += 1;
            }
            let test = Null::even(&loads).unwrap();
            let loads: Vec<f64> = loads.iter().map(|&q| q as f64).collect();
            let i = Indices::of(&loads).unwrap();
            within[0] += u64::from(i.peak <= test.peak_bound);
            within[1] += u64::from(i.cv <= test.cv_bound);
            within[2] += u64::from(test.p_value >= 0.05);
        }
        for count in within {
            let share = count as f64 / runs as f64;
            assert!(close(share, 0.95, 0.015), "{within:?} of {runs}");
        }
        let table = [(6usize, 1_000_000u64, 1.0054), (16, 100_000, 1.034)];
        for (nodes, requests, bound) in table {
            let mut loads = vec![0; nodes];
            loads[0] = requests;
            let null = Null::even(&loads).unwrap();
            assert!(close(null.peak_bound, bound, 0.001), "{null:?}");
        }
    }

    #[test]
    fn weighted_routing_is_tested_against_its_weights() {
        let weighted = Null::shares(&[6000, 3000, 1000], &[0.6, 0.3, 0.1]).unwrap();
        assert!(weighted.p_value > 0.999 && weighted.chi_square < 1e-9);
        assert!(Null::even(&[6000, 3000, 1000]).unwrap().p_value < 1e-12);
        assert_eq!(Null::shares(&[1, 1], &[1.0, 0.0]), None);
    }

    proptest! {
        #[test]
        fn indices_agree_with_each_other(loads in prop::collection::vec(0.0f64..1e9, 2..40)) {
            prop_assume!(loads.iter().sum::<f64>() > 1.0);
            let i = Indices::of(&loads).unwrap();
            prop_assert!(close(i.jain, 1.0 / (1.0 + i.cv * i.cv), 1e-9));
            prop_assert!(close(i.effective, i.jain * f64::from(i.nodes), 1e-6));
            prop_assert!(close(i.usable * i.peak, 1.0, 1e-9));
            // Scaling all loads changes nothing.
            let scaled: Vec<f64> = loads.iter().map(|q| q * 3.0).collect();
            let s = Indices::of(&scaled).unwrap();
            prop_assert!(close(s.gini, i.gini, 1e-9) && close(s.entropy, i.entropy, 1e-9));
        }
    }
}
