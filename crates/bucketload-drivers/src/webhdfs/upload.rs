//! The second step of a write: a body for a data node.
//!
//! A data node consents (`100 Continue`) to every write before it takes the body, asked or not. A client
//! that watched for early answers while it sends would take that for a refusal. Small bodies are
//! therefore sent with their head and nobody watches; larger ones wait for the consent, after which an
//! early answer is a refusal indeed. Conditional writes wait as well: their refusal is an answer like
//! any other and must not get lost when the data node closes a connection with unread bytes.

use bucketload_wire::http;
use bucketload_wire::{Conn, Error as WireError, SendEnd, Step};

use crate::http::outgoing::{Body, Outgoing, Rest, SLICE};
use crate::http::parked::park;
use crate::http::pool::Buffer;

/// Largest body that leaves without consent: no socket buffer is smaller.
pub(super) const SMALL: u64 = 64 * 1024;

/// A write to a data node, ready to leave.
pub(super) struct Upload<'a> {
    head: Buffer,
    body: Body<'a>,
    expects: bool,
}

impl<'a> Upload<'a> {
    /// `head` says how long `body` is and, if `expects`, that it waits.
    pub(super) const fn new(head: Buffer, body: Body<'a>, expects: bool) -> Self {
        Self {
            head,
            body,
            expects,
        }
    }
}

/// Receives the data node's consent; `false` when it answered otherwise, which stays to be received.
async fn consent(conn: &mut Conn) -> Result<bool, WireError> {
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
        if !self.expects {
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
        if !consent(conn).await? {
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
