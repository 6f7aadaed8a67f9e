//! Waiting for absolute instants with a kernel timer.
//!
//! A `timerfd` on `CLOCK_MONOTONIC` in the runtime's epoll set wakes a task within some 20 µs; `tokio::time` rounds to
//! milliseconds. The timer is never read: re-arming it resets its counter, and an edge-triggered epoll reports each
//! expiry anew.
//!
//! ```text
//!             set(due)                     due
//!  ── leader ────┤ sleeps in epoll ─────────┤ wakes: taken = due + 20 µs (lateness, recorded)
//!  precise:      ┤ sleeps ───────────┤ spins ┤
//!                                due - 20 µs
//! ```

use std::cell::Cell;
use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::clock::{epoch_ns, now_ns};

/// How long before the instant a precise wait stops sleeping and spins, nanoseconds.
const SPIN_NS: u64 = 20_000;

/// A timer for one waiter: it wakes the waker of the last poll.
pub(crate) struct DueTimer {
    fd: AsyncFd<OwnedFd>,
    armed_for: Cell<u64>,
    spin_ns: u64,
}

impl DueTimer {
    /// A timer registered with the current runtime. A `precise` one spins before the instant.
    pub(crate) fn new(precise: bool) -> io::Result<Self> {
        let fd = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        // SAFETY: the descriptor is owned by the `AsyncFd`, so it is open, and the same one, until
        // the `AsyncFd` is dropped.
        let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
        Ok(Self {
            fd,
            armed_for: Cell::new(0),
            spin_ns: if precise { SPIN_NS } else { 0 },
        })
    }

    fn arm(&self, at_ns: u64) {
        if self.armed_for.get() == at_ns {
            return;
        }
        self.armed_for.set(at_ns);
        let at = at_ns.saturating_add(epoch_ns());
        let value = Timespec {
            tv_sec: i64::try_from(at / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: (at % 1_000_000_000) as _,
        };
        let zero = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let spec = Itimerspec {
            it_interval: zero,
            it_value: value,
        };
        // A monotonic timer accepts every valid instant, and an instant in the past fires at once.
        timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &spec)
            .expect("a timerfd accepts a normalised absolute time");
    }

    /// Ready with the current time once that is at least `at_ns`, which is never for `u64::MAX`.
    pub(crate) fn poll_until(&self, at_ns: u64, cx: &mut Context<'_>) -> Poll<u64> {
        loop {
            let mut now = now_ns();
            if now.saturating_add(self.spin_ns) >= at_ns {
                while now < at_ns {
                    std::hint::spin_loop();
                    now = now_ns();
                }
                return Poll::Ready(now);
            }
            if at_ns != u64::MAX {
                self.arm(at_ns - self.spin_ns);
            }
            match self.fd.poll_read_ready(cx) {
                // The timer expired, perhaps for an instant that no longer matters: check the clock again.
                Poll::Ready(Ok(mut guard)) => guard.clear_ready(),
                Poll::Ready(Err(_)) | Poll::Pending => return Poll::Pending,
            }
            // An expired timer does not fire again unless it is set again.
            self.armed_for.set(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::DueTimer;
    use crate::clock::now_ns;

    fn block_on<F: Future>(f: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(f)
    }

    #[test]
    fn a_timer_is_never_early_and_can_be_reused() {
        for precise in [false, true] {
            block_on(async {
                let timer = DueTimer::new(precise).unwrap();
                for i in 1..200u64 {
                    let due = now_ns() + i * 1_000;
                    let woke = poll_fn(|cx| timer.poll_until(due, cx)).await;
                    assert!(woke >= due);
                }
                let past = now_ns() - 1;
                assert!(poll_fn(|cx| timer.poll_until(past, cx)).await > past);
            });
        }
    }

    #[test]
    fn an_abandoned_wait_does_not_disturb_the_next() {
        block_on(async {
            let timer = DueTimer::new(false).unwrap();
            for _ in 0..50 {
                let soon = now_ns() + 20_000;
                // Armed, then given up: its expiry must not end the next wait early.
                poll_fn(|cx| {
                    let _ = timer.poll_until(soon, cx);
                    std::task::Poll::Ready(())
                })
                .await;
                let due = now_ns() + 300_000;
                assert!(poll_fn(|cx| timer.poll_until(due, cx)).await >= due);
            }
        });
    }
}
