//! A part of an object's content: what a request sends, and what its checksums cover.

use bucketload_core::payload::Content;
use bucketload_s3::sha256::Pieces;

/// Bytes handed to a hash at a time: one stamp interval stays in the second-level cache.
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

    /// Shows the bytes in order.
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
        let mut pieces = Pieces::NEW;
        self.each(|bytes| pieces.update(bytes));
        pieces.finish()
    }
}
