//! Merges the tallies of all load threads into intervals, in order.

use std::collections::VecDeque;
use std::sync::mpsc::SyncSender;

use bucketload_core::tally::{Interval, Recording, Tally};

use crate::machine::Machine;
use crate::recorder::{INTERVALS_AHEAD, ThreadGauges};

/// Counts over a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseTotals {
    /// Operations whose due instant lay in the phase.
    pub offered: u64,
    /// Operations that a worker took.
    pub issued: u64,
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Operations that the end of the phase cut off.
    pub cancelled: u64,
    /// Object bytes of operations that succeeded.
    pub bytes: u64,
}

impl PhaseTotals {
    fn add(&mut self, tally: &Tally) {
        self.offered += tally.offered;
        self.issued += tally.issued;
        self.ok += tally.ok();
        self.failed += tally.failures();
        self.cancelled += tally.cells.iter().map(|c| c.cancelled()).sum::<u64>();
        self.bytes += tally.bytes();
    }
}

/// An interval that not all threads have delivered.
struct Pending {
    tally: Tally,
    gauges: Vec<Option<ThreadGauges>>,
}

/// Joins the intervals of all threads of one phase.
pub(crate) struct Intervals {
    phase: u16,
    start_ns: u64,
    interval_ns: u64,
    /// Index of the first pending interval.
    base: u64,
    pending: VecDeque<Pending>,
    /// Emptied intervals for reuse.
    pool: Vec<Pending>,
    /// Per thread: index of the next interval that it has yet to deliver; `u64::MAX` when it has delivered all.
    owed: Vec<u64>,
    /// Latest readings of each thread.
    last: Vec<ThreadGauges>,
    /// CPU time of each thread position in earlier phases, nanoseconds.
    cpu_base: Vec<u64>,
    back: Vec<SyncSender<Box<Recording>>>,
    pub(crate) totals: PhaseTotals,
}

impl Intervals {
    pub(crate) fn new(
        phase: u16,
        interval_ns: u64,
        cpu_base: Vec<u64>,
        back: Vec<SyncSender<Box<Recording>>>,
    ) -> Self {
        let threads = back.len();
        Self {
            phase,
            start_ns: 0,
            interval_ns,
            base: 0,
            pending: VecDeque::new(),
            pool: Vec::new(),
            owed: vec![0; threads],
            last: vec![ThreadGauges::default(); threads],
            cpu_base,
            back,
            totals: PhaseTotals::default(),
        }
    }

    pub(crate) fn start(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
    }

    /// Whether the phase has begun.
    pub(crate) fn is_started(&self) -> bool {
        self.start_ns > 0
    }

    /// Merges a thread's tally of interval `index`, and of earlier intervals that it did not deliver, and gives the
    /// memory back to the thread.
    pub(crate) fn add(
        &mut self,
        thread: usize,
        index: u64,
        mut recording: Box<Recording>,
        gauges: ThreadGauges,
    ) {
        // While a thread delivers nothing, later intervals are merged to bound memory.
        let at = usize::try_from(index.saturating_sub(self.base)).unwrap_or(usize::MAX);
        let at = at.min(INTERVALS_AHEAD - 1);
        while self.pending.len() <= at {
            let fresh = self.pool.pop().unwrap_or_else(|| Pending {
                tally: Tally::new(),
                gauges: Vec::new(),
            });
            self.pending.push_back(fresh);
        }
        let pending = &mut self.pending[at];
        pending.gauges.resize(self.last.len(), None);
        pending.tally.merge(recording.settle());
        pending.gauges[thread] = Some(gauges);
        self.owed[thread] = index + 1;
        recording.clear();
        // Full or closed only when the thread has ended.
        let _ = self.back[thread].try_send(recording);
    }

    /// The thread has delivered all its intervals.
    pub(crate) fn done(&mut self, thread: usize) {
        self.owed[thread] = u64::MAX;
    }

    /// Calls `out` for every interval that all threads have delivered. `drained_ns` is the end of the last interval,
    /// once it is known.
    pub(crate) fn emit(
        &mut self,
        machine: &mut Machine,
        drained_ns: Option<u64>,
        mut out: impl FnMut(&Interval),
    ) {
        while self.owed.iter().all(|&owed| owed > self.base)
            && let Some(mut pending) = self.pending.pop_front()
        {
            for (last, new) in self.last.iter_mut().zip(&pending.gauges) {
                *last = new.unwrap_or(*last);
            }
            let index = self.base;
            self.base += 1;
            let start_ns = self.start_ns + index * self.interval_ns;
            let is_last = self.pending.is_empty() && drained_ns.is_some();
            let end_ns = match drained_ns {
                Some(drained) if is_last => drained.clamp(start_ns, start_ns + self.interval_ns),
                _ => start_ns + self.interval_ns,
            };
            let empty_rest = is_last && index > 0 && is_empty(&pending.tally);
            if self.is_started() && !empty_rest {
                let mut interval = Interval {
                    phase: self.phase,
                    index,
                    start_ns,
                    end_ns,
                    tally: std::mem::take(&mut pending.tally),
                    gauges: Default::default(),
                };
                machine.read_into(&mut interval.gauges);
                self.read_threads(&mut interval);
                self.totals.add(&interval.tally);
                out(&interval);
                pending.tally = interval.tally;
            }
            pending.tally.clear();
            pending.gauges.clear();
            self.pool.push(pending);
        }
    }

    fn read_threads(&self, interval: &mut Interval) {
        for (thread, base) in self.last.iter().zip(&self.cpu_base) {
            let cpu_ns = base + thread.cpu_ns;
            interval.gauges.in_flight += thread.in_flight;
            interval.gauges.sessions += thread.sessions;
            interval.gauges.jobs += thread.jobs;
            interval.gauges.backlog_ns = interval.gauges.backlog_ns.max(thread.backlog_ns);
            interval.gauges.load_cpu_ns += cpu_ns;
            let busiest = &mut interval.gauges.busiest_thread_cpu_ns;
            *busiest = cpu_ns.max(*busiest);
        }
    }

    /// CPU time of each thread position up to now, for the next phase.
    pub(crate) fn cpu_ns(&self) -> Vec<u64> {
        self.last
            .iter()
            .zip(&self.cpu_base)
            .map(|(thread, base)| base + thread.cpu_ns)
            .collect()
    }
}

fn is_empty(tally: &Tally) -> bool {
    tally.offered == 0 && tally.issued == 0 && tally.connects == 0 && tally.ended() == 0
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, sync_channel};

    use bucketload_core::tally::{Interval, Recording, Tally};

    use super::Intervals;
    use crate::machine::Machine;
    use crate::recorder::{INTERVALS_AHEAD, ThreadGauges};

    const SECOND: u64 = 1_000_000_000;

    struct Fixture {
        intervals: Intervals,
        machine: Machine,
        back: Vec<Receiver<Box<Recording>>>,
        out: Vec<Interval>,
    }

    impl Fixture {
        fn new(threads: usize) -> Self {
            let (give, back) = (0..threads).map(|_| sync_channel(INTERVALS_AHEAD)).unzip();
            let mut intervals = Intervals::new(3, SECOND, vec![100; threads], give);
            intervals.start(5 * SECOND);
            Self {
                intervals,
                machine: Machine::new(),
                back,
                out: Vec::new(),
            }
        }

        fn add(&mut self, thread: usize, index: u64, offered: u64) {
            let recording = Box::new(Recording::new(Tally {
                offered,
                ..Tally::new()
            }));
            let gauges = ThreadGauges {
                in_flight: offered,
                sessions: 1,
                jobs: 0,
                backlog_ns: 7 * offered,
                cpu_ns: 10 * (index + 1),
            };
            self.intervals.add(thread, index, recording, gauges);
        }

        fn emit(&mut self, drained_ns: Option<u64>) {
            let out = &mut self.out;
            let keep = |interval: &Interval| out.push(interval.clone());
            self.intervals.emit(&mut self.machine, drained_ns, keep);
        }

        fn offered(&self) -> Vec<u64> {
            self.out.iter().map(|i| i.tally.offered).collect()
        }
    }

    #[test]
    fn an_interval_waits_for_all_threads_and_sums_them() {
        let mut f = Fixture::new(2);
        f.add(0, 0, 1);
        f.add(0, 1, 2);
        f.emit(None);
        assert!(f.out.is_empty());
        f.add(1, 0, 10);
        f.emit(None);
        assert_eq!(f.offered(), [11]);
        let first = &f.out[0];
        assert_eq!((first.phase, first.index), (3, 0));
        assert_eq!((first.start_ns, first.end_ns), (5 * SECOND, 6 * SECOND));
        let gauges = first.gauges;
        assert_eq!((gauges.in_flight, gauges.sessions), (11, 2));
        assert_eq!(gauges.backlog_ns, 70, "the oldest of all threads");
        // Each position had used 100 ns in earlier phases and 10 in this interval.
        assert_eq!(
            (gauges.load_cpu_ns, gauges.busiest_thread_cpu_ns),
            (220, 110)
        );
        assert!(
            f.back[0].try_recv().unwrap().settle().offered == 0,
            "given back empty"
        );
        // Thread 1 delivers intervals 1 and 2 jointly and is done; thread 0 ends within 2.
        f.add(1, 2, 20);
        f.add(0, 2, 3);
        f.intervals.done(0);
        f.intervals.done(1);
        f.emit(Some(7 * SECOND + 5));
        assert_eq!(f.offered(), [11, 2, 23]);
        assert_eq!(f.out[2].end_ns, 7 * SECOND + 5);
        assert_eq!(f.intervals.totals.offered, 36);
        assert_eq!(f.intervals.cpu_ns(), [130, 130]);
    }

    #[test]
    fn an_empty_remainder_after_the_last_boundary_is_no_interval() {
        let mut f = Fixture::new(1);
        f.add(0, 0, 4);
        f.add(0, 1, 0);
        f.intervals.done(0);
        f.emit(Some(6 * SECOND + 1));
        assert_eq!(f.offered(), [4]);
    }

    #[test]
    fn behind_a_silent_thread_memory_is_bounded_and_nothing_is_lost() {
        let mut f = Fixture::new(2);
        for index in 0..10_000 {
            f.add(0, index, 1);
        }
        assert_eq!(f.intervals.pending.len(), INTERVALS_AHEAD);
        f.emit(None);
        assert!(f.out.is_empty());
        f.add(1, 9_999, 0);
        f.intervals.done(0);
        f.intervals.done(1);
        f.emit(Some(6_000 * SECOND));
        assert_eq!(f.offered().iter().sum::<u64>(), 10_000);
    }
}
