//! Buffers that a request owns only while it is in flight.
//!
//! Every load thread keeps the buffers that its sessions have used, so the steady state allocates nothing and an idle
//! session owns nothing. A thread never keeps more buffers than were in use at once, nor more than [`KEPT_BYTES`].

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// Bytes kept per thread.
const KEPT_BYTES: usize = 64 << 20;

/// The unused buffers and their total capacity in bytes.
struct Free {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

thread_local! {
    static FREE: RefCell<Free> = const {
        RefCell::new(Free {
            buffers: Vec::new(),
            bytes: 0,
        })
    };
}

/// A buffer from the thread's pool; returned to it when dropped.
#[derive(Debug)]
pub(crate) struct Buffer(Vec<u8>);

impl Buffer {
    /// A buffer without memory.
    pub(crate) const NONE: Self = Self(Vec::new());

    /// Takes an empty buffer from the thread's pool.
    pub(crate) fn take() -> Self {
        let kept = FREE.with_borrow_mut(|free| {
            let buffer = free.buffers.pop()?;
            free.bytes -= buffer.capacity();
            Some(buffer)
        });
        Self(kept.unwrap_or_else(|| Vec::with_capacity(1024)))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let capacity = self.0.capacity();
        if capacity == 0 {
            return;
        }
        let mut bytes = std::mem::take(&mut self.0);
        bytes.clear();
        // A session may be dropped while the thread's locals are being destroyed.
        let _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            if free.bytes + capacity <= KEPT_BYTES {
                free.bytes += capacity;
                free.buffers.push(bytes);
            }
        });
    }
}

impl Deref for Buffer {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Buffer;

    #[test]
    fn memory_is_reused() {
        let mut first = Buffer::take();
        first.resize(5000, 1);
        let at = first.as_ptr();
        drop(first);
        let second = Buffer::take();
        assert!(second.is_empty());
        assert_eq!(second.as_ptr(), at);
    }
}
