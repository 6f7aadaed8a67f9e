//! Open loop on one thread: the schedule, the idle workers, and the baton that one of them holds.
//!
//! ```text
//!          holds the baton            executes                     idle (a stack)
//!   leader ── waits for due ── takes ── execute … first wait ── … done ─┐
//!                                              │ passes the baton       │ parked? take it at once
//!                                              ▼                        ▼ else: lie down on the stack
//!                              idle worker wakes as the new leader
//!                              nobody idle: the baton is parked
//! ```
//!
//! No operation crosses a channel: the leader executes what it took. While it executes without
//! waiting nothing else can run on the thread, so the baton changes hands at the first wait. A
//! parked baton is picked up by the next worker that ends an operation or gets connected; arrivals
//! that fell due meanwhile are executed at once with their original due instants, never skipped.

use std::cell::{Cell, OnceCell, RefCell};

use bucketload_core::generate::arrivals::{Arrival, Arrivals};
use bucketload_core::op::Op;

use crate::clock::now_ns;
use crate::shard::Shard;
use crate::slots::Slots;

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
    idle: RefCell<Vec<usize>>,
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
            idle: RefCell::new(Vec::with_capacity(cap)),
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
        if self.waits.capped.get() {
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

    /// A worker is free: it takes a parked baton or lies down. Returns whether it leads now.
    pub(crate) fn free(&self, slot: usize) -> bool {
        if self.holder.get() == NONE && self.start_ns.get() > 0 {
            self.waits.unpark(now_ns());
            self.holder.set(slot);
            true
        } else {
            self.idle.borrow_mut().push(slot);
            false
        }
    }

    /// The leader gives the baton away, to an idle worker or to nobody.
    pub(crate) fn pass(&self, slots: &Slots) {
        let next = self.idle.borrow_mut().pop();
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

/// Attributes the waits of arrivals to missing workers or to the thread itself.
///
/// An episode begins when the baton is parked and ends when the thread has caught up with the
/// schedule: an arrival falls due while the baton is held and every earlier one has been taken. Of an arrival that was due before the episode, the whole parked time is dispatch wait;
/// of a later one the parked share of the episode, which is exact when the episode is one park
/// (the usual case) and needs no memory of all parks when it is thousands.
#[derive(Default)]
struct Waits {
    /// Start of the episode; 0 outside of one.
    begun_ns: Cell<u64>,
    /// Completed parks of the episode, nanoseconds.
    parked_ns: Cell<u64>,
    /// Start of the current park; 0 when the baton is held.
    since_ns: Cell<u64>,
    /// Whether the cap was the reason of a park in the episode.
    capped: Cell<bool>,
    /// Latest take or end of a park: before it, something stood in the way.
    settled_ns: Cell<u64>,
}

impl Waits {
    fn park(&self, now_ns: u64, capped: bool) {
        if self.begun_ns.get() == 0 {
            self.begun_ns.set(now_ns);
        }
        self.since_ns.set(now_ns);
        self.capped.set(self.capped.get() | capped);
    }

    fn unpark(&self, now_ns: u64) {
        let since = self.since_ns.replace(0);
        if since > 0 {
            self.parked_ns
                .set(self.parked_ns.get() + now_ns.saturating_sub(since));
            self.settled_ns.set(now_ns);
        }
    }

    /// Dispatch wait of an arrival due at `due_ns` and taken at `now_ns`, and whether the cap was
    /// its reason.
    fn of(&self, due_ns: u64, now_ns: u64) -> (u64, bool) {
        let caught_up = due_ns >= self.settled_ns.replace(now_ns);
        if caught_up && self.begun_ns.get() > 0 {
            self.begun_ns.set(0);
            self.parked_ns.set(0);
            self.capped.set(false);
        }
        let (begun, parked) = (self.begun_ns.get(), self.parked_ns.get());
        if begun == 0 || parked == 0 {
            return (0, false);
        }
        let wait = now_ns.saturating_sub(due_ns);
        let dispatch = if due_ns <= begun {
            parked.min(wait)
        } else {
            let share = parked as f64 / now_ns.saturating_sub(begun).max(1) as f64;
            ((wait as f64 * share.min(1.0)) as u64).min(wait)
        };
        (dispatch, self.capped.get() && dispatch > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::Waits;

    #[test]
    fn one_park_is_attributed_exactly() {
        let waits = Waits::default();
        assert_eq!(
            waits.of(100, 150),
            (0, false),
            "late, but a worker was free"
        );
        waits.park(1_000, true);
        waits.unpark(3_000);
        // Due before, at the beginning of, within and at the end of the park; taken as it ended.
        assert_eq!(waits.of(900, 3_000), (2_000, true));
        assert_eq!(waits.of(1_000, 3_000), (2_000, true));
        assert_eq!(waits.of(2_500, 3_000), (500, true));
        assert_eq!(waits.of(3_000, 3_050), (0, false));
        // The thread has caught up: what comes late now is late for another reason.
        assert_eq!(waits.of(3_100, 3_200), (0, false));
        waits.park(5_000, false);
        waits.unpark(6_000);
        assert_eq!(waits.of(5_400, 6_000), (600, false));
    }

    #[test]
    fn time_with_the_baton_held_is_lateness() {
        let waits = Waits::default();
        waits.park(1_000, false);
        waits.unpark(2_000);
        assert_eq!(waits.of(400, 2_900), (1_000, false));
        waits.park(3_000, false);
        waits.unpark(4_000);
        // Two of the last three parts of the episode were parked.
        assert_eq!(waits.of(500, 4_000), (2_000, false));
        assert_eq!(waits.of(2_500, 4_000), (1_000, false));
    }
}
