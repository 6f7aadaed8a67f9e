//! Content in memory: buffers, charged against a limit, that objects, parts, copies and readers share.

use std::ops::{Deref, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Result, StoreError};

/// Bytes in use against a limit.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: u64,
    used: AtomicU64,
}

impl Budget {
    pub(crate) const fn new(limit: u64) -> Self {
        Self {
            limit,
            used: AtomicU64::new(0),
        }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Reserves bytes until the charge is dropped.
    ///
    /// # Errors
    /// [`StoreError::InsufficientStorage`] beyond the limit.
    pub(crate) fn charge(self: &Arc<Self>, bytes: u64) -> Result<Charge> {
        let mut charge = Charge {
            budget: Arc::clone(self),
            bytes: 0,
        };
        charge.grow(bytes)?;
        Ok(charge)
    }
}

/// A reservation in a [`Budget`], released when dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Charge {
    /// Reserves `more` bytes.
    ///
    /// # Errors
    /// [`StoreError::InsufficientStorage`] beyond the limit.
    pub(crate) fn grow(&mut self, more: u64) -> Result<()> {
        // The counter guards no other memory, so no ordering is needed.
        let limit = self.budget.limit;
        self.budget
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(more).filter(|sum| *sum <= limit)
            })
            .map_err(|_| StoreError::InsufficientStorage)?;
        self.bytes += more;
        Ok(())
    }

    /// Splits off a charge of `bytes`.
    ///
    /// # Panics
    /// If the charge is smaller.
    pub(crate) fn split(&mut self, bytes: u64) -> Self {
        self.bytes = self
            .bytes
            .checked_sub(bytes)
            .expect("a charge covers what is split off");
        Self {
            budget: Arc::clone(&self.budget),
            bytes,
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Bytes with their charge. A constant buffer, which the store owns, has none.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) _charge: Option<Charge>,
}

/// Bytes shared with the store. Cheap to clone; keeps the bytes alive.
#[derive(Debug, Clone)]
pub struct Chunk {
    buffer: Arc<Buffer>,
    range: Range<usize>,
}

impl Chunk {
    pub(crate) fn new(buffer: Arc<Buffer>) -> Self {
        Self {
            range: 0..buffer.bytes.len(),
            buffer,
        }
    }

    /// Keeps only the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.range.end = self.range.end.min(self.range.start.saturating_add(len));
    }

    /// Drops the first `len` bytes (after a partial send), or all if there are fewer.
    pub fn advance(&mut self, len: usize) {
        self.range.start = self.range.end.min(self.range.start.saturating_add(len));
    }
}

impl Deref for Chunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer.bytes[self.range.clone()]
    }
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// Content: a sequence of chunks.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// One chunk, possibly empty.
    One(Chunk),
    /// Several nonempty chunks, each with the offset of its first byte, ascending.
    Many(Vec<(u64, Chunk)>),
}

impl Content {
    /// The bytes from `offset` to the end of the chunk that contains it.
    pub(crate) fn chunk(&self, offset: u64) -> Option<Chunk> {
        let (start, chunk) = match self {
            Self::One(chunk) => (0, chunk),
            Self::Many(chunks) => {
                let after = chunks.partition_point(|(start, _)| *start <= offset);
                let (start, chunk) = chunks.get(after.checked_sub(1)?)?;
                (*start, chunk)
            }
        };
        let skip = usize::try_from(offset - start).ok()?;
        if skip >= chunk.len() {
            return None;
        }
        let mut rest = chunk.clone();
        rest.advance(skip);
        Some(rest)
    }

    /// Joins chunks. No chunks give empty content.
    pub(crate) fn join(chunks: impl IntoIterator<Item = Chunk>) -> Self {
        let mut all = Vec::new();
        let mut offset = 0;
        for chunk in chunks {
            if !chunk.is_empty() {
                let len = chunk.len() as u64;
                all.push((offset, chunk));
                offset += len;
            }
        }
        match all.len() {
            0 => Self::One(Chunk::new(Arc::new(Buffer {
                bytes: Vec::new(),
                _charge: None,
            }))),
            1 => Self::One(all.remove(0).1),
            _ => Self::Many(all),
        }
    }

    /// All chunks in order.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = &Chunk> {
        let (one, many) = match self {
            Self::One(chunk) => (Some(chunk), [].as_slice()),
            Self::Many(chunks) => (None, chunks.as_slice()),
        };
        one.into_iter().chain(many.iter().map(|(_, chunk)| chunk))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(bytes: &[u8]) -> Chunk {
        Chunk::new(Arc::new(Buffer {
            bytes: bytes.to_vec(),
            _charge: None,
        }))
    }

    #[test]
    fn chunks_are_found_by_offset() {
        let content = Content::join([chunk(b"abc"), chunk(b""), chunk(b"de"), chunk(b"f")]);
        let from = |offset| content.chunk(offset).map(|c| c.to_vec());
        assert_eq!(from(0).unwrap(), b"abc");
        assert_eq!(from(2).unwrap(), b"c");
        assert_eq!(from(3).unwrap(), b"de");
        assert_eq!(from(5).unwrap(), b"f");
        assert_eq!(from(6), None);
        assert!(Content::join([]).chunk(0).is_none());
    }

    #[test]
    fn charges_are_exact_and_limited() {
        let budget = Arc::new(Budget::new(100));
        let mut first = budget.charge(60).unwrap();
        assert!(matches!(
            budget.charge(41),
            Err(StoreError::InsufficientStorage)
        ));
        assert_eq!(budget.used(), 60);
        assert!(first.grow(u64::MAX).is_err());
        first.grow(40).unwrap();
        let second = first.split(30);
        drop(first);
        assert_eq!(budget.used(), 30);
        drop(second);
        assert_eq!(budget.used(), 0);
    }
}
