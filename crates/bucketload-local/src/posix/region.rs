//! Memory that buffers are cut from.
//!
//! It lies in huge pages where the system grants them: what a disk reads into or writes from is one piece
//! then, and not hundreds of pages that the kernel pins, and the disk is told of, one by one.

use std::alloc::{Layout, handle_alloc_error};
use std::cell::RefCell;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// A huge page of x86-64 and of 64-bit ARM.
const HUGE: usize = 2 << 20;
/// Pieces larger than this lie in regions of about [`SEVERAL`].
const SMALL: usize = 256 * 1024;
/// Bytes that let several large pieces share a region, so that little of it is left over.
const SEVERAL: usize = 8 << 20;

thread_local! {
    /// The region that this thread cuts from, and how much of it is gone.
    static CURRENT: RefCell<Option<(Arc<Region>, usize)>> = const { RefCell::new(None) };
}

/// Zeroed memory that is unmapped when nobody refers to it any more. Pages that nobody touches do not exist.
#[derive(Debug)]
pub(super) struct Region {
    at: NonNull<u8>,
    len: usize,
    /// What was mapped to have it begin with a huge page.
    mapped: (*mut u8, usize),
}

// SAFETY: nobody reaches the memory through the region, but for unmapping it when it is the last.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

/// How long the region is that a piece of `len` bytes is the first of.
const fn length_for(len: usize) -> usize {
    let span = if len > SMALL { SEVERAL } else { HUGE };
    let pieces = if len < span { span / len } else { 1 };
    (pieces * len).next_multiple_of(HUGE)
}

#[cold]
fn exhausted(len: usize) -> ! {
    // Lengths come from checked options, far below the largest of a layout.
    handle_alloc_error(Layout::array::<u8>(len).unwrap_or(Layout::new::<u8>()))
}

impl Region {
    fn new(len: usize) -> Arc<Self> {
        let room = len + HUGE;
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place that the kernel chooses.
        let mapped = unsafe { mmap_anonymous(null_mut(), room, rights, MapFlags::PRIVATE) };
        let Ok(mapped) = mapped.map(<*mut _>::cast::<u8>) else {
            exhausted(room)
        };
        let skip = mapped.align_offset(HUGE);
        // SAFETY: `skip` is less than a huge page, and the mapping is longer.
        let at = unsafe { mapped.add(skip) };
        // SAFETY: the range lies in the mapping, and the advice changes how it is backed, never what it
        // holds. Systems without huge pages refuse it, which changes nothing.
        let _ = unsafe { madvise(at.cast(), len, Advice::LinuxHugepage) };
        let Some(at) = NonNull::new(at) else {
            exhausted(room)
        };
        let mapped = (mapped, room);
        Arc::new(Self { at, len, mapped })
    }

    /// Cuts `len` zeroed bytes, not 0, which are the caller's alone for as long as it keeps the region. They
    /// begin at a multiple of whatever all lengths are multiples of.
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
    /// Its size, bytes.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Where it lies.
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
        // SAFETY: mapped by `new`, and nobody refers to it any more.
        let _ = unsafe { munmap(at.cast(), len) };
    }
}

#[cfg(test)]
mod tests {
    use super::{HUGE, length_for};

    #[test]
    fn little_of_a_region_is_left_over() {
        for len in (1..2048).map(|n| n * 4096) {
            let region = length_for(len);
            assert_eq!(region % HUGE, 0, "{len}");
            assert!(region >= len && region < len + (8 << 20) + HUGE, "{len}");
            // What is left over is rounding, or a quarter where few pieces fill a region.
            assert!(region % len <= HUGE.max(region / 4), "{len} of {region}");
        }
    }
}
