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
use std::time::{Duration, Instant};

use super::Conn;
use super::send::Turn;
use crate::error::Error;
use crate::scratch::BUFFER;
use crate::sock::Sock;

/// Low-water mark in bytes: safe with the common `tcp_rmem` limit of 6 MiB.
const MARK: u64 = 1 << 20;
/// A step that takes longer than this lowers the mark.
const SLOW_STEP: Duration = Duration::from_millis(250);
/// The mark on slow links, in bytes.
const SLOW_MARK: u64 = 64 * 1024;
/// Plain bodies of which no more than this is left are received with a copy: it drains the socket
/// with one call, where dropping an exact count would leave one `EAGAIN` for the next answer.
const COPY_BELOW: u64 = 64 * 1024;

/// Chooses the mark before each wait.
pub(super) struct LowWater {
    mark: u64,
    step_began: Instant,
}

impl LowWater {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            mark: MARK,
            step_began: now,
        }
    }

    /// Call before waiting for more of the `left` bytes that the socket will still deliver.
    pub(super) fn before(&self, sock: &mut Sock, left: u64) -> std::io::Result<()> {
        sock.set_low_water(self.value(left))
    }

    /// The mark while `left` bytes are to come, at least 1.
    fn value(&self, left: u64) -> u32 {
        self.mark.min(left).clamp(1, MARK) as u32
    }

    /// Call after a wait has delivered bytes.
    pub(super) fn after(&mut self, now: Instant) {
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
        if self.recv_broken {
            return Err(Error::Broken);
        }
        let mut left = n - self.take_spill(n);
        if left == 0 {
            return Ok(());
        }
        if left <= COPY_BELOW || self.is_tls() {
            return self.recv_body(left, |_, _| Ok::<_, Error>(())).await;
        }
        self.begin_recv()?;
        let mut low_water = (left > MARK).then(|| LowWater::new(Instant::now()));
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
            self.awaiting = false;
            left -= got as u64;
            if let Some(low_water) = &mut low_water {
                low_water.after(Instant::now());
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
        let mut low_water = (n - done > MARK).then(|| LowWater::new(Instant::now()));
        let mut turn = Turn::default();
        while done < n {
            let before = done;
            if let Some(low_water) = &low_water {
                // A record that is held in part has left the socket already.
                let held = self.tls.as_ref().map_or(0, |layer| layer.held() as u64);
                let left = (n - done).saturating_sub(held);
                low_water
                    .before(&mut self.sock, left)
                    .map_err(Error::from)?;
            }
            let mut failure = None;
            poll_fn(|cx| {
                self.poll_recv(cx, BUFFER, &mut |spill, chunk| {
                    let left = usize::try_from(n - done).unwrap_or(usize::MAX);
                    let (now, later) = chunk.split_at(chunk.len().min(left));
                    if failure.is_none()
                        && !now.is_empty()
                        && let Err(e) = sink(done, now)
                    {
                        failure = Some(e);
                    }
                    done += now.len() as u64;
                    spill.push(later);
                })
            })
            .await?;
            if let Some(failure) = failure {
                return Err(failure);
            }
            if let Some(low_water) = &mut low_water {
                low_water.after(Instant::now());
            }
            if done < n {
                turn.took((done - before) as usize).await;
            }
        }
        Ok(self.end_recv()?)
    }

    /// Receives a body that ends with the connection and shows it to `sink` as
    /// [`Conn::recv_body`] does; returns its length. The connection is broken afterwards: there is
    /// nothing more to come.
    ///
    /// # Errors
    /// [`Error::Reset`] when the stream does not end in good order, [`Error::Closed`] when a TLS
    /// stream ends without `close_notify`: the body may be incomplete then. What `sink` returns.
    pub async fn recv_until_close<E: From<Error>>(
        &mut self,
        mut sink: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<u64, E> {
        let mut done = 0;
        self.begin_recv()?;
        self.send_broken = true;
        self.awaiting = false;
        if !self.spill.is_empty() {
            let held = std::mem::take(&mut self.spill);
            sink(0, held.as_slice())?;
            done = held.len() as u64;
        }
        loop {
            let mut failure = None;
            let received = poll_fn(|cx| {
                self.poll_recv(cx, BUFFER, &mut |_, chunk| {
                    if failure.is_none()
                        && let Err(e) = sink(done, chunk)
                    {
                        failure = Some(e);
                    }
                    done += chunk.len() as u64;
                })
            });
            match received.await {
                Ok(()) => {}
                Err(Error::Closed { clean: true }) => return Ok(done),
                Err(e) => return Err(e.into()),
            }
            if let Some(failure) = failure {
                return Err(failure);
            }
        }
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{LowWater, MARK, SLOW_MARK, SLOW_STEP};

    #[test]
    fn the_mark_never_exceeds_what_is_to_come() {
        let low_water = LowWater::new(Instant::now());
        assert_eq!(low_water.value(u64::MAX), MARK as u32);
        assert_eq!(low_water.value(MARK), MARK as u32);
        assert_eq!(low_water.value(MARK - 1), MARK as u32 - 1);
        assert_eq!(low_water.value(1), 1);
        assert_eq!(low_water.value(0), 1);
    }

    #[test]
    fn the_mark_falls_on_slow_links() {
        let start = Instant::now();
        let mut low_water = LowWater::new(start);
        low_water.after(start + SLOW_STEP);
        assert_eq!(low_water.value(MARK), MARK as u32, "just fast enough");
        low_water.after(start + 2 * SLOW_STEP + Duration::from_nanos(1));
        assert_eq!(low_water.value(MARK), SLOW_MARK as u32);
        low_water.after(start + 2 * SLOW_STEP + Duration::from_millis(1));
        assert_eq!(
            low_water.value(MARK),
            SLOW_MARK as u32,
            "for the rest of the body"
        );
    }
}
