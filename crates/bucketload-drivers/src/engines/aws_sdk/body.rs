//! Object content in the SDK's form.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use aws_sdk_s3::primitives::{ByteStream, SdkBody};
use bucketload_core::payload::Content;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::engines::payload::Payload;

/// Content up to this size is one buffer, as in most programs, and the SDK hashes it for the signature.
/// Larger content is streamed from the arena piece by piece.
const WHOLE: u64 = 1 << 20;

/// Views of the arena, one frame each.
#[derive(Clone)]
struct Pieces {
    left: std::vec::IntoIter<Bytes>,
    bytes: u64,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.left.next();
        self.bytes -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.len() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes)
    }
}

/// `len` bytes of `content` from `offset` on.
pub(super) fn stream(
    payload: &mut Payload,
    content: &Content<'_>,
    offset: u64,
    len: u64,
) -> ByteStream {
    let mut pieces = payload.pieces(content, offset, len);
    if len > WHOLE {
        let pieces = Pieces {
            left: pieces.into_iter(),
            bytes: len,
        };
        // Replayable, in case the SDK repeats the request.
        return ByteStream::new(SdkBody::retryable(move || {
            SdkBody::from_body_1_x(pieces.clone())
        }));
    }
    match pieces.len() {
        0 => ByteStream::from(Bytes::new()),
        1 => ByteStream::from(pieces.swap_remove(0)),
        _ => ByteStream::from(Bytes::from(pieces.concat())),
    }
}
