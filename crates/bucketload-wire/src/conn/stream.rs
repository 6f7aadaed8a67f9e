//! Receiving a stream of small frames of which the receiver knows how much is to come at least.
//!
//! A server that answers in several writes (a head, sums, a file's bytes) wakes a receiver once for
//! each of them. With a low-water mark it is woken when all of a small answer has arrived, and once per
//! mark of a large one; the rules of [`body`](super::body) hold here too, but for the second: the
//! mark stays as it was, so that a stream of answers of one size costs no `setsockopt`, and what follows
//! an answer uninvited wakes nobody.

use std::future::poll_fn;
use std::time::Instant;

use super::Conn;
use super::body::LowWater;
use super::recv::{Step, deliver, review};
use super::send::Turn;
use crate::error::Error;
use crate::scratch::BUFFER;

/// Bytes that a wait is worth watching the clock for.
const LARGE: u64 = 256 * 1024;

/// Takes a stream as it arrives.
pub trait Receiver {
    /// What it makes of it.
    type Value;
    /// What it may find wrong.
    type Error: From<Error>;

    /// Bytes that will come at least before the receiver is done, not counting what it has consumed.
    /// The peer must send them or end the connection; a figure too high waits for ever.
    fn least(&self) -> u64;

    /// Takes bytes; see [`Step`].
    ///
    /// # Errors
    /// When they are not what they should be; the connection is broken then.
    fn take(&mut self, bytes: &[u8]) -> Result<Step<Self::Value>, Self::Error>;
}

impl Conn {
    /// Shows what arrives to `receiver` until it is done, at most 256 KiB at a time. The receiver must
    /// consume all but [`MAX_UNCONSUMED`](super::MAX_UNCONSUMED) bytes of what it is shown.
    ///
    /// The socket's low-water mark stays behind: everything further on this connection has to be
    /// received by this function.
    ///
    /// # Errors
    /// As [`Conn::recv_with`].
    pub async fn recv_stream<R: Receiver>(
        &mut self,
        receiver: &mut R,
    ) -> Result<R::Value, R::Error> {
        if self.recv_broken {
            return Err(Error::Broken.into());
        }
        self.recv_broken = true;
        let mut value = None;
        if !self.spill.is_empty() {
            value = review(&mut self.spill, &mut |bytes| receiver.take(bytes))?;
        }
        let mut low_water: Option<LowWater> = None;
        let mut turn = Turn::default();
        while value.is_none() {
            let left = receiver.least().saturating_sub(self.spill.len() as u64);
            let low_water = match &mut low_water {
                Some(low_water) => low_water,
                None => low_water.insert(LowWater::new(Instant::now())),
            };
            let marked = low_water.before(&mut self.sock, left);
            marked.map_err(Error::from)?;
            let (mut failure, mut got) = (None, 0);
            poll_fn(|cx| {
                self.poll_recv(cx, BUFFER, &mut |spill, chunk| {
                    got += chunk.len();
                    if value.is_some() || failure.is_some() {
                        spill.push(chunk);
                        return;
                    }
                    let mut take = |bytes: &[u8]| receiver.take(bytes);
                    if let Err(e) = deliver(spill, chunk, &mut value, &mut take) {
                        failure = Some(e);
                    }
                })
            })
            .await?;
            if let Some(failure) = failure {
                return Err(failure);
            }
            if left > LARGE {
                low_water.after(Instant::now());
            }
            if value.is_none() {
                turn.took(got).await;
            }
        }
        self.recv_broken = false;
        match value {
            Some(value) => Ok(value),
            None => Err(Error::Broken.into()),
        }
    }

    /// The socket's low-water mark in bytes: less than that wakes nobody.
    #[must_use]
    pub const fn low_water(&self) -> u32 {
        self.sock.low_water()
    }
}
