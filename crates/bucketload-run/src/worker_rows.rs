//! Figures per entry and worker of works on named objects ([`bucketload_core::rows`]), on one load thread.
//!
//! All memory is allocated before the start, so recording allocates nothing. Other works have no rows and pay one
//! comparison per operation.

use std::cell::{Cell, RefCell};

use bucketload_core::error::ErrorKind;
use bucketload_core::histogram::Histogram;
use bucketload_core::plan::{PhasePlan, WorkPlan};
use bucketload_core::record::{OpRecord, Outcome};
use bucketload_core::rows::{
    LEGACY_BUCKETS, PhaseRows, RowLatencies, RowSums, WorkerRow, WorkerSpan, legacy_bucket,
};

use crate::closed::WorkerShare;

/// The measured window of a work, nanoseconds since the epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
}

impl Window {
    /// Whether an operation that ended at `done_ns` counts.
    pub(crate) const fn has_end(self, done_ns: u64) -> bool {
        done_ns > self.begin_ns && done_ns <= self.end_ns
    }

    /// Whether an operation lies inside in whole milliseconds: started in [begin, end), finished in (begin, end].
    pub(crate) const fn has(self, started_ns: u64, done_ns: u64) -> bool {
        const MS: u64 = 1_000_000;
        let (begin, end) = (self.begin_ns / MS, self.end_ns / MS);
        let (started, done) = (started_ns / MS, done_ns / MS);
        started >= begin && started < end && done > begin && done <= end
    }
}

/// One worker, with its figures per entry of its work.
struct Worker {
    /// Index among all workers of the agent.
    id: u32,
    share: WorkerShare,
    rows: Vec<(RowSums, RowSums)>,
    /// First start and last end of operations inside the window.
    span: Option<(u64, u64)>,
}

/// Response times of one entry.
struct Latencies {
    legacy: Vec<u32>,
    fine: Histogram,
}

/// The rows of one load thread in one phase.
pub(crate) struct Rows {
    start_ns: Cell<u64>,
    /// Window of each work after the start, nanoseconds; `None` for works without rows.
    windows: Vec<Option<(u64, u64)>>,
    workers: RefCell<Vec<Worker>>,
    /// Position of the worker in `workers`, by its number on the thread.
    at: RefCell<Vec<usize>>,
    threads: usize,
    latencies: RefCell<Vec<Vec<Latencies>>>,
}

impl Rows {
    /// The rows of a phase; `None` if no work has any.
    pub(crate) fn of(phase: &PhasePlan, threads: usize) -> Option<Self> {
        let window = |work: &WorkPlan| Some(work.model.named()?.window_ns());
        let windows: Vec<_> = phase.works.iter().map(window).collect();
        if windows.iter().all(Option::is_none) {
            return None;
        }
        let latencies = || Latencies {
            legacy: vec![0; LEGACY_BUCKETS],
            fine: Histogram::new(),
        };
        let of_work = |work: &WorkPlan| match work.model.named() {
            Some(_) => work.mix.iter().map(|_| latencies()).collect(),
            None => Vec::new(),
        };
        Some(Self {
            start_ns: Cell::new(0),
            windows,
            workers: RefCell::default(),
            at: RefCell::default(),
            threads: threads.max(1),
            latencies: RefCell::new(phase.works.iter().map(of_work).collect()),
        })
    }

    /// The phase begins at `start_ns`.
    pub(crate) fn start(&self, start_ns: u64) {
        self.start_ns.set(start_ns);
    }

    /// The measured window of a work, in a phase that has begun.
    pub(crate) fn window(&self, work: u16) -> Window {
        let start = self.start_ns.get();
        let (begin, end) = self.windows[usize::from(work)].unwrap_or((0, u64::MAX));
        Window {
            begin_ns: start.saturating_add(begin),
            end_ns: start.saturating_add(end),
        }
    }

    /// Adds worker `id` of a work with `entries` entries.
    pub(crate) fn enter(&self, id: u32, share: WorkerShare, entries: usize) {
        let (mut workers, mut at) = (self.workers.borrow_mut(), self.at.borrow_mut());
        let number = id as usize / self.threads;
        if at.len() <= number {
            at.resize(number + 1, usize::MAX);
        }
        at[number] = workers.len();
        workers.push(Worker {
            id,
            share,
            rows: vec![Default::default(); entries],
            span: None,
        });
    }

    /// Adds an operation of entry `entry`. Operations that the end of the run cancelled do not count.
    pub(crate) fn record(&self, record: &OpRecord, entry: u16) {
        if record.outcome == Outcome::Failed(ErrorKind::Cancelled) {
            return;
        }
        let number = record.worker as usize / self.threads;
        let Some(&at) = self.at.borrow().get(number) else {
            return;
        };
        let mut workers = self.workers.borrow_mut();
        let Some(worker) = workers.get_mut(at).filter(|w| w.id == record.worker) else {
            return;
        };
        let window = self.window(record.work);
        let row = &mut worker.rows[usize::from(entry)];
        let mut latencies = self.latencies.borrow_mut();
        let latency = &mut latencies[usize::from(record.work)][usize::from(entry)];
        let ok = record.outcome == Outcome::Ok;
        if window.has_end(record.done_ns) {
            row.0.record(record);
            if ok {
                latency.fine.record(record.response_ns());
            }
        }
        if window.has(record.due_ns, record.done_ns) {
            row.1.record(record);
            if ok {
                latency.legacy[legacy_bucket(record.response_ns())] += 1;
            }
            let span = worker.span.get_or_insert((record.due_ns, record.done_ns));
            span.1 = record.done_ns;
        }
    }

    /// Takes the figures collected so far.
    pub(crate) fn take(&self, phase: u16) -> PhaseRows {
        let mut out = PhaseRows {
            phase,
            ..PhaseRows::default()
        };
        for worker in self.workers.take() {
            let WorkerShare { work, index, .. } = worker.share;
            for (entry, (finished, inside)) in worker.rows.into_iter().enumerate() {
                out.workers.push(WorkerRow {
                    work,
                    entry: entry as u16,
                    worker: index,
                    finished,
                    inside,
                });
            }
            out.spans
                .extend(worker.span.map(|(first_ns, last_ns)| WorkerSpan {
                    work,
                    worker: index,
                    first_ns,
                    last_ns,
                }));
        }
        for (work, entries) in self.latencies.take().into_iter().enumerate() {
            for (entry, latency) in entries.into_iter().enumerate() {
                let legacy = latency.legacy.iter().enumerate().filter(|(_, n)| **n > 0);
                out.latencies.push(RowLatencies {
                    work: work as u16,
                    entry: entry as u16,
                    legacy: legacy.map(|(at, n)| (at as u32, u64::from(*n))).collect(),
                    fine: latency
                        .fine
                        .buckets()
                        .map(|(at, n)| (at as u32, n))
                        .collect(),
                });
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::Window;

    /// The window of COSBench, docs/spec/cosbench.md section 1.9: whole milliseconds, both edges excluded where
    /// an operation straddles them, and an operation that ends in the millisecond of the opening too.
    #[test]
    fn inside_is_started_before_the_end_and_finished_after_the_beginning() {
        let ms = |n: u64| n * 1_000_000;
        let window = Window {
            begin_ns: ms(100),
            end_ns: ms(200),
        };
        for (started, done, inside) in [
            (100, 101, true),
            (99, 150, false),
            (100, 100, false),
            (199, 200, true),
            (199, 201, false),
            (200, 200, false),
        ] {
            assert_eq!(
                window.has(ms(started), ms(done)),
                inside,
                "{started}..{done}"
            );
        }
        // B5: an operation that straddles the opening counts as finished.
        assert!(window.has_end(ms(150)) && !window.has_end(ms(100)) && !window.has_end(ms(201)));
    }
}
