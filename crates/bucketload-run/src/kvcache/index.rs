//! The blocks of a cache in the order of their last use, and those that are being removed.
//!
//! ```text
//!  insert ─▶ writing ─ wrote ─▶ present ─ evict ─▶ queued ─ sent ─▶ gone
//!                      └ failed: gone    (oldest that nobody reads or writes)
//! ```
//!
//! Memory grows with the blocks that the cache holds, some 70 bytes each.

use std::collections::{HashMap, VecDeque};

/// No entry.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    id: u64,
    bytes: u64,
    /// The next newer entry, and the next older one.
    newer: u32,
    older: u32,
    /// Requests that are writing the block, and that are reading it.
    writing: u32,
    reading: u32,
    present: bool,
}

/// A block that left the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Removal {
    /// Its objects are still there.
    Queued,
    /// Requests remove its objects; so many have not ended.
    Sent(u64),
}

/// The blocks of a cache.
#[derive(Debug)]
pub(crate) struct Index {
    entries: Vec<Entry>,
    free: Vec<u32>,
    by_id: HashMap<u64, u32>,
    newest: u32,
    oldest: u32,
    bytes: u64,
    /// Most bytes; 0 = no limit.
    budget: u64,
    removals: HashMap<u64, Removal>,
    queued: VecDeque<u64>,
}

impl Index {
    /// An empty cache for at most `budget` bytes (0 = no limit).
    pub(crate) fn new(budget: u64) -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            by_id: HashMap::new(),
            newest: NONE,
            oldest: NONE,
            bytes: 0,
            budget,
            removals: HashMap::new(),
            queued: VecDeque::new(),
        }
    }

    /// Bytes of all blocks, including those that are being written.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    fn entry(&mut self, id: u64) -> Option<&mut Entry> {
        let at = *self.by_id.get(&id)?;
        Some(&mut self.entries[at as usize])
    }

    fn unlink(&mut self, at: u32) {
        let Entry { newer, older, .. } = self.entries[at as usize];
        match newer {
            NONE => self.newest = older,
            other => self.entries[other as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            other => self.entries[other as usize].newer = newer,
        }
    }

    fn link(&mut self, at: u32) {
        let newest = std::mem::replace(&mut self.newest, at);
        let entry = &mut self.entries[at as usize];
        (entry.newer, entry.older) = (NONE, newest);
        match newest {
            NONE => self.oldest = at,
            other => self.entries[other as usize].newer = at,
        }
    }

    fn renew(&mut self, at: u32) {
        self.unlink(at);
        self.link(at);
    }

    fn remove(&mut self, at: u32) -> u64 {
        self.unlink(at);
        let Entry { id, bytes, .. } = self.entries[at as usize];
        self.bytes -= bytes;
        self.by_id.remove(&id);
        self.free.push(at);
        id
    }

    /// If the cache has the block, it becomes the newest, is kept until [`Index::read`], and its size in bytes is
    /// returned.
    pub(crate) fn reading(&mut self, id: u64) -> Option<u64> {
        let at = *self.by_id.get(&id)?;
        let entry = &mut self.entries[at as usize];
        if !entry.present {
            return None;
        }
        entry.reading += 1;
        let bytes = entry.bytes;
        self.renew(at);
        Some(bytes)
    }

    /// The block is no longer read.
    pub(crate) fn read(&mut self, id: u64) {
        if let Some(entry) = self.entry(id) {
            entry.reading -= 1;
        }
    }

    /// The store does not have the block any more, so it has to be written.
    pub(crate) fn lost(&mut self, id: u64) {
        if let Some(entry) = self.entry(id) {
            entry.present = false;
        }
    }

    /// Whether a request is writing the block, which the store does not have yet.
    pub(crate) fn is_writing(&self, id: u64) -> bool {
        let entry = self.by_id.get(&id).map(|&at| &self.entries[at as usize]);
        entry.is_some_and(|entry| entry.writing > 0 && !entry.present)
    }

    /// Nobody needs the block any more. Its objects stay.
    pub(crate) fn forget(&mut self, id: u64) {
        let at = self.by_id.get(&id).copied();
        let idle = |at: &u32| {
            let entry = &self.entries[*at as usize];
            entry.writing == 0 && entry.reading == 0
        };
        if let Some(at) = at.filter(idle) {
            self.remove(at);
        }
    }

    /// A request begins to write a block of `bytes` bytes, which becomes the newest. Returns whether the cache has it
    /// already or is getting it.
    pub(crate) fn insert(&mut self, id: u64, bytes: u64) -> bool {
        if self.removals.get(&id) == Some(&Removal::Queued) {
            self.removals.remove(&id);
        }
        if let Some(&at) = self.by_id.get(&id) {
            let entry = &mut self.entries[at as usize];
            let known = entry.present || entry.writing > 0;
            entry.writing += 1;
            self.renew(at);
            return known;
        }
        let entry = Entry {
            id,
            bytes,
            newer: NONE,
            older: NONE,
            writing: 1,
            reading: 0,
            present: false,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.entries[at as usize] = entry;
                at
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        };
        self.by_id.insert(id, at);
        self.bytes += bytes;
        self.link(at);
        false
    }

    /// A request has written the block, or failed to.
    pub(crate) fn wrote(&mut self, id: u64, ok: bool) {
        let Some(&at) = self.by_id.get(&id) else {
            return;
        };
        let entry = &mut self.entries[at as usize];
        entry.writing -= 1;
        entry.present |= ok;
        if !entry.present && entry.writing == 0 && entry.reading == 0 {
            self.remove(at);
        }
    }

    /// Evicts the oldest blocks that nobody reads or writes until the budget holds. Returns their number.
    pub(crate) fn evict(&mut self) -> u64 {
        let mut evicted = 0;
        let mut at = self.oldest;
        while self.budget > 0 && self.bytes > self.budget && at != NONE {
            let Entry {
                newer,
                writing,
                reading,
                ..
            } = self.entries[at as usize];
            if writing == 0 && reading == 0 {
                let id = self.remove(at);
                // A removal that was sent before ends before the block is written, so there is none.
                self.removals.insert(id, Removal::Queued);
                self.queued.push_back(id);
                evicted += 1;
            }
            at = newer;
        }
        evicted
    }

    /// The next block whose `objects` objects are to be removed now.
    pub(crate) fn next_removal(&mut self, objects: u64) -> Option<u64> {
        while let Some(id) = self.queued.pop_front() {
            // A block that was written again meanwhile stays.
            if let Some(removal @ Removal::Queued) = self.removals.get_mut(&id) {
                *removal = Removal::Sent(objects);
                return Some(id);
            }
        }
        None
    }

    /// Number of blocks whose removal is not sent; blocks that were written again may be among them.
    pub(crate) fn queued(&self) -> usize {
        self.queued.len()
    }

    /// Whether requests are removing the block's objects.
    pub(crate) fn is_leaving(&self, id: u64) -> bool {
        matches!(self.removals.get(&id), Some(Removal::Sent(_)))
    }

    /// The removal of an object of the block has ended.
    pub(crate) fn left(&mut self, id: u64) {
        if let Some(Removal::Sent(objects)) = self.removals.get_mut(&id) {
            *objects -= 1;
            if *objects == 0 {
                self.removals.remove(&id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::Index;

    /// A cache as a list of blocks, the oldest first.
    #[derive(Default)]
    struct Plain(VecDeque<(u64, u64)>);

    impl Plain {
        /// A request: hits are renewed in order up to the first miss, the rest is inserted, the oldest leave.
        fn request(&mut self, blocks: &[(u64, u64)], budget: u64) -> (usize, Vec<u64>) {
            let has = |list: &VecDeque<(u64, u64)>, id| list.iter().position(|b| b.0 == id);
            let hits = blocks
                .iter()
                .take_while(|b| has(&self.0, b.0).is_some())
                .count();
            for block in blocks {
                if let Some(at) = has(&self.0, block.0) {
                    self.0.remove(at);
                }
                self.0.push_back(*block);
            }
            let mut gone = Vec::new();
            let own = |id| blocks[hits..].iter().any(|b| b.0 == id);
            while self.0.iter().map(|b| b.1).sum::<u64>() > budget {
                match self.0.iter().position(|b| !own(b.0)) {
                    Some(at) => gone.push(self.0.remove(at).unwrap().0),
                    None => break,
                }
            }
            (hits, gone)
        }
    }

    proptest! {
        /// Hits and evictions of requests one after another equal those of a list.
        #[test]
        fn evictions_equal_those_of_a_plain_list(
            requests in prop::collection::vec(prop::collection::btree_set(0u64..40, 1..8), 1..80),
            budget in 20u64..200,
        ) {
            let (mut index, mut plain) = (Index::new(budget), Plain::default());
            for ids in requests {
                let blocks: Vec<(u64, u64)> = ids.into_iter().map(|id| (id, 1 + id % 7)).collect();
                let (hits, gone) = plain.request(&blocks, budget);
                let found = blocks.iter().take_while(|b| index.reading(b.0).is_some()).count();
                prop_assert_eq!(found, hits);
                blocks[..hits].iter().for_each(|b| index.read(b.0));
                let mut duplicates = 0;
                for &(id, bytes) in &blocks[hits..] {
                    duplicates += usize::from(index.insert(id, bytes));
                }
                prop_assert!(duplicates <= blocks.len() - hits);
                let evicted = index.evict();
                let mut left = Vec::new();
                while let Some(id) = index.next_removal(1) {
                    prop_assert!(index.is_leaving(id));
                    left.push(id);
                    index.left(id);
                }
                prop_assert_eq!(evicted as usize, gone.len());
                prop_assert_eq!(left, gone);
                blocks[hits..].iter().for_each(|b| index.wrote(b.0, true));
                let sum: u64 = plain.0.iter().map(|b| b.1).sum();
                prop_assert_eq!(index.bytes(), sum);
                index.evict();
                while let Some(id) = index.next_removal(1) {
                    plain.0.retain(|b| b.0 != id);
                    index.left(id);
                }
            }
        }
    }

    #[test]
    fn a_block_that_is_written_again_before_its_removal_is_sent_stays() {
        let mut index = Index::new(10);
        for id in [1, 2] {
            assert!(!index.insert(id, 8));
            index.wrote(id, true);
            index.evict();
        }
        assert_eq!(index.queued(), 1);
        assert!(!index.insert(1, 8) && !index.is_leaving(1));
        index.wrote(1, true);
        index.evict();
        // Only block 2 leaves now.
        assert_eq!(index.next_removal(3), Some(2));
        assert_eq!(index.next_removal(3), None);
        for _ in 0..3 {
            assert!(index.is_leaving(2));
            index.left(2);
        }
        assert!(!index.is_leaving(2));
    }

    #[test]
    fn blocks_that_are_read_or_written_stay_and_failed_writes_leave_nothing() {
        let mut index = Index::new(1);
        index.insert(1, 5);
        assert_eq!((index.evict(), index.bytes()), (0, 5));
        assert!(index.reading(1).is_none(), "it is not written yet");
        assert!(index.insert(1, 5), "another request writes it too");
        index.wrote(1, true);
        assert_eq!(index.reading(1), Some(5));
        index.wrote(1, false);
        assert_eq!(index.evict(), 0);
        index.read(1);
        assert_eq!((index.evict(), index.bytes()), (1, 0));
        index.insert(2, 5);
        index.wrote(2, false);
        assert_eq!(index.bytes(), 0);
        index.insert(4, 5);
        assert!(index.is_writing(4) && !index.is_writing(5));
        index.forget(4);
        index.wrote(4, true);
        assert!(!index.is_writing(4) && index.bytes() == 5, "it was in use");
        index.forget(4);
        assert_eq!((index.bytes(), index.queued()), (0, 1));
        index.insert(3, 1);
        index.wrote(3, true);
        index.lost(3);
        assert!(index.reading(3).is_none());
        assert!(!index.insert(3, 1), "it has to be written");
    }
}
