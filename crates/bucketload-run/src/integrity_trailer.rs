//! Integrity trailers of works on named objects (`hashCheck` of COSBench workloads): what is written carries
//! one, what is read is judged by its own.
//!
//! The sum of what is written is taken before the request begins. That of what is read is taken as it
//! comes, as COSBench does: there is nothing else to compare with, since the object may be anybody's.

use std::cell::RefCell;

use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::Watch;
use bucketload_core::payload::Content;
use bucketload_core::payload::trailer::{TRAILER_LEN, Trailer, TrailerCheck, TrailerStatus};

/// A worker's trailers.
#[derive(Default)]
pub(crate) struct TrailerWatch {
    /// That of the object that is being written; `None` where it is too short for one.
    written: Option<Trailer>,
    read: RefCell<TrailerCheck>,
}

impl TrailerWatch {
    /// Makes the trailer of `content`, which is to be written.
    pub(crate) fn prepare(&mut self, content: &Content<'_>) {
        self.written = content.trailer();
    }

    /// `content` with the trailer that was made of it.
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

    /// Judges a read of `bytes` bytes that has succeeded.
    pub(crate) fn judge(&self, bytes: u64) -> Judged {
        match self.read.borrow_mut().finish() {
            TrailerStatus::Valid => Judged::Right,
            TrailerStatus::None if bytes > TRAILER_LEN as u64 => Judged::Without,
            // Too short to have one.
            TrailerStatus::None => Judged::Right,
            TrailerStatus::Invalid => Judged::Wrong(OpError::new(
                ErrorKind::Corrupt,
                "the object is not what the checksum at its end says (hashCheck)",
            )),
        }
    }
}

/// What became of a read.
pub(crate) enum Judged {
    /// Nothing is wrong.
    Right,
    /// The object has no trailer, so nothing is known.
    Without,
    /// It has been damaged.
    Wrong(OpError),
}

impl Watch for TrailerWatch {
    fn body(&self, bytes: &[u8]) {
        self.read.borrow_mut().feed(bytes);
    }

    fn listed(&self, _key: &str) {}

    fn cut_short(&self) {}
}
