//! Aligned memory for the data of files.
//!
//! A buffer belongs to an operation in flight, and otherwise to its thread's pool, so the steady state
//! allocates nothing and an idle session owns nothing. Buffers are page-aligned, as O_DIRECT requires,
//! and cut from a [`Region`].

use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use super::config::PosixConfig;
use super::region::Region;

const ALIGNMENT: usize = PosixConfig::ALIGNMENT as usize;
/// Larger sizes are multiples of this, smaller ones powers of two.
const LARGE: usize = 64 * 1024;
/// Bytes kept per thread.
const KEPT_BYTES: usize = 64 << 20;

/// Page-aligned, initialised memory.
#[derive(Debug)]
pub(super) struct Buffer {
    at: NonNull<u8>,
    len: usize,
    /// The region of the memory; `None` for no memory.
    #[cfg_attr(
        not(feature = "io-uring"),
        expect(dead_code, reason = "keeps the memory mapped")
    )]
    region: Option<Arc<Region>>,
}

// SAFETY: the buffer is the only owner of its memory.
unsafe impl Send for Buffer {}

thread_local! {
    /// The buffer released last: most operations need as much as the previous one.
    static LAST: Cell<Buffer> = const { Cell::new(Buffer::NONE) };
    /// The other free buffers, and their total bytes.
    static FREE: RefCell<(Vec<Buffer>, usize)> = const { RefCell::new((Vec::new(), 0)) };
}

impl Buffer {
    /// A buffer without memory.
    pub(super) const NONE: Self = Self {
        at: NonNull::dangling(),
        len: 0,
        region: None,
    };

    /// A buffer with at least `len` bytes, from the thread's pool if it has one.
    pub(super) fn take(len: usize) -> Self {
        let mut buffer = Self::NONE;
        buffer.renew(len);
        buffer
    }

    /// Replaces this buffer in place with one of at least `len` bytes. Returning the buffer by value instead would
    /// read it in wider pieces than it was just written in, which stalls the processor.
    pub(super) fn renew(&mut self, len: usize) {
        self.release();
        let found = LAST.with(|last| {
            let buffer = last.replace(Self::NONE);
            let fits = buffer.len >= len;
            match fits {
                true => *self = buffer,
                false => last.set(buffer),
            }
            fits
        });
        if !found {
            self.find(len);
        }
    }

    /// Becomes one of the other free buffers, or a new one.
    #[cold]
    fn find(&mut self, len: usize) {
        let found = FREE.with_borrow_mut(|(free, bytes)| {
            let at = free.iter().rposition(|buffer| buffer.len >= len)?;
            let buffer = free.swap_remove(at);
            *bytes -= buffer.len;
            Some(buffer)
        });
        *self = found.unwrap_or_else(|| Self::new(len));
    }

    fn new(len: usize) -> Self {
        // Round sizes fit more later requests.
        let len = match len {
            ..LARGE => len.next_power_of_two().max(ALIGNMENT),
            _ => len.next_multiple_of(LARGE),
        };
        let (at, region) = Region::cut(len);
        Self {
            at,
            len,
            region: Some(region),
        }
    }

    /// The region of the memory.
    #[cfg(feature = "io-uring")]
    pub(super) const fn region(&self) -> Option<&Arc<Region>> {
        self.region.as_ref()
    }

    /// Returns the memory to the thread's pool.
    #[inline]
    pub(super) fn release(&mut self) {
        if self.len > 0 {
            std::mem::replace(self, Self::NONE).keep();
        }
    }

    fn keep(self) {
        if self.len > KEPT_BYTES {
            return;
        }
        // An operation may end while the thread's locals are being destroyed.
        if let Ok(older) = LAST.try_with(|last| last.replace(self))
            && older.len > 0
        {
            older.keep_among_others();
        }
    }

    #[cold]
    fn keep_among_others(self) {
        let buffer = self;
        let _ = FREE.try_with(|free| {
            let (free, bytes) = &mut *free.borrow_mut();
            if *bytes + buffer.len <= KEPT_BYTES {
                *bytes += buffer.len;
                free.push(buffer);
            }
        });
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `len` initialised bytes that the buffer owns. Without memory `len` is 0, and the dangling
        // pointer is aligned and not null.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::{ALIGNMENT, Buffer, FREE};

    #[test]
    fn pieces_of_a_region_are_disjoint_and_independent() {
        let mut buffers: Vec<Buffer> = [70_000, 1 << 20, 1 << 20, 5 << 20, 65_536]
            .map(Buffer::take)
            .into();
        for (n, buffer) in (1u8..).zip(&mut buffers) {
            assert_eq!(buffer.as_ptr().addr() % ALIGNMENT, 0);
            assert!(buffer.iter().all(|&b| b == 0));
            buffer.fill(n);
        }
        for n in (1u8..=5).rev() {
            assert!(buffers.iter().all(|b| b.iter().all(|&x| x == b[0])));
            assert_eq!(
                buffers.pop().map(|b| (b[0], b.len() % 65_536)),
                Some((n, 0))
            );
        }
    }

    #[test]
    fn memory_is_aligned_initialised_and_reused() {
        assert!(Buffer::NONE.is_empty());
        let mut first = Buffer::take(5000);
        assert_eq!((first.len(), first.as_ptr().addr() % ALIGNMENT), (8192, 0));
        assert!(first.iter().all(|&b| b == 0));
        first[8191] = 7;
        let at = first.as_ptr();
        first.release();
        assert!(first.is_empty());
        let mut larger = Buffer::take(9000);
        assert_ne!(larger.as_ptr(), at);
        let mut again = Buffer::take(8192);
        assert_eq!((again.as_ptr(), again[8191]), (at, 7));
        // The last buffer is kept separately from the others.
        larger.release();
        again.release();
        assert_eq!(
            FREE.with_borrow(|(free, bytes)| (free.len(), *bytes)),
            (1, 16_384)
        );
    }
}
