//! A part of an object's content, as sent by a request and covered by its checksums.

use bucketload_core::payload::Content;
use bucketload_s3::sha256::Hasher;

/// Bytes passed to a hash function at a time. One stamp interval fits into the second-level cache.
const STEP: usize = 256 * 1024;

/// A part of an object's content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span<'a> {
    pub(crate) content: &'a Content<'a>,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

impl<'a> Span<'a> {
    /// All of `content`.
    pub(crate) const fn whole(content: &'a Content<'a>) -> Self {
        Self {
            content,
            offset: 0,
            len: content.size(),
        }
    }

    /// Calls `f` with consecutive pieces of the content.
    pub(crate) fn each(&self, mut f: impl FnMut(&[u8])) {
        let end = self.offset + self.len;
        let mut at = self.offset;
        while at < end {
            let max = STEP.min(usize::try_from(end - at).unwrap_or(STEP));
            let segment = self.content.segment(at, max);
            let bytes = segment.as_bytes();
            if bytes.is_empty() {
                return;
            }
            f(bytes);
            at += bytes.len() as u64;
        }
    }

    pub(crate) fn sha256(&self) -> [u8; 32] {
        let mut hasher = Hasher::NEW;
        self.each(|bytes| hasher.update(bytes));
        hasher.finish()
    }
}
