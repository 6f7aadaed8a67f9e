//! Receiving exactly n body bytes.
//!
//! Large bodies are received with a low-water mark (`SO_RCVLOWAT`): the kernel wakes the reader
//! once per mark instead of once per segment, which more than halves the CPU time of both ends.
//! The mark obeys these rules, each of which prevents a hang or a bug:
//!
//! 1. Heads are read with a mark of 1; it is raised for bodies larger than the mark only.
//! 2. It never exceeds half of what is still to come (or [`LEAST_MARK`]): it is lowered before the
//!    reader sleeps, so that little is left to be copied once the last byte has arrived, and back
//!    to 1 when the body is complete.
//! 3. When a step takes longer than [`SLOW_STEP`], the link is slow and the mark falls to
//!    [`SLOW_MARK`], so that progress stays visible.
//! 4. The kernel caps the mark by the receive buffer's limit and enlarges the buffer to fit it;
//!    the buffer size itself is never set, since that would end its tuning.
//! 5. It is at most a quarter of what the receive buffer may grow to. The window that the kernel opens
//!    at first is no larger than the mark, so it is closed when the reader wakes; the burst that the
//!    reader takes makes the kernel double it, and for that there must be room: a mark of 2 MiB without
//!    it moved 4.5 GiB/s where 1 MiB moved 7.6 and 8 MiB with it 8.2.
//! 6. The bodies that a thread receives at the same time share [`MOST_MARK`]: what waits in the kernel
//!    for its reader does not grow with the number of connections, down to [`LEAST_MARK`] each.

use std::cell::Cell;
use std::future::poll_fn;
use std::time::{Duration, Instant};

use super::Conn;
use super::send::Turn;
use crate::error::Error;
use crate::scratch::BUFFER;
use crate::sock::Sock;
use crate::sys::tcp_rmem_max;

/// Bodies larger than this have a mark, and none is lower while the end is far, in bytes.
const LEAST_MARK: u64 = 1 << 20;
/// Largest mark in bytes, and the sum of the marks of a thread's bodies as long as each has
/// [`LEAST_MARK`].
const MOST_MARK: u64 = 8 << 20;
/// A step that takes longer than this lowers the mark.
const SLOW_STEP: Duration = Duration::from_millis(250);
/// The mark on slow links, in bytes.
const SLOW_MARK: u64 = 64 * 1024;
/// Plain bodies of which no more than this is left are received with a copy: it drains the socket
/// with one call, where dropping an exact count would leave one `EAGAIN` for the next answer.
const COPY_BELOW: u64 = 64 * 1024;

thread_local! {
    /// Bodies that have a mark.
    static BODIES: Cell<u64> = const { Cell::new(0) };
}

/// Chooses the mark before each wait.
pub(super) struct LowWater {
    /// Not above this: what the kernel's buffers allow, or less since the link turned out to be slow.
    limit: u64,
    step_began: Instant,
}

impl LowWater {
    pub(super) fn new(now: Instant) -> Self {
        Self::with_buffers(tcp_rmem_max(), now)
    }

    /// For sockets whose receive buffers may grow to `rmem` bytes.
    fn with_buffers(rmem: u64, now: Instant) -> Self {
        BODIES.set(BODIES.get() + 1);
        Self {
            limit: (rmem / 4).clamp(LEAST_MARK, MOST_MARK),
            step_began: now,
        }
    }

    /// Call before waiting for more of the `left` bytes that the socket will still deliver.
    pub(super) fn before(&self, sock: &mut Sock, left: u64) -> std::io::Result<()> {
        sock.set_low_water(self.value(left, BODIES.get()))
    }

    /// The mark while `left` bytes of one of `bodies` are to come, at least 1. Near the end it is a
    /// power of two, so that it changes a few times only.
    fn value(&self, left: u64, bodies: u64) -> u32 {
        let share = (MOST_MARK / bodies.max(1)).max(LEAST_MARK);
        let half = (1 << (left / 2).max(1).ilog2()).max(LEAST_MARK);
        share.min(half).min(self.limit).min(left).max(1) as u32
    }

    /// Call after a wait has delivered bytes.
    pub(super) fn after(&mut self, now: Instant) {
        if now - self.step_began > SLOW_STEP {
            self.limit = SLOW_MARK;
        }
        self.step_began = now;
    }
}

impl Drop for LowWater {
    fn drop(&mut self) {
        // A connection may be dropped while the thread's locals are being destroyed.
        let _ = BODIES.try_with(|bodies| bodies.set(bodies.get() - 1));
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
        let mut low_water = (left > LEAST_MARK).then(|| LowWater::new(Instant::now()));
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
    /// piece in the body. Pieces are at most 256 KiB long and lie in memory that is reused at once. On
    /// plain connections they end where a multiple of 256 KiB is left: most large objects are multiples of
    /// it, and their content is easiest to verify between such offsets.
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
        let mut low_water = (n - done > LEAST_MARK).then(|| LowWater::new(Instant::now()));
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
            let left = n - done;
            // What is offered for the last piece is more than there is, so that the socket is found empty.
            let limit = match self.is_tls() || left <= BUFFER as u64 {
                true => BUFFER,
                false => ((left - 1) % BUFFER as u64) as usize + 1,
            };
            poll_fn(|cx| {
                self.poll_recv(cx, limit, &mut |spill, chunk| {
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
            let now = low_water.as_mut().map(|low_water| {
                let now = Instant::now();
                low_water.after(now);
                now
            });
            match now {
                _ if done == n => {}
                Some(now) => turn.lasts_until(now).await,
                None => turn.took((done - before) as usize).await,
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

    use super::{LEAST_MARK, LowWater, MOST_MARK, SLOW_MARK, SLOW_STEP};

    const RMEM: u64 = 32 << 20;

    #[test]
    fn the_mark_leaves_little_for_the_end() {
        let low_water = LowWater::with_buffers(RMEM, Instant::now());
        assert_eq!(low_water.value(u64::MAX, 1), MOST_MARK as u32);
        assert_eq!(low_water.value(2 * MOST_MARK, 1), MOST_MARK as u32);
        let before = low_water.value(2 * MOST_MARK - 1, 1);
        assert_eq!(u64::from(before), MOST_MARK / 2);
        let mut values = Vec::new();
        for left in (1..=4 * MOST_MARK).rev().step_by(1000) {
            let value = low_water.value(left, 1);
            assert!(u64::from(value) <= (left / 2).max(LEAST_MARK).min(left));
            values.push(value);
        }
        values.retain(|&value| u64::from(value) >= LEAST_MARK);
        values.dedup();
        assert_eq!(values.len(), 4, "8 MiB, 4, 2, 1");
        assert_eq!(low_water.value(LEAST_MARK - 1, 1), LEAST_MARK as u32 - 1);
        assert_eq!((low_water.value(1, 1), low_water.value(0, 1)), (1, 1));
    }

    #[test]
    fn bodies_share_the_mark_and_buffers_bound_it() {
        let most = |rmem, bodies| {
            let low_water = LowWater::with_buffers(rmem, Instant::now());
            u64::from(low_water.value(u64::MAX, bodies))
        };
        assert_eq!(most(RMEM, 2), MOST_MARK / 2);
        assert_eq!(most(RMEM, 1_000), LEAST_MARK);
        assert_eq!(most(6 << 20, 1), 3 << 19);
        assert_eq!(most(1 << 20, 1), LEAST_MARK);
    }

    #[test]
    fn the_mark_falls_on_slow_links() {
        let start = Instant::now();
        let mut low_water = LowWater::with_buffers(RMEM, start);
        let value = |low_water: &LowWater| u64::from(low_water.value(u64::MAX, 1));
        low_water.after(start + SLOW_STEP);
        assert_eq!(value(&low_water), MOST_MARK, "just fast enough");
        low_water.after(start + 2 * SLOW_STEP + Duration::from_nanos(1));
        assert_eq!(value(&low_water), SLOW_MARK);
        low_water.after(start + 2 * SLOW_STEP + Duration::from_millis(1));
        assert_eq!(value(&low_water), SLOW_MARK, "for the rest of the body");
    }

    #[test]
    fn bodies_are_counted_while_they_last() {
        let before = super::BODIES.get();
        let two = [(); 2].map(|()| LowWater::new(Instant::now()));
        assert_eq!(super::BODIES.get(), before + 2);
        drop(two);
        assert_eq!(super::BODIES.get(), before);
    }
}
