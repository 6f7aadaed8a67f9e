//! How far a preparation is: the load threads count the objects of each block, and a complete block is a range.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Most blocks that a key set is divided into. They bound memory and journal, whatever the number of objects.
const MOST_BLOCKS: u64 = 1 << 16;

/// Which objects of a key set are there, and which are to be written.
#[derive(Debug)]
pub(crate) struct Progress {
    count: u64,
    /// Objects that were there before: first index and index after the last.
    before: Vec<(u64, u64)>,
    /// The gaps between them, each with the number of missing objects before it.
    gaps: Vec<(u64, u64, u64)>,
    missing: u64,
    /// Objects per block; the last block may have fewer.
    block: u64,
    /// Objects of each block that are there.
    blocks: Box<[AtomicU64]>,
}

impl Progress {
    /// The progress of a key set of `count` objects, of which those in `before` are there.
    pub(crate) fn new(count: u64, before: &[(u64, u64)]) -> Self {
        let block = count.div_ceil(MOST_BLOCKS).max(1);
        let blocks: Box<[AtomicU64]> = (0..count.div_ceil(block))
            .map(|_| AtomicU64::new(0))
            .collect();
        let mut gaps = Vec::new();
        let (mut missing, mut next) = (0, 0);
        for &(first, end) in before.iter().chain([&(count, count)]) {
            if next < first {
                gaps.push((next, first, missing));
                missing += first - next;
            }
            next = end;
            let mut at = first;
            while at < end {
                let stop = end.min((at / block + 1) * block);
                blocks[(at / block) as usize].fetch_add(stop - at, Relaxed);
                at = stop;
            }
        }
        Self {
            count,
            before: before.to_vec(),
            gaps,
            missing,
            block,
            blocks,
        }
    }

    /// Number of objects to write.
    pub(crate) const fn missing(&self) -> u64 {
        self.missing
    }

    /// Index of the `nth` object to write, which must exist.
    #[inline]
    pub(crate) fn nth(&self, nth: u64) -> u64 {
        let at = self.gaps.partition_point(|gap| gap.2 <= nth);
        let (first, _, before) = self.gaps[at - 1];
        first + (nth - before)
    }

    /// Object `index` was written.
    #[inline]
    pub(crate) fn done(&self, index: u64) {
        self.blocks[(index / self.block) as usize].fetch_add(1, Relaxed);
    }

    /// The objects that are known to be there, as ranges in order and apart from each other.
    pub(crate) fn ranges(&self) -> Vec<(u64, u64)> {
        let mut known: Vec<(u64, u64)> = self.before.clone();
        for (number, done) in (0..).zip(&self.blocks) {
            let first = number * self.block;
            let end = (first + self.block).min(self.count);
            if done.load(Relaxed) == end - first {
                known.push((first, end));
            }
        }
        known.sort_unstable();
        let mut ranges: Vec<(u64, u64)> = Vec::with_capacity(known.len());
        for (first, end) in known {
            match ranges.last_mut() {
                Some(last) if first <= last.1 => last.1 = last.1.max(end),
                _ => ranges.push((first, end)),
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::{MOST_BLOCKS, Progress};

    fn indices(ranges: &[(u64, u64)]) -> BTreeSet<u64> {
        ranges.iter().flat_map(|&(a, b)| a..b).collect()
    }

    #[test]
    fn a_big_population_takes_bounded_memory() {
        let count = 1_000_000_007;
        let progress = Progress::new(count, &[]);
        assert!(progress.blocks.len() as u64 <= MOST_BLOCKS);
        assert_eq!(
            (progress.missing(), progress.nth(count - 1)),
            (count, count - 1)
        );
        assert!(progress.ranges().is_empty());
        let block = progress.block;
        (0..block - 1).for_each(|index| progress.done(index));
        assert!(progress.ranges().is_empty(), "the block is not complete");
        progress.done(block - 1);
        (3 * block..4 * block).for_each(|index| progress.done(index));
        let ranges = [(0, block), (3 * block, 4 * block)];
        assert_eq!(progress.ranges(), ranges);
        let later = Progress::new(count, &ranges);
        assert_eq!(later.missing(), count - 2 * block);
        assert_eq!((later.nth(0), later.nth(2 * block)), (block, 4 * block));
    }

    proptest! {
        #[test]
        fn sessions_add_up(count in 1u64..300, sessions in prop::collection::vec(prop::collection::vec(any::<u16>(), 0..80), 1..4)) {
            let (mut ranges, mut all) = (Vec::new(), BTreeSet::new());
            for session in sessions {
                let progress = Progress::new(count, &ranges);
                let missing: BTreeSet<u64> = (0..progress.missing()).map(|n| progress.nth(n)).collect();
                prop_assert_eq!(missing.len() as u64, progress.missing());
                prop_assert!(missing.is_disjoint(&all));
                prop_assert_eq!(missing.len() + all.len(), count as usize);
                let written: BTreeSet<u64> = session.iter().map(|&n| u64::from(n) % count).collect();
                for &index in written.intersection(&missing) {
                    progress.done(index);
                    all.insert(index);
                }
                ranges = progress.ranges();
                prop_assert!(ranges.windows(2).all(|two| two[0].1 < two[1].0));
                // Every block is one object here.
                prop_assert_eq!(&indices(&ranges), &all);
            }
        }
    }
}
