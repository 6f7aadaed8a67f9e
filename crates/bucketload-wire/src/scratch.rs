//! Buffers shared by all connections of a thread.
//!
//! A connection needs a receive buffer only while it is polled, so one per thread is enough: it is
//! borrowed inside a `poll_fn` and never across an await. Bytes that a caller leaves unconsumed are kept
//! in a [`Spill`]. Its memory comes from a small per-thread pool and returns there once the spill is
//! empty, so an idle connection owns none.

use std::cell::RefCell;

use crate::sys::HugePage;

/// Size of the thread's buffer for receiving large bodies, in bytes.
pub(crate) const BUFFER: usize = 256 * 1024;
/// Size of the thread's buffer for receives of small or unknown length, in bytes.
pub(crate) const SMALL: usize = 64 * 1024;
/// Size of the thread's buffer for gathering and sealing records, in bytes.
pub(crate) const SEALED: usize = 288 * 1024;
/// Maximum number of spare spill buffers per thread.
const SPARE: usize = 32;
/// Spill buffers larger than this many bytes are freed instead of kept.
const SPARE_BYTES: usize = 320 * 1024;

thread_local! {
    // Zeroed memory is mapped lazily, so unused pages cost nothing.
    static RECEIVE: RefCell<Vec<u8>> = RefCell::new(vec![0; SMALL]);
    static LARGE: RefCell<HugePage> = RefCell::new(HugePage::new());
    static SEAL: RefCell<Vec<u8>> = RefCell::new(vec![0; SEALED]);
    static POOL: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Lends a receive buffer of `len` bytes, at most [`BUFFER`], to `f`.
///
/// # Panics
/// If `f` calls this function.
pub(crate) fn with_buffer<R>(len: usize, f: impl FnOnce(&mut [u8]) -> R) -> R {
    if len <= SMALL {
        RECEIVE.with_borrow_mut(|buffer| f(&mut buffer[..len]))
    } else {
        LARGE.with_borrow_mut(|page| f(&mut page.bytes()[..len.min(BUFFER)]))
    }
}

/// Lends the thread's buffer for sealed records to `f`.
///
/// # Panics
/// If `f` calls this function.
pub(crate) fn with_seal_buffer<R>(f: impl FnOnce(&mut [u8]) -> R) -> R {
    SEAL.with_borrow_mut(|buffer| f(buffer))
}

/// A queue of bytes that owns memory only while it is not empty.
#[derive(Default)]
pub(crate) struct Spill {
    bytes: Vec<u8>,
    at: usize,
}

impl std::fmt::Debug for Spill {
    // Received bytes may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Spill({} bytes)", self.len())
    }
}

impl Spill {
    pub(crate) fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    /// The bytes, for decrypting in place.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes[self.at..]
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.take_memory();
        if self.at > 0 {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends `n` zero bytes and returns them for writing.
    pub(crate) fn grow(&mut self, n: usize) -> &mut [u8] {
        self.take_memory();
        let old = self.bytes.len();
        self.bytes.resize(old + n, 0);
        &mut self.bytes[old..]
    }

    /// Drops the last `n` bytes.
    pub(crate) fn shrink(&mut self, n: usize) {
        self.bytes.truncate(self.bytes.len() - n);
        if self.is_empty() {
            self.release();
        }
    }

    /// Drops the first `n` bytes.
    ///
    /// # Panics
    /// If there are fewer.
    pub(crate) fn consume(&mut self, n: usize) {
        assert!(
            n <= self.bytes.len() - self.at,
            "consumed more than there is"
        );
        self.at += n;
        if self.is_empty() {
            self.release();
        }
    }

    fn take_memory(&mut self) {
        if self.bytes.capacity() == 0 {
            self.bytes = POOL.with_borrow_mut(Vec::pop).unwrap_or_default();
        }
    }

    fn release(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        self.at = 0;
        bytes.clear();
        if bytes.capacity() == 0 || bytes.capacity() > SPARE_BYTES {
            return;
        }
        // A connection may be dropped while the thread-locals are being destroyed.
        let _ = POOL.try_with(|pool| {
            let mut pool = pool.borrow_mut();
            if pool.len() < SPARE {
                pool.push(bytes);
            }
        });
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::Spill;

    #[test]
    fn a_spill_is_a_queue_and_returns_its_memory() {
        let mut spill = Spill::default();
        spill.push(b"abc");
        spill.consume(1);
        spill.push(b"de");
        assert_eq!(spill.as_slice(), b"bcde");
        spill.consume(4);
        assert!(spill.is_empty());
        assert_eq!(spill.bytes.capacity(), 0);
        spill.push(b"x");
        assert!(
            spill.bytes.capacity() >= 4,
            "the memory comes from the pool"
        );
    }
}
