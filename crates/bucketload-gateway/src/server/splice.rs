//! Moves bytes from a socket to a file through a pipe with `splice(2)`, without a copy to this process and back.
//!
//! Measured on loopback with files on tmpfs, this saves the server 15 to 30 % of its time per byte on TCP, where the
//! pipe takes over the packets as they are. It saves nothing on Unix sockets, so those are not spliced.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};

use bucketload_store::Result;

use crate::protocol::error::write_error;

/// Capacity of the pipe, bytes: by default the maximum of an unprivileged process
/// (`/proc/sys/fs/pipe-max-size`).
const PIPE_BYTES: i32 = 1 << 20;

/// A pipe between a socket and files.
#[derive(Debug)]
pub(super) struct Splice {
    reader: PipeReader,
    writer: PipeWriter,
}

/// The result of one step.
pub(super) struct Spliced {
    /// Bytes taken from the socket.
    pub(super) taken: u64,
    /// Whether all of them reached the file. If not, the pipe holds the rest and must be dropped.
    pub(super) stored: Result<()>,
}

impl Splice {
    pub(super) fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        // SAFETY: only integers are passed, for our own descriptor. On failure the default of 64 KiB remains.
        unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE_BYTES) };
        Ok(Self { reader, writer })
    }

    /// Moves the next bytes of `socket`, at least one and at most `max`, to the position of `file`.
    ///
    /// # Errors
    /// When the socket fails. 0 bytes mean the end of the stream.
    pub(super) fn step(
        &self,
        socket: BorrowedFd<'_>,
        file: BorrowedFd<'_>,
        max: u64,
    ) -> io::Result<Spliced> {
        let taken = splice(socket, self.writer.as_fd(), max)?;
        let mut left = taken;
        while left > 0 {
            match splice(self.reader.as_fd(), file, left) {
                Ok(0) => {
                    let source = io::ErrorKind::WriteZero.into();
                    return Ok(failed(taken, source));
                }
                Ok(count) => left -= count,
                Err(source) => return Ok(failed(taken, source)),
            }
        }
        Ok(Spliced {
            taken,
            stored: Ok(()),
        })
    }
}

fn failed(taken: u64, source: io::Error) -> Spliced {
    Spliced {
        taken,
        stored: Err(write_error(source)),
    }
}

fn splice(from: BorrowedFd<'_>, to: BorrowedFd<'_>, max: u64) -> io::Result<u64> {
    let max = usize::try_from(max)
        .unwrap_or(usize::MAX)
        .min(PIPE_BYTES as usize);
    loop {
        // SAFETY: the descriptors stay open during the call; there are no offsets and no flags.
        let count = unsafe {
            libc::splice(
                from.as_raw_fd(),
                std::ptr::null_mut(),
                to.as_raw_fd(),
                std::ptr::null_mut(),
                max,
                0,
            )
        };
        match u64::try_from(count) {
            Ok(count) => return Ok(count),
            Err(_) => {
                let error = io::Error::last_os_error();
                match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    // The socket timeout.
                    io::ErrorKind::WouldBlock => return Err(io::ErrorKind::TimedOut.into()),
                    _ => return Err(error),
                }
            }
        }
    }
}
