//! Counts per hundredth of an interval, from which the index of dispersion at 10 and 100 ms is computed
//! (docs/spec/statistics.md section 9).

use crate::divisor::Divisor;

/// Bins per interval.
pub const FINE_BINS: usize = 100;

/// Operations that fell due and that succeeded in each hundredth of an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FineCounts {
    start_ns: u64,
    /// Length of a bin, nanoseconds; `None` before the first interval begins.
    bin: Option<Divisor>,
    offered: Vec<u32>,
    completed: Vec<u32>,
}

impl FineCounts {
    /// Begins an interval of `len_ns` at `start_ns`. Keeps existing counts. Allocates on first use only.
    pub fn begin(&mut self, start_ns: u64, len_ns: u64) {
        self.start_ns = start_ns;
        self.bin = Some(Divisor::new((len_ns / FINE_BINS as u64).max(1)));
        self.offered.resize(FINE_BINS, 0);
        self.completed.resize(FINE_BINS, 0);
    }

    /// An operation fell due at `due_ns`.
    #[inline]
    pub fn offered(&mut self, due_ns: u64) {
        if let Some(at) = self.bin(due_ns) {
            self.offered[at] += 1;
        }
    }

    /// An operation succeeded at `done_ns`.
    #[inline]
    pub fn completed(&mut self, done_ns: u64) {
        if let Some(at) = self.bin(done_ns) {
            self.completed[at] += 1;
        }
    }

    /// The bin of an instant. An operation that ended before the interval but is recorded in it counts in the first
    /// bin.
    #[inline]
    fn bin(&self, at_ns: u64) -> Option<usize> {
        let bins = self.bin?.quotient(at_ns.saturating_sub(self.start_ns));
        Some((bins as usize).min(FINE_BINS - 1))
    }

    /// Length of a bin, nanoseconds; 0 if nothing was counted.
    #[must_use]
    pub fn bin_ns(&self) -> u64 {
        self.bin.map_or(0, Divisor::by)
    }

    /// Sums of squared counts of operations that fell due: per bin, and per ten bins.
    #[must_use]
    pub fn offered_squares(&self) -> [u64; 2] {
        squares(&self.offered)
    }

    /// Sums of squared counts of successes: per bin, and per ten bins.
    #[must_use]
    pub fn completed_squares(&self) -> [u64; 2] {
        squares(&self.completed)
    }

    /// Counts of operations that fell due and of successes, per bin; empty if nothing was counted.
    #[must_use]
    pub fn bins(&self) -> (&[u32], &[u32]) {
        (&self.offered, &self.completed)
    }

    /// Adds the counts of an interval that began at `start_ns` and had bins of `bin_ns` nanoseconds. Adds nothing if
    /// `bin_ns` is 0.
    pub fn add(&mut self, start_ns: u64, bin_ns: u64, offered: &[u32], completed: &[u32]) {
        if bin_ns == 0 {
            return;
        }
        if self.bin.is_none() {
            self.begin(start_ns, bin_ns.saturating_mul(FINE_BINS as u64));
        }
        let add = |into: &mut Vec<u32>, from: &[u32]| {
            let pairs = into.iter_mut().zip(from);
            pairs.for_each(|(a, b)| *a = a.saturating_add(*b));
        };
        add(&mut self.offered, offered);
        add(&mut self.completed, completed);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.add(
            other.start_ns,
            other.bin_ns(),
            &other.offered,
            &other.completed,
        );
    }

    pub(super) fn clear(&mut self) {
        self.offered.fill(0);
        self.completed.fill(0);
    }
}

fn squares(counts: &[u32]) -> [u64; 2] {
    let square = |n: u64| n * n;
    let one = counts.iter().map(|&n| square(u64::from(n))).sum();
    let ten = counts
        .chunks(10)
        .map(|bins| square(bins.iter().map(|&n| u64::from(n)).sum()))
        .sum();
    [one, ten]
}

#[cfg(test)]
mod tests {
    use super::FineCounts;

    #[test]
    fn counts_go_into_their_bin_and_add_up_over_threads() {
        let mut a = FineCounts::default();
        a.offered(5);
        assert_eq!(a.offered_squares(), [0, 0], "no interval has begun");
        a.begin(1_000, 100_000);
        let mut b = a.clone();
        for due in [1_000, 1_999, 2_000, 90_000] {
            a.offered(due);
        }
        b.offered(1_500);
        b.completed(900);
        b.completed(500_000);
        a.merge(&b);
        // Bins 0: 3, 1: 1, 89: 1; per ten bins 4 and 1.
        assert_eq!(a.offered_squares(), [11, 17]);
        assert_eq!(a.completed_squares(), [2, 2], "first and last bin");
        let mut empty = FineCounts::default();
        empty.merge(&a);
        assert_eq!(empty.offered_squares(), a.offered_squares());
        a.clear();
        assert_eq!((a.offered_squares(), a.bin_ns()), ([0, 0], 1_000));
    }
}
