//! A time series of bounded length: when it grows too long, neighbouring bins are merged.

/// A bin that can absorb the one after it.
pub(crate) trait Bin: Clone {
    /// Adds the following bin.
    fn absorb(&mut self, next: &Self);
}

/// At most `capacity` bins, each of `stride` intervals (the last one may be shorter).
#[derive(Clone, Debug)]
pub(crate) struct Fold<B> {
    capacity: usize,
    stride: u64,
    bins: Vec<B>,
    /// Intervals in the last bin.
    in_last: u64,
}

impl<B: Bin> Fold<B> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.max(2),
            stride: 1,
            bins: Vec::new(),
            in_last: 0,
        }
    }

    pub(crate) fn push(&mut self, bin: &B) {
        match self.bins.last_mut() {
            Some(last) if self.in_last < self.stride => {
                last.absorb(bin);
                self.in_last += 1;
            }
            _ => {
                if self.bins.len() == self.capacity {
                    self.halve();
                    // The last bin may now have room.
                    if self.in_last < self.stride {
                        return self.push(bin);
                    }
                }
                self.bins.push(bin.clone());
                self.in_last = 1;
            }
        }
    }

    fn halve(&mut self) {
        self.in_last += (self.bins.len() as u64 + 1) % 2 * self.stride;
        self.stride *= 2;
        self.bins = regroup(&self.bins, 2);
    }

    pub(crate) fn bins(&self) -> &[B] {
        &self.bins
    }

    /// Intervals per bin.
    pub(crate) const fn stride(&self) -> u64 {
        self.stride
    }
}

/// Merges groups of `group` bins.
pub(crate) fn regroup<B: Bin>(bins: &[B], group: usize) -> Vec<B> {
    bins.chunks(group.max(1))
        .map(|chunk| {
            let mut merged = chunk[0].clone();
            chunk[1..].iter().for_each(|bin| merged.absorb(bin));
            merged
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Bin, Fold, regroup};

    impl Bin for (u64, u64) {
        fn absorb(&mut self, next: &Self) {
            self.1 += next.1;
        }
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_bins_are_equal(n in 0u64..500, capacity in 2usize..20) {
            let mut fold = Fold::new(capacity);
            (0..n).for_each(|i| fold.push(&(i, 1)));
            let bins = fold.bins();
            prop_assert!(bins.len() <= capacity);
            prop_assert_eq!(bins.iter().map(|b| b.1).sum::<u64>(), n);
            for (i, bin) in bins.iter().enumerate() {
                prop_assert_eq!(bin.0, i as u64 * fold.stride());
                prop_assert!(bin.1 == fold.stride() || i + 1 == bins.len());
            }
        }
    }

    #[test]
    fn regroups() {
        let bins: Vec<(u64, u64)> = (0..5).map(|i| (i, i)).collect();
        assert_eq!(regroup(&bins, 2), [(0, 1), (2, 5), (4, 4)]);
    }
}
