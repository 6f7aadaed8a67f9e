//! The run's clock: monotonic nanoseconds since the process's epoch, and the CPU-time clocks.
//!
//! Every probe reads the same function, [`now_ns`], so all instants of a run lie on one scale. The first reading fixes
//! the epoch. No instant is 0, because a probe uses 0 for "did not happen".

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// `CLOCK_MONOTONIC` at the epoch, nanoseconds; 0 until the first reading.
static EPOCH_NS: AtomicU64 = AtomicU64::new(0);
static EPOCH: OnceLock<u64> = OnceLock::new();

/// Reads a clock through libc. rustix looks up the vDSO itself and crashes under valgrind, which hides it.
fn read(id: libc::clockid_t) -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is valid for writing, and these clocks always exist.
    unsafe { libc::clock_gettime(id, &raw mut now) };
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

#[cold]
fn fix_epoch() -> u64 {
    let epoch = *EPOCH.get_or_init(|| read(libc::CLOCK_MONOTONIC).saturating_sub(1).max(1));
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
    read(libc::CLOCK_MONOTONIC).saturating_sub(epoch).max(1)
}

/// CPU time of the calling thread (user and system), nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of the process and of the programs that it started and that have ended, nanoseconds. Engines that start a
/// program for each operation do their work in those programs. Servers that a run starts end only after the last
/// measurement.
pub(crate) fn process_cpu_ns() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID) + ended_children_cpu_ns()
}

/// CPU time of child processes, and of their children, that have ended and were waited for (getrusage(2)), nanoseconds.
fn ended_children_cpu_ns() -> u64 {
    let mut used = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `used` is valid for writing, and RUSAGE_CHILDREN is a valid argument; zeroes are a valid `rusage`.
    let used = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, used.as_mut_ptr());
        used.assume_init()
    };
    let ns = |time: libc::timeval| {
        time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_usec.unsigned_abs() * 1000
    };
    ns(used.ru_utime) + ns(used.ru_stime)
}

/// Wall-clock minus monotonic time, nanoseconds: constant unless the wall clock is stepped.
pub(crate) fn wall_offset_ns() -> i64 {
    let wall = read(libc::CLOCK_REALTIME);
    i64::try_from(wall.saturating_sub(read(libc::CLOCK_MONOTONIC))).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{ended_children_cpu_ns, now_ns, thread_cpu_ns, wall_offset_ns};

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
    fn programs_count_when_they_have_ended() {
        let before = ended_children_cpu_ns();
        let work = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        let mut child = std::process::Command::new("sh")
            .args(["-c", work])
            .spawn()
            .unwrap();
        assert!(child.wait().unwrap().success());
        let used = ended_children_cpu_ns() - before;
        assert!(used > 2_000_000, "{used} ns for 100,000 rounds of a shell");
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
