//! Answers on their way out: gathered while further requests are there already, sent before any wait.

use std::io;
use std::os::fd::BorrowedFd;

use bucketload_store::StoreError;

use crate::protocol::codec::Value as _;
use crate::protocol::{HEADER_BYTES, Header, MAX_REPLY_HEAD_BYTES, Outcome, push_frame};
use crate::socket::Socket;

/// Gathered bytes from which on they are sent.
const FULL: usize = 64 << 10;

/// A buffer behind a socket.
#[derive(Debug, Default)]
pub(super) struct Output {
    buffer: Vec<u8>,
}

impl Output {
    /// Appends an answer with a body of `body` bytes, which must follow.
    pub(super) fn push(
        &mut self,
        outcome: Outcome,
        sequence: u32,
        body: u64,
        head: impl FnOnce(&mut Vec<u8>),
    ) {
        let before = self.buffer.len();
        let header = Header {
            head: 0,
            kind: outcome as u8,
            core: 0,
            sequence,
            body,
        };
        push_frame(&mut self.buffer, header, head);
        if self.buffer.len() - before > HEADER_BYTES + MAX_REPLY_HEAD_BYTES as usize {
            // Some 50,000 buckets: the client would refuse to read it.
            self.buffer.truncate(before);
            let problem = StoreError::NotImplemented("answers longer than 4 MiB");
            let failed = Header {
                kind: Outcome::Failed as u8,
                body: 0,
                ..header
            };
            push_frame(&mut self.buffer, failed, |out| problem.put(out));
        }
    }

    /// The buffer, to append a small body to.
    pub(super) const fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Sends what there is; `more` follows at once.
    pub(super) fn flush(&mut self, socket: &Socket, more: bool) -> io::Result<()> {
        socket.send(&self.buffer, more)?;
        self.buffer.clear();
        // A long listing must not be paid for by the connection's whole life.
        self.buffer.shrink_to(2 * FULL);
        Ok(())
    }

    /// The same, with a file for the first of its bytes. Nothing but the answer that has the file may be there.
    pub(super) fn flush_with_file(
        &mut self,
        socket: &Socket,
        file: BorrowedFd<'_>,
    ) -> io::Result<()> {
        socket.send_with_file(&self.buffer, file)?;
        self.buffer.clear();
        Ok(())
    }

    /// Whether it should be sent although more may be gathered.
    pub(super) const fn is_full(&self) -> bool {
        self.buffer.len() >= FULL
    }
}
