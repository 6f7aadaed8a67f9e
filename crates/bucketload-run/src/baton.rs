//! Open loop on one thread: the schedule, the idle workers, and the baton that one of them holds.
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
//! No operation crosses a channel: the leader executes what it took. While it executes without
//! waiting nothing else can run on the thread, so the baton changes hands at the first wait. A
//! parked baton is picked up by the next worker that ends an operation or gets connected; arrivals
//! that fell due meanwhile are executed at once with their original due instants, never skipped.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;

use bucketload_core::generate::arrivals::{Arrival, Arrivals};
use bucketload_core::op::Op;

use crate::clock::now_ns;
use crate::shard::Shard;
use crate::slots::Slots;
use crate::waits::Waits;

/// No worker.
const NONE: usize = usize::MAX;
/// Sessions that may be connecting at the same time, per thread and work.
const CONNECTING: usize = 32;

/// How the wait of an arrival divides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Take {
    pub(crate) op: Op,
    /// Due instant, nanoseconds since the epoch.
    pub(crate) due_ns: u64,
    /// Part of the wait during which no worker was free.
    pub(crate) dispatch_ns: u64,
    /// Whether the in-flight cap was the reason.
    pub(crate) capped: bool,
}

/// The state of one open work on one thread.
pub(crate) struct Baton {
    /// Index of the work within the phase.
    pub(crate) work: u16,
    /// Most sessions on this thread.
    cap: usize,
    arrivals: RefCell<Arrivals>,
    /// The next arrival, with its due instant since the epoch.
    head: Cell<Option<Arrival>>,
    start_ns: Cell<u64>,
    finished: Cell<bool>,
    /// Worker that holds the baton, or `NONE` while it is parked.
    holder: Cell<usize>,
    /// Free workers, the longest idle first: all sessions, and so all endpoints, get their turn.
    idle: RefCell<VecDeque<usize>>,
    sessions: Cell<usize>,
    connecting: Cell<usize>,
    /// No new session is tried before this instant, after one failed.
    hire_after_ns: Cell<u64>,
    hire: OnceCell<Box<dyn Fn()>>,
    waits: Waits,
    // Offered counts run ahead of the takes when the thread is behind its schedule.
    ahead: RefCell<Option<(Arrivals, Option<Arrival>)>>,
    /// Every arrival due before this instant was counted as offered.
    counted_to_ns: Cell<u64>,
    counted: Cell<u64>,
    taken: Cell<u64>,
    /// Sequence numbers from this one on lie beyond the operation limit.
    beyond_seq: Cell<u64>,
}

impl Baton {
    pub(crate) fn new(work: u16, cap: usize, arrivals: Arrivals) -> Self {
        Self {
            work,
            cap,
            arrivals: RefCell::new(arrivals),
            head: Cell::new(None),
            start_ns: Cell::new(0),
            finished: Cell::new(false),
            holder: Cell::new(NONE),
            idle: RefCell::new(VecDeque::with_capacity(cap)),
            sessions: Cell::new(0),
            connecting: Cell::new(0),
            hire_after_ns: Cell::new(0),
            hire: OnceCell::new(),
            waits: Waits::default(),
            ahead: RefCell::new(None),
            counted_to_ns: Cell::new(0),
            counted: Cell::new(0),
            taken: Cell::new(0),
            beyond_seq: Cell::new(u64::MAX),
        }
    }

    /// Sets what starts another session task.
    pub(crate) fn set_hire(&self, hire: Box<dyn Fn()>) {
        let _ = self.hire.set(hire);
    }

    /// The phase begins: the schedule becomes absolute and a connected worker leads.
    pub(crate) fn start(&self, start_ns: u64, slots: &Slots) {
        self.start_ns.set(start_ns);
        self.head.set(self.arrivals.borrow_mut().next());
        self.pass(slots);
    }

    fn due(&self, arrival: Arrival) -> u64 {
        self.start_ns.get().saturating_add(arrival.due_ns)
    }

    /// The instant the leader waits for: the next arrival, or the end of offering. `None` when
    /// there is nothing to wait for.
    pub(crate) fn target_ns(&self, cutoff_ns: u64) -> Option<u64> {
        if self.finished.get() {
            return None;
        }
        let due = self.due(self.head.get()?);
        Some(due.min(cutoff_ns))
    }

    /// Takes the next arrival when it is due at `now_ns`; otherwise the thread has caught up.
    /// Finishes the work when the schedule is over.
    pub(crate) fn take(&self, now_ns: u64, shard: &Shard) -> Option<Take> {
        let cutoff = shard.cutoff_ns.get();
        let Some(arrival) = self.head.get() else {
            self.finish();
            return None;
        };
        let due_ns = self.due(arrival);
        if due_ns >= cutoff {
            if now_ns >= cutoff {
                self.finish();
            }
            return None;
        }
        if due_ns > now_ns {
            return None;
        }
        shard.tick(now_ns);
        let new = due_ns >= self.counted_to_ns.get();
        if new && self.is_beyond(arrival, shard) || arrival.seq >= self.beyond_seq.get() {
            self.finish();
            return None;
        }
        let op = shard.shared.sources[usize::from(self.work)].op(arrival.seq);
        if new {
            self.counted.set(self.counted.get() + 1);
            shard.offered(due_ns, &op);
        }
        self.head.set(self.arrivals.borrow_mut().next());
        let (dispatch_ns, capped) = self.waits.of(due_ns, now_ns);
        self.taken.set(self.taken.get() + 1);
        Some(Take {
            op,
            due_ns,
            dispatch_ns,
            capped,
        })
    }

    /// Whether the operation limit excludes an arrival that was not counted yet.
    fn is_beyond(&self, arrival: Arrival, shard: &Shard) -> bool {
        if arrival.seq < self.beyond_seq.get() && shard.beyond_ops(arrival.seq) {
            self.beyond_seq.set(arrival.seq);
        }
        arrival.seq >= self.beyond_seq.get()
    }

    /// Counts as offered every arrival due before `until_ns` that is still waiting.
    pub(crate) fn count_until(&self, until_ns: u64, shard: &Shard) {
        if until_ns <= self.counted_to_ns.get() || self.finished.get() {
            return;
        }
        let Some(head) = self.head.get() else { return };
        if self.due(head) < until_ns {
            let mut ahead = self.ahead.borrow_mut();
            let stale = |next: &Option<Arrival>| next.is_some_and(|a| a.seq < head.seq);
            if ahead.as_ref().is_none_or(|(_, next)| stale(next)) {
                *ahead = Some((self.arrivals.borrow().clone(), Some(head)));
            }
            let (arrivals, next) = ahead.as_mut().expect("set above");
            let source = &shard.shared.sources[usize::from(self.work)];
            while let Some(arrival) = *next {
                let due = self.due(arrival);
                if due >= until_ns {
                    break;
                }
                if due >= self.counted_to_ns.get() {
                    if self.is_beyond(arrival, shard) {
                        break;
                    }
                    shard.offered(due, &source.op(arrival.seq));
                    self.counted.set(self.counted.get() + 1);
                }
                *next = arrivals.next();
            }
        }
        self.counted_to_ns.set(until_ns);
    }

    /// Arrivals that are due (counted as offered) but not taken.
    pub(crate) fn backlog(&self) -> u64 {
        self.counted.get() - self.taken.get()
    }

    /// Due instant of the oldest arrival that is due but not taken; `u64::MAX` without one.
    pub(crate) fn oldest_due_ns(&self) -> u64 {
        match self.head.get() {
            Some(head) if self.backlog() > 0 => self.due(head),
            _ => u64::MAX,
        }
    }

    /// Whether nothing more will be taken.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished.get()
    }

    /// Takes nothing more. What is due but was not taken stays in the backlog.
    pub(crate) fn finish(&self) {
        self.finished.set(true);
    }

    /// Whether arrivals wait because the cap is reached.
    pub(crate) fn capped_backlog(&self) -> u64 {
        if self.waits.is_capped() {
            self.backlog()
        } else {
            0
        }
    }

    // ---- the baton ----

    /// Whether `slot` leads.
    pub(crate) fn leads(&self, slot: usize) -> bool {
        self.holder.get() == slot
    }

    /// A worker is free: it takes a parked baton or joins the queue. Returns whether it leads now.
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

    /// The leader gives the baton away, to an idle worker or to nobody.
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

    /// Wakes the leader, so that it looks at the cutoff again.
    pub(crate) fn wake_leader(&self, slots: &Slots) {
        if self.holder.get() != NONE {
            slots.wake(self.holder.get());
        }
    }

    // ---- sessions ----

    /// Idle sessions to have in reserve: a few, and more when many are busy, so that growth keeps
    /// ahead of a store that slows down.
    fn spare_target(&self, idle: usize) -> usize {
        4 + (self.sessions.get() - idle) / 4
    }

    /// Starts connecting more sessions when too few are in reserve.
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

    /// Starts connecting sessions until `connecting` of them are under way, within the bounds.
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

    /// Whether sessions are being opened.
    pub(crate) fn is_connecting(&self) -> bool {
        self.connecting.get() > 0
    }

    /// Open sessions of the work.
    pub(crate) fn sessions(&self) -> usize {
        self.sessions.get()
    }
}
