//! Keeping bodies at a rate.

use std::time::{Duration, Instant};

use super::thread::{Slot, Thread};

/// Keeps a body at a rate.
pub(crate) struct Pace {
    bytes_per_s: u64,
    started: Instant,
    moved: u64,
}

impl Pace {
    /// A body that starts now.
    pub(crate) fn new(bytes_per_s: u64) -> Self {
        Self {
            bytes_per_s,
            started: Instant::now(),
            moved: 0,
        }
    }

    /// Bytes to move at a time: about 20 ms worth.
    pub(crate) fn piece(&self) -> u64 {
        (self.bytes_per_s / 50).clamp(1, 1 << 20)
    }

    /// Waits until `bytes` more may have been moved.
    pub(crate) async fn after(&mut self, thread: &Thread, slot: &Slot, bytes: u64) {
        self.moved += bytes;
        let due = Duration::from_secs_f64(self.moved as f64 / self.bytes_per_s as f64);
        if let Some(delays) = &thread.delays {
            Thread::hold(slot);
            delays.until(self.started + due).await;
            thread.allow(slot);
        }
    }
}
