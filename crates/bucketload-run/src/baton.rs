//! Open loop on one thread: the feed, the idle workers, and the baton that one of them holds.
//!
//! ```text
//!          holds the baton            executes                     idle (a queue)
//!   leader ── waits for due ── takes ── execute … first wait ── … done ─┐
//!                                              │ passes the baton       │ parked? take it at once
//!                                              ▼                        ▼ else: join the queue   
//!                              idle worker wakes as the new leader
//!                              nobody idle: the baton is parked
//! ```
//!
//! No operation crosses a channel: the leader executes what it takes. Nothing else on the thread can run until the
//! leader waits for the first time, and then it passes the baton on. The next worker that ends an operation or gets
//! connected picks up a parked baton. Arrivals that fell due meanwhile are executed at once with their original due
//! instants; none is skipped.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::task::Waker;

use crate::clock::now_ns;
use crate::dispatch_waits::DispatchWaits;
use crate::due::{DueOp, OpEnd};
use crate::feed::{Feed, Next, Offer};
use crate::names::Names;
use crate::shard::Shard;
use crate::slots::Slots;

/// No worker.
const NONE: usize = usize::MAX;
/// Sessions that may be connecting at the same time, per thread and work.
const CONNECTING: usize = 32;

/// The state of one open work on one thread.
pub(crate) struct Baton {
    /// Index of the work within the phase.
    pub(crate) work: u16,
    /// Most sessions on this thread.
    cap: usize,
    feed: RefCell<Feed>,
    start_ns: Cell<u64>,
    finished: Cell<bool>,
    /// Slot of the worker that holds the baton; `NONE` while it is parked.
    holder: Cell<usize>,
    /// Slots of free workers, the longest idle first, so that all sessions and endpoints take turns.
    idle: RefCell<VecDeque<usize>>,
    sessions: Cell<usize>,
    connecting: Cell<usize>,
    /// After a session failed to open: no further attempt before this instant.
    hire_after_ns: Cell<u64>,
    hire: OnceCell<Box<dyn Fn()>>,
    waits: DispatchWaits,
    counted: Cell<u64>,
    taken: Cell<u64>,
}

impl Baton {
    pub(crate) fn new(work: u16, cap: usize, feed: Feed) -> Self {
        Self {
            work,
            cap,
            feed: RefCell::new(feed),
            start_ns: Cell::new(0),
            finished: Cell::new(false),
            holder: Cell::new(NONE),
            idle: RefCell::new(VecDeque::with_capacity(cap)),
            sessions: Cell::new(0),
            connecting: Cell::new(0),
            hire_after_ns: Cell::new(0),
            hire: OnceCell::new(),
            waits: DispatchWaits::default(),
            counted: Cell::new(0),
            taken: Cell::new(0),
        }
    }

    /// Sets the function that starts another session task.
    pub(crate) fn set_hire(&self, hire: Box<dyn Fn()>) {
        let _ = self.hire.set(hire);
    }

    /// The phase begins: the schedule becomes absolute and a connected worker leads.
    pub(crate) fn start(&self, start_ns: u64, slots: &Slots) {
        self.start_ns.set(start_ns);
        self.feed.borrow_mut().start(start_ns);
        self.pass(slots);
    }

    /// The instant the leader waits for: the next arrival or the end of the offering. `u64::MAX` when the next arrival
    /// is not known and the leader will be woken; `None` when there is nothing to wait for.
    pub(crate) fn target_ns(&self, cutoff_ns: u64, waker: Option<&Waker>) -> Option<u64> {
        if self.finished.get() {
            return None;
        }
        match self.feed.borrow_mut().next(cutoff_ns, waker) {
            Next::At(at) => Some(at),
            Next::Later => Some(u64::MAX),
            Next::Over => None,
        }
    }

    /// Takes the next operation if one is due at `now_ns` and counts it as issued; `None` when the thread has caught
    /// up. Finishes the work when the feed is over.
    pub(crate) fn take(&self, now_ns: u64, shard: &Shard, names: &mut Names) -> Option<DueOp> {
        let cutoff = shard.cutoff_ns.get();
        let source = &shard.shared.sources[usize::from(self.work)];
        loop {
            match self.feed.borrow_mut().next(cutoff, None) {
                Next::At(at) if at <= now_ns => {}
                Next::At(_) | Next::Later => return None,
                Next::Over => {
                    self.finish();
                    return None;
                }
            }
            shard.tick(now_ns);
            let offer = self.feed.borrow_mut().take(now_ns, shard, source, names);
            let (Offer::Perform(mut due_op) | Offer::Shed(mut due_op) | Offer::Held(mut due_op)) =
                offer
            else {
                return None;
            };
            if due_op.uncounted {
                self.counted.set(self.counted.get() + 1);
                shard.offered(due_op.due_ns, &due_op.op);
            }
            // A held operation stays in the backlog until the feed offers it again.
            self.taken
                .set(self.taken.get() + u64::from(!matches!(offer, Offer::Held(_))));
            if !matches!(offer, Offer::Perform(_)) {
                continue;
            }
            let (dispatch_ns, capped) = self.waits.of(due_op.due_ns, now_ns);
            let wait_ns = now_ns.saturating_sub(due_op.due_ns);
            // Time spent behind an earlier operation on the key was not spent waiting for a worker.
            due_op.dispatch_ns = dispatch_ns.min(wait_ns.saturating_sub(due_op.blocked_ns));
            let mut tally = shard.recorder.tally();
            tally.issued += 1;
            tally.capped += u64::from(capped);
            return Some(due_op);
        }
    }

    /// An operation has ended, which may make others due at once.
    #[inline]
    pub(crate) fn ended(&self, due_op: &DueOp, end: &OpEnd, shard: &Shard) {
        if self.feed.borrow_mut().ended(due_op, end, shard) {
            self.wake_leader(&shard.slots);
        }
    }

    /// Counts every waiting operation that is due before `until_ns` as offered.
    pub(crate) fn count_until(&self, until_ns: u64, shard: &Shard) {
        if self.finished.get() {
            return;
        }
        let source = &shard.shared.sources[usize::from(self.work)];
        let mut feed = self.feed.borrow_mut();
        feed.count_until(until_ns, shard, source, &mut |due, op| {
            self.counted.set(self.counted.get() + 1);
            shard.offered(due, op);
        });
    }

    /// Jobs that have arrived and not ended.
    pub(crate) fn jobs(&self) -> u64 {
        self.feed.borrow().jobs()
    }

    /// Arrivals that are due (counted as offered) but not taken.
    pub(crate) fn backlog(&self) -> u64 {
        self.counted.get() - self.taken.get()
    }

    /// Due instant of the oldest operation that is due but not taken; `u64::MAX` without one.
    pub(crate) fn oldest_due_ns(&self) -> u64 {
        match self.backlog() {
            0 => u64::MAX,
            _ => self.feed.borrow().oldest_due_ns().unwrap_or(u64::MAX),
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finished.get()
    }

    /// Takes nothing more. Operations that are due but not taken stay in the backlog.
    pub(crate) fn finish(&self) {
        self.finished.set(true);
    }

    /// Arrivals that wait because the in-flight cap is reached.
    pub(crate) fn capped_backlog(&self) -> u64 {
        if self.waits.is_capped() {
            self.backlog()
        } else {
            0
        }
    }

    // ---- the baton ----

    pub(crate) fn leads(&self, slot: usize) -> bool {
        self.holder.get() == slot
    }

    /// A worker is free: it takes the parked baton or joins the queue. Returns whether it leads now.
    pub(crate) fn free(&self, slot: usize) -> bool {
        if self.holder.get() == NONE && self.start_ns.get() > 0 {
            self.waits.unpark(now_ns());
            self.holder.set(slot);
            true
        } else {
            self.idle.borrow_mut().push_back(slot);
            false
        }
    }

    /// The leader passes the baton to an idle worker, or parks it.
    pub(crate) fn pass(&self, slots: &Slots) {
        let next = self.idle.borrow_mut().pop_front();
        match next {
            Some(slot) => {
                self.holder.set(slot);
                slots.wake(slot);
            }
            None => {
                self.holder.set(NONE);
                self.waits.park(now_ns(), self.sessions.get() >= self.cap);
            }
        }
        self.hire_spares();
    }

    /// Wakes the leader to check the feed and the cutoff again.
    pub(crate) fn wake_leader(&self, slots: &Slots) {
        if self.holder.get() != NONE {
            slots.wake(self.holder.get());
        }
    }

    // ---- sessions ----

    /// Idle sessions to keep in reserve: a few, and more when many are busy, to stay ahead of a store that slows down.
    fn spare_target(&self, idle: usize) -> usize {
        4 + (self.sessions.get() - idle) / 4
    }

    /// Starts opening sessions when too few are in reserve.
    pub(crate) fn hire_spares(&self) {
        let idle = self.idle.borrow().len();
        let target = self.spare_target(idle);
        if idle + self.connecting.get() >= target || self.finished.get() {
            return;
        }
        if self.hire_after_ns.get() > 0 {
            if now_ns() < self.hire_after_ns.get() {
                return;
            }
            self.hire_after_ns.set(0);
        }
        self.hire_up_to(target - idle);
    }

    /// Starts opening sessions until `connecting` of them are under way, within the bounds.
    pub(crate) fn hire_up_to(&self, connecting: usize) {
        while self.connecting.get() < connecting.min(CONNECTING)
            && self.sessions.get() + self.connecting.get() < self.cap
        {
            self.connecting.set(self.connecting.get() + 1);
            if let Some(hire) = self.hire.get() {
                hire();
            }
        }
    }

    /// A session is open.
    pub(crate) fn hired(&self) {
        self.connecting.set(self.connecting.get() - 1);
        self.sessions.set(self.sessions.get() + 1);
    }

    /// A session could not be opened; the next attempt waits 100 ms.
    pub(crate) fn hire_failed(&self) {
        self.connecting.set(self.connecting.get() - 1);
        self.hire_after_ns.set(now_ns() + 100_000_000);
    }

    pub(crate) fn is_connecting(&self) -> bool {
        self.connecting.get() > 0
    }

    /// Open sessions of the work.
    pub(crate) fn sessions(&self) -> usize {
        self.sessions.get()
    }
}
