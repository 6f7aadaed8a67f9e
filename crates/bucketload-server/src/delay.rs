//! Timers of microsecond accuracy for injected delays.
//!
//! tokio's timers tick in milliseconds; a timerfd wakes the thread within tens of microseconds. One
//! timerfd serves all waits of a thread: it is armed for the earliest deadline, and [`Delays::run`]
//! wakes the tasks that are due.
//!
//! ```text
//! until(t) -> key (t, n) -> waker       run: timerfd fires -> wake keys <= now -> arm the next
//! ```

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The waits of one thread.
#[derive(Debug)]
pub(crate) struct Delays {
    fd: AsyncFd<OwnedFd>,
    waiting: RefCell<BTreeMap<(Instant, u64), Waker>>,
    next: Cell<u64>,
}

impl Delays {
    /// Creates the timer.
    ///
    /// # Errors
    /// If the system refuses the timer.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O enabled.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // SAFETY: an `OwnedFd` names the same open descriptor until it is dropped.
        let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
        Ok(Self {
            fd,
            waiting: RefCell::default(),
            next: Cell::new(0),
        })
    }

    /// Waits until `deadline`. The future may be dropped at any time.
    pub(crate) async fn until(&self, deadline: Instant) {
        if deadline <= Instant::now() {
            return;
        }
        let number = self.next.get();
        self.next.set(number + 1);
        let wait = WaitGuard {
            delays: self,
            key: (deadline, number),
        };
        poll_fn(|cx| {
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            let mut waiting = self.waiting.borrow_mut();
            let first = waiting
                .first_key_value()
                .is_none_or(|(key, _)| wait.key <= *key);
            waiting.insert(wait.key, cx.waker().clone());
            drop(waiting);
            if first {
                self.arm(deadline);
            }
            Poll::Pending
        })
        .await;
    }

    /// Wakes the waits that are due; runs as long as the thread serves.
    pub(crate) async fn run(&self) {
        loop {
            let Ok(mut guard) = self.fd.readable().await else {
                return;
            };
            let mut expirations = [0; 8];
            if rustix::io::read(&self.fd, &mut expirations) == Err(rustix::io::Errno::AGAIN) {
                guard.clear_ready();
                continue;
            }
            let now = Instant::now();
            let mut waiting = self.waiting.borrow_mut();
            while let Some(first) = waiting.first_entry() {
                let (deadline, _) = *first.key();
                if deadline > now {
                    drop(waiting);
                    self.arm(deadline);
                    break;
                }
                first.remove().wake();
            }
        }
    }

    fn arm(&self, deadline: Instant) {
        let left = deadline
            .saturating_duration_since(Instant::now())
            .max(Duration::from_nanos(1));
        let spec = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            },
        };
        // Cannot fail: the descriptor is valid and the time normalised.
        let _ = timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &spec);
    }
}

/// Removes a wait when its future is dropped.
struct WaitGuard<'a> {
    delays: &'a Delays,
    key: (Instant, u64),
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.delays.waiting.borrow_mut().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn waits_end_in_order_and_not_early() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, async {
            let delays = Rc::new(Delays::new().unwrap());
            let runner = Rc::clone(&delays);
            tokio::task::spawn_local(async move { runner.run().await });
            let order = Rc::new(RefCell::new(Vec::new()));
            let start = Instant::now();
            let tasks: Vec<_> = [3000u64, 500, 1500, 0, 500]
                .into_iter()
                .map(|us| {
                    let (delays, order) = (Rc::clone(&delays), Rc::clone(&order));
                    tokio::task::spawn_local(async move {
                        let deadline = start + Duration::from_micros(us);
                        delays.until(deadline).await;
                        assert!(Instant::now() >= deadline);
                        order.borrow_mut().push(us);
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
            assert_eq!(*order.borrow(), [0, 500, 500, 1500, 3000]);
            assert!(delays.waiting.borrow().is_empty());
        });
    }

    #[test]
    fn a_dropped_wait_leaves_nothing() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let delays = Delays::new().unwrap();
            let far = Instant::now() + Duration::from_secs(3600);
            tokio::select! {
                () = delays.until(far) => panic!("an hour has not passed"),
                () = tokio::task::yield_now() => {}
            }
            assert!(delays.waiting.borrow().is_empty());
        });
    }
}
