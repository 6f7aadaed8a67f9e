//! The protocol: handshake and frames.
//!
//! ```text
//! client: magic 8 | version u16 | 6 zero bytes             server: magic 8 | version u16 | verdict u8 | 5 zero bytes
//!                                                                  | challenge 32
//! client, if the verdict demands it: proof 32              server: verdict u8
//! then frames:   head length u32 | kind u8 | core u16 | zero u8 | sequence u32 | body length u64 | head | body
//! ```
//!
//! All numbers are little-endian. The kind of a request is its operation, the kind of an answer its outcome. An answer
//! has the sequence number of its request, and answers come in the order of requests. The head holds the arguments
//! (`request`) or results (`values`, `error`), the body the bytes of an object. A client on the server's host sends
//! the number of its core plus one in `core`; otherwise, and in answers, `core` is 0.
//!
//! `GetSmall` is a `Get` that returns at most 64 KiB: for a longer body, the answer has only the length. A client that
//! sends several requests before it reads thus knows how much may arrive.
//!
//! On a Unix socket a client may ask for files instead of bytes (passed with `SCM_RIGHTS` at the first byte of the
//! answer), so the bytes do not cross the socket:
//!
//! - `GetFile` is a `Get` that may return the object's file, opened for reading, instead of a body. The head says at
//!   which offset of the file the requested bytes begin. Small objects, and those of a store without files, still
//!   come as the body.
//! - `PutFile` asks for the file of a new object, opened for writing; the answer says whether there is one. The
//!   client writes all bytes to it, closes it, and sends `CommitFile`, which makes the object visible if the file has
//!   the announced size, or `DropFile`. No other request may come in between, and the end of the connection drops
//!   the file.

pub(crate) mod codec;
pub(crate) mod error;
pub(crate) mod request;
pub(crate) mod values;

use bucketload_store::ObjectInfo;
use codec::Malformed;

/// Protocol version; both sides must have the same version.
pub const PROTOCOL_VERSION: u16 = 5;

/// Maximum length of a request head, bytes: a completion that names 10,000 parts with a checksum each.
pub const MAX_REQUEST_HEAD_BYTES: u32 = 1 << 20;

/// Maximum length of an answer head, bytes: a page of 1,000 keys of maximum length.
pub const MAX_REPLY_HEAD_BYTES: u32 = 4 << 20;

/// Maximum length of the body of a `GetSmall` answer, bytes.
pub(crate) const SMALL_BODY: u64 = 64 << 10;

/// Maximum number of entries in a page of a listing, whatever the client asks for.
pub const MAX_PAGE: usize = 1000;

/// The first bytes from both sides.
pub(crate) const MAGIC: [u8; 8] = *b"BKTLGWAY";

/// Length of a greeting, bytes.
pub(crate) const HELLO_BYTES: usize = 16;

/// Length of a frame header, bytes.
pub(crate) const HEADER_BYTES: usize = 20;

/// How the server answers a connection attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Verdict {
    Welcome = 0,
    /// The client must send a proof of the token.
    ProveToken = 1,
    WrongVersion = 2,
    WrongToken = 3,
    /// The server has reached its maximum number of connections.
    Full = 4,
}

impl Verdict {
    pub(crate) const fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::Welcome,
            1 => Self::ProveToken,
            2 => Self::WrongVersion,
            3 => Self::WrongToken,
            4 => Self::Full,
            _ => return None,
        })
    }
}

/// A greeting. Clients send 0 as the verdict.
pub(crate) fn hello(version: u16, verdict: u8) -> [u8; HELLO_BYTES] {
    let mut bytes = [0; HELLO_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..10].copy_from_slice(&version.to_le_bytes());
    bytes[10] = verdict;
    bytes
}

/// Version and verdict of a greeting; `None` if the bytes are not a greeting.
pub(crate) fn read_hello(bytes: &[u8; HELLO_BYTES]) -> Option<(u16, u8)> {
    let blank = bytes[11..].iter().all(|b| *b == 0);
    (bytes[..8] == MAGIC && blank).then(|| (u16::from_le_bytes([bytes[8], bytes[9]]), bytes[10]))
}

/// The outcome of a request: the kind of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Outcome {
    Done = 0,
    /// The head is an error of the store.
    Failed = 1,
    /// A conditional read: the client has the object already.
    NotModified = 2,
    /// The request was malformed; the head says how, and the server closes the connection.
    Refused = 3,
}

impl Outcome {
    pub(crate) const fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::Done,
            1 => Self::Failed,
            2 => Self::NotModified,
            3 => Self::Refused,
            _ => return None,
        })
    }
}

/// Head of a GET answer: the object, and the offset of the first byte that follows.
pub(crate) type GetHead = (ObjectInfo, u64);

/// Head of an answer to `GetFile` or `GetSmall`: the length of the bytes left out of the body; `None` if the body has them.
pub(crate) type GetFileHead = (GetHead, Option<u64>);

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Length of the head in bytes.
    pub(crate) head: u32,
    pub(crate) kind: u8,
    /// The sender's core plus one; 0 if unknown or on another host.
    pub(crate) core: u16,
    pub(crate) sequence: u32,
    /// Length of the body in bytes.
    pub(crate) body: u64,
}

impl Header {
    pub(crate) fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&self.head.to_le_bytes());
        bytes[4] = self.kind;
        bytes[5..7].copy_from_slice(&self.core.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[12..].copy_from_slice(&self.body.to_le_bytes());
        bytes
    }

    /// Decodes a header; `limit` is the maximum length of the head.
    pub(crate) fn decode(bytes: &[u8; HEADER_BYTES], limit: u32) -> Result<Self, Malformed> {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        if bytes[7] != 0 {
            return Err(Malformed("the reserved byte of a frame is not zero"));
        }
        if word(0) > limit {
            return Err(Malformed("the head of a frame is longer than allowed"));
        }
        Ok(Self {
            head: word(0),
            kind: bytes[4],
            core: u16::from_le_bytes([bytes[5], bytes[6]]),
            sequence: word(8),
            body: u64::from(word(12)) | u64::from(word(16)) << 32,
        })
    }
}

/// Appends a frame's header and head to `out`. `head` writes the head; its length is filled in here.
pub(crate) fn push_frame(out: &mut Vec<u8>, header: Header, head: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    head(out);
    let header = Header {
        head: u32::try_from(out.len() - at - HEADER_BYTES).expect("heads are far below 4 GiB"),
        ..header
    };
    out[at..at + HEADER_BYTES].copy_from_slice(&header.encode());
}

#[cfg(test)]
mod tests {
    use super::{Header, hello, push_frame, read_hello};

    #[test]
    fn greetings_and_headers_round_trip() {
        assert_eq!(read_hello(&hello(3, 1)), Some((3, 1)));
        for at in [0, 7, 11, 15] {
            let mut wrong = hello(3, 1);
            wrong[at] ^= 1;
            assert_eq!(read_hello(&wrong), None, "byte {at}");
        }
        let header = Header {
            head: 7,
            kind: 5,
            core: 0x0506,
            sequence: 0x0102_0304,
            body: 1 << 40 | 9,
        };
        assert_eq!(Header::decode(&header.encode(), 7), Ok(header));
        assert!(Header::decode(&header.encode(), 6).is_err());
        let mut wrong = header.encode();
        wrong[7] = 1;
        assert!(Header::decode(&wrong, 7).is_err());
        let mut out = vec![9];
        push_frame(&mut out, Header { head: 0, ..header }, |out| {
            out.extend([1; 7])
        });
        assert_eq!(out[1..21], header.encode());
        assert_eq!(out[21..], [1; 7]);
    }
}
