//! Rate limits for bodies.

use std::time::{Duration, Instant};

use super::thread::{Thread, Watchdog};

/// Keeps a body to a rate.
pub(crate) struct Pace {
    bytes_per_s: u64,
    started: Instant,
    moved: u64,
}

impl Pace {
    /// The pace of a body that starts now.
    pub(crate) fn new(bytes_per_s: u64) -> Self {
        Self {
            bytes_per_s,
            started: Instant::now(),
            moved: 0,
        }
    }

    /// Bytes to transfer at a time: about 20 ms worth.
    pub(crate) fn piece(&self) -> u64 {
        (self.bytes_per_s / 50).clamp(1, 1 << 20)
    }

    /// Counts `bytes` as transferred and waits until the rate allows more.
    pub(crate) async fn after(&mut self, thread: &Thread, watchdog: &Watchdog, bytes: u64) {
        self.moved += bytes;
        let due = Duration::from_secs_f64(self.moved as f64 / self.bytes_per_s as f64);
        if let Some(delays) = &thread.delays {
            watchdog.suspend();
            delays.until(self.started + due).await;
            thread.rearm(watchdog);
        }
    }
}
