//! Requests that are ready to be sent.
//!
//! [`Plain`] is a rendered head with a body in memory or with object content, which is enough for most services. Drivers
//! with framed bodies implement [`Outgoing`] themselves.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bucketload_wire::{Conn, Error as WireError, SendEnd};

use super::pool::Buffer;
use super::render::Render as _;
use super::span::Span;

/// Maximum bytes passed to one write.
pub(crate) const SLICE: usize = 256 * 1024;

/// A request that is rendered and ready to be sent.
pub(crate) trait Outgoing {
    /// True for HEAD: the response has no body, whatever its head says.
    fn to_head(&self) -> bool;

    /// Sends the head and the first bytes of the body in one write. Returns a future that sends the rest, if any.
    ///
    /// # Errors
    /// When the connection has failed.
    fn send<'s>(&'s self, conn: &'s mut Conn) -> Result<Option<impl Rest + 's>, WireError>;

    /// Releases memory that is only needed for sending.
    fn release(&mut self);
}

/// Sends the unsent rest of a request.
pub(crate) trait Rest: Future<Output = Result<SendEnd, WireError>> + Unpin {}

impl<F: Future<Output = Result<SendEnd, WireError>> + Unpin> Rest for F {}

/// Waits until the unsent rest of a request, if any, is sent.
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

/// The body of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body<'a> {
    /// A document in memory; empty for no body.
    Bytes(&'a [u8]),
    /// Object content.
    Content(Span<'a>),
}

/// A body without bytes.
pub(crate) const NO_BODY: Body<'static> = Body::Bytes(b"");

impl Body<'_> {
    /// Length in bytes.
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
    /// A request with a complete `head`: it states the length of `body` and ends with the empty line.
    pub(crate) const fn new(head: Buffer, body: Body<'a>, to_head: bool) -> Self {
        Self {
            head,
            body,
            to_head,
        }
    }

    /// A request without a body; completes `head`.
    #[inline]
    pub(crate) fn bare(mut head: Buffer) -> Self {
        head.extend_from_slice(b"\r\n");
        let to_head = head.starts_with(b"HEAD ");
        Self::new(head, NO_BODY, to_head)
    }

    /// A request with `body`; completes `head` with the length.
    #[inline]
    pub(crate) fn with(mut head: Buffer, body: Body<'a>) -> Self {
        head.content_length(body.len());
        head.extend_from_slice(b"\r\n");
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
