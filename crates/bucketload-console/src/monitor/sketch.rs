//! A small histogram for long-lived pages: groups of 32 buckets of the core's histogram.
//!
//! The core's histogram has 1024 buckets per octave in a fixed array of 300 KiB, and a page needs thousands of
//! histograms. Here a bin is at most 1/32 (3.2 %) wide, and only non-empty bins take space. Sketches merge exactly:
//! the quantile of merged sketches is that of all values, within the width of a bin.

use bucketload_core::histogram::Histogram;

/// log2 of the number of core buckets per bin.
const SHIFT: u32 = 5;

/// Counts per bin, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sketch {
    bins: Vec<(u16, u32)>,
    max_ns: u64,
}

impl Sketch {
    /// Adds all values of `h`.
    pub(crate) fn add(&mut self, h: &Histogram) {
        let mut other = Self {
            bins: Vec::new(),
            max_ns: h.max_ns(),
        };
        for (index, count) in h.buckets() {
            let bin = u16::try_from(index >> SHIFT).unwrap_or(u16::MAX);
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            match other.bins.last_mut() {
                Some(last) if last.0 == bin => last.1 = last.1.saturating_add(count),
                _ => other.bins.push((bin, count)),
            }
        }
        self.merge(&other);
    }

    /// Adds all values of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.max_ns = self.max_ns.max(other.max_ns);
        if self.bins.is_empty() {
            self.bins.clone_from(&other.bins);
            return;
        }
        let mut merged = Vec::with_capacity(self.bins.len() + other.bins.len());
        let (mut a, mut b) = (self.bins.as_slice(), other.bins.as_slice());
        loop {
            match (a.split_first(), b.split_first()) {
                (Some((x, rest_a)), Some((y, rest_b))) if x.0 == y.0 => {
                    merged.push((x.0, x.1.saturating_add(y.1)));
                    (a, b) = (rest_a, rest_b);
                }
                (Some((x, rest)), y) if y.is_none_or(|(y, _)| x.0 < y.0) => {
                    merged.push(*x);
                    a = rest;
                }
                (_, Some((y, rest))) => {
                    merged.push(*y);
                    b = rest;
                }
                (_, None) => break,
            }
        }
        merged.shrink_to_fit();
        self.bins = merged;
    }

    /// Number of values.
    pub(crate) fn count(&self) -> u64 {
        self.bins.iter().map(|bin| u64::from(bin.1)).sum()
    }

    /// The exact maximum, nanoseconds.
    pub(crate) const fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The smallest upper edge of a bin at or below which a share `q` of the values lies, nanoseconds. At most 1/32
    /// above the exact quantile, and never above the maximum. 0 if empty.
    pub(crate) fn quantile_ns(&self, q: f64) -> u64 {
        let count = self.count();
        // The same rank as the core's quantile: the smallest value with at least this many values at or below it.
        let rank = ((q * count as f64).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0;
        for &(bin, n) in &self.bins {
            seen += u64::from(n);
            if seen >= rank {
                let last = ((usize::from(bin) + 1) << SHIFT) - 1;
                return Histogram::highest_of(last).min(self.max_ns);
            }
        }
        self.max_ns
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::histogram::Histogram;

    use super::Sketch;

    #[test]
    fn quantiles_are_those_of_the_histogram_within_a_bin() {
        let mut all = Histogram::new();
        let mut sketch = Sketch::default();
        let mut x = 12_345_u64;
        for part in 0..7 {
            let mut h = Histogram::new();
            for _ in 0..1000 {
                // A linear congruential generator spread over five decades.
                x = x
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let ns = 1000 * (1 + (x >> 40) % (10_u64.pow(part % 5 + 1)));
                h.record(ns);
                all.record(ns);
            }
            sketch.add(&h);
        }
        assert_eq!(sketch.count(), 7000);
        assert_eq!(sketch.max_ns(), all.max_ns());
        for q in [0.0, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let (exact, coarse) = (all.quantile_ns(q) as f64, sketch.quantile_ns(q) as f64);
            assert!(
                coarse >= exact * 0.998 && coarse <= exact * (1.0 + 1.0 / 31.0),
                "{q}: {coarse} for {exact}"
            );
        }
    }

    #[test]
    fn an_empty_one_is_neutral() {
        let mut h = Histogram::new();
        h.record(5_000_000);
        let mut a = Sketch::default();
        assert_eq!(a.quantile_ns(0.5), 0);
        a.add(&h);
        let before = a.clone();
        a.merge(&Sketch::default());
        assert_eq!(a, before);
    }
}
