//! Received bytes that have not been used yet: both sides read frames through this.

use std::io;
use std::os::fd::OwnedFd;

use crate::patience::Patience;
use crate::socket::Socket;

/// Room of a buffer that holds ordinary frames.
const ROOM: usize = 64 << 10;

/// A buffer before a socket.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Incoming {
    /// What is there.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Uses up `count` bytes.
    ///
    /// # Panics
    /// If there are fewer.
    pub(crate) fn consume(&mut self, count: usize) {
        assert!(count <= self.end - self.start);
        self.start += count;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            // One large head must not be paid for by the connection's whole life.
            if self.buffer.len() > ROOM {
                self.buffer.truncate(ROOM);
                self.buffer.shrink_to_fit();
            }
        }
    }

    /// Makes room for `wanted` bytes in all.
    fn make_room(&mut self, wanted: usize) {
        let room = wanted.max(ROOM);
        if self.buffer.len() < room {
            self.buffer.resize(room, 0);
        }
        if self.buffer.len() - self.start < wanted || self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
    }

    /// Receives once; makes room for `wanted` bytes in all. Returns 0 at the end of the stream.
    pub(crate) fn receive(
        &mut self,
        socket: &Socket,
        wanted: usize,
        patience: &mut Patience,
    ) -> io::Result<usize> {
        self.make_room(wanted);
        let count = socket.receive_soon(&mut self.buffer[self.end..], patience)?;
        self.end += count;
        Ok(count)
    }

    /// The same on a Unix socket, with the file that comes with the bytes, if one does.
    pub(crate) fn receive_with_file(
        &mut self,
        socket: &Socket,
        wanted: usize,
        patience: &mut Patience,
    ) -> io::Result<(usize, Option<OwnedFd>)> {
        self.make_room(wanted);
        let (count, file) = socket.receive_with_file(&mut self.buffer[self.end..], patience)?;
        self.end += count;
        Ok((count, file))
    }

    /// Receives until there are `wanted` bytes.
    pub(crate) fn require(
        &mut self,
        socket: &Socket,
        wanted: usize,
        patience: &mut Patience,
    ) -> io::Result<()> {
        while self.end - self.start < wanted {
            if self.receive(socket, wanted, patience)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }

    /// Takes bytes that are there, as many as fit into `out`.
    pub(crate) fn take(&mut self, out: &mut [u8]) -> usize {
        let count = out.len().min(self.end - self.start);
        out[..count].copy_from_slice(&self.bytes()[..count]);
        self.consume(count);
        count
    }
}
