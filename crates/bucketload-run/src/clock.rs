//! The run's clock: monotonic nanoseconds since the process's epoch, and the CPU-time clocks.
//!
//! One plain function, [`now_ns`], is handed to every probe, so all instants of a run lie on one
//! scale. The epoch is fixed by the first reading; no instant is 0, because a probe uses 0 for
//! "did not happen".

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::time::{ClockId, Timespec, clock_gettime};

/// `CLOCK_MONOTONIC` at the epoch, nanoseconds; 0 until the first reading.
static EPOCH_NS: AtomicU64 = AtomicU64::new(0);
static EPOCH: OnceLock<u64> = OnceLock::new();

fn ns(t: Timespec) -> u64 {
    t.tv_sec.unsigned_abs() * 1_000_000_000 + t.tv_nsec.unsigned_abs()
}

fn read(id: ClockId) -> u64 {
    ns(clock_gettime(id))
}

#[cold]
fn fix_epoch() -> u64 {
    let epoch = *EPOCH.get_or_init(|| read(ClockId::Monotonic).saturating_sub(1).max(1));
    EPOCH_NS.store(epoch, Ordering::Relaxed);
    epoch
}

/// `CLOCK_MONOTONIC` at the epoch, nanoseconds.
#[inline]
pub(crate) fn epoch_ns() -> u64 {
    match EPOCH_NS.load(Ordering::Relaxed) {
        0 => fix_epoch(),
        epoch => epoch,
    }
}

/// Nanoseconds since the run's epoch on `CLOCK_MONOTONIC`; at least 1.
#[inline]
#[must_use]
pub fn now_ns() -> u64 {
    let epoch = epoch_ns();
    read(ClockId::Monotonic).saturating_sub(epoch).max(1)
}

/// CPU time of the calling thread (user and system), nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    read(ClockId::ThreadCPUTime)
}

/// CPU time of the process, nanoseconds.
pub(crate) fn process_cpu_ns() -> u64 {
    read(ClockId::ProcessCPUTime)
}

/// Wall-clock minus monotonic time, nanoseconds: constant unless the wall clock is stepped.
pub(crate) fn wall_offset_ns() -> i64 {
    let wall = read(ClockId::Realtime);
    i64::try_from(wall.saturating_sub(read(ClockId::Monotonic))).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{now_ns, thread_cpu_ns, wall_offset_ns};

    #[test]
    fn instants_are_positive_and_never_go_back() {
        let mut last = 0;
        for _ in 0..10_000 {
            let now = now_ns();
            assert!(now > 0 && now >= last);
            last = now;
        }
    }

    #[test]
    fn thread_cpu_time_grows_with_work() {
        let before = thread_cpu_ns();
        let mut x = 1u64;
        while thread_cpu_ns() - before < 1_000_000 {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        assert!(thread_cpu_ns() > before && x != 0);
        assert!(wall_offset_ns() > 0);
    }
}
