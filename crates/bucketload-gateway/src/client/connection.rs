//! One connection: handshake, sending of a request, receiving of its answer.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use super::error::{Error, Result};
use super::options::Options;
use crate::address::Address;
use crate::frames::Incoming;
use crate::patience::Patience;
use crate::protocol::codec::Malformed;
use crate::protocol::request::Request;
use crate::protocol::{
    self, HEADER_BYTES, HELLO_BYTES, Header, MAX_REPLY_HEAD_BYTES, MAX_REQUEST_HEAD_BYTES, Outcome,
    PROTOCOL_VERSION, Verdict, push_frame,
};
use crate::socket::Socket;
use crate::token::CHALLENGE_BYTES;

/// Bodies up to this are gathered before they are sent; larger ones are sent in pieces of this.
pub(super) const PIECE: usize = 256 << 10;
/// Bodies up to this are copied behind their head, to leave in one piece.
const COPIED: usize = 16 << 10;

/// Bytes of a large body that are waited for at a time.
const LOW_WATER: usize = 256 << 10;

/// The bytes that a request carries.
pub(super) enum Outgoing<'a> {
    None,
    Slice(&'a [u8]),
    /// As many bytes as said.
    Reader(u64, &'a mut dyn Read),
}

impl Outgoing<'_> {
    const fn len(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Slice(bytes) => bytes.len() as u64,
            Self::Reader(size, _) => *size,
        }
    }
}

/// What an answer begins with. Its body follows.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) outcome: Outcome,
    /// Length of the head, which lies in the connection's buffer until it is consumed.
    pub(super) head: usize,
    /// Length of the body.
    pub(super) body: u64,
}

#[derive(Debug)]
pub(super) struct Connection {
    socket: Socket,
    incoming: Incoming,
    outgoing: Vec<u8>,
    /// For bodies that come from a reader; grows to what it is needed for, at most [`PIECE`].
    piece: Vec<u8>,
    /// Of the next request, and of the next answer.
    sent: u32,
    answered: u32,
    stall: Duration,
    /// End of the call, when it has a time limit.
    deadline: Option<Instant>,
    patience: Patience,
    /// It is a Unix socket, over which files can come.
    unix: bool,
    /// The server is on this host, and may follow this thread to its core.
    local: bool,
    /// Waits are for this many bytes at least, not for each packet.
    low_water: bool,
}

impl Connection {
    /// Connects and greets.
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
            incoming: Incoming::default(),
            outgoing: Vec::new(),
            piece: Vec::new(),
            sent: 0,
            answered: 0,
            stall: options.stall_timeout,
            deadline: None,
            patience: Patience::new(options.patience),
            unix: matches!(options.address, Address::Unix(_)),
            local: options.address.is_local(),
            low_water: false,
        })
    }

    /// Whether the connection can be used for a call.
    pub(super) fn is_usable(&self) -> bool {
        self.socket.is_quiet()
    }

    /// Whether every request has been answered, and nothing else has come.
    pub(super) fn is_clean(&self) -> bool {
        self.sent == self.answered && self.incoming.bytes().is_empty()
    }

    /// Sets the end of the call that begins.
    pub(super) fn set_deadline(&mut self, deadline: Option<Instant>) -> Result<()> {
        if deadline.is_none() && self.deadline.is_some() {
            self.socket.limit(self.stall).map_err(Error::lost)?;
        }
        self.deadline = deadline;
        Ok(())
    }

    /// Fails when the time of the call is up.
    pub(super) fn check_deadline(&self) -> Result<()> {
        match self.deadline {
            Some(deadline) if deadline <= Instant::now() => Err(Error::TimedOut),
            _ => Ok(()),
        }
    }

    /// The end of the call, if it has one.
    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Whether files can come.
    pub(super) const fn is_unix(&self) -> bool {
        self.unix
    }

    /// The beginning of the buffer for bodies, `length` bytes and at most [`PIECE`].
    pub(super) fn piece(&mut self, length: usize) -> &mut [u8] {
        if self.piece.len() < length {
            self.piece.resize(length, 0);
        }
        &mut self.piece[..length]
    }

    /// Lowers the limit of the next wait to what is left of the call.
    fn hurry(&self) -> Result<()> {
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

    /// Puts a request without its body into the buffer.
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

    /// Puts bytes of a body into the buffer.
    pub(super) fn push_bytes(&mut self, bytes: &[u8]) {
        self.outgoing.extend_from_slice(bytes);
    }

    /// Sends the buffer.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.hurry()?;
        self.socket
            .send(&self.outgoing, false)
            .map_err(Error::lost)?;
        self.outgoing.clear();
        Ok(())
    }

    /// Sends a request with its body.
    pub(super) fn send(&mut self, request: &Request<'_>, body: Outgoing<'_>) -> Result<()> {
        self.outgoing.clear();
        self.push(request, body.len())?;
        match body {
            Outgoing::None => self.flush(),
            Outgoing::Slice(bytes) if bytes.len() <= COPIED => {
                self.push_bytes(bytes);
                self.flush()
            }
            Outgoing::Slice(bytes) => {
                self.hurry()?;
                self.socket
                    .send_both(&self.outgoing, bytes)
                    .map_err(Error::lost)?;
                self.outgoing.clear();
                Ok(())
            }
            Outgoing::Reader(size, reader) => self.send_from(size, reader),
        }
    }

    /// Sends `size` bytes of `reader` behind the buffer, piece by piece.
    fn send_from(&mut self, size: u64, reader: &mut dyn Read) -> Result<()> {
        let mut left = size;
        if size <= COPIED as u64 {
            // To where it leaves in one piece with its head.
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
                // Nothing of it has left if this is the first piece.
                if left == size {
                    self.forget_unsent();
                }
                return Err(Error::Body(error));
            }
            left -= length as u64;
            self.hurry()?;
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

    /// Nothing of the request in the buffer has left, and nothing will.
    fn forget_unsent(&mut self) {
        self.outgoing.clear();
        self.sent = self.sent.wrapping_sub(1);
    }

    /// Receives the beginning of the next answer, up to the end of its head.
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

    /// The same with the file that comes with it, if one does. The connection must have been clean before the
    /// request.
    pub(super) fn receive_with_file(&mut self) -> Result<(Answer, Option<OwnedFd>)> {
        self.hurry()?;
        let received =
            self.incoming
                .receive_with_file(&self.socket, HEADER_BYTES, &mut self.patience);
        match received.map_err(Error::lost)? {
            (0, _) => Err(Error::Lost(io::ErrorKind::UnexpectedEof.into())),
            (_, file) => Ok((self.receive()?, file)),
        }
    }

    fn require(&mut self, count: usize) -> Result<()> {
        while self.incoming.bytes().len() < count {
            self.hurry()?;
            match self
                .incoming
                .receive(&self.socket, count, &mut self.patience)
            {
                Ok(0) => return Err(Error::Lost(io::ErrorKind::UnexpectedEof.into())),
                Ok(_) => {}
                Err(error) => return Err(Error::lost(error)),
            }
        }
        Ok(())
    }

    /// The head of the answer that was received last.
    pub(super) fn head(&self, answer: &Answer) -> &[u8] {
        &self.incoming.bytes()[..answer.head]
    }

    /// Drops that head.
    pub(super) fn drop_head(&mut self, answer: &Answer) {
        self.incoming.consume(answer.head);
    }

    /// Receives bytes of a body of which `left` are to come, at least one and at most `out.len()`, straight into
    /// `out` where none are there yet.
    pub(super) fn read_body(&mut self, out: &mut [u8], left: u64) -> Result<usize> {
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(out.len());
        let out = &mut out[..most];
        let count = self.incoming.take(out);
        if count > 0 || out.is_empty() {
            return Ok(count);
        }
        self.hurry()?;
        // A call that has some bytes already sleeps until as many as the mark have come on top of them. So behind
        // whatever it has, the mark's worth must be to come.
        let worth = most >= LOW_WATER && left >= 2 * LOW_WATER as u64;
        self.set_low_water(!self.unix && worth)?;
        match self.socket.receive(out) {
            Ok(0) => Err(Error::Lost(io::ErrorKind::UnexpectedEof.into())),
            Ok(count) => Ok(count),
            Err(error) => Err(Error::lost(error)),
        }
    }

    /// With it a wait for TCP ends when [`LOW_WATER`] bytes are there, so that the processor wakes once for them.
    pub(super) fn set_low_water(&mut self, wanted: bool) -> Result<()> {
        if wanted != self.low_water {
            let bytes = if wanted { LOW_WATER } else { 1 };
            self.socket.set_low_water(bytes).map_err(Error::lost)?;
            self.low_water = wanted;
        }
        Ok(())
    }
}

/// The core that runs this, plus one; 0 if the system does not tell.
fn core_here() -> u16 {
    // SAFETY: it takes no arguments.
    let core = unsafe { libc::sched_getcpu() };
    u16::try_from(core + 1).unwrap_or(0)
}

/// The handshake (see `protocol`).
fn greet(socket: &Socket, options: &Options) -> Result<()> {
    let connect = Error::Connect;
    let unknown = || Error::Refused("what listens there is no gateway");
    socket
        .send(&protocol::hello(PROTOCOL_VERSION, 0), false)
        .map_err(connect)?;
    let mut hello = [0; HELLO_BYTES];
    socket.receive_exact(&mut hello).map_err(connect)?;
    let (version, verdict) = protocol::read_hello(&hello).ok_or_else(unknown)?;
    if version != PROTOCOL_VERSION {
        return Err(Error::Refused("it speaks another version of the protocol"));
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
        .send(&token.prove(&challenge), false)
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
        Verdict::WrongVersion => "it speaks another version of the protocol",
        Verdict::WrongToken => "the token is not its token",
        Verdict::Full => "it has as many connections as it may have",
        Verdict::Welcome | Verdict::ProveToken => "its handshake makes no sense",
    })
}
