//! How far a process is with its part of a key set: its load threads take the objects in order and count those that
//! have ended in each block; a block without any left is done.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::ranges::{Numbered, Range, without};

/// Most blocks that a key set is divided into. They bound memory and journal, whatever the number of objects.
pub(super) const MOST_BLOCKS: u64 = 1 << 16;
/// Most objects that a process remembers one by one because they could not be written. Further ones leave their whole
/// block undone.
const MOST_FAILED: usize = 1 << 12;

/// The objects of a key set that a process is to write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Number of objects of the whole key set.
    pub count: u64,
    /// Those to write, as ranges in order and apart from each other.
    pub missing: Vec<Range>,
}

impl Part {
    /// Objects per block; the last block of the key set may have fewer.
    pub(super) fn block(&self) -> u64 {
        self.count.div_ceil(MOST_BLOCKS).max(1)
    }
}

/// Knows which objects of a running preparation have been written.
pub(crate) trait Known: Send + Sync {
    /// The objects that the store has acknowledged in this session, as ranges in order and apart from each other.
    fn filled(&self) -> Vec<Range>;

    /// Ends the preparation: nothing more is begun.
    fn give_up(&self);
}

/// Which objects of a part are written, and which come next.
#[derive(Debug)]
pub(crate) struct Progress {
    missing: Numbered,
    /// Place of the next object to write.
    next: AtomicU64,
    block: u64,
    /// Objects of each block that have not ended.
    left: Box<[AtomicU64]>,
    /// Objects that have ended but could not be written.
    failed: Mutex<Vec<u64>>,
    given_up: AtomicBool,
    /// Whether the load threads have ended.
    settled: AtomicBool,
}

impl Progress {
    pub(crate) fn new(part: &Part) -> Self {
        let block = part.block();
        let left: Box<[AtomicU64]> = (0..part.count.div_ceil(block))
            .map(|_| AtomicU64::new(0))
            .collect();
        for (number, (first, end)) in pieces(part.missing.iter().copied(), block) {
            left[number].fetch_add(end - first, Relaxed);
        }
        Self {
            missing: Numbered::new(&part.missing),
            next: AtomicU64::new(0),
            block,
            left,
            failed: Mutex::default(),
            given_up: AtomicBool::new(false),
            settled: AtomicBool::new(false),
        }
    }

    /// The load threads have ended. From now on, the objects of the last block that was begun count one by one, so an
    /// orderly end costs nothing.
    pub(crate) fn settle(&self) {
        self.settled.store(true, Release);
    }

    /// The first object that was not taken, and how many more its block has. `None` while load threads run, when an
    /// object may have ended before another one that was taken earlier.
    fn edge(&self) -> Option<(u64, u64)> {
        let next = self.next.load(Relaxed);
        let open = self.settled.load(Acquire) && next < self.missing.total();
        let edge = open.then(|| self.missing.nth(next))?;
        let of_block = pieces(self.missing.ranges(), self.block)
            .filter(|(number, _)| *number as u64 == edge / self.block);
        let untaken = of_block.map(|(_, (first, end))| end.saturating_sub(first.max(edge)));
        Some((edge, untaken.sum()))
    }

    /// Index of the next object to write. Workers take them in order, so at any moment few blocks are begun and not
    /// done, however long the session and however different the workers' speeds.
    #[inline]
    pub(crate) fn take(&self) -> Option<u64> {
        let place = self.next.fetch_add(1, Relaxed);
        let more = place < self.missing.total() && !self.given_up.load(Relaxed);
        more.then(|| self.missing.nth(place))
    }

    /// The write of object `index` has ended; `written` if the store acknowledged it.
    #[inline]
    pub(crate) fn ended(&self, index: u64, written: bool) {
        if written || self.remember(index) {
            self.left[(index / self.block) as usize].fetch_sub(1, Release);
        }
    }

    #[cold]
    fn remember(&self, index: u64) -> bool {
        let mut failed = self.failed();
        let room = failed.len() < MOST_FAILED;
        if room {
            failed.push(index);
        }
        room
    }

    fn failed(&self) -> MutexGuard<'_, Vec<u64>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known for Progress {
    fn filled(&self) -> Vec<Range> {
        let mut ranges: Vec<Range> = Vec::new();
        let edge = self.edge();
        for (number, (first, end)) in pieces(self.missing.ranges(), self.block) {
            let left = self.left[number].load(Acquire);
            let end = match edge {
                _ if left == 0 => end,
                Some((edge, untaken)) if number as u64 == edge / self.block && left == untaken => {
                    end.min(edge)
                }
                _ => continue,
            };
            if end <= first {
                continue;
            }
            match ranges.last_mut() {
                Some(last) if last.1 == first => last.1 = end,
                _ => ranges.push((first, end)),
            }
        }
        // After the counts: an object that failed is in the list before its block counts as done.
        let mut failed = self.failed().clone();
        failed.sort_unstable();
        without(&ranges, &failed)
    }

    fn give_up(&self) {
        self.given_up.store(true, Relaxed);
    }
}

/// `ranges` cut at the borders of blocks, each piece with the number of its block.
fn pieces(ranges: impl Iterator<Item = Range>, block: u64) -> impl Iterator<Item = (usize, Range)> {
    ranges.flat_map(move |(first, end)| {
        (first / block..end.div_ceil(block)).map(move |number| {
            let piece = (first.max(number * block), end.min((number + 1) * block));
            (number as usize, piece)
        })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::{Known as _, MOST_BLOCKS, MOST_FAILED, Part, Progress};
    use crate::prepared::ranges::{Range, gaps, union};

    fn numbers(ranges: &[Range]) -> BTreeSet<u64> {
        ranges.iter().flat_map(|&(a, b)| a..b).collect()
    }

    fn missing(count: u64, done: &[Range]) -> Part {
        Part {
            count,
            missing: gaps(done, count).collect(),
        }
    }

    #[test]
    fn a_block_counts_when_all_its_objects_are_there() {
        let part = missing(1_000_000_007, &[]);
        let progress = Progress::new(&part);
        assert!(progress.left.len() as u64 <= MOST_BLOCKS);
        let block = part.block();
        for index in 0..block - 1 {
            assert_eq!(progress.take(), Some(index));
            progress.ended(index, true);
        }
        assert!(progress.filled().is_empty(), "the block is not complete");
        progress.ended(block - 1, true);
        (3 * block..4 * block).for_each(|index| progress.ended(index, true));
        let done = [(0, block), (3 * block, 4 * block)];
        assert_eq!(progress.filled(), done);
        let later = Progress::new(&missing(part.count, &done));
        assert_eq!(later.missing.total(), part.count - 2 * block);
        assert_eq!(later.take(), Some(block));
        later.give_up();
        assert_eq!(later.take(), None);
    }

    #[test]
    fn an_orderly_end_costs_nothing() {
        let part = missing(1_000_000_000, &[(5, 7), (90_000, 1_000_000)]);
        let block = part.block();
        for (taken, unended, known) in [
            (10, None, vec![(0, 5), (7, 12)]),
            (10, Some(3), vec![]),
            (block, None, vec![(0, 5), (7, block + 2)]),
            // The first block is done without it.
            (block, Some(block), vec![(0, 5), (7, block)]),
        ] {
            let progress = Progress::new(&part);
            for index in std::iter::from_fn(|| progress.take()).take(taken as usize) {
                if unended != Some(index) {
                    progress.ended(index, true);
                }
            }
            let done: Vec<Range> = progress.filled();
            assert!(
                numbers(&done)
                    .iter()
                    .all(|n| n / block < (taken + 2) / block)
            );
            progress.settle();
            assert_eq!(progress.filled(), known, "{taken} {unended:?}");
        }
    }

    #[test]
    fn a_failed_object_leaves_the_rest_of_its_block() {
        let part = missing(1_000_000_000, &[]);
        let block = part.block();
        let progress = Progress::new(&part);
        (0..3 * block).for_each(|index| progress.ended(index, index % block != 7));
        let done = progress.filled();
        assert_eq!(done.len(), 4);
        assert_eq!(numbers(&done).len() as u64, 3 * (block - 1));
        assert!(!numbers(&done).contains(&7));
        // Beyond the bound, blocks with failures are undone; others are not.
        let progress = Progress::new(&part);
        (0..2 * block).for_each(|index| progress.ended(index, index >= block));
        assert!(block as usize > MOST_FAILED);
        assert_eq!(progress.filled(), [(block, 2 * block)]);
    }

    proptest! {
        #[test]
        fn sessions_add_up(count in 1u64..300, sessions in prop::collection::vec(prop::collection::vec((any::<u16>(), any::<bool>()), 0..80), 1..4)) {
            let (mut done, mut all) = (Vec::new(), BTreeSet::new());
            for session in sessions {
                let progress = Progress::new(&missing(count, &done));
                let taken: BTreeSet<u64> = std::iter::from_fn(|| progress.take()).collect();
                prop_assert!(taken.is_disjoint(&all));
                prop_assert_eq!(taken.len() + all.len(), count as usize);
                let mut ended = BTreeSet::new();
                for (n, written) in session {
                    let index = u64::from(n) % count;
                    if taken.contains(&index) && ended.insert(index) {
                        progress.ended(index, written);
                        if written {
                            all.insert(index);
                        }
                    }
                }
                done = union(done.into_iter().chain(progress.filled()).collect());
                // Every block is one object here.
                prop_assert_eq!(&numbers(&done), &all);
            }
        }
    }
}
