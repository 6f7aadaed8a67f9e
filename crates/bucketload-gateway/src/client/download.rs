//! The bytes of an object as they come.

use std::io::{self, Read};

use bucketload_store::ObjectInfo;

use super::error::{Error, Result};
use super::pool::Lease;

/// An object that is being received. It has a connection to itself, which is closed if the download is dropped
/// before its end.
#[derive(Debug)]
pub struct Download {
    /// `None` when the last byte has come, or the connection has broken.
    lease: Option<Lease>,
    info: ObjectInfo,
    start: u64,
    length: u64,
    left: u64,
}

impl Download {
    pub(super) fn new(lease: Lease, info: ObjectInfo, start: u64, length: u64) -> Self {
        Self {
            lease: (length > 0).then_some(lease),
            info,
            start,
            length,
            left: length,
        }
    }

    /// The object: its size is that of the whole.
    #[must_use]
    pub const fn info(&self) -> &ObjectInfo {
        &self.info
    }

    /// Offset in the object of the first byte that comes.
    #[must_use]
    pub const fn start(&self) -> u64 {
        self.start
    }

    /// How many bytes come in all.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// How many are still to come.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Receives the next bytes, at most as many as fit into `out`; 0 only when all have come, or `out` has no room.
    ///
    /// # Errors
    /// [`Error::Lost`], [`Error::TimedOut`]; after one there is nothing more to come.
    pub fn receive(&mut self, out: &mut [u8]) -> Result<usize> {
        let most = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(out.len());
        if self.left == 0 || most == 0 {
            return Ok(0);
        }
        let Some(lease) = &mut self.lease else {
            return Err(Error::Lost(io::ErrorKind::NotConnected.into()));
        };
        match lease.read_body(&mut out[..most]) {
            Ok(count) => {
                self.left -= count as u64;
                if self.left == 0 {
                    self.lease = None;
                }
                Ok(count)
            }
            Err(error) => {
                lease.spoil();
                self.lease = None;
                Err(error)
            }
        }
    }
}

impl Read for Download {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.receive(out).map_err(|error| match error {
            Error::Lost(source) => source,
            Error::TimedOut => io::ErrorKind::TimedOut.into(),
            other => io::Error::other(other),
        })
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        if let Some(lease) = &mut self.lease {
            lease.spoil();
        }
    }
}
