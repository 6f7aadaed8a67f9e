//! One connection: handshake, then requests until the client leaves or sends what is none.

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::accept::{Guest, Shared};
use super::affinity::Affinity;
use super::body::{Upload, answer_write};
use super::files::FileUpload;
use super::output::Output;
use super::splice::Splice;
use crate::frames::Incoming;
use crate::patience::Patience;
use crate::protocol::codec::Malformed;
use crate::protocol::request::Request;
use crate::protocol::{
    HEADER_BYTES, HELLO_BYTES, Header, MAX_REQUEST_HEAD_BYTES, Outcome, PROTOCOL_VERSION, Verdict,
    hello, read_hello,
};
use crate::socket::Socket;
use crate::token::{CHALLENGE_BYTES, PROOF_BYTES};

/// Longest time that a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Longest wait for a client that has been refused to close its side, and most bytes that are read meanwhile.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 1 << 20;

/// Why a connection ends.
pub(super) enum End {
    /// It broke, or the client left.
    Socket,
    /// The client sent what is no request.
    Malformed(u32, Malformed),
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Socket
    }
}

/// A connection and its buffers.
pub(super) struct Connection<'s> {
    pub(super) shared: &'s Shared,
    guest: &'s Guest,
    pub(super) socket: &'s Socket,
    pub(super) incoming: Incoming,
    pub(super) output: Output,
    /// For the bytes of large objects; empty until there is one.
    pub(super) piece: Vec<u8>,
    /// For bytes that are moved within the kernel; made for the first ones.
    pub(super) splice: Option<Splice>,
    /// The object to whose file the client writes.
    pub(super) file: Option<FileUpload>,
    /// The last request has written an object or a part.
    pub(super) has_written: bool,
    patience: Patience,
    affinity: Affinity,
}

impl<'s> Connection<'s> {
    pub(super) fn new(shared: &'s Shared, guest: &'s Guest) -> Self {
        Self {
            shared,
            socket: &guest.socket,
            guest,
            incoming: Incoming::default(),
            output: Output::default(),
            piece: Vec::new(),
            splice: None,
            file: None,
            has_written: false,
            patience: Patience::new(shared.options.patience),
            affinity: Affinity::default(),
        }
    }

    /// Serves until the end.
    pub(super) fn run(mut self) {
        let greeted = self.greet();
        if !matches!(greeted, Ok(true)) {
            return;
        }
        if let Err(End::Malformed(sequence, malformed)) = self.serve() {
            self.output.push(Outcome::Refused, sequence, 0, |out| {
                out.extend_from_slice(malformed.0.as_bytes());
            });
            // The client may be gone, which is what it will be in a moment anyway.
            let _ = self
                .output
                .flush(self.socket, false)
                .and_then(|()| self.linger());
        }
    }

    /// Waits a moment for the client to take the last answer: the kernel drops it when a connection is closed on
    /// which something has come that nobody has read.
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

    /// The handshake. Returns whether the client is welcome.
    fn greet(&mut self) -> io::Result<bool> {
        let end = Instant::now() + HANDSHAKE;
        let mut bytes = [0; HELLO_BYTES];
        self.hear(&mut bytes, end)?;
        // Whoever does not speak the protocol at all is not answered.
        let Some((version, 0)) = read_hello(&bytes) else {
            return Ok(false);
        };
        let answer = |verdict: Verdict| {
            self.socket
                .send(&hello(PROTOCOL_VERSION, verdict as u8), false)
        };
        if version != PROTOCOL_VERSION {
            answer(Verdict::WrongVersion)?;
            return Ok(false);
        }
        if let Some(token) = &self.shared.options.token {
            let mut challenge = [0; CHALLENGE_BYTES];
            fill_random(&mut challenge)?;
            let greeting = hello(PROTOCOL_VERSION, Verdict::ProveToken as u8);
            self.socket.send_both(&greeting, &challenge)?;
            let mut proof = [0; PROOF_BYTES];
            self.hear(&mut proof, end)?;
            let verdict = match token.verify(&challenge, &proof) {
                true => Verdict::Welcome,
                false => Verdict::WrongToken,
            };
            self.socket.send(&[verdict as u8], false)?;
            if verdict != Verdict::Welcome {
                return Ok(false);
            }
        } else {
            answer(Verdict::Welcome)?;
        }
        self.socket.limit(self.shared.options.stall_timeout)?;
        Ok(true)
    }

    /// Receives what a handshake consists of. All of it has one time limit: whoever has not shown a token must not
    /// keep a place for long.
    fn hear(&self, bytes: &mut [u8], end: Instant) -> io::Result<()> {
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

    /// Performs requests.
    fn serve(&mut self) -> Result<(), End> {
        loop {
            // In this order: who stops the server sets the one before it looks at the other.
            let writing = self.file.is_some();
            self.guest.busy.store(writing, Ordering::SeqCst);
            if (self.shared.is_stopping() && !writing) || !self.next_request()? {
                self.output.flush(self.socket, false)?;
                return Ok(());
            }
            self.guest.busy.store(true, Ordering::SeqCst);
            let mut bytes = [0; HEADER_BYTES];
            bytes.copy_from_slice(&self.incoming.bytes()[..HEADER_BYTES]);
            let header =
                Header::decode(&bytes, MAX_REQUEST_HEAD_BYTES).map_err(|m| End::Malformed(0, m))?;
            let shared = self.shared;
            let core = header.core.checked_sub(1).map(usize::from);
            let guest = self.guest;
            self.affinity
                .follow(core, &shared.cores, || shared.is_crowded_by(guest));
            let whole = HEADER_BYTES + header.head as usize;
            if self.incoming.bytes().len() < whole {
                self.output.flush(self.socket, false)?;
                self.incoming
                    .require(self.socket, whole, &mut self.patience)?;
            }
            self.perform(&header, whole)?;
            if self.output.is_full() {
                self.output.flush(self.socket, false)?;
            }
        }
    }

    /// Waits until there is the header of a request; `false` when the client has left.
    fn next_request(&mut self) -> Result<bool, End> {
        while self.incoming.bytes().len() < HEADER_BYTES {
            self.output.flush(self.socket, false)?;
            // Whoever writes will write again, and is busy with the answer now.
            if std::mem::take(&mut self.has_written) {
                self.shared.store.prepare();
            }
            let between = self.incoming.bytes().is_empty();
            let received = self
                .incoming
                .receive(self.socket, HEADER_BYTES, &mut self.patience);
            match received {
                Ok(0) if between => return Ok(false),
                Ok(0) => return Err(End::Socket),
                Ok(_) => {}
                // A client may be silent between requests for as long as it likes.
                Err(error) if between && error.kind() == io::ErrorKind::TimedOut => {
                    if self.shared.is_stopping() && self.file.is_none() {
                        return Ok(false);
                    }
                }
                Err(_) => return Err(End::Socket),
            }
        }
        Ok(true)
    }

    /// Performs the request whose header and head are the first `whole` bytes that came.
    fn perform(&mut self, header: &Header, whole: usize) -> Result<(), End> {
        let refused = |malformed| End::Malformed(header.sequence, malformed);
        // The request borrows its texts: the head gets a place of its own when a body is still to be received, and
        // stays where it is otherwise.
        let head = &self.incoming.bytes()[HEADER_BYTES..whole];
        let request = Request::decode(header.kind, head).map_err(refused)?;
        if header.body > 0 && !request.has_body() {
            return Err(refused(Malformed("a body where there is none")));
        }
        if self.file.is_some() != request.needs_file() {
            return Err(refused(Malformed("a request out of turn")));
        }
        if let Request::PutFile(name, size) = request {
            self.file = super::files::offer(
                self.shared,
                self.socket,
                &mut self.output,
                header.sequence,
                name,
                size,
            )?;
            self.incoming.consume(whole);
            return Ok(());
        }
        if let Some(file) = self.file.take() {
            self.has_written = file.end(&mut self.output, header.sequence, request);
            self.incoming.consume(whole);
            return Ok(());
        }
        if request.has_body() {
            let there = &self.incoming.bytes()[whole..];
            let size = usize::try_from(header.body).unwrap_or(usize::MAX);
            if let Some(body) = there.get(..size) {
                let store = &*self.shared.store;
                let written = Upload::begin(store, header.body, request).and_then(|mut upload| {
                    upload.writer().write(body)?;
                    upload.commit()
                });
                self.has_written = written.is_ok();
                answer_write(&mut self.output, header.sequence, &written);
                self.incoming.consume(whole + size);
                return Ok(());
            }
            let head = head.to_vec();
            self.incoming.consume(whole);
            let request = Request::decode(header.kind, &head).map_err(refused)?;
            return self.write(header, request);
        }
        super::perform::answer(
            self.shared,
            self.socket,
            &mut self.output,
            header.sequence,
            request,
        )?;
        self.incoming.consume(whole);
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
