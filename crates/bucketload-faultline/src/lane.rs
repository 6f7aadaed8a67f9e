//! One direction of a connection: what was read and is not yet written, and when it may be.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

/// Most bytes that wait in a lane. A lane that holds more stops reading, so the sender feels the window.
pub(crate) const MOST: usize = 1 << 20;

/// A socket and what the kernel said about it since it last had nothing more to say.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) socket: TcpStream,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// Whether the peer has finished: reads go on until they find the end.
    pub(crate) finished: bool,
}

impl End {
    pub(crate) const fn new(socket: TcpStream) -> Self {
        Self {
            socket,
            readable: false,
            writable: false,
            finished: false,
        }
    }

    /// Reads into `buffer`: `None` if nothing is there now, 0 at the end.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Broken> {
        if !self.readable {
            return Ok(None);
        }
        match self.socket.read(buffer) {
            Ok(n) => {
                // A short read empties the socket; the kernel reports what comes later.
                self.readable = n == buffer.len() || self.finished;
                Ok(Some(n))
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                self.readable = false;
                Ok(None)
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => Ok(None),
            Err(_) => Err(Broken),
        }
    }

    /// Writes what fits now.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        if !self.writable {
            return Ok(0);
        }
        match self.socket.write(bytes) {
            Ok(n) => {
                self.writable = n == bytes.len();
                Ok(n)
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                self.writable = false;
                Ok(0)
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => Ok(0),
            Err(_) => Err(Broken),
        }
    }
}

/// The connection was reset by one side.
#[derive(Debug)]
pub(crate) struct Broken;

#[derive(Debug)]
struct Chunk {
    due: u64,
    bytes: Vec<u8>,
    at: usize,
}

/// How a lane writes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shape {
    /// Bytes per second; 0 = no limit.
    pub(crate) rate: u64,
    /// Largest piece and the pause after it; 0 = no pieces.
    pub(crate) slice: (u64, u64),
}

/// One direction of a connection.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    queue: VecDeque<Chunk>,
    queued: usize,
    last_due: u64,
    /// Nothing is written before.
    gate: u64,
    /// When the end of the source may be passed on; `None` while it goes on.
    pub(crate) end_at: Option<u64>,
    /// Whether the end was passed on.
    pub(crate) shut: bool,
    /// Chunks read so far, for draws.
    pub(crate) chunks: u64,
}

impl Lane {
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.queued >= MOST
    }

    /// Adds bytes that may be written from `due` on, after all bytes before them.
    pub(crate) fn push(&mut self, bytes: Vec<u8>, due: u64) {
        if bytes.is_empty() {
            return;
        }
        self.last_due = self.last_due.max(due);
        self.queued += bytes.len();
        self.queue.push_back(Chunk {
            due: self.last_due,
            bytes,
            at: 0,
        });
    }

    /// Writes what is due to `to`, at most `budget` bytes. Returns their number and when to come back (`u64::MAX`: when the
    /// kernel says so).
    pub(crate) fn flush(
        &mut self,
        to: &mut End,
        shape: Shape,
        budget: u64,
        now: u64,
    ) -> Result<(u64, u64), Broken> {
        let mut written = 0;
        while let Some(chunk) = self.queue.front_mut() {
            if chunk.due.max(self.gate) > now {
                return Ok((written, chunk.due.max(self.gate)));
            }
            let mut piece = (chunk.bytes.len() - chunk.at) as u64;
            if shape.slice.0 > 0 {
                piece = piece.min(shape.slice.0);
            }
            if shape.rate > 0 {
                // What the rate allows in 10 ms.
                piece = piece.min((shape.rate / 100).max(1));
            }
            piece = piece.min(budget - written);
            // At most the length of the chunk.
            let n = to.write(&chunk.bytes[chunk.at..chunk.at + piece as usize])?;
            if n == 0 {
                break;
            }
            chunk.at += n;
            self.queued -= n;
            written += n as u64;
            if chunk.at == chunk.bytes.len() {
                self.queue.pop_front();
            }
            if shape.rate > 0 {
                let took = (n as f64 * 1e9 / shape.rate as f64) as u64;
                self.gate = self.gate.max(now) + took;
            }
            if shape.slice.0 > 0 {
                self.gate = self.gate.max(now) + shape.slice.1;
            }
        }
        Ok((written, u64::MAX))
    }

    /// Passes the end of the source on once everything is written and it is due. Returns when to come back.
    pub(crate) fn finish(&mut self, to: &End, now: u64) -> u64 {
        match self.end_at {
            Some(at) if !self.shut && self.queue.is_empty() => {
                if at > now {
                    return at;
                }
                // Fails if the other side is gone already.
                let _ = to.socket.shutdown(Shutdown::Write);
                self.shut = true;
                u64::MAX
            }
            _ => u64::MAX,
        }
    }
}
