//! Bytes to write: an object's content or a control document, in pieces for one call.

use std::io::IoSlice;

use bucketload_core::payload::{Content, Segment};

/// Most pieces of a vectored write: 1 MiB of content is at most five stamps and five slices.
const PIECES: usize = 10;

/// The data that an operation writes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'a> {
    /// The content of an object.
    Content(Content<'a>),
    /// Part of the content of an object: offset and length.
    Part(Content<'a>, u64, u64),
    Bytes(&'a [u8]),
}

impl Source<'_> {
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Content(content) => content.size(),
            Self::Part(_, _, len) => *len,
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Copies the bytes from `offset` on into `out`; returns the number of bytes copied.
    pub(super) fn copy(&self, offset: u64, out: &mut [u8]) -> usize {
        match self {
            Self::Content(content) => content.fill(offset, out),
            Self::Part(content, from, len) => {
                let left = usize::try_from(len - offset.min(*len)).unwrap_or(usize::MAX);
                let most = out.len().min(left);
                content.fill(from + offset, &mut out[..most])
            }
            Self::Bytes(bytes) => {
                let from = usize::try_from(offset).map_or(bytes.len(), |at| at.min(bytes.len()));
                let len = out.len().min(bytes.len() - from);
                out[..len].copy_from_slice(&bytes[from..from + len]);
                len
            }
        }
    }

    /// Passes the bytes from `offset` on to `f` without copying: at most `max`, and as many as fit into one
    /// call.
    pub(super) fn with_slices<R>(
        &self,
        offset: u64,
        max: usize,
        f: impl FnOnce(&[IoSlice<'_>]) -> R,
    ) -> R {
        let (content, offset, max) = match self {
            Self::Bytes(bytes) => {
                let from = usize::try_from(offset).map_or(bytes.len(), |at| at.min(bytes.len()));
                let to = bytes.len().min(from.saturating_add(max));
                return f(&[IoSlice::new(&bytes[from..to])]);
            }
            Self::Content(content) => (content, offset, max),
            Self::Part(content, from, len) => {
                let left = usize::try_from(len - offset.min(*len)).unwrap_or(usize::MAX);
                (content, from + offset, max.min(left))
            }
        };
        let mut pieces = [Segment::Slice(&[]); PIECES];
        let (mut count, mut at, mut left) = (0, offset, max);
        while count < PIECES && left > 0 {
            let piece = content.segment(at, left);
            let len = piece.as_bytes().len();
            if len == 0 {
                break;
            }
            pieces[count] = piece;
            count += 1;
            at += len as u64;
            left -= len;
        }
        let mut slices = [IoSlice::new(&[]); PIECES];
        for (slice, piece) in slices.iter_mut().zip(&pieces[..count]) {
            *slice = IoSlice::new(piece.as_bytes());
        }
        f(&slices[..count])
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::payload::{Arena, PayloadKind};

    use super::Source;

    #[test]
    fn slices_and_copies_are_the_same_bytes() {
        let arena = Arena::new(PayloadKind::Random, 3);
        let size = 3_000_000;
        let source = Source::Content(arena.content(0, 1, 0, size));
        let mut copied = vec![0; size as usize];
        assert_eq!(source.copy(0, &mut copied), size as usize);
        for max in [1000, 1 << 20, 4 << 20] {
            let mut gathered = Vec::new();
            while (gathered.len() as u64) < size {
                let before = gathered.len();
                source.with_slices(before as u64, max, |slices| {
                    slices
                        .iter()
                        .for_each(|slice| gathered.extend_from_slice(slice));
                });
                assert!(gathered.len() - before <= max && gathered.len() > before);
            }
            assert!(gathered == copied, "{max}");
        }
        // One call takes a whole block of 1 MiB wherever it begins.
        source.with_slices(1 << 20, 1 << 20, |slices| {
            assert_eq!(slices.iter().map(|s| s.len()).sum::<usize>(), 1 << 20);
        });
        assert_eq!(Source::Bytes(b"abc").copy(1, &mut [0; 9]), 2);
        assert_eq!(Source::Bytes(b"abc").with_slices(9, 9, |s| s[0].len()), 0);
    }
}
