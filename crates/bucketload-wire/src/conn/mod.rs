//! One connection, plain or TLS, behind one API.
//!
//! `send` writes heads and bodies. `recv` reads whatever arrives and keeps what the caller did not
//! consume. `body` reads exactly n body bytes and either drops them (count) or passes them to a
//! closure (verify). Every operation marks the connection broken when it starts and clears the mark
//! when it succeeds, so an abandoned future cannot leave it misaligned unnoticed.

mod body;
mod handshake;
mod recv;
mod seal;
mod send;
mod stream;
mod tls;
#[cfg(test)]
mod tls12_tests;

use std::net::SocketAddr;
use std::task::{Context, Poll, ready};

use crate::error::Error;
use crate::scratch::{self, Spill};
use crate::sock::{Calls, Sock};
use tls::{LayerError, TlsLayer};

pub use handshake::TlsFacts;
pub use recv::{MAX_UNCONSUMED, Step};
pub use send::SendEnd;
pub use stream::Receiver;

/// A connection of a client or a server.
#[derive(Debug)]
pub struct Conn {
    sock: Sock,
    tls: Option<Box<TlsLayer>>,
    /// Bytes received and not yet consumed.
    spill: Spill,
    /// True if no byte has arrived since the last head was sent.
    awaiting: bool,
    send_broken: bool,
    recv_broken: bool,
    /// True if no head has been sent yet.
    fresh: bool,
}

impl Conn {
    /// A connection without encryption.
    #[must_use]
    pub fn plain(sock: Sock) -> Self {
        Self {
            sock,
            tls: None,
            spill: Spill::default(),
            awaiting: true,
            send_broken: false,
            recv_broken: false,
            fresh: true,
        }
    }

    /// True if an operation failed or was dropped halfway: the connection must not be reused.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        self.send_broken || self.recv_broken
    }

    /// True if the connection is encrypted.
    #[must_use]
    pub const fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// True until a head has been sent completely. If a request fails with
    /// [`Error::ClosedBeforeAnswer`] on a connection that was not fresh, the server most likely closed
    /// an idle keep-alive connection.
    #[must_use]
    pub const fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Number of bytes received and not yet consumed. Above zero between two answers, the peer sent
    /// more than it announced (or, on a server, the client pipelines).
    #[must_use]
    pub fn unconsumed(&self) -> usize {
        self.spill.as_slice().len()
    }

    /// System calls made by this connection so far.
    #[must_use]
    pub const fn calls(&self) -> Calls {
        self.sock.calls()
    }

    /// Sets whether waits for bytes spin; see [`Sock::set_busy_poll`].
    pub const fn set_busy_poll(&mut self, on: bool) {
        self.sock.set_busy_poll(on);
    }

    /// The local address.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.sock.local_addr()
    }

    /// The peer's address.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn peer_addr(&self) -> std::io::Result<SocketAddr> {
        self.sock.peer_addr()
    }

    /// Drops the connection with a reset (RST) instead of closing it cleanly.
    pub fn reset(self) {
        // If the socket refuses the option, the drop closes it in the ordinary way.
        let _ = self.sock.reset_on_drop();
    }

    /// Closes the connection cleanly: on TLS with a `close_notify`, if the socket takes it at once.
    pub fn close(mut self) {
        if let (Some(layer), false) = (&mut self.tls, self.send_broken) {
            layer.send_close(&mut self.sock);
        }
    }

    /// Receives once, at most `limit` bytes from the socket, and passes the plaintext to `take` (for
    /// TLS once per record, and possibly not at all). `take` also gets the spill, where it stores
    /// what it does not consume.
    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        limit: usize,
        take: &mut impl FnMut(&mut Spill, &[u8]),
    ) -> Poll<Result<(), Error>> {
        if self.tls.is_some() {
            return self.poll_recv_sealed(cx, limit, take);
        }
        scratch::with_buffer(limit, |buffer| {
            match ready!(self.sock.poll_recv(cx, &mut *buffer)) {
                Ok(0) => Poll::Ready(Err(self.ended(true))),
                Ok(n) => {
                    self.awaiting = false;
                    take(&mut self.spill, &buffer[..n]);
                    Poll::Ready(Ok(()))
                }
                Err(e) => Poll::Ready(Err(self.failed(e))),
            }
        })
    }

    /// The TLS half of [`Conn::poll_recv`], compiled once for all closures.
    fn poll_recv_sealed(
        &mut self,
        cx: &mut Context<'_>,
        limit: usize,
        take: &mut dyn FnMut(&mut Spill, &[u8]),
    ) -> Poll<Result<(), Error>> {
        let Some(layer) = &mut self.tls else {
            return Poll::Ready(Ok(()));
        };
        if layer.peer_closed() {
            return Poll::Ready(Err(self.ended(true)));
        }
        let (spill, awaiting) = (&mut self.spill, &mut self.awaiting);
        let mut sink = |plain: &[u8]| {
            *awaiting = false;
            take(spill, plain);
        };
        match ready!(layer.poll_recv(cx, &mut self.sock, limit, &mut sink)) {
            Ok(0) => Poll::Ready(Err(self.ended(false))),
            Ok(_) => Poll::Ready(Ok(())),
            Err(e) => Poll::Ready(Err(self.layer_failed(e))),
        }
    }

    fn layer_failed(&self, error: LayerError) -> Error {
        match error {
            LayerError::Io(e) => self.failed(e),
            LayerError::Tls(e) => Error::Tls(e),
        }
    }

    /// The error that an end of stream means at this point.
    fn ended(&self, clean: bool) -> Error {
        if self.awaiting && self.spill.is_empty() {
            Error::ClosedBeforeAnswer
        } else {
            Error::Closed { clean }
        }
    }

    /// The error that a socket error means at this point.
    fn failed(&self, error: std::io::Error) -> Error {
        match Error::from(error) {
            Error::Reset if self.awaiting => Error::ClosedBeforeAnswer,
            other => other,
        }
    }
}
