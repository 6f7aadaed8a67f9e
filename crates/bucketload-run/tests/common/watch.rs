//! Detects stalls of the machine by naps that end too late.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

/// If a nap ends this much too late, the machine was busy with something else.
pub(crate) const STOOD_STILL: Duration = Duration::from_millis(2);

/// Takes naps of one millisecond and remembers how late the worst one was.
pub(crate) struct Watch {
    end: Arc<AtomicBool>,
    worst_ns: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Watch {
    pub(crate) fn start() -> Self {
        let (end, worst_ns) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (ended, worst) = (Arc::clone(&end), Arc::clone(&worst_ns));
        let thread = spawn(move || {
            let nap = Duration::from_millis(1);
            while !ended.load(Ordering::Relaxed) {
                let begun = Instant::now();
                sleep(nap);
                let late = begun.elapsed().saturating_sub(nap);
                worst.fetch_max(late.as_nanos() as u64, Ordering::Relaxed);
            }
        });
        Self {
            end,
            worst_ns,
            thread,
        }
    }

    /// Ends the naps and returns how late the worst one was.
    pub(crate) fn end(self) -> Duration {
        self.end.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        Duration::from_nanos(self.worst_ns.load(Ordering::Relaxed))
    }
}
