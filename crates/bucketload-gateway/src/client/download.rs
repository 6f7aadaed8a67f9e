//! The bytes of an object as they come.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::time::Instant;

use bucketload_store::{ObjectInfo, StoreError};

use super::error::{Error, Result};
use super::pool::Lease;

/// Where the bytes come from.
#[derive(Debug)]
enum From {
    Connection(Lease),
    /// The object's file, over a Unix socket, and the end of the call.
    File(File, Option<Instant>),
    /// The last byte has come, or the connection has broken.
    Nowhere,
}

/// An object that is being received. It has a connection to itself, which is closed if the download is dropped
/// before its end, or over a Unix socket the object's file.
#[derive(Debug)]
pub struct Download {
    from: From,
    info: ObjectInfo,
    start: u64,
    length: u64,
    left: u64,
}

impl Download {
    pub(super) fn new(lease: Lease, info: ObjectInfo, start: u64, length: u64) -> Self {
        let from = match length {
            0 => From::Nowhere,
            _ => From::Connection(lease),
        };
        Self::of(from, info, start, length)
    }

    /// A download from a file; `deadline` is the end of the call.
    pub(super) const fn of_file(
        file: File,
        deadline: Option<Instant>,
        info: ObjectInfo,
        start: u64,
        length: u64,
    ) -> Self {
        Self::of(From::File(file, deadline), info, start, length)
    }

    const fn of(from: From, info: ObjectInfo, start: u64, length: u64) -> Self {
        Self {
            from,
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
    /// [`Error::Lost`], [`Error::TimedOut`], [`Error::Store`] when the object's file cannot be read; after one there is nothing more to come.
    pub fn receive(&mut self, out: &mut [u8]) -> Result<usize> {
        let most = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(out.len());
        if most == 0 {
            return Ok(0);
        }
        let at = self.start + self.length - self.left;
        let received = match &mut self.from {
            From::Connection(lease) => lease.read_body(out, self.left).and_then(|count| {
                if count as u64 == self.left {
                    lease.set_low_water(false)?;
                }
                Ok(count)
            }),
            From::File(file, deadline) => read_file(file, *deadline, &mut out[..most], at),
            From::Nowhere => Err(Error::Lost(io::ErrorKind::NotConnected.into())),
        };
        match received {
            Ok(count) => {
                self.left -= count as u64;
                if self.left == 0 {
                    self.from = From::Nowhere;
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
        if let From::Connection(lease) = &mut self.from {
            lease.spoil();
        }
        self.from = From::Nowhere;
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
            // Somebody has cut the file.
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
