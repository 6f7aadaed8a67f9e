//! Receiving exactly n body bytes.
//!
//! Large bodies are received with a low-water mark (`SO_RCVLOWAT`): the kernel wakes the reader
//! once per mark instead of once per segment, which more than halves the CPU time of both ends.
//! The mark obeys these rules, each of which prevents a hang or a bug:
//!
//! 1. Heads are read with a mark of 1; it is raised for bodies larger than the mark only.
//! 2. It never exceeds what is still to come: it is lowered before the reader sleeps, and back to
//!    1 when the body is complete.
//! 3. When a step takes longer than [`SLOW_STEP`], the link is slow and the mark falls to
//!    [`SLOW_MARK`], so that progress stays visible.
//! 4. The kernel caps the mark by the receive buffer's limit and enlarges the buffer to fit it;
//!    the buffer size itself is never set, since that would end its tuning.

use std::future::poll_fn;
use std::task::ready;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::Conn;
use crate::error::Error;
use crate::scratch::{self, BUFFER};
use crate::sock::Sock;

/// Low-water mark of plain bodies in bytes: safe with the common `tcp_rmem` limit of 6 MiB.
pub(super) const MARK: u64 = 1 << 20;
/// A step that takes longer than this lowers the mark.
pub(super) const SLOW_STEP: Duration = Duration::from_millis(250);
/// The mark on slow links, in bytes.
pub(super) const SLOW_MARK: u64 = 64 * 1024;
/// Plain bodies of which no more than this is left are received with a copy: it drains the socket
/// with one call, where dropping an exact count would leave one `EAGAIN` for the next answer.
const COPY_BELOW: u64 = 64 * 1024;

/// Chooses the mark before each wait.
struct LowWater {
    mark: u64,
    step_began: Instant,
}

impl LowWater {
    fn new(mark: u64) -> Self {
        Self {
            mark,
            step_began: Instant::now(),
        }
    }

    /// Call before waiting for more of the `left` bytes that the socket will still deliver.
    fn before(&self, sock: &mut Sock, left: u64) -> std::io::Result<()> {
        let mark = self.mark.min(left).clamp(1, u64::from(u32::MAX));
        sock.set_low_water(mark as u32)
    }

    /// Call after a wait has delivered bytes.
    fn after(&mut self) {
        let now = Instant::now();
        if now - self.step_began > SLOW_STEP {
            self.mark = self.mark.min(SLOW_MARK);
        }
        self.step_began = now;
    }
}

impl Conn {
    /// Receives and drops exactly `n` body bytes: in the kernel, without copying, where the
    /// connection is plain and the body is large.
    ///
    /// # Errors
    /// [`Error::Closed`] or [`Error::Reset`] when the peer ends the connection early; it is broken
    /// then.
    pub async fn discard(&mut self, n: u64) -> Result<(), Error> {
        let mut left = n - self.take_spill(n);
        if left == 0 {
            return Ok(());
        }
        if left <= COPY_BELOW {
            return self.recv_body(left, |_, _| Ok::<_, Error>(())).await;
        }
        self.begin_recv()?;
        let mut low_water = (left > MARK).then(|| LowWater::new(MARK));
        while left > 0 {
            if let Some(low_water) = &low_water {
                low_water.before(&mut self.sock, left)?;
            }
            let max = usize::try_from(left).unwrap_or(usize::MAX).min(1 << 30);
            let got = poll_fn(|cx| self.sock.poll_discard(cx, max))
                .await
                .map_err(|e| self.failed(e))?;
            if got == 0 {
                return Err(self.ended(true));
            }
            left -= got as u64;
            if let Some(low_water) = &mut low_water {
                low_water.after();
            }
        }
        self.end_recv()
    }

    /// Receives exactly `n` body bytes and shows them to `sink` in order, with the offset of each
    /// piece in the body. Pieces are at most 256 KiB long and lie in memory that is reused at
    /// once.
    ///
    /// # Errors
    /// [`Error::Closed`] or [`Error::Reset`] when the peer ends the connection early; what `sink`
    /// returns. The connection is broken then.
    pub async fn recv_body<E: From<Error>>(
        &mut self,
        n: u64,
        mut sink: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut done = 0;
        self.begin_recv()?;
        while done < n && !self.spill.is_empty() {
            let held = self.spill.as_slice();
            let take = held.len().min((n - done).min(BUFFER as u64) as usize);
            sink(done, &held[..take])?;
            self.spill.consume(take);
            done += take as u64;
        }
        let mut low_water = (n - done > MARK).then(|| LowWater::new(MARK));
        while done < n {
            if let Some(low_water) = &low_water {
                low_water
                    .before(&mut self.sock, n - done)
                    .map_err(Error::from)?;
            }
            done += poll_fn(|cx| self.poll_body(cx, done, n, &mut sink)).await?;
            if let Some(low_water) = &mut low_water {
                low_water.after();
            }
        }
        Ok(self.end_recv()?)
    }

    /// Receives once for a body of which `done` of `n` bytes have been seen.
    fn poll_body<E: From<Error>>(
        &mut self,
        cx: &mut Context<'_>,
        done: u64,
        n: u64,
        sink: &mut impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Poll<Result<u64, E>> {
        scratch::with_buffer(|buffer| match ready!(self.sock.poll_recv(cx, buffer)) {
            Ok(0) => Poll::Ready(Err(self.ended(true).into())),
            Ok(got) => {
                self.awaiting = false;
                let take = got.min(usize::try_from(n - done).unwrap_or(usize::MAX));
                self.spill.push(&buffer[take..got]);
                Poll::Ready(sink(done, &buffer[..take]).map(|()| take as u64))
            }
            Err(e) => Poll::Ready(Err(self.failed(e).into())),
        })
    }

    /// Drops up to `n` bytes of what is held already; returns how many.
    fn take_spill(&mut self, n: u64) -> u64 {
        let take = (self.spill.as_slice().len() as u64).min(n);
        self.spill.consume(take as usize);
        take
    }

    fn begin_recv(&mut self) -> Result<(), Error> {
        if self.recv_broken {
            return Err(Error::Broken);
        }
        self.recv_broken = true;
        Ok(())
    }

    fn end_recv(&mut self) -> Result<(), Error> {
        self.sock.set_low_water(1)?;
        self.recv_broken = false;
        Ok(())
    }
}
