//! Integrity trailers of works on named objects (`hashCheck` of COSBench workloads): a checksum at the end of each
//! object that is written, against which reads are checked.
//!
//! The checksum of a write is computed before the request begins. That of a read is computed as the body arrives, as
//! COSBench does. There is nothing else to compare with, since anybody may have written the object.

use std::cell::RefCell;

use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::Watch;
use bucketload_core::payload::Content;
use bucketload_core::payload::trailer::{TRAILER_LEN, Trailer, TrailerCheck, TrailerStatus};

/// A worker's trailers.
#[derive(Default)]
pub(crate) struct TrailerWatch {
    /// The trailer of the object being written; `None` if the object is too short for one.
    written: Option<Trailer>,
    read: RefCell<TrailerCheck>,
}

impl TrailerWatch {
    /// Computes the trailer of `content`, which is about to be written.
    pub(crate) fn prepare(&mut self, content: &Content<'_>) {
        self.written = content.trailer();
    }

    /// `content` with the trailer that [`Self::prepare`] computed.
    pub(crate) const fn append<'a>(&'a self, content: Content<'a>) -> Content<'a> {
        match &self.written {
            Some(trailer) => content.with_trailer(trailer),
            None => content,
        }
    }

    /// A read begins.
    pub(crate) fn restart(&self) {
        let _ = self.read.borrow_mut().finish();
    }

    /// Checks a successful read of `bytes` bytes.
    pub(crate) fn judge(&self, bytes: u64) -> TrailerVerdict {
        match self.read.borrow_mut().finish() {
            TrailerStatus::Valid => TrailerVerdict::Right,
            TrailerStatus::None if bytes > TRAILER_LEN as u64 => TrailerVerdict::Without,
            // Too short to have one.
            TrailerStatus::None => TrailerVerdict::Right,
            TrailerStatus::Invalid => TrailerVerdict::Wrong(OpError::new(
                ErrorKind::Corrupt,
                "the object is not what the checksum at its end says (hashCheck)",
            )),
        }
    }
}

/// Result of checking a read.
pub(crate) enum TrailerVerdict {
    /// Nothing is wrong.
    Right,
    /// The object has no trailer, so nothing can be said.
    Without,
    /// The object is damaged.
    Wrong(OpError),
}

impl Watch for TrailerWatch {
    fn body(&self, bytes: &[u8]) {
        self.read.borrow_mut().feed(bytes);
    }

    fn listed(&self, _key: &str) {}

    fn cut_short(&self) {}
}
