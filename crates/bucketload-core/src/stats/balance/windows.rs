//! Balance over time: whether the same node is hot all the time or the hot node changes.

use serde::{Deserialize, Serialize};

use super::Indices;
use crate::generate::math::normal_quantile;

/// Balance over windows of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverTime {
    /// Windows with load.
    pub windows: u32,
    /// Median of the windows' peak factors.
    pub peak_median: f64,
    /// 95th percentile of the windows' peak factors.
    pub peak_p95: f64,
    /// Mean rank correlation of the nodes' loads between consecutive windows: near 1 the same nodes stay hot,
    /// near 0 the hot node changes. `None` if no pair of windows has a ranking.
    pub persistence: Option<f64>,
}

impl OverTime {
    /// Describes loads per window and node; `None` if no window has load on at least two nodes.
    #[must_use]
    pub fn of(windows: &[Vec<f64>]) -> Option<Self> {
        let mut peaks: Vec<f64> = windows
            .iter()
            .filter_map(|loads| Some(Indices::of(loads)?.peak))
            .collect();
        peaks.sort_by(f64::total_cmp);
        let at = |q: f64| {
            let rank = (q * peaks.len() as f64).ceil() as usize;
            peaks[rank.clamp(1, peaks.len()) - 1]
        };
        if peaks.is_empty() {
            return None;
        }
        let correlations: Vec<f64> = windows
            .windows(2)
            .filter_map(|pair| rank_correlation(&pair[0], &pair[1]))
            .collect();
        Some(Self {
            windows: u32::try_from(peaks.len()).unwrap_or(u32::MAX),
            peak_median: at(0.5),
            peak_p95: at(0.95),
            persistence: (!correlations.is_empty())
                .then(|| correlations.iter().sum::<f64>() / correlations.len() as f64),
        })
    }
}

/// Spearman's rank correlation, with ties at their mean rank; `None` if one side has no ranking or the
/// lengths differ.
#[must_use]
pub fn rank_correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len() != b.len() {
        return None;
    }
    correlation(&ranks(a), &ranks(b))
}

/// Ranks from 1, ties at their mean rank.
fn ranks(x: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..x.len()).collect();
    order.sort_by(|&i, &j| x[i].total_cmp(&x[j]));
    let mut ranks = vec![0.0; x.len()];
    let mut from = 0;
    while from < order.len() {
        let same = order[from..]
            .iter()
            .take_while(|&&i| x[i] == x[order[from]]);
        let to = from + same.count();
        for &i in &order[from..to] {
            ranks[i] = (from + 1 + to) as f64 / 2.0;
        }
        from = to;
    }
    ranks
}

/// Pearson's correlation; `None` with fewer than two points or without variation.
fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let n = a.len() as f64;
    let (ma, mb) = (a.iter().sum::<f64>() / n, b.iter().sum::<f64>() / n);
    let sum = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
        a.iter().zip(b).map(|(x, y)| f(x - ma, y - mb)).sum()
    };
    let (xx, yy) = (sum(&|x, _| x * x), sum(&|_, y| y * y));
    (a.len() >= 2 && xx > 0.0 && yy > 0.0).then(|| sum(&|x, y| x * y) / (xx * yy).sqrt())
}

/// How the tail varies with imbalance, window by window. A correlation, not a cause.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TailLink {
    /// Number of windows compared.
    pub windows: u32,
    /// Pearson's correlation of the windows' peak factors with their 99th percentiles.
    pub correlation: f64,
    /// Its 95 % interval, by Fisher's transformation.
    pub ci: (f64, f64),
}

impl TailLink {
    /// Relates the peak factor of each window to its 99th percentile of the response time; `None` with fewer
    /// than 10 windows or without variation.
    #[must_use]
    pub fn of(peaks: &[f64], p99: &[f64]) -> Option<Self> {
        let n = peaks.len();
        if n < 10 || p99.len() != n {
            return None;
        }
        let r = correlation(peaks, p99)?.clamp(-1.0 + 1e-12, 1.0 - 1e-12);
        let half = normal_quantile(0.975) / (n as f64 - 3.0).sqrt();
        Some(Self {
            windows: u32::try_from(n).unwrap_or(u32::MAX),
            correlation: r,
            ci: ((r.atanh() - half).tanh(), (r.atanh() + half).tanh()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{OverTime, TailLink, rank_correlation, ranks};
    use crate::generate::rng::mix64;

    #[test]
    fn ranks_share_ties() {
        assert_eq!(ranks(&[5.0, 1.0, 5.0, 0.0]), [3.5, 2.0, 3.5, 1.0]);
        // Textbook: d^2 = 0, 1, 1 gives 1 - 6*2/(3*8) = 0.5.
        let r = rank_correlation(&[1.0, 2.0, 3.0], &[10.0, 30.0, 20.0]);
        assert!((r.unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(rank_correlation(&[1.0, 1.0], &[1.0, 2.0]), None);
    }

    #[test]
    fn a_hot_node_persists_and_random_bursts_do_not() {
        let noise = |i: u64| (mix64(mix64(i)) >> 40) as f64 / 1e6;
        let window = |w: u64, hot: u64| -> Vec<f64> {
            let load =
                |node: u64| 100.0 + noise(w * 8 + node) + if node == hot { 80.0 } else { 0.0 };
            (0..8).map(load).collect()
        };
        let steady: Vec<_> = (0..200)
            .map(|w| {
                (0..8)
                    .map(|n| 100.0 + 10.0 * n as f64 + noise(w * 8 + n) / 10.0)
                    .collect()
            })
            .collect();
        let found = OverTime::of(&steady).unwrap();
        assert!(found.persistence.unwrap() > 0.95, "{found:?}");
        let random: Vec<_> = (0..200).map(|w| window(w, mix64(w) % 8)).collect();
        let found = OverTime::of(&random).unwrap();
        // Standard error of the mean of 199 rank correlations of 8 nodes: 1/sqrt(7 * 199) = 0.027.
        assert!(found.persistence.unwrap().abs() < 4.0 * 0.027, "{found:?}");
        assert!((1.4..1.8).contains(&found.peak_median), "{found:?}");
        assert!(found.peak_p95 >= found.peak_median && found.windows == 200);
        assert_eq!(OverTime::of(&[vec![0.0, 0.0]]), None);
    }

    #[test]
    fn the_tail_is_linked_only_if_correlated() {
        let peaks: Vec<f64> = (0..40).map(|i| 1.0 + f64::from(i % 7) / 10.0).collect();
        let linked: Vec<f64> = peaks.iter().map(|p| 5.0 * p + 1.0).collect();
        let link = TailLink::of(&peaks, &linked).unwrap();
        assert!(link.correlation > 0.999 && link.ci.0 > 0.99, "{link:?}");
        let unlinked: Vec<f64> = (0..40u64).map(|i| (mix64(i) % 1000) as f64).collect();
        let link = TailLink::of(&peaks, &unlinked).unwrap();
        assert!(link.ci.0 < 0.0 && link.ci.1 > 0.0, "{link:?}");
        assert_eq!(TailLink::of(&peaks[..9], &linked[..9]), None);
    }
}
