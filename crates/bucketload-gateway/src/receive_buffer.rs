//! A buffer of received bytes, from which both sides read frames.

use std::io;
use std::os::fd::OwnedFd;

use crate::busy_poll::BusyPoll;
use crate::socket::Socket;

/// Usual size of the buffer, bytes.
const USUAL_BYTES: usize = 64 << 10;

/// Received bytes that have not been consumed yet.
#[derive(Debug, Default)]
pub(crate) struct ReceiveBuffer {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl ReceiveBuffer {
    /// The bytes that have not been consumed.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Drops the first `count` bytes.
    ///
    /// # Panics
    /// If the buffer holds fewer.
    pub(crate) fn consume(&mut self, count: usize) {
        assert!(count <= self.end - self.start);
        self.start += count;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            // Releases the memory of a large head.
            if self.buffer.len() > USUAL_BYTES {
                self.buffer.truncate(USUAL_BYTES);
                self.buffer.shrink_to_fit();
            }
        }
    }

    /// Makes room for `wanted` unconsumed bytes.
    fn make_room(&mut self, wanted: usize) {
        let room = wanted.max(USUAL_BYTES);
        if self.buffer.len() < room {
            self.buffer.resize(room, 0);
        }
        if self.buffer.len() - self.start < wanted || self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
    }

    /// Receives once, with room for `wanted` unconsumed bytes. Returns 0 at the end of the stream.
    pub(crate) fn receive(
        &mut self,
        socket: &Socket,
        wanted: usize,
        busy_poll: &mut BusyPoll,
    ) -> io::Result<usize> {
        self.make_room(wanted);
        let count = socket.receive_soon(&mut self.buffer[self.end..], busy_poll)?;
        self.end += count;
        Ok(count)
    }

    /// Like [`receive`](Self::receive), on a Unix socket; also returns a file sent with the bytes.
    pub(crate) fn receive_with_file(
        &mut self,
        socket: &Socket,
        wanted: usize,
        busy_poll: &mut BusyPoll,
    ) -> io::Result<(usize, Option<OwnedFd>)> {
        self.make_room(wanted);
        let (count, file) = socket.receive_with_file(&mut self.buffer[self.end..], busy_poll)?;
        self.end += count;
        Ok((count, file))
    }

    /// Receives until the buffer holds `wanted` bytes.
    pub(crate) fn require(
        &mut self,
        socket: &Socket,
        wanted: usize,
        busy_poll: &mut BusyPoll,
    ) -> io::Result<()> {
        while self.end - self.start < wanted {
            if self.receive(socket, wanted, busy_poll)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }

    /// Moves bytes to `out`, as many as there are and fit.
    pub(crate) fn take(&mut self, out: &mut [u8]) -> usize {
        let count = out.len().min(self.end - self.start);
        out[..count].copy_from_slice(&self.bytes()[..count]);
        self.consume(count);
        count
    }
}
