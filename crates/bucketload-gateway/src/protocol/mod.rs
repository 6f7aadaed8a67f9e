//! The protocol: what is said at the beginning of a connection, and frames.
//!
//! ```text
//! client: magic 8 | version u16 | 6 zero bytes             server: magic 8 | version u16 | verdict u8 | 5 zero bytes
//!                                                                  | challenge 32
//! client, if the verdict demands it: proof 32              server: verdict u8
//! then frames:   head length u32 | kind u8 | core u16 | zero u8 | sequence u32 | body length u64 | head | body
//! ```
//!
//! All numbers are little-endian. A request's kind says what is asked for, an answer's kind how it ended; the answer
//! has the sequence number of its request, and answers come in the order of requests. The head holds the
//! arguments (`request`) or results (`values`, `error`), the body the bytes of an object. A client on the server's host
//! says with its requests which core it runs on, plus one; otherwise, and in answers, that is 0.
//!
//! `GetSmall` is `Get` whose answer has no body if that would be longer than 64 KiB, but says how long it would be: so
//! a client that sends several requests before it reads knows how much may come.
//!
//! On a Unix socket a client may ask for files instead of bytes, which then do not cross the socket (`SCM_RIGHTS`
//! with the first byte of the answer):
//!
//! - `GetFile` is `Get` whose answer may have no body but the object's file, opened for reading: the bytes that are
//!   asked for lie in it from the offset on that the head says. Small objects, and those of a store without files,
//!   come as the body as ever.
//! - `PutFile` asks for the file of a new object, opened for writing; the answer says whether there is one. The
//!   client writes all bytes to it, closes it, and sends `CommitFile`, which makes the object visible if the file has
//!   the size that was announced, or `DropFile`. Nothing else may be asked for in between, and a connection that
//!   ends drops the file.

pub(crate) mod codec;
pub(crate) mod error;
pub(crate) mod request;
pub(crate) mod values;

use bucketload_store::ObjectInfo;
use codec::Malformed;

/// Version of the protocol; both sides must have the same.
pub const PROTOCOL_VERSION: u16 = 5;

/// Longest head of a request in bytes: a completion that names 10,000 parts with a checksum each.
pub const MAX_REQUEST_HEAD_BYTES: u32 = 1 << 20;

/// Longest head of an answer in bytes: a page of 1,000 of the longest keys.
pub const MAX_REPLY_HEAD_BYTES: u32 = 4 << 20;

/// Longest body of an answer to `GetSmall`, in bytes.
pub(crate) const SMALL_BODY: u64 = 64 << 10;

/// Most entries in one page of a listing, whatever was asked for.
pub const MAX_PAGE: usize = 1000;

/// What both sides begin with.
pub(crate) const MAGIC: [u8; 8] = *b"BKTLGWAY";

/// Bytes of the client's greeting.
pub(crate) const HELLO_BYTES: usize = 16;

/// Bytes of a frame before its head.
pub(crate) const HEADER_BYTES: usize = 20;

/// How the server takes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Verdict {
    Welcome = 0,
    /// A proof of the token must follow.
    ProveToken = 1,
    WrongVersion = 2,
    WrongToken = 3,
    /// There are as many connections as the server may have.
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

/// The first bytes of either side; the server's sixth-last byte is its verdict, the client's is zero.
pub(crate) fn hello(version: u16, verdict: u8) -> [u8; HELLO_BYTES] {
    let mut bytes = [0; HELLO_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..10].copy_from_slice(&version.to_le_bytes());
    bytes[10] = verdict;
    bytes
}

/// Version and verdict of a greeting; `None` if it is none.
pub(crate) fn read_hello(bytes: &[u8; HELLO_BYTES]) -> Option<(u16, u8)> {
    let blank = bytes[11..].iter().all(|b| *b == 0);
    (bytes[..8] == MAGIC && blank).then(|| (u16::from_le_bytes([bytes[8], bytes[9]]), bytes[10]))
}

/// How a request ended: the kind of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Outcome {
    Done = 0,
    /// The head is an error of the store.
    Failed = 1,
    /// A read under conditions: the client has the object already.
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

/// What a GET begins with: the object, and which of its bytes is the first that follows.
pub(crate) type Opening = (ObjectInfo, u64);

/// The same for a GET that may be answered by a file: so many bytes of it, or, if it is `None`, the body.
pub(crate) type FileOpening = (Opening, Option<u64>);

/// What a frame begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Length of the head in bytes.
    pub(crate) head: u32,
    pub(crate) kind: u8,
    /// The core that the sender runs on, plus one; 0 if that is unknown or of another host.
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

    /// Reads a header with a head of at most `limit` bytes.
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

/// Appends a frame's header and head to `out`; `head` writes the latter, whose length need not be in the header.
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
