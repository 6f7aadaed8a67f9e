//! The bytes of an object, received piece by piece.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::time::Instant;

use bucketload_store::{ObjectInfo, StoreError};

use super::error::{Error, Result};
use super::pool::Lease;

/// The source of the bytes.
#[derive(Debug)]
pub(super) enum Source {
    Connection(Lease),
    /// The object's file, received over a Unix socket, and the deadline of the call.
    File(File, Option<Instant>),
    /// All bytes have been received, or the download has failed.
    Finished,
}

/// An object being received. It holds a connection, which is closed if the download is dropped before its end, or,
/// over a Unix socket, the object's file.
#[derive(Debug)]
pub struct Download {
    source: Source,
    info: ObjectInfo,
    start: u64,
    length: u64,
    left: u64,
}

impl Download {
    pub(super) fn new(source: Source, info: ObjectInfo, start: u64, length: u64) -> Self {
        Self {
            source: match length {
                0 => Source::Finished,
                _ => source,
            },
            info,
            start,
            length,
            left: length,
        }
    }

    /// The object; its size is that of the whole object.
    #[must_use]
    pub const fn info(&self) -> &ObjectInfo {
        &self.info
    }

    /// Offset of the first received byte in the object.
    #[must_use]
    pub const fn start(&self) -> u64 {
        self.start
    }

    /// Total number of bytes of the download.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// Number of bytes not received yet.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Receives the next bytes, up to the length of `out`. Returns 0 only after the last byte, or if `out` is empty.
    ///
    /// # Errors
    /// [`Error::Lost`], [`Error::TimedOut`], or [`Error::Store`] when the object's file cannot be read. The download has ended then.
    pub fn receive(&mut self, out: &mut [u8]) -> Result<usize> {
        let max = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(out.len());
        if max == 0 {
            return Ok(0);
        }
        let at = self.start + self.length - self.left;
        let received = match &mut self.source {
            Source::Connection(lease) => lease.read_body(out, self.left).and_then(|count| {
                if count as u64 == self.left {
                    lease.set_low_water(false)?;
                }
                Ok(count)
            }),
            Source::File(file, deadline) => read_file(file, *deadline, &mut out[..max], at),
            Source::Finished => Err(Error::Lost(io::ErrorKind::NotConnected.into())),
        };
        match received {
            Ok(count) => {
                self.left -= count as u64;
                if self.left == 0 {
                    self.source = Source::Finished;
                }
                Ok(count)
            }
            Err(error) => {
                self.give_up();
                Err(error)
            }
        }
    }

    fn give_up(&mut self) {
        if let Source::Connection(lease) = &mut self.source {
            lease.close();
        }
        self.source = Source::Finished;
    }
}

/// Reads from an object's file.
fn read_file(file: &File, deadline: Option<Instant>, out: &mut [u8], at: u64) -> Result<usize> {
    if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
        return Err(Error::TimedOut);
    }
    let failed = |source| {
        Error::Store(StoreError::Io {
            context: "reading an object",
            source,
        })
    };
    loop {
        match file.read_at(out, at) {
            // The file was truncated meanwhile.
            Ok(0) => return Err(failed(io::ErrorKind::UnexpectedEof.into())),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result.map_err(failed),
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
        self.give_up();
    }
}
