//! Requests that are ready to leave.
//!
//! [`Plain`] is a rendered head with a body in memory or with object content: all that most services
//! need. Drivers with framed bodies implement [`Outgoing`] themselves.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bucketload_wire::{Conn, Error as WireError, SendEnd};

use super::pool::Buffer;
use super::span::Span;
use bucketload_s3::encode;

/// Bytes handed to one write.
pub(crate) const SLICE: usize = 256 * 1024;

/// A request rendered and ready to leave.
pub(crate) trait Outgoing {
    /// Whether the answer to it has no body whatever its head says (HEAD).
    fn to_head(&self) -> bool;

    /// Sends the head and the first bytes of the body in one write; what does not leave by it is sent by
    /// the future that is returned, if one is.
    ///
    /// # Errors
    /// When the connection has failed.
    fn send<'s>(&'s self, conn: &'s mut Conn) -> Result<Option<impl Rest + 's>, WireError>;

    /// Gives the memory back that only sending needs.
    fn release(&mut self);
}

/// Sends what of a request has not left yet.
pub(crate) trait Rest: Future<Output = Result<SendEnd, WireError>> + Unpin {}

impl<F: Future<Output = Result<SendEnd, WireError>> + Unpin> Rest for F {}

/// What of a request has not left yet, if anything: sent once this is over.
pub(crate) struct Remaining<R>(pub(crate) Option<R>);

impl<R: Rest> Future for Remaining<R> {
    type Output = Result<SendEnd, WireError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.get_mut().0 {
            Some(rest) => Pin::new(rest).poll(cx),
            None => Poll::Ready(Ok(SendEnd::Complete)),
        }
    }
}

/// One of two futures.
pub(crate) enum Either<A, B> {
    A(A),
    B(B),
}

impl<A: Rest, B: Rest> Future for Either<A, B> {
    type Output = Result<SendEnd, WireError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::A(a) => Pin::new(a).poll(cx),
            Self::B(b) => Pin::new(b).poll(cx),
        }
    }
}

/// What follows the head.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body<'a> {
    /// A document in memory; empty for none.
    Bytes(&'a [u8]),
    /// Object content.
    Content(Span<'a>),
}

/// A body without bytes.
pub(crate) const NO_BODY: Body<'static> = Body::Bytes(b"");

impl Body<'_> {
    /// Bytes of the body.
    pub(crate) const fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Content(span) => span.len,
        }
    }
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

    /// A request without a body; ends `head`.
    #[inline]
    pub(crate) fn bare(mut head: Buffer) -> Self {
        head.extend_from_slice(b"\r\n");
        let to_head = head.starts_with(b"HEAD ");
        Self::new(head, NO_BODY, to_head)
    }

    /// A request with `body`; ends `head` with its length.
    #[inline]
    pub(crate) fn with(mut head: Buffer, body: Body<'a>) -> Self {
        head.extend_from_slice(b"Content-Length: ");
        encode::push_decimal(&mut head, body.len());
        head.extend_from_slice(b"\r\n\r\n");
        Self::new(head, body, false)
    }
}

impl Outgoing for Plain<'_> {
    fn to_head(&self) -> bool {
        self.to_head
    }

    #[inline]
    fn send<'s>(&'s self, conn: &'s mut Conn) -> Result<Option<impl Rest + 's>, WireError> {
        match &self.body {
            Body::Bytes(bytes) => {
                let whole = move |_| *bytes;
                let rest = conn.send_now(&self.head, bytes.len() as u64, whole, false)?;
                Ok(rest.map(Either::A))
            }
            Body::Content(span) => {
                let piece = move |at| span.content.segment(span.offset + at, SLICE);
                let rest = conn.send_now(&self.head, span.len, piece, true)?;
                Ok(rest.map(Either::B))
            }
        }
    }

    fn release(&mut self) {
        self.head = Buffer::NONE;
    }
}
