//! One figure of a cell over its repetitions.
//!
//! The unit of analysis is the run (docs/spec/statistics.md section 5): every repetition gives one value, and the
//! interval is over these values. Rates and times are positive and vary by factors, so location and interval are those
//! of their logarithms: geometric mean with Student's t. Percentiles are never averaged: a cell shows the median of the
//! runs' percentiles.

use bucketload_core::stats::dist::t_quantile;
use bucketload_core::stats::moments::Moments;
use bucketload_core::stats::quantile::ci_ranks;
use bucketload_core::stats::ratio::{Interval, paired};
use bucketload_results::kit::Cell;

/// Confidence level of every interval of the report.
pub const LEVEL: f64 = 0.95;

/// A figure over the runs of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Interval at [`LEVEL`]; `None` for a single run or if a value is not positive.
    pub ci: Option<(f64, f64)>,
    /// Runs.
    pub runs: usize,
}

impl Estimate {
    /// A figure without an interval, such as a published one.
    #[must_use]
    pub fn plain(value: f64) -> Self {
        Self {
            value,
            ci: None,
            runs: 1,
        }
    }

    /// For rates and mean times: geometric mean of the runs with the t interval of their logarithms. If a value is
    /// not positive: the arithmetic mean without an interval. `None` without runs.
    #[must_use]
    pub fn mean(values: &[f64]) -> Option<Self> {
        let runs = values.len();
        let plain = values.iter().sum::<f64>() / runs as f64;
        match log_t(values) {
            _ if runs == 0 => None,
            Some((value, ci)) => Some(Self { value, ci, runs }),
            None => Some(Self {
                value: plain,
                ci: None,
                runs,
            }),
        }
    }

    /// For percentiles: median of the runs' percentiles. The interval is from order statistics with six or more runs,
    /// otherwise the t interval of the logarithms. `None` without runs.
    #[must_use]
    pub fn median(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let runs = sorted.len();
        let value = match runs {
            0 => return None,
            n if n % 2 == 1 => sorted[n / 2],
            n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
        };
        let ranks = ci_ranks(runs as u64, 0.5)
            .map(|(low, high)| (sorted[low as usize - 1], sorted[high as usize - 1]));
        let ci = ranks.or_else(|| log_t(&sorted).and_then(|(_, ci)| ci));
        Some(Self { value, ci, runs })
    }

    /// Cuts the interval to `low..=high`, for figures that cannot lie outside, such as shares. Intervals by logarithms
    /// may exceed these bounds.
    #[must_use]
    pub fn within(self, low: f64, high: f64) -> Self {
        Self {
            ci: self.ci.map(|(from, to)| (from.max(low), to.min(high))),
            ..self
        }
    }

    /// A table cell: the figure with its interval, formatted by `show`; empty without a figure.
    pub fn cell(estimate: Option<Self>, show: impl Fn(f64) -> String) -> Cell {
        estimate.map_or(Cell::None, |estimate| {
            Cell::figure(estimate.value, estimate.ci, show)
        })
    }

    /// The same figure in another unit.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self {
            value: self.value * factor,
            ci: self.ci.map(|(low, high)| (low * factor, high * factor)),
            ..self
        }
    }
}

/// Geometric mean and t interval of the logarithms; `None` without values or if one is not positive.
fn log_t(values: &[f64]) -> Option<(f64, Option<(f64, f64)>)> {
    if values.is_empty() || !values.iter().all(|v| *v > 0.0 && v.is_finite()) {
        return None;
    }
    if values.len() == 1 {
        return Some((values[0], None));
    }
    let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
    let moments = Moments::of(&logs);
    let n = values.len() as f64;
    let half = t_quantile(0.5 + LEVEL / 2.0, n - 1.0) * moments.sd / n.sqrt();
    let (low, high) = ((moments.mean - half).exp(), (moments.mean + half).exp());
    Some((moments.mean.exp(), Some((low, high))))
}

/// The ratio of `of` to `base`, from pairs of a run's block and value: the geometric mean of the ratios inside the blocks,
/// with the t interval of their logarithms ([`paired`]). The runs of a block share seed, schedule and state of the
/// machine, which cancel. A single common block gives a ratio without an interval; without a common block, the ratio is
/// that of the geometric means. `None` without positive values.
#[must_use]
pub fn ratio(base: &[(u32, f64)], of: &[(u32, f64)]) -> Option<Estimate> {
    let value = |values: &[(u32, f64)], block| {
        let mut found = values.iter().filter(|(at, _)| *at == block);
        found.next().map(|(_, value)| *value)
    };
    let (one, other): (Vec<f64>, Vec<f64>) = base
        .iter()
        .filter_map(|(block, base)| Some((*base, value(of, *block)?)))
        .unzip();
    if let Some(Interval {
        estimate,
        low,
        high,
        ..
    }) = paired(&one, &other, LEVEL)
    {
        return Some(Estimate {
            value: estimate,
            ci: Some((low, high)),
            runs: one.len(),
        });
    }
    let (one, other) = match one.is_empty() {
        false => (one, other),
        true => {
            let all = |values: &[(u32, f64)]| values.iter().map(|(_, value)| *value).collect();
            (all(base), all(of))
        }
    };
    Some(Estimate {
        value: log_t(&other)?.0 / log_t(&one)?.0,
        ci: None,
        runs: one.len().min(other.len()),
    })
}

#[cfg(test)]
mod tests {
    use super::{Estimate, ratio};

    fn near(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 1e-6
    }

    /// Computed independently: logarithms of 90, 100, 115 have mean 4.6165587 and standard deviation
    /// 0.1226965; t(0.975, 2) = 4.3026527, so the half width is 0.3047979.
    #[test]
    fn the_interval_is_that_of_the_logarithms() {
        let estimate = Estimate::mean(&[100.0, 90.0, 115.0]).unwrap();
        let logs: [f64; 3] = [90f64.ln(), 100f64.ln(), 115f64.ln()];
        let mean = logs.iter().sum::<f64>() / 3.0;
        let sd = (logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 2.0).sqrt();
        let half = 4.302_652_729_9 * sd / 3f64.sqrt();
        assert!(near(estimate.value, (90.0f64 * 100.0 * 115.0).cbrt()));
        let (low, high) = estimate.ci.unwrap();
        assert!(near(low, (mean - half).exp()), "{low}");
        assert!(near(high, (mean + half).exp()), "{high}");
    }

    #[test]
    fn one_run_has_no_interval_and_zero_has_no_logarithm() {
        assert_eq!(Estimate::mean(&[]), None);
        let one = Estimate::mean(&[5.0]).unwrap();
        assert_eq!((one.value, one.ci, one.runs), (5.0, None, 1));
        let zero = Estimate::mean(&[0.0, 4.0]).unwrap();
        assert_eq!((zero.value, zero.ci), (2.0, None));
    }

    #[test]
    fn shares_end_at_the_whole() {
        let estimate = Estimate::mean(&[0.99, 0.999, 0.95]).unwrap();
        let share = estimate.within(0.0, 1.0);
        assert!(estimate.ci.unwrap().1 > 1.0);
        assert_eq!(share.ci.unwrap(), (estimate.ci.unwrap().0, 1.0));
        assert_eq!(share.value, estimate.value);
    }

    #[test]
    fn percentiles_are_medians_of_runs_never_means() {
        let estimate = Estimate::median(&[1.0, 2.0, 900.0]).unwrap();
        assert!(near(estimate.value, 2.0));
        assert!(estimate.ci.is_some());
        // With six runs or more the interval is from order statistics; for 6 it is the whole range.
        let six = Estimate::median(&[6.0, 1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((six.value, six.ci), (3.5, Some((1.0, 6.0))));
    }

    #[test]
    fn effects_common_to_a_block_cancel() {
        let base = [(1, 10.0), (2, 100.0), (3, 1.0)];
        let twice = ratio(&base, &[(3, 2.1), (1, 20.0), (2, 190.0)]).unwrap();
        assert!(near(twice.value, (2.0f64 * 1.9 * 2.1).cbrt()));
        // Logarithms of 2, 1.9 and 2.1 have standard deviation 0.050062; times 4.3026527 / sqrt(3): 0.124361.
        let (low, high) = twice.ci.unwrap();
        assert!((low / twice.value - (-0.124_361f64).exp()).abs() < 1e-4);
        assert!((high / twice.value - 0.124_361f64.exp()).abs() < 1e-4);
    }

    #[test]
    fn ratios_have_intervals_if_two_blocks_hold_both_sides() {
        let single = ratio(&[(1, 10.0), (2, 11.0)], &[(2, 33.0), (3, 50.0)]).unwrap();
        assert_eq!((single.value, single.ci, single.runs), (3.0, None, 1));
        let apart = ratio(&[(1, 10.0)], &[(2, 30.0)]).unwrap();
        assert!(near(apart.value, 3.0) && apart.ci.is_none());
        assert_eq!(ratio(&[], &[(1, 30.0)]), None);
        assert_eq!(ratio(&[(1, 0.0), (2, 1.0)], &[(1, 3.0), (2, 3.0)]), None);
    }
}
