//! The bins of time series.

use bucketload_core::tally::Gauges;

use super::fold::Bin;
use crate::rundir::IntervalLine;

/// Counters of one or more consecutive intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) len_ns: u64,
    pub(crate) intervals: u64,
    pub(crate) offered: u64,
    pub(crate) offered_bytes: u64,
    pub(crate) issued: u64,
    pub(crate) ok: u64,
    pub(crate) failed: u64,
    pub(crate) bytes: u64,
    /// Length of the shortest bins with known counts, nanoseconds; 0 if they are unknown.
    pub(crate) fine_ns: u64,
    /// Sums of squared counts per such bin and per ten of them: offered and completed.
    pub(crate) offered_squares: [u64; 2],
    pub(crate) completed_squares: [u64; 2],
    /// Largest reading of the age of the oldest outstanding arrival, nanoseconds.
    pub(crate) backlog_ns: u64,
    /// Sums of the readings of operations in flight, sessions and jobs.
    pub(crate) in_flight: u64,
    pub(crate) sessions: u64,
    pub(crate) jobs: u64,
    /// Machine CPU time, busy and total, nanoseconds; 0 if the previous reading is unknown.
    pub(crate) busy_ns: u64,
    pub(crate) total_ns: u64,
    /// Largest p99 of lateness and build time, nanoseconds.
    pub(crate) late_p99_ns: u64,
}

impl Counts {
    /// The counters of an interval; `before` are the readings at its start, if known.
    pub(crate) fn of(line: &IntervalLine, before: Option<&Gauges>, late_p99_ns: u64) -> Self {
        let now = &line.gauges;
        let cpu = |after: u64, base: fn(&Gauges) -> u64| {
            before.map_or(0, |gauges| after.saturating_sub(base(gauges)))
        };
        Self {
            start_ns: line.start_ns,
            end_ns: line.end_ns,
            len_ns: line.len_ns(),
            intervals: 1,
            offered: line.offered,
            offered_bytes: line.offered_bytes,
            issued: line.issued,
            ok: line.ok(),
            failed: line.failures(),
            bytes: line.bytes(),
            fine_ns: line.fine.map_or(0, |fine| fine.bin_ns),
            offered_squares: line.fine.map_or([0; 2], |fine| fine.offered),
            completed_squares: line.fine.map_or([0; 2], |fine| fine.completed),
            backlog_ns: now.backlog_ns,
            in_flight: now.in_flight,
            sessions: now.sessions,
            jobs: now.jobs,
            busy_ns: cpu(now.machine_busy_ns, |g| g.machine_busy_ns),
            total_ns: cpu(now.machine_total_ns, |g| g.machine_total_ns),
            late_p99_ns,
        }
    }

    /// `count` per second of the bin.
    pub(crate) fn per_s(&self, count: u64) -> f64 {
        count as f64 * 1e9 / self.len_ns.max(1) as f64
    }

    /// Mean number of jobs in progress.
    pub(crate) fn mean_jobs(&self) -> f64 {
        self.jobs as f64 / self.intervals.max(1) as f64
    }

    /// Mean number of operations in flight.
    pub(crate) fn mean_in_flight(&self) -> f64 {
        self.in_flight as f64 / self.intervals.max(1) as f64
    }
}

impl Bin for Counts {
    fn absorb(&mut self, next: &Self) {
        self.end_ns = next.end_ns;
        self.len_ns += next.len_ns;
        self.intervals += next.intervals;
        self.offered += next.offered;
        self.offered_bytes += next.offered_bytes;
        self.issued += next.issued;
        self.ok += next.ok;
        self.failed += next.failed;
        self.bytes += next.bytes;
        // Squares add up over intervals. If one interval lacks them, the sum is meaningless.
        self.fine_ns = if next.fine_ns == self.fine_ns {
            self.fine_ns
        } else {
            0
        };
        for i in 0..2 {
            self.offered_squares[i] += next.offered_squares[i];
            self.completed_squares[i] += next.completed_squares[i];
        }
        self.backlog_ns = self.backlog_ns.max(next.backlog_ns);
        self.in_flight += next.in_flight;
        self.sessions += next.sessions;
        self.jobs += next.jobs;
        self.busy_ns += next.busy_ns;
        self.total_ns += next.total_ns;
        self.late_p99_ns = self.late_p99_ns.max(next.late_p99_ns);
    }
}

/// Median service time of a class, over the intervals in which it had successes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Median {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    sum_ns: f64,
    intervals: u64,
}

impl Median {
    pub(crate) const fn new(start_ns: u64, end_ns: u64, p50_ns: u64) -> Self {
        Self {
            start_ns,
            end_ns,
            sum_ns: p50_ns as f64,
            intervals: 1,
        }
    }

    /// Mean of the medians, nanoseconds. Used only to judge steadiness, never as a result.
    pub(crate) fn value(&self) -> f64 {
        self.sum_ns / self.intervals as f64
    }
}

impl Bin for Median {
    fn absorb(&mut self, next: &Self) {
        self.end_ns = next.end_ns;
        self.sum_ns += next.sum_ns;
        self.intervals += next.intervals;
    }
}

/// Successes of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Successes {
    pub(crate) len_ns: u64,
    pub(crate) ok: u64,
    pub(crate) bytes: u64,
}

impl Bin for Successes {
    fn absorb(&mut self, next: &Self) {
        self.len_ns += next.len_ns;
        self.ok += next.ok;
        self.bytes += next.bytes;
    }
}
