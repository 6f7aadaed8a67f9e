//! Receiving exactly n body bytes.
//!
//! Large bodies are received with a low-water mark (`SO_RCVLOWAT`): the kernel wakes the reader
//! once per mark instead of once per segment, which more than halves the CPU time of both ends.
//! The mark follows these rules. Each of them prevents a hang or a bug:
//!
//! 1. The mark is 1 while heads are read. Only bodies larger than the mark raise it.
//! 2. The mark never exceeds half of the bytes still to come, or [`MIN_MARK`] if that is more. It is
//!    lowered before the reader sleeps, so that little is left to copy once the last byte has
//!    arrived, and returns to 1 when the body is complete.
//! 3. When a step takes longer than [`SLOW_STEP`], the link is slow and the mark falls to
//!    [`SLOW_MARK`] to keep progress visible.
//! 4. The kernel caps the mark by the receive buffer's limit and enlarges the buffer to fit it. The
//!    buffer size itself is never set, because that would turn off its auto-tuning.
//! 5. The mark is at most a quarter of the receive buffer's maximum. The kernel's first window is no
//!    larger than the mark, so the window is closed when the reader wakes. The burst that the reader
//!    then takes makes the kernel double the window, which needs room in the buffer: without room, a
//!    mark of 2 MiB moved 4.5 GiB/s where 1 MiB moved 7.6; with room, 8 MiB moved 8.2.
//! 6. The bodies that a thread receives at the same time share [`MAX_MARK`], but each has at least
//!    [`MIN_MARK`]. Down to that, the bytes waiting in the kernel do not grow with the number of
//!    connections.

use std::cell::Cell;
use std::future::poll_fn;
use std::time::{Duration, Instant};

use super::Conn;
use super::send::YieldBudget;
use crate::error::Error;
use crate::scratch::BUFFER;
use crate::sock::Sock;
use crate::sys::tcp_rmem_max;

/// Only bodies larger than this get a mark, and no mark is lower than this until the end is near.
/// In bytes.
const MIN_MARK: u64 = 1 << 20;
/// Largest mark in bytes, and the limit on the sum of a thread's marks as long as each has
/// [`MIN_MARK`].
const MAX_MARK: u64 = 8 << 20;
/// A slower step lowers the mark.
const SLOW_STEP: Duration = Duration::from_millis(250);
/// The mark on slow links, in bytes.
const SLOW_MARK: u64 = 64 * 1024;
/// The last bytes of a plain body, up to this many, are copied rather than dropped in the kernel.
/// Copying drains the socket with one call; dropping an exact count would leave one `EAGAIN` for
/// the next answer.
const COPY_BELOW: u64 = 64 * 1024;

thread_local! {
    /// Number of bodies that have a mark.
    static BODIES: Cell<u64> = const { Cell::new(0) };
}

/// Chooses the mark before each wait.
pub(super) struct LowWater {
    /// Upper limit: what the kernel's buffers allow, or [`SLOW_MARK`] once the link proved slow.
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
            limit: (rmem / 4).clamp(MIN_MARK, MAX_MARK),
            step_began: now,
        }
    }

    /// Call before waiting for more of the `left` bytes that the socket has yet to deliver.
    pub(super) fn before_wait(&self, sock: &mut Sock, left: u64) -> std::io::Result<()> {
        sock.set_low_water(self.value(left, BODIES.get()))
    }

    /// The mark, at least 1, when `left` bytes are still to come and `bodies` bodies share the
    /// maximum. Near the end it is a power of two, so it changes only a few times.
    fn value(&self, left: u64, bodies: u64) -> u32 {
        let share = (MAX_MARK / bodies.max(1)).max(MIN_MARK);
        let half = (1 << (left / 2).max(1).ilog2()).max(MIN_MARK);
        share.min(half).min(self.limit).min(left).max(1) as u32
    }

    /// Call after a wait delivered bytes.
    pub(super) fn after_wait(&mut self, now: Instant) {
        if now - self.step_began > SLOW_STEP {
            self.limit = SLOW_MARK;
        }
        self.step_began = now;
    }
}

impl Drop for LowWater {
    fn drop(&mut self) {
        // A connection may be dropped while the thread-locals are being destroyed.
        let _ = BODIES.try_with(|bodies| bodies.set(bodies.get() - 1));
    }
}

impl Conn {
    /// Receives and drops exactly `n` body bytes. On plain connections, large bodies are dropped in
    /// the kernel without copying.
    ///
    /// # Errors
    /// [`Error::Closed`] or [`Error::Reset`] when the peer ends the connection early. The connection
    /// is broken then.
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
        let mut low_water = (left > MIN_MARK).then(|| LowWater::new(Instant::now()));
        while left > 0 {
            if let Some(low_water) = &low_water {
                low_water.before_wait(&mut self.sock, left)?;
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
                low_water.after_wait(Instant::now());
            }
        }
        self.end_recv()
    }

    /// Receives exactly `n` body bytes and passes them to `sink` in order, with the offset of each
    /// piece in the body. Pieces are at most 256 KiB long; their memory is reused as soon as `sink`
    /// returns. On plain connections, the bytes left after a piece are a multiple of 256 KiB: most
    /// large objects are such multiples, and their content is easiest to verify between such offsets.
    ///
    /// # Errors
    /// [`Error::Closed`] or [`Error::Reset`] when the peer ends the connection early; any error that
    /// `sink` returns. The connection is broken then.
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
        let mut low_water = (n - done > MIN_MARK).then(|| LowWater::new(Instant::now()));
        let mut budget = YieldBudget::default();
        while done < n {
            let before = done;
            if let Some(low_water) = &low_water {
                // The received part of an incomplete record has left the socket already.
                let held = self.tls.as_ref().map_or(0, |layer| layer.held() as u64);
                let left = (n - done).saturating_sub(held);
                low_water
                    .before_wait(&mut self.sock, left)
                    .map_err(Error::from)?;
            }
            let mut failure = None;
            let left = n - done;
            // The buffer offered for the last piece exceeds what is left: the short read shows that
            // the socket is empty.
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
                low_water.after_wait(now);
                now
            });
            match now {
                _ if done == n => {}
                Some(now) => budget.moved_by(now).await,
                None => budget.moved((done - before) as usize).await,
            }
        }
        Ok(self.end_recv()?)
    }

    /// Drops up to `n` of the bytes received earlier. Returns how many.
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

    use super::{LowWater, MAX_MARK, MIN_MARK, SLOW_MARK, SLOW_STEP};

    const RMEM: u64 = 32 << 20;

    #[test]
    fn the_mark_shrinks_near_the_end() {
        let low_water = LowWater::with_buffers(RMEM, Instant::now());
        assert_eq!(low_water.value(u64::MAX, 1), MAX_MARK as u32);
        assert_eq!(low_water.value(2 * MAX_MARK, 1), MAX_MARK as u32);
        let before = low_water.value(2 * MAX_MARK - 1, 1);
        assert_eq!(u64::from(before), MAX_MARK / 2);
        let mut values = Vec::new();
        for left in (1..=4 * MAX_MARK).rev().step_by(1000) {
            let value = low_water.value(left, 1);
            assert!(u64::from(value) <= (left / 2).max(MIN_MARK).min(left));
            values.push(value);
        }
        values.retain(|&value| u64::from(value) >= MIN_MARK);
        values.dedup();
        assert_eq!(values.len(), 4, "8 MiB, 4, 2, 1");
        assert_eq!(low_water.value(MIN_MARK - 1, 1), MIN_MARK as u32 - 1);
        assert_eq!((low_water.value(1, 1), low_water.value(0, 1)), (1, 1));
    }

    #[test]
    fn concurrent_bodies_share_the_maximum_and_the_buffer_caps_it() {
        let largest = |rmem, bodies| {
            let low_water = LowWater::with_buffers(rmem, Instant::now());
            u64::from(low_water.value(u64::MAX, bodies))
        };
        assert_eq!(largest(RMEM, 2), MAX_MARK / 2);
        assert_eq!(largest(RMEM, 1_000), MIN_MARK);
        assert_eq!(largest(6 << 20, 1), 3 << 19);
        assert_eq!(largest(1 << 20, 1), MIN_MARK);
    }

    #[test]
    fn the_mark_falls_on_slow_links() {
        let start = Instant::now();
        let mut low_water = LowWater::with_buffers(RMEM, start);
        let value = |low_water: &LowWater| u64::from(low_water.value(u64::MAX, 1));
        low_water.after_wait(start + SLOW_STEP);
        assert_eq!(value(&low_water), MAX_MARK, "just fast enough");
        low_water.after_wait(start + 2 * SLOW_STEP + Duration::from_nanos(1));
        assert_eq!(value(&low_water), SLOW_MARK);
        low_water.after_wait(start + 2 * SLOW_STEP + Duration::from_millis(1));
        assert_eq!(value(&low_water), SLOW_MARK, "for the rest of the body");
    }

    #[test]
    fn bodies_are_counted_until_they_are_dropped() {
        let before = super::BODIES.get();
        let two = [(); 2].map(|()| LowWater::new(Instant::now()));
        assert_eq!(super::BODIES.get(), before + 2);
        drop(two);
        assert_eq!(super::BODIES.get(), before);
    }
}
