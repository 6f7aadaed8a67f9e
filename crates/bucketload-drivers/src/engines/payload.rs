//! Content as reference-counted buffers, which libraries may keep as long as they like.
//!
//! All buffers except the stamps are views of the arena, so a request copies or generates almost no
//! bytes. Memory grows with the object size only by some 32 bytes per 256 KiB.

use std::sync::Arc;

pub(crate) use bucketload_core::driver::content_of;
use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_core::op::Request;
use bucketload_core::payload::{Content, Segment};
use bytes::Bytes;

/// Most parts of an upload (Amazon S3 User Guide, "Amazon S3 multipart upload limits").
const MAX_PARTS: u64 = 10_000;

/// A worker's view of the arena.
#[derive(Clone, Debug, Default)]
pub(crate) struct Payload {
    arena: Bytes,
}

impl Payload {
    /// `len` bytes of `content` from `offset` on, in order.
    pub(crate) fn pieces(&mut self, content: &Content<'_>, offset: u64, len: u64) -> Vec<Bytes> {
        let memory = content.memory();
        // An equal address means the same arena: its memory cannot be reused while `self` holds it.
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

/// The keys of a `delete-many`.
///
/// # Errors
/// When the request has no keys or more than `most`.
pub(crate) fn keys_of(request: &Request<'_>, most: u64) -> OpResult<Vec<String>> {
    let count = request.op.count;
    let Some(keys) = request.keys.filter(|_| (1..=most).contains(&count)) else {
        let detail = format!("delete-many takes 1 to {most} keys per request, not {count}");
        return Err(OpError::new(ErrorKind::Rejected, detail));
    };
    let key = |i| {
        let mut key = String::new();
        keys.render(i, &mut key);
        key
    };
    Ok((0..count).map(key).collect())
}

/// Number and length of the parts of `size` bytes in parts of `part` (0 = one part).
///
/// # Errors
/// When there are more parts than S3 allows.
pub(crate) fn parts_of(size: u64, part: u64) -> OpResult<(u64, u64)> {
    let part = if part == 0 { size.max(1) } else { part };
    let count = size.div_ceil(part).max(1);
    if count > MAX_PARTS {
        let detail = format!(
            "{size} bytes in parts of {part} make {count} parts, more than the {MAX_PARTS} that \
             S3 allows; raise the part size"
        );
        return Err(OpError::new(ErrorKind::Rejected, detail));
    }
    Ok((count, part))
}

#[cfg(test)]
mod tests {
    use bucketload_core::payload::{Arena, PayloadKind};

    use super::Payload;

    #[test]
    fn pieces_are_views_of_the_arena_with_the_content() {
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
