//! Outgoing answers, gathered while more requests are buffered, and sent before any wait.

use std::io;
use std::os::fd::BorrowedFd;

use bucketload_store::StoreError;

use crate::protocol::codec::Value as _;
use crate::protocol::{HEADER_BYTES, Header, MAX_REPLY_HEAD_BYTES, Outcome, push_frame};
use crate::socket::Socket;

/// Buffered bytes at which the answers are sent.
const FULL_BYTES: usize = 64 << 10;

/// Answers that have not been sent yet.
#[derive(Debug, Default)]
pub(super) struct ReplyBuffer {
    buffer: Vec<u8>,
}

impl ReplyBuffer {
    /// Appends an answer. If `body` is not 0, that many bytes must follow.
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
            // A list of some 50,000 buckets: the client would reject it.
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

    /// Sends the buffer; `more` says that more data follows at once.
    pub(super) fn flush(&mut self, socket: &Socket, more: bool) -> io::Result<()> {
        socket.send(&self.buffer, more)?;
        self.buffer.clear();
        // Releases the memory of a long listing.
        self.buffer.shrink_to(2 * FULL_BYTES);
        Ok(())
    }

    /// Sends the buffer with a file attached. The buffer must hold only the answer to which the file belongs.
    pub(super) fn flush_with_file(
        &mut self,
        socket: &Socket,
        file: BorrowedFd<'_>,
    ) -> io::Result<()> {
        socket.send_with_file(&self.buffer, file)?;
        self.buffer.clear();
        Ok(())
    }

    /// Whether the buffer should be sent before more answers are added.
    pub(super) const fn is_full(&self) -> bool {
        self.buffer.len() >= FULL_BYTES
    }
}
