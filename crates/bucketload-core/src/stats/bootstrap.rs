//! Block bootstrap and the excess dispersion of a store.
//!
//! Values of neighbouring seconds are correlated, so whole blocks are resampled (Künsch 1989: overlapping
//! blocks of fixed length). The generator is a counter with a fixed seed, so the same data always give the
//! same intervals.

use serde::{Deserialize, Serialize};

use super::moments::Moments;
use crate::generate::rng::mix64;

/// Number of resamples.
const RESAMPLES: u64 = 1000;

/// How much a store adds to the fluctuation already present in the workload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExcessDispersion {
    /// CV of the completed quantity over CV of the offered one; 1 = the store adds nothing.
    pub ratio: f64,
    /// 95 % percentile interval of the block bootstrap; `None` with fewer than five blocks.
    pub ci: Option<(f64, f64)>,
    /// CV of the completed quantity per bin.
    pub completed_cv: f64,
    /// CV of the offered quantity per bin.
    pub offered_cv: f64,
}

fn ratio_of(completed: &Moments, offered: &Moments) -> Option<f64> {
    let (c, o) = (completed.cv()?, offered.cv()?);
    (o > 0.0).then(|| c / o)
}

/// CV(completed)/CV(offered) of two series of equal length, with an interval from blocks of `block` bins
/// taken from both series at the same positions (docs/spec/statistics.md section 9: 10-s blocks). `None` if
/// either mean or the offered CV is 0.
#[must_use]
pub fn excess_dispersion(
    completed: &[f64],
    offered: &[f64],
    block: usize,
) -> Option<ExcessDispersion> {
    let n = completed.len().min(offered.len());
    let (completed, offered) = (&completed[..n], &offered[..n]);
    let (c, o) = (Moments::of(completed), Moments::of(offered));
    let ratio = ratio_of(&c, &o)?;
    let block = block.max(1);
    let ci = (n / block >= 5).then(|| {
        let mut ratios = resample(n, block, |index| {
            let pick = |x: &[f64]| Moments::of(&index.iter().map(|&i| x[i]).collect::<Vec<_>>());
            ratio_of(&pick(completed), &pick(offered)).unwrap_or(ratio)
        });
        ratios.sort_unstable_by(f64::total_cmp);
        let at = |q: f64| ratios[((q * ratios.len() as f64) as usize).min(ratios.len() - 1)];
        (at(0.025), at(0.975))
    });
    Some(ExcessDispersion {
        ratio,
        ci,
        completed_cv: c.cv().unwrap_or(0.0),
        offered_cv: o.cv().unwrap_or(0.0),
    })
}

/// Evaluates `statistic` on the indices of [`RESAMPLES`] block resamples of `n` values.
fn resample(n: usize, block: usize, mut statistic: impl FnMut(&[usize]) -> f64) -> Vec<f64> {
    let starts = (n - block + 1) as u64;
    let mut index = Vec::with_capacity(n + block);
    let mut counter = 0u64;
    (0..RESAMPLES)
        .map(|_| {
            index.clear();
            while index.len() < n {
                counter += 1;
                // Bias of the modulus is below n / 2^64.
                let start = (mix64(mix64(counter)) % starts) as usize;
                index.extend(start..start + block);
            }
            index.truncate(n);
            statistic(&index)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::excess_dispersion;
    use crate::stats::testing::Noise;

    #[test]
    fn a_store_that_adds_nothing_has_ratio_one() {
        let offered = Noise::new(91).series(120, 100.0, 0.2);
        let e = excess_dispersion(&offered, &offered, 10).unwrap();
        assert_eq!((e.ratio, e.ci), (1.0, Some((1.0, 1.0))));
    }

    #[test]
    fn interval_covers_the_true_ratio() {
        // Completed = offered + independent noise of the same variance: CV ratio √2.
        let mut noise = Noise::new(92);
        let mut covered = 0;
        for _ in 0..100 {
            let offered = noise.series(300, 100.0, 0.2);
            let completed: Vec<f64> = offered.iter().map(|v| v + 20.0 * noise.normal()).collect();
            let (lo, hi) = excess_dispersion(&completed, &offered, 10)
                .unwrap()
                .ci
                .unwrap();
            assert!(hi - lo < 0.6);
            covered += u32::from(lo <= 2f64.sqrt() && 2f64.sqrt() <= hi);
        }
        // The percentile bootstrap with 30 blocks covers slightly less than its nominal 95 %.
        assert!(covered >= 82, "{covered} of 100");
    }

    #[test]
    fn undefined_and_short_cases() {
        assert_eq!(excess_dispersion(&[1.0, 2.0], &[3.0, 3.0], 1), None);
        assert_eq!(excess_dispersion(&[], &[], 1), None);
        let short = excess_dispersion(&[1.0, 2.0, 3.0], &[1.0, 2.0, 4.0], 10).unwrap();
        assert_eq!(short.ci, None);
    }
}
