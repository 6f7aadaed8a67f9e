//! Think times of closed loops: many sleepers on one kernel timer per thread.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::io;
use std::task::{Poll, Waker};

use crate::clock::now_ns;
use crate::slots::Slots;
use crate::timer::DueTimer;

/// Wakes workers at the ends of their think times.
pub(crate) struct ThinkTimer {
    timer: DueTimer,
    sleepers: RefCell<BinaryHeap<Reverse<(u64, usize)>>>,
    waker: RefCell<Option<Waker>>,
    /// Earliest instant that the task in [`Self::serve`] waits for.
    known_ns: Cell<u64>,
}

impl ThinkTimer {
    /// A timer for up to `workers` sleepers.
    pub(crate) fn new(workers: usize, precise: bool) -> io::Result<Self> {
        Ok(Self {
            timer: DueTimer::new(precise)?,
            sleepers: RefCell::new(BinaryHeap::with_capacity(workers)),
            waker: RefCell::new(None),
            known_ns: Cell::new(u64::MAX),
        })
    }

    /// Returns once it is `at_ns` or later; `slot` is the calling worker's.
    pub(crate) async fn sleep_until(&self, at_ns: u64, slot: usize) {
        if now_ns() >= at_ns {
            return;
        }
        self.sleepers.borrow_mut().push(Reverse((at_ns, slot)));
        if at_ns < self.known_ns.get()
            && let Some(waker) = &*self.waker.borrow()
        {
            waker.wake_by_ref();
        }
        poll_fn(|_| {
            if now_ns() >= at_ns {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Wakes sleepers. Never ends; run it as a task of the thread.
    pub(crate) async fn serve(&self, slots: &Slots) {
        *self.waker.borrow_mut() = Some(poll_fn(|cx| Poll::Ready(cx.waker().clone())).await);
        poll_fn(|cx| {
            loop {
                let next = self.sleepers.borrow().peek().map(|s| s.0.0);
                let at = next.unwrap_or(u64::MAX);
                self.known_ns.set(at);
                let Poll::Ready(now) = self.timer.poll_until(at, cx) else {
                    return Poll::<()>::Pending;
                };
                let mut sleepers = self.sleepers.borrow_mut();
                while let Some(&Reverse((at, slot))) = sleepers.peek()
                    && at <= now
                {
                    sleepers.pop();
                    slots.wake(slot);
                }
            }
        })
        .await;
    }
}
