//! Waiting for the peer: a thread polls its socket for a moment before it sleeps.
//!
//! Waking a sleeping thread costs an interrupt of another core and the exit from idle, together several times the
//! rest of a small request. So a side that has just talked polls for a little longer. Polling must not take the
//! processor from other work: at most half of the cores have a polling thread, a polling thread yields its core
//! repeatedly, and it sleeps as usual once another thread takes the core. If a peer is usually slower than the
//! moment, it is polled for less and less often.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::thread::sched_yield;

/// A yield that lasts longer has given the core to another thread: there is other work.
const YIELD_TAKEN: Duration = Duration::from_micros(4);
/// Polls per yield; the first yield follows the first poll. A yield that no thread takes delays polling by as
/// much as a poll.
const POLLS_PER_YIELD: usize = 4;
/// Maximum number of waits in a row without polling, after polls that failed.
const MAX_SKIPPED: u32 = 256;

/// Number of threads of this process that are polling.
static POLLING: AtomicUsize = AtomicUsize::new(0);

/// How many threads may poll: half of the cores that the calling thread may use. Not cached for the process, because
/// the first thread could be bound to one core and decide for all.
pub(crate) fn max_pollers() -> usize {
    std::thread::available_parallelism().map_or(0, |cores| cores.get() / 2)
}

/// The right to poll, returned on drop.
struct PollPermit;

impl PollPermit {
    fn take(max_pollers: usize) -> Option<Self> {
        let free = |polling| (polling < max_pollers).then_some(polling + 1);
        POLLING
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, free)
            .ok()
            .map(|_| Self)
    }
}

impl Drop for PollPermit {
    fn drop(&mut self) {
        POLLING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The polling state of one connection.
#[derive(Debug)]
pub(crate) struct BusyPoll {
    longest: Duration,
    /// Number of polling threads below which this one may start.
    max_pollers: usize,
    /// Number of waits left without polling.
    skip: u32,
    /// Recent failed polls minus successful ones.
    failures: u32,
}

impl BusyPoll {
    /// Polls for at most `longest` per wait (zero: never), and only while fewer than half of the calling thread's cores
    /// have a polling thread.
    pub(crate) fn new(longest: Duration) -> Self {
        Self {
            longest,
            max_pollers: max_pollers(),
            skip: 0,
            failures: 0,
        }
    }

    /// Repeats `call` until it returns a result: first polling, then blocking. The argument of `call` says whether it may
    /// block.
    pub(crate) fn wait<T>(
        &mut self,
        mut call: impl FnMut(bool) -> Result<T, Errno>,
    ) -> io::Result<T> {
        if let Some(result) = self.poll(&mut call) {
            return result.map_err(io::Error::from);
        }
        loop {
            match call(true) {
                Ok(value) => return Ok(value),
                Err(Errno::INTR) => {}
                // An expired socket timeout looks like a call that would block.
                Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn poll<T>(
        &mut self,
        call: &mut impl FnMut(bool) -> Result<T, Errno>,
    ) -> Option<Result<T, Errno>> {
        if self.longest.is_zero() {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        let _permit = PollPermit::take(self.max_pollers)?;
        let end = Instant::now() + self.longest;
        for polls in 0_usize.. {
            match call(false) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                result => {
                    self.failures = self.failures.saturating_sub(1);
                    return Some(result);
                }
            }
            if !polls.is_multiple_of(POLLS_PER_YIELD) {
                continue;
            }
            let before = Instant::now();
            sched_yield();
            let now = Instant::now();
            if now >= end || now - before > YIELD_TAKEN {
                self.failures = (self.failures + 1).min(MAX_SKIPPED.ilog2());
                self.skip = (1 << self.failures) - 2;
                return None;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::*;

    #[test]
    fn a_bound_thread_counts_only_its_own_cores() {
        let all = sched_getaffinity(None).unwrap();
        let bound = std::thread::spawn(move || {
            let mut only = CpuSet::new();
            only.set((0..CpuSet::MAX_CPU).find(|core| all.is_set(*core)).unwrap());
            sched_setaffinity(None, &only).unwrap();
            BusyPoll::new(Duration::ZERO).max_pollers
        });
        assert_eq!(bound.join().unwrap(), 0);
        let cores = std::thread::available_parallelism().unwrap().get();
        assert_eq!(BusyPoll::new(Duration::ZERO).max_pollers, cores / 2);
    }

    #[test]
    fn polls_become_rare_after_failures_and_frequent_after_successes() {
        let mut busy_poll = BusyPoll::new(Duration::from_nanos(1));
        let mut polls = 0;
        for _ in 0..4096 {
            let got = busy_poll.wait(|may_block| {
                polls += u32::from(!may_block);
                if may_block { Ok(7) } else { Err(Errno::AGAIN) }
            });
            assert_eq!(got.unwrap(), 7);
        }
        assert!(polls < 80, "{polls} polls");
        // Whatever its state, it polls again within `MAX_SKIPPED` waits, and ever more often after that.
        let mut found = 0;
        for _ in 0..4 * MAX_SKIPPED {
            busy_poll
                .wait(|may_block| {
                    found += u32::from(!may_block);
                    Ok(())
                })
                .unwrap();
        }
        assert!(max_pollers() == 0 || found >= MAX_SKIPPED, "{found}");
    }

    #[test]
    fn errors_and_limits_arrive() {
        let mut busy_poll = BusyPoll::new(Duration::ZERO);
        let mut calls = 0;
        let interrupted = busy_poll.wait(|_| {
            calls += 1;
            if calls == 1 {
                Err(Errno::INTR)
            } else {
                Ok(calls)
            }
        });
        assert_eq!(interrupted.unwrap(), 2);
        let limit = busy_poll.wait(|_| Err::<(), _>(Errno::AGAIN)).unwrap_err();
        assert_eq!(limit.kind(), io::ErrorKind::TimedOut);
        let mut busy_poll = BusyPoll::new(Duration::from_secs(1));
        let reset = busy_poll
            .wait(|_| Err::<(), _>(Errno::CONNRESET))
            .unwrap_err();
        assert_eq!(reset.kind(), io::ErrorKind::ConnectionReset);
    }
}
