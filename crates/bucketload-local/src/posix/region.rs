//! Memory from which buffers are cut.
//!
//! It uses huge pages if the system grants them. The memory for a disk transfer is then one piece instead of
//! hundreds of pages that the kernel pins, and passes to the disk, one by one.

use std::alloc::{Layout, handle_alloc_error};
use std::cell::RefCell;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// A huge page of x86-64 and of 64-bit ARM.
const HUGE: usize = 2 << 20;
/// Pieces larger than this are in regions of about [`SEVERAL`].
const SMALL: usize = 256 * 1024;
/// Size that lets several large pieces share a region, so little of it is wasted.
const SEVERAL: usize = 8 << 20;

thread_local! {
    /// The region from which this thread cuts, and the bytes already cut.
    static CURRENT: RefCell<Option<(Arc<Region>, usize)>> = const { RefCell::new(None) };
}

/// Zeroed memory, unmapped with the last reference. Untouched pages take no memory.
#[derive(Debug)]
pub(super) struct Region {
    at: NonNull<u8>,
    len: usize,
    /// The whole mapping, which is larger so that the region can start at a huge page.
    mapped: (*mut u8, usize),
}

// SAFETY: the region itself never accesses the memory; dropping the last reference unmaps it.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

/// Length of a new region whose first piece has `len` bytes.
const fn length_for(len: usize) -> usize {
    let span = if len > SMALL { SEVERAL } else { HUGE };
    let pieces = if len < span { span / len } else { 1 };
    (pieces * len).next_multiple_of(HUGE)
}

#[cold]
fn exhausted(len: usize) -> ! {
    // Lengths come from checked options, far below the largest layout.
    handle_alloc_error(Layout::array::<u8>(len).unwrap_or(Layout::new::<u8>()))
}

impl Region {
    fn new(len: usize) -> Arc<Self> {
        let room = len + HUGE;
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let mapped = unsafe { mmap_anonymous(null_mut(), room, rights, MapFlags::PRIVATE) };
        let Ok(mapped) = mapped.map(<*mut _>::cast::<u8>) else {
            exhausted(room)
        };
        let skip = mapped.align_offset(HUGE);
        // SAFETY: `skip` is less than a huge page, and the mapping is longer.
        let at = unsafe { mapped.add(skip) };
        // SAFETY: the range is inside the mapping, and the advice changes its backing but not its content.
        // Systems without huge pages refuse it, which has no effect.
        let _ = unsafe { madvise(at.cast(), len, Advice::LinuxHugepage) };
        let Some(at) = NonNull::new(at) else {
            exhausted(room)
        };
        let mapped = (mapped, room);
        Arc::new(Self { at, len, mapped })
    }

    /// Cuts `len` > 0 zeroed bytes, which only the caller uses as long as it keeps the region. Their alignment is
    /// the greatest common divisor of all lengths.
    pub(super) fn cut(len: usize) -> (NonNull<u8>, Arc<Self>) {
        CURRENT.with_borrow_mut(|current| {
            let (region, used) = match current {
                Some((region, used)) if region.len - *used >= len => (region, used),
                _ => {
                    let (region, used) = current.insert((Self::new(length_for(len)), 0));
                    (region, used)
                }
            };
            // SAFETY: `used + len` is at most the region's length.
            let at = unsafe { region.at.add(*used) };
            *used += len;
            (at, Arc::clone(region))
        })
    }
}

#[cfg(feature = "io-uring")]
impl Region {
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn memory(&self) -> libc::iovec {
        libc::iovec {
            iov_base: self.at.as_ptr().cast(),
            iov_len: self.len,
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let (at, len) = self.mapped;
        // SAFETY: mapped by `new`, and this was the last reference.
        let _ = unsafe { munmap(at.cast(), len) };
    }
}

#[cfg(test)]
mod tests {
    use super::{HUGE, length_for};

    #[test]
    fn little_of_a_region_is_wasted() {
        for len in (1..2048).map(|n| n * 4096) {
            let region = length_for(len);
            assert_eq!(region % HUGE, 0, "{len}");
            assert!(region >= len && region < len + (8 << 20) + HUGE, "{len}");
            // The waste is rounding, or a quarter if few pieces fill a region.
            assert!(region % len <= HUGE.max(region / 4), "{len} of {region}");
        }
    }
}
