//! Receiving a stream of small frames when the receiver knows a minimum of the bytes to come.
//!
//! A server that answers in several writes (a head, sums, a file's bytes) wakes a receiver once for
//! each of them. With a low-water mark, the receiver wakes once when all of a small answer has
//! arrived, and once per mark of a large one. The rules of [`body`](super::body) apply here too,
//! except that the mark does not return to 1 at the end of an answer. A stream of answers of one size
//! therefore costs no `setsockopt`, and unsolicited bytes after an answer wake nobody.

use std::future::poll_fn;
use std::time::Instant;

use super::Conn;
use super::body::LowWater;
use super::recv::{Step, deliver, review};
use super::send::YieldBudget;
use crate::error::Error;
use crate::scratch::BUFFER;

/// Waits for more than this many bytes are timed.
const LARGE: u64 = 256 * 1024;

/// Consumes a stream as it arrives.
pub trait Receiver {
    /// The result of a complete stream.
    type Value;
    /// The error of an invalid stream.
    type Error: From<Error>;

    /// The minimum number of bytes still to come before the receiver is done, not counting those it
    /// has consumed. The peer must send them or end the connection: too high a number waits forever.
    fn least(&self) -> u64;

    /// Processes received bytes; see [`Step`].
    ///
    /// # Errors
    /// If the bytes are invalid. The connection is broken then.
    fn take(&mut self, bytes: &[u8]) -> Result<Step<Self::Value>, Self::Error>;
}

impl Conn {
    /// Shows whatever arrives to `receiver` until it is done, at most 256 KiB at a time. The receiver
    /// must consume all but [`MAX_UNCONSUMED`](super::MAX_UNCONSUMED) of the bytes it is shown.
    ///
    /// The socket keeps its low-water mark: everything further on this connection must be received
    /// by this function.
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
        let mut budget = YieldBudget::default();
        while value.is_none() {
            let left = receiver.least().saturating_sub(self.spill.len() as u64);
            // A small answer is one wait, which needs no clock.
            if left > LARGE && low_water.is_none() {
                low_water = Some(LowWater::new(Instant::now()));
            }
            let marked = match &low_water {
                Some(low_water) => low_water.before_wait(&mut self.sock, left),
                None => self.sock.set_low_water(left.max(1) as u32),
            };
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
            if let (Some(low_water), true) = (&mut low_water, left > LARGE) {
                low_water.after_wait(Instant::now());
            }
            if value.is_none() {
                budget.moved(got).await;
            }
        }
        self.recv_broken = false;
        value.ok_or_else(|| Error::Broken.into())
    }

    /// The socket's low-water mark in bytes: fewer bytes wake nobody.
    #[must_use]
    pub const fn low_water(&self) -> u32 {
        self.sock.low_water()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    use super::{Receiver, Step};
    use crate::conn::Conn;
    use crate::error::Error;
    use crate::sock::Sock;

    /// Adds up `left` bytes.
    struct Count {
        left: u64,
        sum: u64,
    }

    impl Receiver for Count {
        type Value = u64;
        type Error = Error;

        fn least(&self) -> u64 {
            self.left
        }

        fn take(&mut self, bytes: &[u8]) -> Result<Step<u64>, Error> {
            let take = bytes.len().min(self.left as usize);
            self.sum += bytes[..take].iter().map(|b| u64::from(*b)).sum::<u64>();
            self.left -= take as u64;
            Ok(match self.left {
                0 => Step::Done(take, self.sum),
                _ => Step::More(take),
            })
        }
    }

    fn pair() -> (Conn, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        (Conn::plain(Sock::from_std(stream).unwrap()), peer)
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(future)
    }

    #[test]
    fn an_answer_in_pieces_wakes_once_and_unsolicited_bytes_wake_nobody() {
        run(async {
            let (mut conn, mut peer) = pair();
            for turn in 0..3u8 {
                let before = conn.calls();
                let mut count = Count { left: 1000, sum: 0 };
                let (sum, ()) = tokio::join!(conn.recv_stream(&mut count), async {
                    for _ in 0..10 {
                        peer.write_all(&[turn; 100]).unwrap();
                        tokio::task::yield_now().await;
                    }
                });
                assert_eq!(sum.unwrap(), 1000 * u64::from(turn));
                // One wake-up, and the mark was set once.
                let calls = conn.calls();
                assert!(calls.recv - before.recv <= 2, "{calls:?}");
                assert_eq!(calls.setsockopt, 1);
            }
            assert_eq!(conn.low_water(), 1000);
            peer.write_all(&[1; 31]).unwrap();
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            assert!(conn.is_silent());
            let mut count = Count { left: 131, sum: 0 };
            peer.write_all(&[1; 100]).unwrap();
            assert_eq!(conn.recv_stream(&mut count).await.unwrap(), 131);
            drop(peer);
            conn.readable().await.unwrap();
            assert!(!conn.is_silent());
        });
    }

    #[test]
    fn large_streams_arrive_and_early_ends_are_reported() {
        run(async {
            let (mut conn, mut peer) = pair();
            let writer = std::thread::spawn(move || {
                peer.write_all(&vec![1; 5_000_000]).unwrap();
                peer.write_all(&[1; 10]).unwrap();
            });
            let mut count = Count {
                left: 5_000_000,
                sum: 0,
            };
            assert_eq!(conn.recv_stream(&mut count).await.unwrap(), 5_000_000);
            writer.join().unwrap();
            let mut count = Count { left: 11, sum: 0 };
            let ended = conn.recv_stream(&mut count).await;
            assert!(
                matches!(ended, Err(Error::Closed { clean: true })),
                "{ended:?}"
            );
            assert!(conn.is_broken());
        });
    }
}
