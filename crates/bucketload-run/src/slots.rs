//! Deadlines and wakers of a load thread's workers, and the sweep that enforces the deadlines.
//!
//! There is no timer per request. Each worker writes its attempt's deadline into a slot, and the supervisor scans the
//! slots when the earliest known deadline may have passed. Every attempt gets the same timeout, so a deadline written
//! after a scan at `t` is never before `t + timeout`: a thread with long timeouts hardly ever scans.

use std::cell::{Cell, RefCell};
use std::task::Waker;

/// Deadline of a slot whose worker is idle.
const IDLE: u64 = u64::MAX;
/// Deadline of a busy slot without one, such as in the pause before a retry.
const NEVER: u64 = u64::MAX - 1;
/// Marks a slot whose attempt has reached its timeout.
const TIMED_OUT: u64 = 0;
/// Marks a slot whose operation is cancelled.
const CANCELLED: u64 = 1;

/// Least time between scans, nanoseconds: the resolution of timeouts.
pub(crate) const SWEEP_NS: u64 = 10_000_000;

/// Why an attempt is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Its timeout has passed.
    Timeout,
    /// The phase ends without waiting for it.
    Cancel,
}

/// The slots of one load thread; a worker's slot number is its index.
#[derive(Default)]
pub(crate) struct Slots {
    deadlines: RefCell<Vec<u64>>,
    /// Due instant of the operation in each busy slot.
    due: RefCell<Vec<u64>>,
    wakers: RefCell<Vec<Option<Waker>>>,
    busy: Cell<u64>,
}

impl Slots {
    /// Reserves memory for `n` more workers.
    pub(crate) fn reserve(&self, n: usize) {
        self.deadlines.borrow_mut().reserve(n);
        self.due.borrow_mut().reserve(n);
        self.wakers.borrow_mut().reserve(n);
    }

    /// Adds a slot for a new worker.
    pub(crate) fn add(&self) -> usize {
        let mut deadlines = self.deadlines.borrow_mut();
        deadlines.push(IDLE);
        self.due.borrow_mut().push(u64::MAX);
        self.wakers.borrow_mut().push(None);
        deadlines.len() - 1
    }

    /// Sets the waker of the slot's worker; a task's waker never changes.
    pub(crate) fn set_waker(&self, slot: usize, waker: Waker) {
        self.wakers.borrow_mut()[slot] = Some(waker);
    }

    /// Wakes the slot's worker.
    pub(crate) fn wake(&self, slot: usize) {
        if let Some(waker) = &self.wakers.borrow()[slot] {
            waker.wake_by_ref();
        }
    }

    /// Wakes all workers.
    pub(crate) fn wake_all(&self) {
        for waker in self.wakers.borrow().iter().flatten() {
            waker.wake_by_ref();
        }
    }

    /// The worker begins an operation that was due at `due_ns`.
    #[inline]
    pub(crate) fn begin(&self, slot: usize, due_ns: u64) {
        self.deadlines.borrow_mut()[slot] = NEVER;
        self.due.borrow_mut()[slot] = due_ns;
        self.busy.set(self.busy.get() + 1);
    }

    /// The worker's operation has ended.
    #[inline]
    pub(crate) fn end(&self, slot: usize) {
        self.deadlines.borrow_mut()[slot] = IDLE;
        self.due.borrow_mut()[slot] = u64::MAX;
        self.busy.set(self.busy.get() - 1);
    }

    /// Sets the deadline of the attempt that begins; a cancelled operation stays cancelled.
    #[inline]
    pub(crate) fn arm(&self, slot: usize, deadline_ns: u64) {
        let deadline = &mut self.deadlines.borrow_mut()[slot];
        if *deadline != CANCELLED {
            *deadline = deadline_ns.clamp(CANCELLED + 1, NEVER);
        }
    }

    /// Removes the deadline: the attempt has ended, the operation has not.
    #[inline]
    pub(crate) fn disarm(&self, slot: usize) {
        self.arm(slot, NEVER);
    }

    /// Why the worker has to give up, if it has to.
    #[inline]
    pub(crate) fn cut(&self, slot: usize) -> Option<Cut> {
        match self.deadlines.borrow()[slot] {
            TIMED_OUT => Some(Cut::Timeout),
            CANCELLED => Some(Cut::Cancel),
            _ => None,
        }
    }

    /// Operations being performed.
    pub(crate) fn busy(&self) -> u64 {
        self.busy.get()
    }

    /// The earliest due instant of an operation being performed; `u64::MAX` without any. Reads every slot, so call it
    /// once per interval at most.
    pub(crate) fn oldest_due_ns(&self) -> u64 {
        self.due.borrow().iter().copied().min().unwrap_or(u64::MAX)
    }

    /// Marks and wakes every worker whose deadline has passed. Returns when to scan again, given that every new
    /// deadline is `timeout_ns` after the start of its attempt.
    pub(crate) fn sweep(&self, now_ns: u64, timeout_ns: u64) -> u64 {
        let mut earliest = now_ns.saturating_add(timeout_ns);
        let mut deadlines = self.deadlines.borrow_mut();
        for (slot, deadline) in deadlines.iter_mut().enumerate() {
            if *deadline > CANCELLED && *deadline <= now_ns {
                *deadline = TIMED_OUT;
                self.wake(slot);
            } else if *deadline > CANCELLED {
                earliest = earliest.min(*deadline);
            }
        }
        earliest.max(now_ns.saturating_add(SWEEP_NS))
    }

    /// Cancels every operation being performed and wakes its worker.
    pub(crate) fn cancel_all(&self) {
        let mut deadlines = self.deadlines.borrow_mut();
        for (slot, deadline) in deadlines.iter_mut().enumerate() {
            if *deadline != IDLE {
                *deadline = CANCELLED;
                self.wake(slot);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cut, SWEEP_NS, Slots};

    #[test]
    fn a_sweep_cuts_expired_attempts_and_no_others() {
        let slots = Slots::default();
        let (a, b, c) = (slots.add(), slots.add(), slots.add());
        let timeout = 10 * SWEEP_NS;
        for s in [a, b] {
            slots.begin(s, 70 + s as u64);
        }
        slots.arm(a, 100 + timeout);
        slots.arm(b, 200 + timeout);
        assert_eq!(slots.sweep(100, timeout), 100 + timeout);
        assert_eq!((slots.cut(a), slots.cut(b)), (None, None));
        let next = slots.sweep(150 + timeout, timeout);
        assert_eq!(slots.cut(a), Some(Cut::Timeout));
        assert_eq!(slots.cut(b), None);
        assert_eq!(
            next,
            150 + timeout + SWEEP_NS,
            "not more often than the resolution"
        );
        slots.disarm(a);
        assert_eq!(slots.cut(a), None);
        assert_eq!(slots.oldest_due_ns(), 70);
        slots.end(a);
        assert_eq!(slots.oldest_due_ns(), 71);
        assert_eq!((slots.cut(c), slots.busy()), (None, 1));
    }

    #[test]
    fn cancelled_operations_stay_cancelled_until_they_end() {
        let slots = Slots::default();
        let (a, idle) = (slots.add(), slots.add());
        slots.begin(a, 7);
        slots.arm(a, 50);
        slots.cancel_all();
        slots.arm(a, 1_000);
        slots.sweep(2_000, 10);
        assert_eq!(slots.cut(a), Some(Cut::Cancel));
        assert_eq!(slots.cut(idle), None);
        slots.end(a);
        slots.begin(a, 7);
        assert_eq!(slots.cut(a), None);
    }
}
