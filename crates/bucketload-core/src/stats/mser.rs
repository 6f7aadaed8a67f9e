//! The end of the warm-up: truncation by the marginal standard error rule (MSER-5).
//!
//! White, Cobb and Spratt, "A comparison of five steady-state truncation heuristics for simulation", WSC
//! 2000: average the series in batches of five, then drop the first d batches, where d minimises
//! Σ_{j>d} (Z_j - mean)² / (k-d)². A late minimum means either that the series has no steady part or that the
//! rule follows noise; [`super::steady`] decides which.
//!
//! A run of one minute has only twelve batches of five one-second bins, and the rule then follows noise.
//! Batches are therefore shortened so that there are at least 20 if the series allows it (MSER-m with m =
//! n/20, at most 5; MSER with m = 1 is the rule's original form, White 1997).

/// Bins per batch in the published rule.
pub const BATCH_LEN: usize = 5;
/// Number of batches always kept, as in the definition d ≤ k - 5.
const KEEP: usize = 5;
/// An early cut drops at most one part in this many. The published limit is half of the series; with a third,
/// the drift of a short noisy run cannot be mistaken for a long warm-up.
const EARLY: usize = 3;
/// Number of batches required for the full batch length.
const WANTED: usize = 20;

/// Outcome of the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncation {
    /// Bins per batch.
    pub batch_len: usize,
    /// Number of batches in the series, k.
    pub batches: usize,
    /// Number of batches to drop, d*: the minimum over 0 ≤ d ≤ k - 5.
    pub drop: usize,
    /// The same over 0 ≤ d ≤ k/3: the best cut that keeps most of the series.
    pub early_drop: usize,
}

impl Truncation {
    /// Whether the cut keeps most of the series.
    #[must_use]
    pub const fn is_early(&self) -> bool {
        self.drop == self.early_drop
    }
}

/// Batch length for a series of `bins`.
#[must_use]
pub fn batch_len(bins: usize) -> usize {
    (bins / WANTED).clamp(1, BATCH_LEN)
}

/// Applies the rule to `x`. `None` for five batches or fewer.
#[must_use]
pub fn truncate(x: &[f64]) -> Option<Truncation> {
    let len = batch_len(x.len());
    let z = super::batch::means(x, len);
    if z.len() <= KEEP {
        return None;
    }
    Some(Truncation {
        batch_len: len,
        batches: z.len(),
        drop: best_cut(&z, z.len()),
        early_drop: best_cut(&z, z.len() / EARLY),
    })
}

/// d* of batch means `z` among 0..=`limit`; the smallest one on a tie.
fn best_cut(z: &[f64], limit: usize) -> usize {
    // Sums over the kept suffix, of values centred on the overall mean to avoid cancellation.
    let centre = super::moments::mean(z);
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for d in (0..z.len()).rev() {
        let v = z[d] - centre;
        sum += v;
        squares += v * v;
        let kept = (z.len() - d) as f64;
        if z.len() - d < KEEP || d > limit {
            continue;
        }
        let error = (squares - sum * sum / kept).max(0.0) / (kept * kept);
        if error <= best.0 {
            best = (error, d);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::{batch_len, best_cut, truncate};
    use crate::stats::testing::Noise;

    #[test]
    fn cuts_a_step_exactly() {
        let mut z = vec![100.0; 30];
        z[..7].fill(40.0);
        assert_eq!(best_cut(&z, 30), 7);
        assert_eq!(best_cut(&z, 4), 4);
        assert_eq!(best_cut(&[5.0; 12], 12), 0);
    }

    #[test]
    fn agrees_with_the_definition() {
        let mut noise = Noise::new(8);
        for _ in 0..50 {
            let z = noise.series(40, 10.0, 0.3);
            let error = |d: usize| {
                let rest = &z[d..];
                let m = rest.iter().sum::<f64>() / rest.len() as f64;
                rest.iter().map(|v| (v - m).powi(2)).sum::<f64>() / (rest.len() as f64).powi(2)
            };
            let direct = (0..=35)
                .min_by(|&a, &b| error(a).total_cmp(&error(b)))
                .unwrap();
            assert_eq!(best_cut(&z, 40), direct);
        }
    }

    #[test]
    fn batches_shrink_for_short_series() {
        assert_eq!(
            [15, 20, 40, 60, 99, 100, 4000].map(batch_len),
            [1, 1, 2, 3, 4, 5, 5]
        );
        assert_eq!(truncate(&[1.0; 5]), None);
        assert_eq!(truncate(&[1.0; 300]).unwrap().batches, 60);
    }

    /// The check of docs/spec/statistics.md section 3: 300 s, exponential ramp with τ = 20 s from 50 %,
    /// AR(1) noise of 4 %: median cut 55 s, bias of the mean from -3.4 % to -0.2 %.
    #[test]
    fn removes_an_exponential_ramp() {
        let mut noise = Noise::new(21);
        let (mut cuts, mut raw, mut kept) = (Vec::new(), 0.0, 0.0);
        for _ in 0..200 {
            let x: Vec<f64> = noise
                .ar1(300, 0.5, 4.0)
                .iter()
                .enumerate()
                .map(|(t, e)| 100.0 * (1.0 - 0.5 * (-(t as f64) / 20.0).exp()) + e)
                .collect();
            let truncation = truncate(&x).unwrap();
            let cut = truncation.early_drop * truncation.batch_len;
            raw += x.iter().sum::<f64>() / 300.0 / 200.0;
            kept += x[cut..].iter().sum::<f64>() / (300 - cut) as f64 - 100.0;
            cuts.push(cut);
        }
        cuts.sort_unstable();
        let median = cuts[cuts.len() / 2];
        let bias = kept / cuts.len() as f64;
        assert!((raw - 100.0 + 3.4).abs() < 0.4, "raw {raw}");
        assert!((35..=80).contains(&median), "median cut {median} s");
        assert!(bias.abs() < 0.6, "bias {bias} %");
    }
}
