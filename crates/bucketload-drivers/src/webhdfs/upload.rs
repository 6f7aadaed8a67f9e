//! The second step of a write: a body for a data node.
//!
//! A data node sends `100 Continue` before every write, even unasked. A client that watches for early
//! answers while it sends would mistake that for a refusal. Small bodies are therefore sent together with
//! their head, without watching. Larger ones wait for `100 Continue`; any early answer after that is a
//! refusal. Conditional writes wait as well: their refusal is a regular answer and must not get lost when
//! the data node closes a connection with unread bytes.

use bucketload_wire::http;
use bucketload_wire::{Conn, Error as WireError, SendEnd, Step};

use crate::http::outgoing::{Body, Outgoing, Rest, SLICE};
use crate::http::parked::park;
use crate::http::pool::Buffer;

/// Largest body sent without waiting for `100 Continue`: no socket buffer is smaller.
pub(super) const SMALL: u64 = 64 * 1024;

/// A rendered write to a data node.
pub(super) struct Upload<'a> {
    head: Buffer,
    body: Body<'a>,
    expect_continue: bool,
}

impl<'a> Upload<'a> {
    /// `head` contains the length of `body` and, with `expect_continue`, the `Expect` field.
    pub(super) const fn new(head: Buffer, body: Body<'a>, expect_continue: bool) -> Self {
        Self {
            head,
            body,
            expect_continue,
        }
    }
}

/// Waits for `100 Continue`. Returns `false` for any other answer, which it leaves unread.
async fn wait_for_continue(conn: &mut Conn) -> Result<bool, WireError> {
    conn.recv_with(|bytes| {
        let head = http::parse_response(bytes, false)?;
        Ok::<_, WireError>(match head {
            None => Step::More(0),
            Some(head) if head.is_interim() => Step::Done(head.len, true),
            Some(_) => Step::Done(0, false),
        })
    })
    .await
}

impl Upload<'_> {
    async fn send_all(&self, conn: &mut Conn) -> Result<SendEnd, WireError> {
        if !self.expect_continue {
            let sent = match &self.body {
                Body::Bytes(bytes) => conn.send(&self.head, bytes).await,
                Body::Content(span) => {
                    let piece = |at| span.content.segment(span.offset + at, SLICE);
                    conn.send_body(&self.head, span.len, piece).await
                }
            };
            return sent.map(|()| SendEnd::Complete);
        }
        conn.send(&self.head, b"").await?;
        if !wait_for_continue(conn).await? {
            return Ok(SendEnd::Answered { sent: 0 });
        }
        match &self.body {
            Body::Bytes(bytes) => conn.send(b"", bytes).await.map(|()| SendEnd::Complete),
            Body::Content(span) => {
                let piece = |at| span.content.segment(span.offset + at, SLICE);
                conn.send_request(b"", span.len, piece).await
            }
        }
    }
}

impl Outgoing for Upload<'_> {
    fn to_head(&self) -> bool {
        false
    }

    fn send<'s>(&'s self, conn: &'s mut Conn) -> Result<Option<impl Rest + 's>, WireError> {
        Ok(Some(park(self.send_all(conn))))
    }

    fn release(&mut self) {
        self.head = Buffer::NONE;
    }
}
