//! One connection: performs the handshake, sends requests and receives answers.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use super::error::{Error, Result};
use super::options::Options;
use crate::address::Address;
use crate::busy_poll::BusyPoll;
use crate::proof::{CHALLENGE_BYTES, prove};
use crate::protocol::codec::Malformed;
use crate::protocol::request::Request;
use crate::protocol::{
    self, HEADER_BYTES, HELLO_BYTES, Header, MAX_REPLY_HEAD_BYTES, MAX_REQUEST_HEAD_BYTES, Outcome,
    PROTOCOL_VERSION, Verdict, push_frame,
};
use crate::receive_buffer::ReceiveBuffer;
use crate::socket::Socket;

/// Size of the pieces in which a large body is read and sent, bytes.
pub(super) const PIECE: usize = 256 << 10;
/// Maximum size of a body that is copied behind its head and sent with it, bytes.
const MAX_COPIED: usize = 16 << 10;

/// Number of bytes of a large body for which a receiver waits before it wakes.
const LOW_WATER: usize = 256 << 10;

/// The body of a request.
pub(super) enum RequestBody<'a> {
    None,
    Slice(&'a [u8]),
    /// This many bytes of a reader.
    Reader(u64, &'a mut dyn Read),
}

impl RequestBody<'_> {
    const fn len(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Slice(bytes) => bytes.len() as u64,
            Self::Reader(size, _) => *size,
        }
    }
}

/// An answer up to its body, which follows.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) outcome: Outcome,
    /// Length of the head, which stays in the connection's buffer until consumed.
    pub(super) head: usize,
    /// Length of the body.
    pub(super) body: u64,
}

#[derive(Debug)]
pub(super) struct Connection {
    socket: Socket,
    incoming: ReceiveBuffer,
    outgoing: Vec<u8>,
    /// Buffer for bodies from a reader; grows as needed, up to [`PIECE`].
    piece: Vec<u8>,
    /// Sequence numbers of the next request and the next answer.
    sent: u32,
    answered: u32,
    stall: Duration,
    /// Deadline of the current call, if it has a time limit.
    deadline: Option<Instant>,
    busy_poll: BusyPoll,
    /// Whether this is a Unix socket, which can carry files.
    unix: bool,
    /// Whether the server is on this host and may follow this thread to its core.
    local: bool,
    /// Whether a wait ends only after [`LOW_WATER`] bytes instead of after each packet.
    low_water: bool,
}

impl Connection {
    /// Connects and performs the handshake.
    pub(super) fn open(options: &Options) -> Result<Self> {
        let started = Instant::now();
        let socket =
            Socket::connect(&options.address, options.connect_timeout).map_err(Error::Connect)?;
        let left = options.connect_timeout.saturating_sub(started.elapsed());
        socket.limit(left).map_err(Error::Connect)?;
        greet(&socket, options)?;
        socket
            .limit(options.stall_timeout)
            .map_err(Error::Connect)?;
        Ok(Self {
            socket,
            incoming: ReceiveBuffer::default(),
            outgoing: Vec::new(),
            piece: Vec::new(),
            sent: 0,
            answered: 0,
            stall: options.stall_timeout,
            deadline: None,
            busy_poll: BusyPoll::new(options.busy_poll),
            unix: matches!(options.address, Address::Unix(_)),
            local: options.address.is_local(),
            low_water: false,
        })
    }

    /// Whether an idle connection can be used for a call.
    pub(super) fn is_usable(&self) -> bool {
        self.socket.is_quiet()
    }

    /// Whether every request has been answered and no other bytes have arrived.
    pub(super) fn is_clean(&self) -> bool {
        self.sent == self.answered && self.incoming.bytes().is_empty()
    }

    /// Sets the deadline of a new call.
    pub(super) fn set_deadline(&mut self, deadline: Option<Instant>) -> Result<()> {
        if deadline.is_none() && self.deadline.is_some() {
            self.socket.limit(self.stall).map_err(Error::lost)?;
        }
        self.deadline = deadline;
        Ok(())
    }

    /// Fails if the deadline of the call has passed.
    pub(super) fn check_deadline(&self) -> Result<()> {
        match self.deadline {
            Some(deadline) if deadline <= Instant::now() => Err(Error::TimedOut),
            _ => Ok(()),
        }
    }

    /// The deadline of the call, if it has one.
    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Whether the connection can carry files.
    pub(super) const fn is_unix(&self) -> bool {
        self.unix
    }

    /// The first `length` bytes of the body buffer, at most [`PIECE`].
    pub(super) fn piece(&mut self, length: usize) -> &mut [u8] {
        if self.piece.len() < length {
            self.piece.resize(length, 0);
        }
        &mut self.piece[..length]
    }

    /// Lowers the limit of the next wait to the time left for the call.
    fn apply_deadline(&self) -> Result<()> {
        if let Some(deadline) = self.deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::TimedOut);
            }
            self.socket
                .limit(left.min(self.stall))
                .map_err(Error::lost)?;
        }
        Ok(())
    }

    /// Appends a request without its body to the send buffer.
    pub(super) fn push(&mut self, request: &Request<'_>, body: u64) -> Result<()> {
        let before = self.outgoing.len();
        let header = Header {
            head: 0,
            kind: request.kind(),
            core: if self.local { core_here() } else { 0 },
            sequence: self.sent,
            body,
        };
        push_frame(&mut self.outgoing, header, |out| request.encode(out));
        if self.outgoing.len() - before - HEADER_BYTES > MAX_REQUEST_HEAD_BYTES as usize {
            self.outgoing.truncate(before);
            return Err(Error::Protocol(
                "the arguments of the request are too long".to_owned(),
            ));
        }
        self.sent = self.sent.wrapping_add(1);
        Ok(())
    }

    /// Appends bytes of a body to the send buffer.
    pub(super) fn push_bytes(&mut self, bytes: &[u8]) {
        self.outgoing.extend_from_slice(bytes);
    }

    /// Sends the send buffer.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.apply_deadline()?;
        self.socket
            .send(&self.outgoing, false)
            .map_err(Error::lost)?;
        self.outgoing.clear();
        Ok(())
    }

    /// Sends a request with its body.
    pub(super) fn send(&mut self, request: &Request<'_>, body: RequestBody<'_>) -> Result<()> {
        self.outgoing.clear();
        self.push(request, body.len())?;
        match body {
            RequestBody::None => self.flush(),
            RequestBody::Slice(bytes) if bytes.len() <= MAX_COPIED => {
                self.push_bytes(bytes);
                self.flush()
            }
            RequestBody::Slice(bytes) => {
                self.apply_deadline()?;
                self.socket
                    .send_both(&self.outgoing, bytes)
                    .map_err(Error::lost)?;
                self.outgoing.clear();
                Ok(())
            }
            RequestBody::Reader(size, reader) => self.send_from(size, reader),
        }
    }

    /// Sends the send buffer and `size` bytes of `reader`, piece by piece.
    fn send_from(&mut self, size: u64, reader: &mut dyn Read) -> Result<()> {
        let mut left = size;
        if size <= MAX_COPIED as u64 {
            // Read into the send buffer, to be sent with the head.
            let head = self.outgoing.len();
            self.outgoing.resize(head + size as usize, 0);
            if let Err(error) = reader.read_exact(&mut self.outgoing[head..]) {
                self.forget_unsent();
                return Err(Error::Body(error));
            }
            return self.flush();
        }
        loop {
            let length = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            if self.piece.len() < length {
                self.piece.resize(length, 0);
            }
            if let Err(error) = reader.read_exact(&mut self.piece[..length]) {
                // With the first piece, nothing of the request has been sent.
                if left == size {
                    self.forget_unsent();
                }
                return Err(Error::Body(error));
            }
            left -= length as u64;
            self.apply_deadline()?;
            let piece = &self.piece[..length];
            self.socket
                .send_both(&self.outgoing, piece)
                .map_err(Error::lost)?;
            self.outgoing.clear();
            if left == 0 {
                return Ok(());
            }
        }
    }

    /// Drops a request of which nothing has been sent.
    fn forget_unsent(&mut self) {
        self.outgoing.clear();
        self.sent = self.sent.wrapping_sub(1);
    }

    /// Receives the next answer up to the end of its head.
    pub(super) fn receive(&mut self) -> Result<Answer> {
        self.require(HEADER_BYTES)?;
        let mut bytes = [0; HEADER_BYTES];
        bytes.copy_from_slice(&self.incoming.bytes()[..HEADER_BYTES]);
        let header = Header::decode(&bytes, MAX_REPLY_HEAD_BYTES)?;
        let outcome = Outcome::of(header.kind).ok_or(Malformed("an unknown outcome"))?;
        if header.sequence != self.answered {
            return Err(Malformed("an answer to another request").into());
        }
        self.incoming.consume(HEADER_BYTES);
        let head = header.head as usize;
        self.require(head)?;
        self.answered = self.answered.wrapping_add(1);
        Ok(Answer {
            outcome,
            head,
            body: header.body,
        })
    }

    /// Like [`receive`](Self::receive); also returns a file sent with the answer. The connection must have been clean
    /// before the request.
    pub(super) fn receive_with_file(&mut self) -> Result<(Answer, Option<OwnedFd>)> {
        self.apply_deadline()?;
        let received =
            self.incoming
                .receive_with_file(&self.socket, HEADER_BYTES, &mut self.busy_poll);
        match received.map_err(Error::lost)? {
            (0, _) => Err(Error::Lost(io::ErrorKind::UnexpectedEof.into())),
            (_, file) => Ok((self.receive()?, file)),
        }
    }

    fn require(&mut self, count: usize) -> Result<()> {
        while self.incoming.bytes().len() < count {
            self.apply_deadline()?;
            match self
                .incoming
                .receive(&self.socket, count, &mut self.busy_poll)
            {
                Ok(0) => return Err(Error::Lost(io::ErrorKind::UnexpectedEof.into())),
                Ok(_) => {}
                Err(error) => return Err(Error::lost(error)),
            }
        }
        Ok(())
    }

    /// The head of the last received answer.
    pub(super) fn head(&self, answer: &Answer) -> &[u8] {
        &self.incoming.bytes()[..answer.head]
    }

    /// Drops the head of the last received answer.
    pub(super) fn drop_head(&mut self, answer: &Answer) {
        self.incoming.consume(answer.head);
    }

    /// Receives at least one and at most `out.len()` bytes of a body of which `left` bytes are missing. Receives straight
    /// into `out` if none are buffered.
    pub(super) fn read_body(&mut self, out: &mut [u8], left: u64) -> Result<usize> {
        let max = usize::try_from(left).unwrap_or(usize::MAX).min(out.len());
        let out = &mut out[..max];
        let count = self.incoming.take(out);
        if count > 0 || out.is_empty() {
            return Ok(count);
        }
        self.apply_deadline()?;
        // A receive call that already has some bytes sleeps until `LOW_WATER` more arrive, so at least twice that many
        // must be missing.
        let enough_left = max >= LOW_WATER && left >= 2 * LOW_WATER as u64;
        self.set_low_water(!self.unix && enough_left)?;
        match self.socket.receive(out) {
            Ok(0) => Err(Error::Lost(io::ErrorKind::UnexpectedEof.into())),
            Ok(count) => Ok(count),
            Err(error) => Err(Error::lost(error)),
        }
    }

    /// If `wanted`, a wait on TCP ends after [`LOW_WATER`] bytes, so the thread wakes once for all of them.
    pub(super) fn set_low_water(&mut self, wanted: bool) -> Result<()> {
        if wanted != self.low_water {
            let bytes = if wanted { LOW_WATER } else { 1 };
            self.socket.set_low_water(bytes).map_err(Error::lost)?;
            self.low_water = wanted;
        }
        Ok(())
    }
}

/// The current core plus one; 0 if unknown.
fn core_here() -> u16 {
    // SAFETY: the function takes no arguments.
    let core = unsafe { libc::sched_getcpu() };
    u16::try_from(core + 1).unwrap_or(0)
}

/// Performs the handshake (see `protocol`).
fn greet(socket: &Socket, options: &Options) -> Result<()> {
    let connect = Error::Connect;
    let unknown = || Error::Refused("the process listening there is not a gateway");
    socket
        .send(&protocol::hello(PROTOCOL_VERSION, 0), false)
        .map_err(connect)?;
    let mut hello = [0; HELLO_BYTES];
    socket.receive_exact(&mut hello).map_err(connect)?;
    let (version, verdict) = protocol::read_hello(&hello).ok_or_else(unknown)?;
    if version != PROTOCOL_VERSION {
        return Err(Error::Refused(
            "it speaks a different version of the protocol",
        ));
    }
    match Verdict::of(verdict) {
        Some(Verdict::Welcome) => return Ok(()),
        Some(Verdict::ProveToken) => {}
        Some(verdict) => return Err(refusal(verdict)),
        None => return Err(unknown()),
    }
    let mut challenge = [0; CHALLENGE_BYTES];
    socket.receive_exact(&mut challenge).map_err(connect)?;
    let Some(token) = &options.token else {
        return Err(Error::Refused("it demands a token, and none is set"));
    };
    socket
        .send(&prove(token, &challenge), false)
        .map_err(connect)?;
    let mut verdict = [0; 1];
    socket.receive_exact(&mut verdict).map_err(connect)?;
    match Verdict::of(verdict[0]) {
        Some(Verdict::Welcome) => Ok(()),
        Some(verdict) => Err(refusal(verdict)),
        None => Err(unknown()),
    }
}

const fn refusal(verdict: Verdict) -> Error {
    Error::Refused(match verdict {
        Verdict::WrongVersion => "it speaks a different version of the protocol",
        Verdict::WrongToken => "the token is wrong",
        Verdict::Full => "it has reached its maximum number of connections",
        Verdict::Welcome | Verdict::ProveToken => "its handshake is malformed",
    })
}
