//! Bodies in `aws-chunked` coding (Amazon S3 API Reference, "Transferring payload in multiple
//! chunks" and "with trailing headers").
//!
//! The frames between the data are rendered before the timed start, so sending only walks two lists:
//!
//! ```text
//! frame 0 | data 0 | frame 1 | data 1 | … | last frame (size 0, trailer)
//! ```
//!
//! A frame begins with the line end of the preceding data.

use bucketload_core::payload::Segment;
use bucketload_s3::encode;
use bucketload_s3::sha256::sha256;
use bucketload_s3::sign::Signer;
use bucketload_s3::sigv4::{EMPTY_SHA256, Signature};

use super::checksum::Base64;
use super::config::{ChecksumAlgorithm, PayloadMode};
use crate::http::span::Span;

/// Smallest chunk, as in most SDKs; the protocol's minimum is 8 KiB.
const CHUNK: u64 = 64 * 1024;
/// Largest chunk. Servers buffer a chunk to check it, and MinIO refuses more than 16 MiB.
const MAX_CHUNK: u64 = 8 << 20;
/// Number of chunks to aim for with large objects, which bounds the memory for frames.
const CHUNKS: u64 = 1024;
const SIGNATURE: &[u8] = b";chunk-signature=";
const TRAILER_SIGNATURE: &[u8] = b"x-amz-trailer-signature:";
const END: &[u8] = b"\r\n";

/// How a body of a given length is divided into chunks and framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    len: u64,
    chunk: u64,
    signed: bool,
    trailer: Option<ChecksumAlgorithm>,
}

impl Layout {
    pub(crate) fn new(mode: PayloadMode, checksum: Option<ChecksumAlgorithm>, len: u64) -> Self {
        Self {
            len,
            chunk: chunk_of(len),
            signed: mode != PayloadMode::UnsignedTrailer,
            trailer: checksum.filter(|_| mode.has_trailer()),
        }
    }

    /// Bytes on the wire: data and frames.
    pub(crate) fn wire_len(&self) -> u64 {
        let signature = if self.signed {
            SIGNATURE.len() as u64 + 64
        } else {
            0
        };
        let line = |size: u64| u64::from(encode::hex_len(size)) + signature + 2;
        let full = self.len / self.chunk;
        let part = self.len % self.chunk;
        let mut total = self.len + full * (line(self.chunk) + 2);
        if part > 0 {
            total += line(part) + 2;
        }
        total += line(0) + 2;
        if let Some(algorithm) = self.trailer {
            total += (algorithm.header().len() + 1 + algorithm.encoded_len() + 2) as u64;
            if self.signed {
                total += TRAILER_SIGNATURE.len() as u64 + 64 + 2;
            }
        }
        total
    }

    /// Appends the SHA-256 of each chunk of `span` to `digests`.
    pub(crate) fn digest(&self, span: Span<'_>, digests: &mut Vec<u8>) {
        let mut at = 0;
        while at < self.len {
            let len = self.chunk.min(self.len - at);
            let offset = span.offset + at;
            digests.extend_from_slice(
                &Span {
                    offset,
                    len,
                    ..span
                }
                .sha256(),
            );
            at += len;
        }
    }

    /// Renders the frames into `out`, each preceded by its length in two bytes. Signed chunks need `digests` (see
    /// [`Layout::digest`]), the signer, and the signature of the head.
    pub(crate) fn render(
        &self,
        out: &mut Vec<u8>,
        digests: &[u8],
        checksum: Option<&Base64>,
        signing: Option<(&Signer, Signature)>,
    ) {
        out.clear();
        let mut chain = signing.filter(|_| self.signed);
        let mut digests = digests.as_chunks::<32>().0.iter();
        let mut at = 0;
        loop {
            let size = self.chunk.min(self.len - at);
            let start = begin_frame(out);
            if at > 0 {
                out.extend_from_slice(END);
            }
            encode::push_hex(out, size);
            if let Some((signer, previous)) = &mut chain {
                // Every chunk has a digest except the last, which is empty.
                let digest = digests.next().copied().unwrap_or_else(|| sha256(b""));
                *previous = encode::hex32(&signer.signing().chunk(previous, &digest));
                out.extend_from_slice(SIGNATURE);
                out.extend_from_slice(previous);
            }
            out.extend_from_slice(END);
            if size == 0 {
                self.push_trailer(out, checksum, &chain);
                out.extend_from_slice(END);
                end_frame(out, start);
                return;
            }
            end_frame(out, start);
            at += size;
        }
    }

    fn push_trailer(
        &self,
        out: &mut Vec<u8>,
        checksum: Option<&Base64>,
        chain: &Option<(&Signer, Signature)>,
    ) {
        let (Some(algorithm), Some(checksum)) = (self.trailer, checksum) else {
            return;
        };
        let from = out.len();
        out.extend_from_slice(algorithm.header().as_bytes());
        out.push(b':');
        out.extend_from_slice(checksum.as_bytes());
        if let Some((signer, previous)) = chain {
            // The signed text ends with a single line feed.
            out.push(b'\n');
            let digest = sha256(&out[from..]);
            out.pop();
            out.extend_from_slice(END);
            out.extend_from_slice(TRAILER_SIGNATURE);
            let signature = signer.signing().trailer(previous, &digest);
            out.extend_from_slice(&encode::hex32(&signature));
        }
        out.extend_from_slice(END);
    }
}

/// Data bytes per chunk, except the last one, of a body with `len` data bytes.
fn chunk_of(len: u64) -> u64 {
    let chunk = len.div_ceil(CHUNKS).next_multiple_of(CHUNK);
    chunk.clamp(CHUNK, MAX_CHUNK)
}

fn begin_frame(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[0, 0]);
    out.len()
}

fn end_frame(out: &mut [u8], start: usize) {
    // A frame is at most a few hundred bytes long.
    let len = (out.len() - start) as u16;
    out[start - 2..start].copy_from_slice(&len.to_le_bytes());
}

/// A contiguous piece of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Piece<'a> {
    Frame(&'a [u8]),
    Content(Segment<'a>),
}

impl AsRef<[u8]> for Piece<'_> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Frame(bytes) => bytes,
            Self::Content(segment) => segment.as_bytes(),
        }
    }
}

/// Walks a framed body piece by piece.
pub(crate) struct BodyPieces<'a> {
    span: Span<'a>,
    chunk: u64,
    frames: &'a [u8],
    /// Data bytes returned so far.
    done: u64,
    /// Data bytes left in the current chunk.
    left: u64,
}

impl<'a> BodyPieces<'a> {
    /// Walks `span` with the frames that [`Layout::render`] wrote.
    pub(crate) fn new(span: Span<'a>, frames: &'a [u8]) -> Self {
        Self {
            span,
            chunk: chunk_of(span.len),
            frames,
            done: 0,
            left: 0,
        }
    }

    /// Bytes on the wire: data and frames, without the stored lengths of the frames. Only valid before the first
    /// [`Self::next`].
    pub(crate) fn wire_len(&self) -> u64 {
        let frames = self.span.len.div_ceil(self.chunk) + 1;
        self.span.len + self.frames.len() as u64 - 2 * frames
    }

    /// The next piece, with at most `max` data bytes; empty at the end.
    pub(crate) fn next(&mut self, max: usize) -> Piece<'a> {
        if self.left == 0 {
            let Some((len, rest)) = self.frames.split_first_chunk::<2>() else {
                return Piece::Frame(&[]);
            };
            let (frame, rest) = rest.split_at(usize::from(u16::from_le_bytes(*len)));
            self.frames = rest;
            self.left = self.chunk.min(self.span.len - self.done);
            return Piece::Frame(frame);
        }
        let max = max.min(usize::try_from(self.left).unwrap_or(max));
        let segment = self.span.content.segment(self.span.offset + self.done, max);
        let len = segment.as_bytes().len() as u64;
        self.done += len;
        self.left -= len;
        Piece::Content(segment)
    }
}

/// Value of `x-amz-content-sha256` for chunked modes.
pub(crate) const fn marker(mode: PayloadMode) -> &'static [u8] {
    match mode {
        PayloadMode::Unsigned => b"UNSIGNED-PAYLOAD",
        PayloadMode::Signed => EMPTY_SHA256,
        PayloadMode::Streaming => b"STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
        PayloadMode::StreamingTrailer => b"STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
        PayloadMode::UnsignedTrailer => b"STREAMING-UNSIGNED-PAYLOAD-TRAILER",
    }
}

#[cfg(test)]
#[path = "chunked_tests.rs"]
mod tests;
