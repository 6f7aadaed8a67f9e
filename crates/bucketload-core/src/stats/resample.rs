//! Bootstrap intervals of run-level statistics, for quantities without a simple variance, such as a capacity
//! or the position of a knee (docs/spec/statistics.md section 5).
//!
//! The generator is a counter with a given seed, so the same data always give the same intervals.

use crate::generate::rng::mix64;

/// Minimum number of values for the percentile bootstrap: with 3 values its nominal 95 % interval covers 80
/// %, with 5 88 %, with 10 91 % (docs/spec/statistics.md section 5).
pub const LEAST_VALUES: usize = 10;

/// Number of resamples.
const RESAMPLES: usize = 10_000;

/// Why there is no bootstrap interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BootstrapError {
    /// Too few values.
    #[error(
        "{0} values are too few for a bootstrap interval, which needs {LEAST_VALUES}: it would be far too narrow"
    )]
    TooFew(usize),
}

/// A counter-based stream of indices.
struct Draws {
    seed: u64,
    counter: u64,
}

impl Draws {
    fn new(seed: u64) -> Self {
        Self {
            seed: mix64(seed),
            counter: 0,
        }
    }

    fn below(&mut self, n: usize) -> usize {
        self.counter += 1;
        // Bias of the modulus is below n / 2^64.
        (mix64(self.seed ^ mix64(self.counter)) % n as u64) as usize
    }
}

/// The percentile interval of `statistic` at confidence `level` from 10 000 resamples of `values`.
///
/// # Errors
/// With fewer than [`LEAST_VALUES`] values.
pub fn percentile(
    values: &[f64],
    level: f64,
    seed: u64,
    mut statistic: impl FnMut(&[f64]) -> f64,
) -> Result<(f64, f64), BootstrapError> {
    if values.len() < LEAST_VALUES {
        return Err(BootstrapError::TooFew(values.len()));
    }
    let mut draws = Draws::new(seed);
    let mut sample = vec![0.0; values.len()];
    let estimates = (0..RESAMPLES)
        .map(|_| {
            sample
                .iter_mut()
                .for_each(|v| *v = values[draws.below(values.len())]);
            statistic(&sample)
        })
        .collect();
    Ok(ends(estimates, level))
}

/// Deployments of runs of values in time order.
pub type Deployments = [Vec<Vec<f64>>];

/// The percentile interval of `statistic` at confidence `level` for values with levels: deployments are
/// resampled, then runs within each, then blocks of `block` consecutive values within each run (`block` 0
/// keeps a run's values unchanged). The statistic receives the values of each resampled run.
///
/// # Errors
/// With fewer than [`LEAST_VALUES`] runs over all deployments.
pub fn hierarchical(
    deployments: &Deployments,
    block: usize,
    level: f64,
    seed: u64,
    mut statistic: impl FnMut(&[Vec<f64>]) -> f64,
) -> Result<(f64, f64), BootstrapError> {
    let filled: Vec<&Vec<Vec<f64>>> = deployments.iter().filter(|d| !d.is_empty()).collect();
    let runs: usize = filled.iter().map(|d| d.len()).sum();
    if runs < LEAST_VALUES {
        return Err(BootstrapError::TooFew(runs));
    }
    let mut draws = Draws::new(seed);
    let mut sample: Vec<Vec<f64>> = Vec::with_capacity(runs);
    let estimates = (0..RESAMPLES)
        .map(|_| {
            sample.clear();
            for _ in 0..filled.len() {
                let deployment = filled[draws.below(filled.len())];
                for _ in 0..deployment.len() {
                    let run = &deployment[draws.below(deployment.len())];
                    sample.push(blocks(run, block, &mut draws));
                }
            }
            statistic(&sample)
        })
        .collect();
    Ok(ends(estimates, level))
}

/// Resamples a run from its own blocks (Künsch 1989).
fn blocks(run: &[f64], block: usize, draws: &mut Draws) -> Vec<f64> {
    if block == 0 || run.len() <= block {
        return run.to_vec();
    }
    let mut out = Vec::with_capacity(run.len() + block);
    while out.len() < run.len() {
        let start = draws.below(run.len() - block + 1);
        out.extend_from_slice(&run[start..start + block]);
    }
    out.truncate(run.len());
    out
}

fn ends(mut estimates: Vec<f64>, level: f64) -> (f64, f64) {
    estimates.sort_unstable_by(f64::total_cmp);
    let n = estimates.len();
    let tail = (1.0 - level) / 2.0;
    let at = |q: f64| estimates[((q * n as f64) as usize).min(n - 1)];
    (at(tail), at(1.0 - tail))
}

#[cfg(test)]
mod tests {
    use super::{BootstrapError, hierarchical, percentile};
    use crate::stats::moments::mean;
    use crate::stats::testing::Noise;

    #[test]
    fn few_runs_are_rejected() {
        let refused = percentile(&[1.0; 9], 0.95, 1, mean);
        assert_eq!(refused, Err(BootstrapError::TooFew(9)));
        let four = vec![vec![vec![1.0]; 4]; 2];
        assert_eq!(
            hierarchical(&four, 0, 0.95, 1, |runs| runs.len() as f64),
            Err(BootstrapError::TooFew(8))
        );
    }

    #[test]
    fn intervals_are_reproducible_and_about_as_wide_as_theory_says() {
        let x = Noise::new(5).series(40, 100.0, 0.1);
        let a = percentile(&x, 0.95, 9, mean).unwrap();
        assert_eq!(a, percentile(&x, 0.95, 9, mean).unwrap());
        // 2 · 1.96 · 10 / sqrt(40) = 6.2, with the sample's own standard deviation.
        assert!((4.5..8.0).contains(&(a.1 - a.0)), "{a:?}");
    }

    #[test]
    fn variation_between_deployments_widens_the_interval() {
        let mut noise = Noise::new(6);
        let mut set = |between: f64| -> Vec<Vec<Vec<f64>>> {
            (0..5)
                .map(|_| {
                    let level = 100.0 * (1.0 + between * noise.normal());
                    (0..5).map(|_| noise.series(20, level, 0.02)).collect()
                })
                .collect()
        };
        let grand = |runs: &[Vec<f64>]| mean(&runs.iter().map(|r| mean(r)).collect::<Vec<_>>());
        let mut width = |between: f64| {
            let (low, high) = hierarchical(&set(between), 5, 0.95, 3, grand).unwrap();
            high - low
        };
        let (none, much) = (width(0.0), width(0.2));
        assert!(much > 5.0 * none, "{none} {much}");
    }
}
