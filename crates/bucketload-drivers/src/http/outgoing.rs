//! Requests that are ready to leave.
//!
//! [`Plain`] is a rendered head with a body in memory or with object content: all that most services
//! need. Drivers with framed bodies implement [`Outgoing`] themselves.

use std::future::Future;

use bucketload_wire::{Conn, Error as WireError, SendEnd};

use super::pool::Buffer;
use super::span::Span;

/// Bytes handed to one write.
pub(crate) const SLICE: usize = 256 * 1024;

/// A request rendered and ready to leave.
pub(crate) trait Outgoing {
    /// Whether the answer to it has no body whatever its head says (HEAD).
    fn to_head(&self) -> bool;

    /// Sends it: the head and the first bytes of the body in one write.
    fn send(&self, conn: &mut Conn) -> impl Future<Output = Result<SendEnd, WireError>>;

    /// Gives the memory back that only sending needs.
    fn release(&mut self);
}

/// What follows the head.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body<'a> {
    /// A document in memory; empty for none.
    Bytes(&'a [u8]),
    /// Object content.
    Content(Span<'a>),
}

/// A rendered head and a body.
pub(crate) struct Plain<'a> {
    head: Buffer,
    body: Body<'a>,
    to_head: bool,
}

impl<'a> Plain<'a> {
    /// A request with `head`, which ends with the empty line and says how long `body` is.
    pub(crate) const fn new(head: Buffer, body: Body<'a>, to_head: bool) -> Self {
        Self {
            head,
            body,
            to_head,
        }
    }
}

impl Outgoing for Plain<'_> {
    fn to_head(&self) -> bool {
        self.to_head
    }

    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn has room for its arguments twice"
    )]
    fn send(&self, conn: &mut Conn) -> impl Future<Output = Result<SendEnd, WireError>> {
        async move {
            match &self.body {
                Body::Bytes(bytes) => {
                    let sent = conn.send(&self.head, bytes).await;
                    sent.map(|()| SendEnd::Complete)
                }
                Body::Content(span) => {
                    let piece = |at| span.content.segment(span.offset + at, SLICE);
                    conn.send_request(&self.head, span.len, piece).await
                }
            }
        }
    }

    fn release(&mut self) {
        self.head = Buffer::NONE;
    }
}
