//! Regions that the kernel knows: calls on their bytes need not look up and pin the pages again.

use std::sync::Arc;

use io_uring::IoUring;

use super::buffer::Buffer;
use super::region::Region;

/// Regions that a ring knows at a time.
const PLACES: u32 = 32;
/// Bytes that a ring lets the kernel pin.
const MOST_BYTES: usize = 64 << 20;

/// The regions that a ring has made known, each at the index by which calls name it.
#[derive(Default)]
pub(super) struct Fixed {
    regions: Vec<Arc<Region>>,
    /// The kernel cannot, or may not pin more memory (`RLIMIT_MEMLOCK`).
    refused: bool,
}

impl Fixed {
    /// The places of `ring`; none where the kernel has no such (before Linux 5.19).
    pub(super) fn new(ring: &IoUring) -> Self {
        Self {
            regions: Vec::with_capacity(PLACES as usize),
            refused: ring.submitter().register_buffers_sparse(PLACES).is_err(),
        }
    }

    /// By which number calls of `ring` name the memory of `buffer`. Only if it has none, it is an address.
    pub(super) fn number(&mut self, ring: &IoUring, buffer: &Buffer) -> Option<u16> {
        let region = buffer.region()?;
        let known = self.regions.iter().position(|r| Arc::ptr_eq(r, region));
        match known.or_else(|| self.add(ring, region)) {
            Some(index) => u16::try_from(index).ok(),
            None => None,
        }
    }

    /// Makes a region known, in place of one that no buffer lies in if need be.
    #[cold]
    fn add(&mut self, ring: &IoUring, region: &Arc<Region>) -> Option<usize> {
        if self.refused {
            return None;
        }
        let unused = self.regions.iter().position(|r| Arc::strong_count(r) == 1);
        let others = self.regions.iter().enumerate();
        let others = others.filter(|(index, _)| Some(*index) != unused);
        let pinned: usize = others.map(|(_, region)| region.len()).sum();
        if pinned + region.len() > MOST_BYTES {
            return None;
        }
        let index = unused.unwrap_or(self.regions.len());
        if index == PLACES as usize {
            return None;
        }
        let memory = [region.memory()];
        // SAFETY: the memory is there until the region is dropped, which is kept until its place gets
        // another or the ring is gone.
        let made = unsafe {
            let submitter = ring.submitter();
            submitter.register_buffers_update(index as u32, &memory, None)
        };
        if made.is_err() {
            self.refused = true;
            return None;
        }
        match self.regions.get_mut(index) {
            Some(place) => *place = Arc::clone(region),
            None => self.regions.push(Arc::clone(region)),
        }
        Some(index)
    }
}
