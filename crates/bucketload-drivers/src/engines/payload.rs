//! Content as reference-counted buffers, which libraries keep for as long as they like.
//!
//! All but the stamps are views of the arena itself, so no byte of an object is copied or generated
//! for a request, and memory does not grow with object size but by some 32 bytes per 256 KiB.

use std::sync::Arc;

use bucketload_core::payload::{Content, Segment};
use bytes::Bytes;

/// A worker's view of the arena.
#[derive(Clone, Debug, Default)]
pub(crate) struct Payload {
    arena: Bytes,
}

impl Payload {
    /// `len` bytes of `content` from `offset` on, in order.
    pub(crate) fn pieces(&mut self, content: &Content<'_>, offset: u64, len: u64) -> Vec<Bytes> {
        let memory = content.memory();
        // The arena of a run stays the same; its memory cannot be another's while we hold it.
        if self.arena.as_ptr() != memory.as_ptr() {
            self.arena = Bytes::from_owner(Arc::clone(memory));
        }
        let end = content.size().min(offset.saturating_add(len));
        let mut pieces = Vec::new();
        let mut at = offset;
        while at < end {
            let max = usize::try_from(end - at).unwrap_or(usize::MAX);
            let piece = match content.segment(at, max) {
                Segment::Slice(slice) => self.arena.slice_ref(slice),
                stamp @ Segment::Stamp { .. } => Bytes::copy_from_slice(stamp.as_bytes()),
            };
            if piece.is_empty() {
                break;
            }
            at += piece.len() as u64;
            pieces.push(piece);
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::payload::{Arena, PayloadKind};

    use super::Payload;

    #[test]
    fn pieces_are_the_content_and_lie_in_the_arena() {
        let arena = Arena::new(PayloadKind::Random, 1);
        let mut payload = Payload::default();
        for (size, offset, len) in [
            (0, 0, 0),
            (10, 0, 10),
            (600_000, 0, 600_000),
            (600_000, 262_140, 9_000),
        ] {
            let content = arena.content(0, 3, 1, size);
            let pieces = payload.pieces(&content, offset, len);
            let whole = pieces.concat();
            assert_eq!(whole.len() as u64, len);
            assert_eq!(content.verify(offset, &whole), Ok(()));
            let within = content.memory().as_ptr_range();
            let copied: usize = pieces
                .iter()
                .filter(|piece| !within.contains(&piece.as_ptr()))
                .map(|piece| piece.len())
                .sum();
            assert!(copied <= 3 * 32, "{copied} bytes of {size} were copied");
        }
    }
}
