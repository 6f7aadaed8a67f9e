//! Receiving heads and small bodies: a closure is shown whatever arrives and says how much of it
//! was consumed.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, Waker, ready};

use super::Conn;
use super::tls::TlsLayer;
use crate::error::Error;
use crate::scratch::{SMALL, Spill};

/// The most bytes a receiver may leave unconsumed while it asks for more. This limits the size of
/// a message head.
pub const MAX_UNCONSUMED: usize = 64 * 1024;

/// A receiver's verdict on the bytes it was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// The first `.0` bytes are consumed; the rest is shown again once more has arrived.
    More(usize),
    /// The first `.0` bytes are consumed and the receiver is done; the rest stays for the next call.
    Done(usize, T),
}

impl Conn {
    /// Shows received bytes to `f` until `f` is done: first those that earlier calls left, then
    /// whatever arrives (up to 64 KiB at a time, without copying).
    ///
    /// # Errors
    /// [`Error::ClosedBeforeAnswer`], [`Error::Closed`] or [`Error::Reset`] when the peer ends the
    /// connection; [`Error::TooLarge`] when `f` leaves more than [`MAX_UNCONSUMED`] bytes and asks
    /// for more; any error that `f` returns. The connection is broken then.
    ///
    /// # Panics
    /// If `f` consumes more than it was shown.
    pub fn recv_with<T, E: From<Error>>(
        &mut self,
        mut f: impl FnMut(&[u8]) -> Result<Step<T>, E>,
    ) -> impl Future<Output = Result<T, E>> {
        let mut begun = false;
        // The future stores only what this closure captures.
        poll_fn(move |cx| {
            if !std::mem::replace(&mut begun, true) {
                if self.recv_broken {
                    return Poll::Ready(Err(Error::Broken.into()));
                }
                self.recv_broken = true;
                if !self.spill.is_empty()
                    && let Some(value) = review(&mut self.spill, &mut f)?
                {
                    self.recv_broken = false;
                    return Poll::Ready(Ok(value));
                }
            }
            loop {
                let (mut value, mut failure) = (None, None);
                let received = self.poll_recv(cx, SMALL, &mut |spill, chunk| {
                    if value.is_some() || failure.is_some() {
                        spill.push(chunk);
                    } else if let Err(e) = deliver(spill, chunk, &mut value, &mut f) {
                        failure = Some(e);
                    }
                });
                ready!(received)?;
                if let Some(failure) = failure {
                    return Poll::Ready(Err(failure));
                }
                if let Some(value) = value {
                    self.recv_broken = false;
                    return Poll::Ready(Ok(value));
                }
            }
        })
    }

    /// True if nothing has arrived since the last message. Between two answers, anything else means
    /// the end of the connection or bytes that nobody asked for. Makes no system call on a silent
    /// connection.
    #[inline]
    pub fn is_silent(&mut self) -> bool {
        if !self.spill.is_empty() {
            return false;
        }
        let held = |layer: &TlsLayer| layer.held() > 0 || layer.peer_closed();
        let held = self.tls.as_deref().is_some_and(held);
        (!held && !self.sock.has_news()) || self.stays_silent()
    }

    #[cold]
    fn stays_silent(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        pin!(self.readable()).poll(&mut context).is_pending()
    }

    /// Waits until a byte or the end of the stream can be received. Consumes nothing and may be
    /// dropped at any time, so it suits waits with a time limit: an idle server connection, an
    /// expected `100 Continue`.
    ///
    /// # Errors
    /// The socket's error.
    pub async fn readable(&mut self) -> Result<(), Error> {
        if !self.spill.is_empty() {
            return Ok(());
        }
        if self.tls.is_none() {
            return poll_fn(|cx| self.sock.poll_readable(cx))
                .await
                .map_err(|e| self.failed(e));
        }
        loop {
            // This also processes records of the protocol itself, such as session tickets.
            match poll_fn(|cx| self.poll_recv(cx, SMALL, &mut Spill::push)).await {
                Ok(()) if self.spill.is_empty() => {}
                Ok(()) | Err(Error::Closed { .. } | Error::ClosedBeforeAnswer) => return Ok(()),
                Err(e) => return Err(e),
            }
        }
    }
}

/// Shows the whole spill to `f`.
pub(super) fn review<T, E: From<Error>>(
    spill: &mut Spill,
    f: &mut impl FnMut(&[u8]) -> Result<Step<T>, E>,
) -> Result<Option<T>, E> {
    match f(spill.as_slice())? {
        Step::More(n) => {
            spill.consume(n);
            check_limit(spill)?;
            Ok(None)
        }
        Step::Done(n, value) => {
            spill.consume(n);
            Ok(Some(value))
        }
    }
}

/// Shows a new chunk to `f`, together with what `f` left before, and keeps the rest.
pub(super) fn deliver<T, E: From<Error>>(
    spill: &mut Spill,
    chunk: &[u8],
    value: &mut Option<T>,
    f: &mut impl FnMut(&[u8]) -> Result<Step<T>, E>,
) -> Result<(), E> {
    if !spill.is_empty() {
        spill.push(chunk);
        *value = review(spill, f)?;
        return Ok(());
    }
    match f(chunk)? {
        Step::More(n) => {
            spill.push(&chunk[n..]);
            check_limit(spill)?;
        }
        Step::Done(n, done) => {
            spill.push(&chunk[n..]);
            *value = Some(done);
        }
    }
    Ok(())
}

fn check_limit(spill: &Spill) -> Result<(), Error> {
    if spill.as_slice().len() > MAX_UNCONSUMED {
        return Err(Error::TooLarge {
            limit: MAX_UNCONSUMED,
        });
    }
    Ok(())
}
