//! Processor time, and where threads run.

use rustix::time::{ClockId, clock_gettime};

/// Keeps the calling thread on `core`, as far as the machine has it.
pub(crate) fn pin(core: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(core);
    // Without the core the figures only scatter more.
    let _ = rustix::thread::sched_setaffinity(None, &set);
}

/// CPU time of the calling thread.
pub(crate) fn thread_ns() -> u64 {
    ns(ClockId::ThreadCPUTime)
}

/// CPU time of all threads of the process.
pub(crate) fn process_ns() -> u64 {
    ns(ClockId::ProcessCPUTime)
}

fn ns(clock: ClockId) -> u64 {
    let spent = clock_gettime(clock);
    spent.tv_sec.cast_unsigned() * 1_000_000_000 + spent.tv_nsec.cast_unsigned()
}
