//! One connection: handshake, then requests until the client leaves or sends a malformed one.

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::accept::{ConnectionHandle, ServerState};
use super::affinity::Affinity;
use super::body::Upload;
use super::files::FileUpload;
use super::perform::push;
use super::replies::ReplyBuffer;
use super::splice::Splice;
use crate::busy_poll::BusyPoll;
use crate::proof::{self, CHALLENGE_BYTES, PROOF_BYTES};
use crate::protocol::codec::Malformed;
use crate::protocol::request::Request;
use crate::protocol::{
    HEADER_BYTES, HELLO_BYTES, Header, MAX_REQUEST_HEAD_BYTES, Outcome, PROTOCOL_VERSION, Verdict,
    hello, read_hello,
};
use crate::receive_buffer::ReceiveBuffer;
use crate::socket::Socket;

/// Time limit of the handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Limits of waiting for a refused client to close its side: time per read, and total bytes read.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 1 << 20;

/// Why a connection ended.
pub(super) enum ConnectionEnd {
    /// The connection broke, or the client left.
    Socket,
    /// The client sent a malformed request.
    Malformed(u32, Malformed),
}

impl From<io::Error> for ConnectionEnd {
    fn from(_: io::Error) -> Self {
        Self::Socket
    }
}

/// A connection and its buffers.
pub(super) struct Connection<'s> {
    pub(super) state: &'s ServerState,
    handle: &'s ConnectionHandle,
    pub(super) socket: &'s Socket,
    pub(super) incoming: ReceiveBuffer,
    pub(super) replies: ReplyBuffer,
    /// Receive buffer for large bodies; empty until needed.
    pub(super) piece: Vec<u8>,
    /// Pipe for `splice`; made when first needed.
    pub(super) splice: Option<Splice>,
    /// The object whose file the client is writing.
    pub(super) file: Option<FileUpload>,
    /// Whether the last request wrote an object or a part.
    pub(super) has_written: bool,
    busy_poll: BusyPoll,
    affinity: Affinity,
}

impl<'s> Connection<'s> {
    pub(super) fn new(state: &'s ServerState, handle: &'s ConnectionHandle) -> Self {
        Self {
            state,
            socket: &handle.socket,
            handle,
            incoming: ReceiveBuffer::default(),
            replies: ReplyBuffer::default(),
            piece: Vec::new(),
            splice: None,
            file: None,
            has_written: false,
            busy_poll: BusyPoll::new(state.options.busy_poll),
            affinity: Affinity::default(),
        }
    }

    /// Serves the client until the connection ends.
    pub(super) fn run(mut self) {
        let greeted = self.greet();
        if !matches!(greeted, Ok(true)) {
            return;
        }
        if let Err(ConnectionEnd::Malformed(sequence, malformed)) = self.serve() {
            self.replies.push(Outcome::Refused, sequence, 0, |out| {
                out.extend_from_slice(malformed.0.as_bytes());
            });
            // The client may be gone already; this answer is the last anyway.
            let _ = self
                .replies
                .flush(self.socket, false)
                .and_then(|()| self.linger());
        }
    }

    /// Waits a moment for the client to read the last answer. The kernel would discard the answer if the connection
    /// were closed with unread data.
    fn linger(&mut self) -> io::Result<()> {
        self.socket.close_writing();
        self.socket.limit(LINGER)?;
        self.piece.resize(64 << 10, 0);
        let mut left = LINGER_BYTES;
        while left > 0 {
            match self.socket.receive(&mut self.piece)? {
                0 => break,
                count => left = left.saturating_sub(count),
            }
        }
        Ok(())
    }

    /// Performs the handshake. Returns whether the client is accepted.
    fn greet(&mut self) -> io::Result<bool> {
        let end = Instant::now() + HANDSHAKE;
        let mut bytes = [0; HELLO_BYTES];
        self.receive_handshake(&mut bytes, end)?;
        // A client that does not speak the protocol gets no answer.
        let Some((version, 0)) = read_hello(&bytes) else {
            return Ok(false);
        };
        let answer = |verdict: Verdict| {
            self.socket
                .send(&hello(PROTOCOL_VERSION, verdict as u8), false)
        };
        // Before the client can know: from then on, its connection makes no room for others.
        let welcome = || self.handle.greeted.store(true, Ordering::Relaxed);
        if version != PROTOCOL_VERSION {
            answer(Verdict::WrongVersion)?;
            return Ok(false);
        }
        if let Some(token) = &self.state.options.token {
            let mut challenge = [0; CHALLENGE_BYTES];
            fill_random(&mut challenge)?;
            let greeting = hello(PROTOCOL_VERSION, Verdict::ProveToken as u8);
            self.socket.send_both(&greeting, &challenge)?;
            let mut proof = [0; PROOF_BYTES];
            self.receive_handshake(&mut proof, end)?;
            let verdict = match proof::verify(token, &challenge, &proof) {
                true => Verdict::Welcome,
                false => Verdict::WrongToken,
            };
            if verdict == Verdict::Welcome {
                welcome();
            }
            self.socket.send(&[verdict as u8], false)?;
            if verdict != Verdict::Welcome {
                return Ok(false);
            }
        } else {
            welcome();
            answer(Verdict::Welcome)?;
        }
        self.socket.limit(self.state.options.stall_timeout)?;
        Ok(true)
    }

    /// Receives part of the handshake before `end`. One limit covers the whole handshake, so that clients without a
    /// token cannot occupy connections for long.
    fn receive_handshake(&self, bytes: &mut [u8], end: Instant) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.socket.limit(left)?;
            match self.socket.receive(&mut bytes[done..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => done += count,
            }
        }
        Ok(())
    }

    /// Performs requests until the client leaves or the server stops.
    fn serve(&mut self) -> Result<(), ConnectionEnd> {
        loop {
            // The order matters: `finish` checks `busy` after `stop` has set `stopping`.
            let writing = self.file.is_some();
            self.handle.busy.store(writing, Ordering::SeqCst);
            if (self.state.is_stopping() && !writing) || !self.next_request()? {
                self.replies.flush(self.socket, false)?;
                return Ok(());
            }
            self.handle.busy.store(true, Ordering::SeqCst);
            let mut bytes = [0; HEADER_BYTES];
            bytes.copy_from_slice(&self.incoming.bytes()[..HEADER_BYTES]);
            let header = Header::decode(&bytes, MAX_REQUEST_HEAD_BYTES)
                .map_err(|m| ConnectionEnd::Malformed(0, m))?;
            let state = self.state;
            let core = header.core.checked_sub(1).map(usize::from);
            let handle = self.handle;
            self.affinity
                .follow(core, &state.cores, || state.is_crowded_by(handle));
            let frame_bytes = HEADER_BYTES + header.head as usize;
            if self.incoming.bytes().len() < frame_bytes {
                self.replies.flush(self.socket, false)?;
                self.incoming
                    .require(self.socket, frame_bytes, &mut self.busy_poll)?;
            }
            self.perform(&header, frame_bytes)?;
            if self.replies.is_full() {
                self.replies.flush(self.socket, false)?;
            }
        }
    }

    /// Waits for the header of a request; `false` if the client has left.
    fn next_request(&mut self) -> Result<bool, ConnectionEnd> {
        while self.incoming.bytes().len() < HEADER_BYTES {
            self.replies.flush(self.socket, false)?;
            // A client that has written will probably write again, and is busy with the answer now.
            if std::mem::take(&mut self.has_written) {
                self.state.store.prepare();
            }
            let between = self.incoming.bytes().is_empty();
            let received = self
                .incoming
                .receive(self.socket, HEADER_BYTES, &mut self.busy_poll);
            match received {
                Ok(0) if between => return Ok(false),
                Ok(0) => return Err(ConnectionEnd::Socket),
                Ok(_) => {}
                // A client may stay silent between requests for any time.
                Err(error) if between && error.kind() == io::ErrorKind::TimedOut => {
                    if self.state.is_stopping() && self.file.is_none() {
                        return Ok(false);
                    }
                }
                Err(_) => return Err(ConnectionEnd::Socket),
            }
        }
        Ok(true)
    }

    /// Performs the request whose header and head are the first `frame_bytes` received bytes.
    fn perform(&mut self, header: &Header, frame_bytes: usize) -> Result<(), ConnectionEnd> {
        let refused = |malformed| ConnectionEnd::Malformed(header.sequence, malformed);
        // The request borrows from the head. If a body must still be received, the head is copied below.
        let head = &self.incoming.bytes()[HEADER_BYTES..frame_bytes];
        let request = Request::decode(header.kind, head).map_err(refused)?;
        if header.body > 0 && !request.has_body() {
            return Err(refused(Malformed("an unexpected body")));
        }
        if self.file.is_some() != request.needs_file() {
            return Err(refused(Malformed("a request out of order")));
        }
        if let Request::PutFile(name, size) = request {
            self.file = super::files::offer(
                self.state,
                self.socket,
                &mut self.replies,
                header.sequence,
                name,
                size,
            )?;
            self.incoming.consume(frame_bytes);
            return Ok(());
        }
        if let Some(file) = self.file.take() {
            self.has_written = file.end(&mut self.replies, header.sequence, request);
            self.incoming.consume(frame_bytes);
            return Ok(());
        }
        if request.has_body() {
            let buffered = &self.incoming.bytes()[frame_bytes..];
            let size = usize::try_from(header.body).unwrap_or(usize::MAX);
            if let Some(body) = buffered.get(..size) {
                let store = &*self.state.store;
                let written = Upload::begin(store, header.body, request).and_then(|mut upload| {
                    upload.writer().write(body)?;
                    upload.commit()
                });
                self.has_written = written.is_ok();
                push(&mut self.replies, header.sequence, &written);
                self.incoming.consume(frame_bytes + size);
                return Ok(());
            }
            let head = head.to_vec();
            self.incoming.consume(frame_bytes);
            let request = Request::decode(header.kind, &head).map_err(refused)?;
            return self.write(header, request);
        }
        super::perform::answer(
            self.state,
            self.socket,
            &mut self.replies,
            header.sequence,
            request,
        )?;
        self.incoming.consume(frame_bytes);
        Ok(())
    }
}

fn fill_random(bytes: &mut [u8]) -> io::Result<()> {
    let count = rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty())?;
    match count == bytes.len() {
        true => Ok(()),
        false => Err(io::Error::other("too few random bytes")),
    }
}
