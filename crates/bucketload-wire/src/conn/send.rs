//! Sending heads and bodies: the head and the first body bytes in one vectored write, then the
//! rest of the body straight from the caller's memory.

use std::future::poll_fn;
use std::io::IoSlice;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use super::Conn;
use crate::error::Error;
use crate::parked::{Parked, park};
use crate::scratch::{SMALL, Spill};

/// Number of body pieces in one vectored write.
const PIECES: usize = 4;
/// A vectored write is issued once it has this many body bytes.
const BATCH: usize = 256 * 1024;

/// How sending a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendEnd {
    /// Everything was sent.
    Complete,
    /// The peer answered before it had taken the whole body. The answer can be received, but the
    /// connection cannot be reused afterwards and is marked broken.
    Answered {
        /// Body bytes handed to the kernel.
        sent: u64,
    },
}

impl Conn {
    /// Sends a head and a body that lies in memory, in one vectored write if the socket takes it.
    /// Either may be empty.
    ///
    /// # Errors
    /// [`Error::Reset`] or [`Error::ClosedBeforeAnswer`] when the peer is gone. The connection is
    /// broken then, but an answer that has already arrived can still be received.
    pub async fn send(&mut self, head: &[u8], body: &[u8]) -> Result<(), Error> {
        let mut next = Some(body);
        let len = body.len() as u64;
        self.send_pieces(head, len, |_| next.take().unwrap_or_default(), false)
            .await
            .map(drop)
    }

    /// Sends a head and a body of `len` bytes in pieces. `piece(offset)` returns at least one byte
    /// of the body from `offset` on; it is called once per piece, in order.
    ///
    /// # Errors
    /// As [`Conn::send`]; [`Error::ShortBody`] when a piece is empty.
    pub async fn send_body<P: AsRef<[u8]>>(
        &mut self,
        head: &[u8],
        len: u64,
        piece: impl FnMut(u64) -> P,
    ) -> Result<(), Error> {
        self.send_pieces(head, len, piece, false).await.map(drop)
    }

    /// As [`Conn::send_body`], for clients. When the socket takes no more and the peer has begun to
    /// answer (for example because it refuses the request), sending stops and reports that instead
    /// of waiting for a peer that no longer reads.
    ///
    /// # Errors
    /// As [`Conn::send_body`].
    pub fn send_request<P: AsRef<[u8]>>(
        &mut self,
        head: &[u8],
        len: u64,
        piece: impl FnMut(u64) -> P,
    ) -> impl Future<Output = Result<SendEnd, Error>> {
        self.send_pieces(head, len, piece, true)
    }

    /// As [`Conn::send_request`] if `watch`, otherwise as [`Conn::send_body`], except that one send
    /// call is made at once, before the caller awaits anything. Returns `None` if that sent everything,
    /// which is the rule for small requests. The caller's future therefore holds only a pointer to the
    /// state of a longer send.
    ///
    /// # Errors
    /// As [`Conn::send_body`].
    #[inline]
    pub fn send_now<'c, P, F>(
        &'c mut self,
        head: &'c [u8],
        len: u64,
        piece: F,
        watch: bool,
    ) -> Result<Option<Parked<impl Future<Output = Result<SendEnd, Error>> + use<'c, P, F>>>, Error>
    where
        P: AsRef<[u8]> + 'c,
        F: FnMut(u64) -> P + 'c,
    {
        if self.is_broken() {
            return Err(Error::Broken);
        }
        self.send_broken = true;
        let has_head = !head.is_empty();
        if has_head {
            self.awaiting = true;
        }
        let Some(unsent) = self.send_at_once(Window::new(head, len, piece))? else {
            self.has_sent(has_head);
            return Ok(None);
        };
        Ok(Some(park(async move {
            let end = self.send_rest(unsent, watch).await?;
            if end == SendEnd::Complete {
                self.has_sent(has_head);
            }
            Ok(end)
        })))
    }

    /// Records that everything was sent.
    #[inline]
    const fn has_sent(&mut self, head: bool) {
        if head {
            self.fresh = false;
        }
        self.send_broken = false;
    }

    async fn send_pieces<P: AsRef<[u8]>>(
        &mut self,
        head: &[u8],
        len: u64,
        piece: impl FnMut(u64) -> P,
        watch: bool,
    ) -> Result<SendEnd, Error> {
        match self.send_now(head, len, piece, watch)? {
            None => Ok(SendEnd::Complete),
            Some(rest) => rest.await,
        }
    }

    /// Sends what the socket takes now, without waiting, and returns the rest, if any. Small
    /// requests are sent completely here, so the sender's future stores none of their state.
    #[inline]
    fn send_at_once<'h, P: AsRef<[u8]>, F: FnMut(u64) -> P>(
        &mut self,
        mut window: Window<'h, P, F>,
    ) -> Result<Option<Window<'h, P, F>>, Error> {
        if self.tls.is_some() {
            return Ok(Some(window));
        }
        window.fill()?;
        if window.is_empty() {
            return Ok(None);
        }
        let mut parts = [IoSlice::new(&[]); PIECES + 1];
        let used = window.parts(&mut parts);
        let sent = match self.sock.try_send(&parts[..used]) {
            Ok(sent) => sent,
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => 0,
            Err(e) => return Err(self.failed(e)),
        };
        if sent == window.head.len() + window.ready && window.taken == window.len {
            return Ok(None);
        }
        window.advance(sent);
        Ok(Some(window))
    }

    async fn send_rest<P: AsRef<[u8]>, F: FnMut(u64) -> P>(
        &mut self,
        mut window: Window<'_, P, F>,
        watch: bool,
    ) -> Result<SendEnd, Error> {
        let mut budget = YieldBudget::default();
        loop {
            window.fill()?;
            if window.is_empty() {
                break;
            }
            let sent = poll_fn(|cx| {
                let mut parts = [IoSlice::new(&[]); PIECES + 1];
                let used = window.parts(&mut parts);
                match self.poll_send(cx, &parts[..used]) {
                    Poll::Ready(result) => Poll::Ready(result.map(Some)),
                    Poll::Pending if watch && self.poll_answered(cx) => Poll::Ready(Ok(None)),
                    Poll::Pending => Poll::Pending,
                }
            })
            .await?;
            match sent {
                Some(n) => {
                    window.advance(n);
                    budget.moved(n).await;
                }
                None => {
                    return Ok(SendEnd::Answered {
                        sent: window.body_sent(),
                    });
                }
            }
        }
        if let Some(layer) = &mut self.tls {
            poll_fn(|cx| layer.poll_flush(cx, &mut self.sock))
                .await
                .map_err(|e| self.failed(e))?;
        }
        Ok(SendEnd::Complete)
    }

    /// Sends some of `parts`. Returns the number of plaintext bytes taken.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<Result<usize, Error>> {
        match &mut self.tls {
            None => {
                let sent = ready!(self.sock.poll_send(cx, parts));
                Poll::Ready(sent.map_err(|e| self.failed(e)))
            }
            Some(layer) => {
                let sent = ready!(layer.poll_send(cx, &mut self.sock, parts));
                Poll::Ready(sent.map_err(|e| self.layer_failed(e)))
            }
        }
    }

    /// True if the peer has begun to answer or has ended the connection.
    fn poll_answered(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.spill.is_empty() {
            return true;
        }
        if self.tls.is_none() {
            return self.sock.poll_readable(cx).is_ready();
        }
        loop {
            match self.poll_recv(cx, SMALL, &mut Spill::push) {
                Poll::Ready(Ok(())) if self.spill.is_empty() => {}
                Poll::Ready(_) => return true,
                Poll::Pending => return false,
            }
        }
    }
}

/// Bytes that a connection may move before it yields to the other tasks of its thread. A body that
/// never has to wait would otherwise occupy the thread to its end (some 9 ms for 64 MiB) and delay
/// every timer of the thread by that much.
const YIELD_BYTES: usize = 512 * 1024;

/// The same limit as a time, for callers that read the clock anyway. Yielding costs a system call,
/// and a fast transfer needs fewer of them with this limit.
const YIELD_TIME: Duration = Duration::from_micros(100);

/// Yields to other tasks after [`YIELD_BYTES`] or [`YIELD_TIME`].
#[derive(Debug, Default)]
pub(super) struct YieldBudget {
    bytes: usize,
    began: Option<Instant>,
}

impl YieldBudget {
    /// Counts `n` more bytes.
    pub(super) async fn moved(&mut self, n: usize) {
        self.bytes += n;
        if self.bytes >= YIELD_BYTES {
            self.bytes = 0;
            tokio::task::yield_now().await;
        }
    }

    /// Notes that more bytes were moved until `now`.
    pub(super) async fn moved_by(&mut self, now: Instant) {
        if now - *self.began.get_or_insert(now) >= YIELD_TIME {
            self.began = None;
            tokio::task::yield_now().await;
        }
    }
}

/// The unsent rest of the head and the next pieces of the body.
struct Window<'h, P, F> {
    head: &'h [u8],
    pieces: [Option<P>; PIECES],
    /// Number of pieces in use, from the front.
    count: usize,
    /// Bytes of the first piece already sent.
    at: usize,
    /// Unsent bytes in `pieces`.
    ready: usize,
    /// Body bytes obtained from `source`.
    taken: u64,
    len: u64,
    source: F,
}

impl<'h, P: AsRef<[u8]>, F: FnMut(u64) -> P> Window<'h, P, F> {
    fn new(head: &'h [u8], len: u64, source: F) -> Self {
        Self {
            head,
            pieces: [const { None }; PIECES],
            count: 0,
            at: 0,
            ready: 0,
            taken: 0,
            len,
            source,
        }
    }

    fn fill(&mut self) -> Result<(), Error> {
        while self.taken < self.len && self.count < PIECES && self.ready < BATCH {
            let piece = (self.source)(self.taken);
            let left = self.len - self.taken;
            let size = (piece.as_ref().len() as u64).min(left);
            if size == 0 {
                return Err(Error::ShortBody { missing: left });
            }
            self.taken += size;
            self.ready += size as usize;
            self.pieces[self.count] = Some(piece);
            self.count += 1;
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.head.is_empty() && self.ready == 0
    }

    fn body_sent(&self) -> u64 {
        self.taken - self.ready as u64
    }

    /// Writes the unsent slices into `parts`; returns how many there are.
    fn parts<'a>(&'a self, parts: &mut [IoSlice<'a>; PIECES + 1]) -> usize {
        let mut used = 0;
        if !self.head.is_empty() {
            parts[0] = IoSlice::new(self.head);
            used = 1;
        }
        let mut left = self.ready;
        let mut skip = self.at;
        for piece in self.pieces[..self.count].iter().flatten() {
            // The last piece may be longer than the body's announced length.
            let bytes = &piece.as_ref()[skip..];
            let bytes = &bytes[..bytes.len().min(left)];
            skip = 0;
            left -= bytes.len();
            parts[used] = IoSlice::new(bytes);
            used += 1;
        }
        used
    }

    fn advance(&mut self, mut n: usize) {
        let of_head = n.min(self.head.len());
        self.head = &self.head[of_head..];
        n -= of_head;
        self.ready -= n;
        while n > 0 {
            let Some(first) = &self.pieces[0] else { break };
            let rest = first.as_ref().len() - self.at;
            if n < rest && self.ready > 0 {
                self.at += n;
                return;
            }
            n -= n.min(rest);
            self.at = 0;
            self.pieces[..self.count].rotate_left(1);
            self.count -= 1;
            self.pieces[self.count] = None;
        }
    }
}
