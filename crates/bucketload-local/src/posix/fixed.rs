//! Regions registered with the kernel, so calls on their memory need not look up and pin pages again.

use std::sync::Arc;

use io_uring::IoUring;

use super::buffer::Buffer;
use super::region::Region;

/// Most registered regions of a ring.
const PLACES: u32 = 32;
/// Most bytes that a ring lets the kernel pin.
const MOST_BYTES: usize = 64 << 20;

/// The registered regions of a ring, in the order of their indices.
#[derive(Default)]
pub(super) struct Fixed {
    regions: Vec<Arc<Region>>,
    /// The kernel lacks registration, or may not pin more memory (`RLIMIT_MEMLOCK`).
    refused: bool,
}

impl Fixed {
    /// The empty table of `ring`; refused if the kernel lacks sparse registration (before Linux 5.19).
    pub(super) fn new(ring: &IoUring) -> Self {
        Self {
            regions: Vec::with_capacity(PLACES as usize),
            refused: ring.submitter().register_buffers_sparse(PLACES).is_err(),
        }
    }

    /// The index of the region of `buffer` for calls of `ring`; without one, calls use addresses.
    pub(super) fn number(&mut self, ring: &IoUring, buffer: &Buffer) -> Option<u16> {
        let region = buffer.region()?;
        let known = self.regions.iter().position(|r| Arc::ptr_eq(r, region));
        match known.or_else(|| self.add(ring, region)) {
            Some(index) => u16::try_from(index).ok(),
            None => None,
        }
    }

    /// Registers a region, replacing one without buffers if possible.
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
        // SAFETY: the memory exists as long as the region, which `regions` keeps until the index gets another
        // region or the ring is dropped.
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
