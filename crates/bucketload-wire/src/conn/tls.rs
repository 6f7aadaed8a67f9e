//! The TLS record layer of a connection, over rustls's unbuffered API.
//!
//! Received records are processed in the receive buffer that all connections of a thread share; the
//! received part of an incomplete record waits in `sealed_in`. Outgoing records are sealed in another
//! shared buffer and sent from there; bytes that the socket does not take wait in `sealed_out`. An
//! idle connection therefore owns only its cipher state.

use std::io::IoSlice;
use std::ops::Deref;
use std::task::{Context, Poll, ready};

use rustls::CommonState;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, InsufficientSizeError, UnbufferedConnectionCommon,
    UnbufferedStatus,
};

use super::seal::{RECORD, Seal, sealing};
use crate::scratch::{self, Spill};
use crate::sock::Sock;
use crate::tls::TlsError;

/// The state of one TLS connection.
pub(super) struct TlsLayer {
    side: Side,
    /// Bytes received and not yet processed: the beginning of a record.
    sealed_in: Spill,
    /// Bytes sealed and not yet sent.
    sealed_out: Spill,
    /// True once the peer has sent `close_notify`.
    peer_closed: bool,
}

pub(super) enum Side {
    Client(UnbufferedClientConnection),
    Server(UnbufferedServerConnection),
}

impl std::fmt::Debug for TlsLayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsLayer").finish_non_exhaustive()
    }
}

/// What the record layer waits for after it processed all input.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    /// The peer's next handshake message.
    Handshake,
    /// Nothing: application data may flow.
    Traffic,
}

impl TlsLayer {
    pub(super) fn new(side: Side) -> Self {
        Self {
            side,
            sealed_in: Spill::default(),
            sealed_out: Spill::default(),
            peer_closed: false,
        }
    }

    pub(super) fn state(&self) -> &CommonState {
        match &self.side {
            Side::Client(connection) => connection,
            Side::Server(connection) => connection,
        }
    }

    /// Number of received bytes of an incomplete record.
    pub(super) fn held(&self) -> usize {
        self.sealed_in.len()
    }

    pub(super) const fn peer_closed(&self) -> bool {
        self.peer_closed
    }

    /// Processes `input` and passes plaintext to `sink`. Returns how many input bytes were used up.
    pub(super) fn process(
        &mut self,
        input: &mut [u8],
        seal: Option<&mut Seal<'_>>,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<(usize, Waits), TlsError> {
        let (out, closed) = (&mut self.sealed_out, &mut self.peer_closed);
        match &mut self.side {
            Side::Client(connection) => drive(connection, input, out, seal, closed, sink),
            Side::Server(connection) => drive(connection, input, out, seal, closed, sink),
        }
    }

    /// Sends the sealed bytes. If `Pending`, the rest waits.
    pub(super) fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        sock: &mut Sock,
    ) -> Poll<std::io::Result<()>> {
        while !self.sealed_out.is_empty() {
            let n = ready!(sock.poll_send(cx, &[IoSlice::new(self.sealed_out.as_slice())]))?;
            self.sealed_out.consume(n);
        }
        Poll::Ready(Ok(()))
    }

    /// Sends `close_notify` if the socket takes it at once.
    pub(super) fn send_close(&mut self, sock: &mut Sock) {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        // The connection is being dropped, so a failure has no consequence.
        let _ = self.poll_seal(&mut cx, sock, None);
    }

    /// Receives once into the thread's buffer (at most `limit` bytes), decrypts in place and passes
    /// each record's plaintext to `sink`. Returns the bytes received; 0 means the end of the stream.
    pub(super) fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        sock: &mut Sock,
        limit: usize,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Poll<Result<usize, LayerError>> {
        let held = self.sealed_in.len();
        let result = ready!(scratch::with_buffer(held + limit, |buffer| {
            let n = ready!(sock.poll_recv(cx, &mut buffer[held..])).map_err(LayerError::Io)?;
            if n == 0 {
                return Poll::Ready(Ok(0));
            }
            buffer[..held].copy_from_slice(self.sealed_in.as_slice());
            self.sealed_in.consume(held);
            let input = &mut buffer[..held + n];
            let (used, _) = self.process(input, None, sink).map_err(LayerError::Tls)?;
            self.sealed_in.push(&input[used..]);
            Poll::Ready(Ok(n))
        }));
        // Messages of the protocol itself (an alert, a key update) are small. The next send retries
        // what the socket does not take now.
        match self.poll_flush(cx, sock) {
            Poll::Ready(Err(e)) if result.is_ok() => Poll::Ready(Err(LayerError::Io(e))),
            _ => Poll::Ready(result),
        }
    }

    /// Seals up to 256 KiB from the front of `parts` and sends them. Returns the number of plaintext
    /// bytes sealed, even if the socket takes only some of them: the next call or
    /// [`TlsLayer::poll_flush`] sends the rest.
    pub(super) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        sock: &mut Sock,
        parts: &[IoSlice<'_>],
    ) -> Poll<Result<usize, LayerError>> {
        self.poll_seal(cx, sock, Some(parts))
    }

    fn poll_seal(
        &mut self,
        cx: &mut Context<'_>,
        sock: &mut Sock,
        parts: Option<&[IoSlice<'_>]>,
    ) -> Poll<Result<usize, LayerError>> {
        ready!(self.poll_flush(cx, sock)).map_err(LayerError::Io)?;
        scratch::with_seal_buffer(|buffer| {
            let (gathered, out) = buffer.split_at_mut(RECORD);
            let mut seal = Seal {
                parts,
                gathered,
                out,
                taken: 0,
                sealed: 0,
            };
            // The state machine must see the same incomplete record again. All complete records
            // have been processed, so there is no plaintext.
            let mut held = std::mem::take(&mut self.sealed_in);
            let done = self.process(held.as_mut_slice(), Some(&mut seal), &mut |_| {});
            self.sealed_in = held;
            let (used, _) = done.map_err(LayerError::Tls)?;
            self.sealed_in.consume(used);
            let (taken, sealed) = (seal.taken, &seal.out[..seal.sealed]);
            let mut sent = 0;
            // Protocol messages that were queued meanwhile come first.
            if self.sealed_out.is_empty()
                && let Poll::Ready(result) = sock.poll_send(cx, &[IoSlice::new(sealed)])
            {
                sent = result.map_err(LayerError::Io)?;
            }
            self.sealed_out.push(&sealed[sent..]);
            Poll::Ready(Ok(taken))
        })
    }
}

/// A failure below the plaintext.
pub(super) enum LayerError {
    Io(std::io::Error),
    Tls(TlsError),
}

/// Unites the two sides' `process_tls_records`, for which rustls has no trait.
trait Process<Data>: Deref<Target = UnbufferedConnectionCommon<Data>> {
    fn process<'c, 'i>(&'c mut self, input: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Data>;
}

impl Process<ClientConnectionData> for UnbufferedClientConnection {
    fn process<'c, 'i>(
        &'c mut self,
        input: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, ClientConnectionData> {
        self.process_tls_records(input)
    }
}

impl Process<ServerConnectionData> for UnbufferedServerConnection {
    fn process<'c, 'i>(
        &'c mut self,
        input: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, ServerConnectionData> {
        self.process_tls_records(input)
    }
}

/// Runs rustls's state machine until it needs more input or may send.
fn drive<Data, C: Process<Data>>(
    connection: &mut C,
    input: &mut [u8],
    out: &mut Spill,
    mut seal: Option<&mut Seal<'_>>,
    peer_closed: &mut bool,
    sink: &mut dyn FnMut(&[u8]),
) -> Result<(usize, Waits), TlsError> {
    let mut used = 0;
    loop {
        let UnbufferedStatus {
            mut discard, state, ..
        } = connection.process(&mut input[used..]);
        let waits = match state {
            Err(error) => {
                used += discard;
                // rustls offers the alert that explains the failure to the peer before it reads
                // more input. Without an alert, the faulty input must not be shown again.
                while connection.wants_write()
                    && let Ok(ConnectionState::EncodeTlsData(message)) =
                        connection.process(&mut input[used..]).state
                {
                    encode(message, out)?;
                }
                return Err(error.into());
            }
            Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                while let Some(record) = traffic.next_record() {
                    let record = record?;
                    discard += record.discard;
                    sink(record.payload);
                }
                // Data flows only after the handshake. If all input is used, asking the state
                // machine again would yield nothing new.
                let all = used + discard == input.len();
                (all && !connection.wants_write()).then_some(Waits::Traffic)
            }
            Ok(ConnectionState::EncodeTlsData(message)) => {
                encode(message, out)?;
                None
            }
            Ok(ConnectionState::TransmitTlsData(message)) => {
                // The message is in `out`, which is sent before anything else.
                message.done();
                None
            }
            Ok(ConnectionState::BlockedHandshake) => Some(Waits::Handshake),
            Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                if let Some(seal) = seal.take() {
                    match seal.parts {
                        Some(parts) => {
                            seal.run(parts, |plain, out| traffic.encrypt(plain, out))?;
                        }
                        None => {
                            let written = traffic.queue_close_notify(seal.out);
                            seal.sealed = written.map_err(sealing)?;
                        }
                    }
                }
                Some(Waits::Traffic)
            }
            Ok(ConnectionState::PeerClosed) => {
                *peer_closed = true;
                None
            }
            Ok(ConnectionState::Closed) => {
                *peer_closed = true;
                Some(Waits::Traffic)
            }
            // Early data is not enabled, and this version of rustls has no other state.
            _ => {
                return Err(TlsError::Handshake(
                    "unexpected state of the connection".into(),
                ));
            }
        };
        used += discard;
        if let Some(waits) = waits {
            return Ok((used, waits));
        }
    }
}

/// Appends a message of the protocol itself to `out`.
fn encode<Data>(mut message: EncodeTlsData<'_, Data>, out: &mut Spill) -> Result<(), TlsError> {
    let mut size = 1024;
    loop {
        match message.encode(out.grow(size)) {
            Ok(written) => {
                out.shrink(size - written);
                return Ok(());
            }
            Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) => {
                out.shrink(size);
                size = required_size;
            }
            Err(e) => return Err(TlsError::Handshake(e.to_string())),
        }
    }
}
