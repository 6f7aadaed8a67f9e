//! Sums per stream, that is per closed-loop worker: in total, and while every stream was active.
//!
//! ```text
//!  stream 0   ├──op──┤ ├op┤ ├───op───┤ ├─op─┤
//!  stream 1      ├─op─┤├───op────┤├op┤├──op──┤├op┤
//!                ▲ latest first start        ▲ earliest last stop
//!                └──────── all active ───────┘     operations that lie inside count as active
//! ```
//!
//! All threads of the phase share the two instants. The first is known when every stream has begun, the second when the
//! first stream has ended. An operation that ends before every stream has begun cannot have started inside; one that
//! ends after a stream has ended does not end inside. So no operation has to be remembered. Phases that do not ask for
//! these sums pay one branch per operation.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use bucketload_core::plan::PhasePlan;
use bucketload_core::record::{OpRecord, Outcome};
use bucketload_core::sink::StreamSum;

/// When the streams of a phase run, over all load threads.
pub(crate) struct StreamClock {
    /// Number of streams that have not begun their first operation and still may.
    waiting: AtomicU32,
    /// Latest first start of a stream, nanoseconds since the epoch.
    all_started_ns: AtomicU64,
    /// Earliest last stop of a stream, nanoseconds since the epoch; `u64::MAX` while all run.
    first_ended_ns: AtomicU64,
}

impl StreamClock {
    /// The clock of a phase that sums its streams; `None` for other phases.
    pub(crate) fn of(phase: &PhasePlan) -> Option<Arc<Self>> {
        let workers = phase
            .works
            .iter()
            .map(|work| work.model.closed().map_or(0, |closed| closed.workers));
        phase.accounting.streams.then(|| {
            Arc::new(Self {
                waiting: AtomicU32::new(workers.sum()),
                all_started_ns: AtomicU64::new(0),
                first_ended_ns: AtomicU64::new(u64::MAX),
            })
        })
    }

    fn begun(&self, at_ns: u64) {
        self.all_started_ns.fetch_max(at_ns, Ordering::Relaxed);
        // AcqRel: whoever sees that no stream is waiting also sees every first start.
        self.waiting.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether every stream was active from `started_ns` to `done_ns`.
    fn is_active(&self, started_ns: u64, done_ns: u64) -> bool {
        self.waiting.load(Ordering::Acquire) == 0
            && started_ns >= self.all_started_ns.load(Ordering::Relaxed)
            && done_ns <= self.first_ended_ns.load(Ordering::Acquire)
    }
}

/// The streams of one load thread.
pub(crate) struct Streams {
    clock: Arc<StreamClock>,
    /// Number of load threads: worker `w` is number `w / threads` on its thread.
    threads: usize,
    sums: RefCell<Vec<StreamSum>>,
}

impl Streams {
    pub(crate) fn new(clock: Arc<StreamClock>, threads: usize) -> Self {
        Self {
            clock,
            threads: threads.max(1),
            sums: RefCell::default(),
        }
    }

    /// A stream begins its first operation at `now_ns`.
    pub(crate) fn begun(&self, now_ns: u64) {
        self.clock.begun(now_ns);
    }

    /// Adds an operation to its worker's sums.
    pub(crate) fn record(&self, record: &OpRecord) {
        let mut sums = self.sums.borrow_mut();
        let at = record.worker as usize / self.threads;
        if at >= sums.len() {
            sums.resize(at + 1, StreamSum::default());
        }
        let sum = &mut sums[at];
        if sum.ops + sum.failed == 0 {
            sum.work = record.work;
            sum.worker = record.worker;
            sum.first_start_ns = record.started_ns;
        }
        sum.last_stop_ns = record.done_ns;
        sum.busy_ns += record.service_ns();
        let ok = record.outcome == Outcome::Ok;
        if ok {
            sum.ops += 1;
            sum.bytes += record.bytes;
        } else {
            sum.failed += 1;
        }
        if self.clock.is_active(record.started_ns, record.done_ns) {
            let active = &mut sum.active;
            if active.busy_ns == 0 {
                active.first_start_ns = record.started_ns;
            }
            active.last_stop_ns = record.done_ns;
            active.busy_ns += record.service_ns();
            active.ops += u64::from(ok);
            active.bytes += if ok { record.bytes } else { 0 };
        }
    }

    /// Worker `worker` has ended.
    pub(crate) fn ended(&self, worker: u32) {
        let sums = self.sums.borrow();
        match sums.get(worker as usize / self.threads) {
            Some(sum) if sum.ops + sum.failed > 0 => {
                let last = sum.last_stop_ns;
                self.clock.first_ended_ns.fetch_min(last, Ordering::AcqRel);
            }
            // A stream that did nothing does not count.
            _ => {
                self.clock.waiting.fetch_sub(1, Ordering::AcqRel);
            }
        }
    }

    /// The sums of the streams that performed an operation.
    pub(crate) fn take(&self) -> Vec<StreamSum> {
        let mut sums = self.sums.take();
        sums.retain(|sum| sum.ops + sum.failed > 0);
        sums
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, AtomicU64};

    use bucketload_core::op::OpClass;
    use bucketload_core::record::OpRecord;

    use super::{StreamClock, Streams};

    fn record(worker: u32, started_ns: u64, done_ns: u64) -> OpRecord {
        OpRecord {
            class: OpClass::Put,
            worker,
            due_ns: started_ns,
            taken_ns: started_ns,
            started_ns,
            first_byte_ns: done_ns,
            done_ns,
            bytes: 10,
            attempts: 1,
            ..OpRecord::BLANK
        }
    }

    #[test]
    fn only_operations_inside_the_common_window_are_active() {
        let clock = Arc::new(StreamClock {
            waiting: AtomicU32::new(3),
            all_started_ns: AtomicU64::new(0),
            first_ended_ns: AtomicU64::new(u64::MAX),
        });
        // Workers 0 and 2 on thread 0 of two, worker 1 on thread 1; worker 2 has nothing to do.
        let first = Streams::new(Arc::clone(&clock), 2);
        let second = Streams::new(clock, 2);
        first.ended(2);
        first.begun(100);
        first.record(&record(0, 100, 190));
        second.begun(250);
        // Began before the second stream: not active although it ends later.
        first.record(&record(0, 200, 290));
        first.record(&record(0, 295, 305));
        second.record(&record(1, 250, 310));
        first.record(&record(0, 310, 390));
        first.ended(0);
        second.record(&record(1, 320, 400));
        second.record(&record(1, 410, 500));
        second.ended(1);
        let (a, b) = (first.take(), second.take());
        assert_eq!((a.len(), b.len()), (1, 1));
        assert_eq!((a[0].first_start_ns, a[0].last_stop_ns), (100, 390));
        assert_eq!((a[0].ops, a[0].bytes, a[0].busy_ns), (4, 40, 270));
        assert_eq!((a[0].active.ops, a[0].active.first_start_ns), (2, 295));
        assert_eq!((b[0].ops, b[0].active.ops, b[0].active.bytes), (3, 1, 10));
        assert_eq!(
            (b[0].active.first_start_ns, b[0].active.last_stop_ns),
            (250, 310)
        );
    }
}
