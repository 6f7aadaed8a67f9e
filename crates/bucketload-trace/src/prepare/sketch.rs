//! Sketches of a whole trace in constant memory: the law of its sizes, and its most frequent keys.

use std::collections::{BTreeMap, HashMap};

use crate::hash::first64;

/// Steps per octave: sizes are accurate to 1 %.
const STEPS: u32 = 64;

/// Maximum number of distinct sizes that are counted exactly.
const EXACT: usize = 512;

/// Counts of sizes by logarithmic steps, and exact counts while there are few distinct sizes.
#[derive(Clone, Debug)]
pub struct SizeSketch {
    /// Counts by size; `None` if there are too many sizes.
    exact: Option<BTreeMap<u64, u64>>,
    zeros: u64,
    counts: Vec<u64>,
    total: u64,
    sum: f64,
}

impl Default for SizeSketch {
    fn default() -> Self {
        Self {
            exact: Some(BTreeMap::new()),
            zeros: 0,
            counts: vec![0; (STEPS * 64) as usize],
            total: 0,
            sum: 0.0,
        }
    }
}

impl SizeSketch {
    /// Counts a size, bytes.
    pub fn add(&mut self, size: u64) {
        self.add_times(size, 1);
    }

    /// Counts a size `times`.
    pub fn add_times(&mut self, size: u64, times: u64) {
        self.total += times;
        self.sum += size as f64 * times as f64;
        if let Some(exact) = &mut self.exact {
            *exact.entry(size).or_insert(0) += times;
            if exact.len() > EXACT {
                self.exact = None;
            }
        }
        if size == 0 {
            self.zeros += times;
        } else {
            let step = ((size as f64).log2() * f64::from(STEPS)) as usize;
            self.counts[step.min((STEPS * 64) as usize - 1)] += times;
        }
    }

    /// Number of counted sizes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Mean, bytes; 0 without sizes.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sum / self.total.max(1) as f64
    }

    /// The `u` quantile, accurate to 1 %; `None` without sizes.
    #[must_use]
    pub fn quantile(&self, u: f64) -> Option<u64> {
        if self.total == 0 {
            return None;
        }
        let rank = (u * self.total as f64) as u64;
        if let Some(exact) = &self.exact {
            let mut below = 0;
            let found = exact.iter().find(|(_, count)| {
                below += **count;
                rank < below
            });
            return found.or(exact.last_key_value()).map(|(&size, _)| size);
        }
        if rank < self.zeros {
            return Some(0);
        }
        let mut below = self.zeros;
        for (step, &count) in self.counts.iter().enumerate() {
            below += count;
            if rank < below {
                return Some(Self::middle(step));
            }
        }
        let last = self.counts.iter().rposition(|&count| count > 0);
        Some(last.map_or(0, Self::middle))
    }

    /// The distinct sizes with their counts, if they are few.
    pub(crate) fn exact(&self) -> Option<&BTreeMap<u64, u64>> {
        self.exact.as_ref()
    }

    /// Mean and standard deviation of the logarithms; `None` if there are zeros or no sizes.
    pub(crate) fn log_moments(&self) -> Option<(f64, f64)> {
        if self.zeros > 0 || self.total == 0 {
            return None;
        }
        let steps = || {
            self.counts
                .iter()
                .enumerate()
                .filter(|(_, count)| **count > 0)
        };
        let log = |step: usize| (step as f64 + 0.5) / f64::from(STEPS) * std::f64::consts::LN_2;
        let n = self.total as f64;
        let mean = steps()
            .map(|(step, &count)| log(step) * count as f64)
            .sum::<f64>()
            / n;
        let square = |step| (log(step) - mean) * (log(step) - mean);
        let variance = steps()
            .map(|(step, &count)| square(step) * count as f64)
            .sum::<f64>()
            / n;
        Some((mean, variance.sqrt()))
    }

    /// Maximum difference to the distribution function `cdf`, at the edges of the steps.
    pub(crate) fn distance(&self, cdf: impl Fn(u64) -> f64) -> f64 {
        let n = self.total.max(1) as f64;
        if let Some(exact) = &self.exact {
            let (mut below, mut max) = (0.0f64, 0.0f64);
            for (&size, &count) in exact {
                let before = size.checked_sub(1).map_or(0.0, &cdf);
                max = max.max((below / n - before).abs());
                below += count as f64;
                max = max.max((below / n - cdf(size)).abs());
            }
            return max;
        }
        let mut below = self.zeros as f64;
        let mut max = (below / n - cdf(0)).abs();
        for (step, &count) in self.counts.iter().enumerate() {
            if count > 0 {
                let start = (step as f64 / f64::from(STEPS)).exp2().ceil().max(1.0) as u64;
                max = max.max((below / n - cdf(start - 1)).abs());
                below += count as f64;
                let end = ((step as f64 + 1.0) / f64::from(STEPS)).exp2().ceil() as u64;
                max = max.max((below / n - cdf(end.max(start + 1) - 1)).abs());
            }
        }
        max
    }

    /// The integer nearest to the geometric middle of a step. Below 64 bytes, steps are narrower than a byte, so sizes are
    /// exact.
    fn middle(step: usize) -> u64 {
        ((step as f64 + 0.5) / f64::from(STEPS)).exp2().round() as u64
    }
}

/// The most frequent keys (Misra and Gries, 1982, with counters removed in batches). A count is at most N / 4096 too low,
/// and exact while there are no more than 8192 keys.
#[derive(Debug, Default)]
pub(crate) struct TopKeys {
    counts: HashMap<[u8; 16], u64>,
    total: u64,
}

impl TopKeys {
    const KEPT: usize = 4096;

    pub(crate) fn add(&mut self, key: &[u8; 16], times: u64) {
        self.total += times;
        *self.counts.entry(*key).or_insert(0) += times;
        if self.counts.len() > 2 * Self::KEPT {
            let mut sorted: Vec<u64> = self.counts.values().copied().collect();
            let at = sorted.len() - Self::KEPT;
            let (_, cut, _) = sorted.select_nth_unstable(at);
            let cut = *cut;
            self.counts.retain(|_, count| {
                *count = count.saturating_sub(cut);
                *count > 0
            });
        }
    }

    /// Share of all requests to the `n` most frequent keys, and the share of those among them that `kept` selects.
    pub(crate) fn shares(&self, n: usize, kept: impl Fn(u64) -> bool) -> (f64, f64) {
        let mut top: Vec<(u64, u64)> = self.counts.iter().map(|(k, &c)| (c, first64(k))).collect();
        top.sort_unstable_by(|a, b| b.cmp(a));
        top.truncate(n);
        let total = self.total.max(1) as f64;
        let all: u64 = top.iter().map(|row| row.0).sum();
        let part: u64 = top.iter().filter(|row| kept(row.1)).map(|row| row.0).sum();
        (all as f64 / total, part as f64 / total)
    }
}

#[cfg(test)]
mod tests {
    use super::{SizeSketch, TopKeys};

    #[test]
    fn quantiles_are_accurate_to_one_percent() {
        let mut sketch = SizeSketch::default();
        assert_eq!(sketch.quantile(0.5), None);
        for size in 0..10_000 {
            sketch.add(size);
        }
        for u in [0.0, 0.001, 0.01, 0.25, 0.5, 0.99, 0.9999, 1.0] {
            let (found, truth) = (sketch.quantile(u).unwrap() as f64, u * 10_000.0);
            assert!((found - truth).abs() <= 1.0 + 0.011 * truth, "{u}: {found}");
        }
        assert!((sketch.mean() - 4999.5).abs() < 1e-6);
    }

    #[test]
    fn frequent_keys_are_found_among_many() {
        let mut top = TopKeys::default();
        let key = |i: u64| {
            let mut key = [0; 16];
            key[..8].copy_from_slice(&i.to_le_bytes());
            key
        };
        for i in 0..200_000u64 {
            top.add(&key(1_000 + i), 1);
            if i % 10 == 0 {
                top.add(&key(7), 1);
            }
        }
        let (all, kept) = top.shares(1, |hash| hash == 7);
        let truth = 20_000.0 / 220_000.0;
        assert!((all - truth).abs() < 1.0 / 4096.0, "{all}");
        assert_eq!(all, kept);
        assert_eq!(top.shares(1, |_| false).1, 0.0);
    }
}
