//! Tallies: what each thread counts, and how counts are merged.
//!
//! Each load thread owns one [`Tally`] per phase and swaps it at interval boundaries. The collector merges tallies into
//! an [`Interval`]. Merging is associative and commutative, and an empty tally is neutral, so threads, agents and
//! intervals can be combined in any order. Percentiles are computed from merged histograms only.

mod parts;

pub use self::parts::{JobCounts, KvCounts, ReplayCounts, Span};
use crate::anatomy::Anatomy;
use crate::endpoint::EndpointTally;
use crate::error::ErrorKind;
use crate::histogram::Histogram;
use crate::op::OpClass;
use crate::record::{ConnectTimes, OpRecord, Outcome};

mod fine;
mod recording;
mod size;

pub use fine::{FINE_BINS, FineCounts};
pub use recording::Recording;
pub use size::SizeCell;

/// Counts and histograms of one operation class of one work.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Index of the work within the phase.
    pub work: u16,
    /// Operation class.
    pub class: OpClass,
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that failed, by [`ErrorKind`], including `Cancelled`.
    pub failed: [u64; ErrorKind::ALL.len()],
    /// Attempts beyond the first.
    pub retries: u64,
    /// Object bytes transferred by operations that succeeded.
    pub bytes: u64,
    /// Response times of operations that succeeded.
    pub response: Histogram,
    /// Service times of operations that succeeded.
    pub service: Histogram,
    /// Time from start to first byte of operations that succeeded.
    pub ttfb: Histogram,
    /// Response times of operations that failed, without cancelled ones.
    pub failed_response: Histogram,
    /// The parts of the response times of operations that succeeded.
    pub anatomy: Anatomy,
}

impl Cell {
    /// An empty cell.
    #[must_use]
    pub fn new(work: u16, class: OpClass) -> Self {
        Self {
            work,
            class,
            ok: 0,
            failed: [0; ErrorKind::ALL.len()],
            retries: 0,
            bytes: 0,
            response: Histogram::new(),
            service: Histogram::new(),
            ttfb: Histogram::new(),
            failed_response: Histogram::new(),
            anatomy: Anatomy::default(),
        }
    }

    /// Number of operations that failed, without cancelled ones.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failed.iter().sum::<u64>() - self.cancelled()
    }

    /// Number of operations cancelled by the end of the phase.
    #[must_use]
    pub const fn cancelled(&self) -> u64 {
        self.failed[ErrorKind::Cancelled as usize]
    }

    /// Number of operations that ended: succeeded, failed or were cancelled.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.ok + self.failed.iter().sum::<u64>()
    }

    /// Counts an operation and records its response time.
    #[inline]
    fn count(&mut self, r: &OpRecord) {
        self.retries += u64::from(r.attempts.saturating_sub(1));
        match r.outcome {
            Outcome::Ok => {
                self.ok += 1;
                self.bytes += r.bytes;
                self.response.record(r.response_ns());
            }
            Outcome::Failed(kind) => {
                self.failed[kind as usize] += 1;
                if kind != ErrorKind::Cancelled {
                    self.failed_response.record(r.response_ns());
                }
            }
        }
    }

    /// Records the service time of an operation that succeeded, and its parts.
    #[inline]
    fn record_service(&mut self, r: &OpRecord) {
        self.service.record(r.service_ns());
        if r.first_byte_ns != 0 {
            self.ttfb
                .record(r.first_byte_ns.saturating_sub(r.started_ns));
        }
        self.anatomy.record_service(r);
    }

    /// Adds all of `other`, which must be of the same work and class.
    pub fn merge(&mut self, other: &Self) {
        debug_assert_eq!((self.work, self.class), (other.work, other.class));
        self.ok += other.ok;
        self.failed
            .iter_mut()
            .zip(other.failed)
            .for_each(|(a, b)| *a += b);
        self.retries += other.retries;
        self.bytes += other.bytes;
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.ttfb.merge(&other.ttfb);
        self.failed_response.merge(&other.failed_response);
        self.anatomy.merge(&other.anatomy);
    }

    fn clear(&mut self) {
        self.ok = 0;
        self.failed = [0; ErrorKind::ALL.len()];
        self.retries = 0;
        self.bytes = 0;
        self.response.clear();
        self.service.clear();
        self.ttfb.clear();
        self.failed_response.clear();
        self.anatomy.clear();
    }
}

/// The counts of one thread, or of several merged, over an interval or a phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// Cells in order of first use.
    pub cells: Vec<Cell>,
    /// Operations whose due instant lies in the interval.
    pub offered: u64,
    /// Object bytes of those operations, as far as known in advance.
    pub offered_bytes: u64,
    /// Operations that were handed to a worker.
    pub issued: u64,
    /// Lag of all operations: actual minus intended start.
    pub lag: Histogram,
    /// Timer lateness plus build time of all operations: the client's own share of the lag.
    pub late: Histogram,
    /// Dispatch wait of the operations that had to wait for a free worker.
    pub dispatch: Histogram,
    /// TCP connect times.
    pub connect_tcp: Histogram,
    /// TLS handshake times.
    pub connect_tls: Histogram,
    /// Name resolution times.
    pub connect_dns: Histogram,
    /// Number of connections made.
    pub connects: u64,
    /// Arrivals that found all workers busy and the in-flight cap reached.
    pub capped: u64,
    /// Makespans of stages and jobs, in order of first use; empty for other models.
    pub spans: Vec<Span>,
    /// Counts of jobs.
    pub jobs: JobCounts,
    /// Counts of a replay.
    pub replay: ReplayCounts,
    /// Counts of a key-value cache.
    pub kvcache: KvCounts,
    /// Waits for an earlier request on the same key, of the requests that had to wait.
    pub blocked: Histogram,
    /// Delays of the due instant by a rate limit, of the requests that were delayed.
    pub shaped: Histogram,
    /// Counts per endpoint; empty if there is only one.
    pub endpoints: Vec<EndpointTally>,
    /// Counts per hundredth of the interval, for the dispersion at short time scales.
    pub fine: FineCounts,
    /// Successes by size class, for phases that ask for them.
    pub sizes: Vec<SizeCell>,
}

impl Tally {
    /// An empty tally.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The cell of a work and class, created on first use.
    #[inline]
    pub fn cell_mut(&mut self, work: u16, class: OpClass) -> &mut Cell {
        let at = self.cell_at(work, class);
        &mut self.cells[at]
    }

    /// Index of the cell of a work and class, created on first use.
    #[inline]
    fn cell_at(&mut self, work: u16, class: OpClass) -> usize {
        let wanted = |c: &Cell| c.class == class && c.work == work;
        let at = self.cells.iter().position(wanted);
        at.unwrap_or_else(|| self.add_cell(work, class))
    }

    #[cold]
    fn add_cell(&mut self, work: u16, class: OpClass) -> usize {
        self.cells.push(Cell::new(work, class));
        self.cells.len() - 1
    }

    /// Records one operation that ended.
    pub fn record(&mut self, r: &OpRecord) {
        let at = self.count(r);
        self.record_start(at, r);
        self.record_service(at, r);
    }

    /// Counts one operation that ended and records its response time. Returns the index of its cell.
    #[inline]
    fn count(&mut self, r: &OpRecord) -> usize {
        if r.outcome == Outcome::Ok {
            self.fine.completed(r.done_ns);
            if !self.sizes.is_empty() {
                self.record_size(r);
            }
        }
        if let Some(endpoint) = self.endpoints.get_mut(usize::from(r.endpoint)) {
            endpoint.record(r);
        }
        let at = self.cell_at(r.work, r.class);
        self.cells[at].count(r);
        at
    }

    /// Records the time between intended and actual start of an operation of the cell at index `at`.
    #[inline]
    fn record_start(&mut self, at: usize, r: &OpRecord) {
        self.lag.record(r.lag_ns());
        self.late.record(r.late_ns() + r.build_ns());
        if r.dispatch_ns > 0 {
            self.dispatch.record(r.dispatch_ns);
        }
        if r.blocked_ns > 0 {
            self.blocked.record(r.blocked_ns);
            self.replay.blocked += 1;
        }
        if r.outcome == Outcome::Ok {
            self.cells[at].anatomy.record_start(r);
        }
    }

    /// Records the time between start and end of an operation of the cell at index `at`.
    #[inline]
    fn record_service(&mut self, at: usize, r: &OpRecord) {
        if r.outcome == Outcome::Ok {
            self.cells[at].record_service(r);
        }
    }

    /// The span of a part of a work's jobs, created on first use.
    pub fn span_mut(&mut self, work: u16, part: u16) -> &mut Span {
        let of = |span: &Span| span.work == work && span.part == part;
        let at = self.spans.iter().position(of).unwrap_or_else(|| {
            self.spans.push(Span {
                work,
                part,
                failed: 0,
                makespan: Histogram::new(),
            });
            self.spans.len() - 1
        });
        &mut self.spans[at]
    }

    /// Creates the size cells of a work and class. The size ranges begin at 0 and at each of `bounds`, bytes.
    pub fn size_cells(&mut self, work: u16, class: OpClass, bounds: &[u64]) {
        let known = self
            .sizes
            .iter()
            .any(|c| c.work == work && c.class == class);
        if bounds.is_empty() || known || !(class.writes_body() || class.reads_body()) {
            return;
        }
        let from = std::iter::once(0).chain(bounds.iter().copied());
        let to = bounds.iter().copied().chain(std::iter::once(u64::MAX));
        self.sizes.extend(
            from.zip(to)
                .map(|(from, to)| SizeCell::new(work, class, from, to)),
        );
    }

    fn record_size(&mut self, r: &OpRecord) {
        let mine = |c: &&mut SizeCell| {
            c.work == r.work && c.class == r.class && (c.from..c.to).contains(&r.bytes)
        };
        if let Some(cell) = self.sizes.iter_mut().find(mine) {
            cell.ok += 1;
            cell.bytes += r.bytes;
            cell.response.record(r.response_ns());
            cell.service.record(r.service_ns());
        }
    }

    /// The size cell of a work and class that begins at `from` bytes, created on first use.
    pub fn size_cell_mut(
        &mut self,
        work: u16,
        class: OpClass,
        from: u64,
        to: u64,
    ) -> &mut SizeCell {
        let at = self
            .sizes
            .iter()
            .position(|c| c.work == work && c.class == class && c.from == from);
        let at = at.unwrap_or_else(|| {
            self.sizes.push(SizeCell::new(work, class, from, to));
            self.sizes.len() - 1
        });
        &mut self.sizes[at]
    }

    /// Records one connection establishment.
    pub fn record_connect(&mut self, times: ConnectTimes) {
        self.connects += 1;
        self.connect_tcp.record(times.tcp_ns);
        if times.tls_ns > 0 {
            self.connect_tls.record(times.tls_ns);
        }
        if times.dns_ns > 0 {
            self.connect_dns.record(times.dns_ns);
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        for cell in &other.cells {
            self.cell_mut(cell.work, cell.class).merge(cell);
        }
        self.offered += other.offered;
        self.offered_bytes += other.offered_bytes;
        self.issued += other.issued;
        self.lag.merge(&other.lag);
        self.late.merge(&other.late);
        self.dispatch.merge(&other.dispatch);
        self.connect_tcp.merge(&other.connect_tcp);
        self.connect_tls.merge(&other.connect_tls);
        self.connect_dns.merge(&other.connect_dns);
        self.connects += other.connects;
        self.capped += other.capped;
        if self.endpoints.len() < other.endpoints.len() {
            let missing = EndpointTally::default;
            self.endpoints.resize_with(other.endpoints.len(), missing);
        }
        for (mine, theirs) in self.endpoints.iter_mut().zip(&other.endpoints) {
            mine.merge(theirs);
        }
        for span in &other.spans {
            let mine = self.span_mut(span.work, span.part);
            mine.failed += span.failed;
            mine.makespan.merge(&span.makespan);
        }
        self.jobs.merge(&other.jobs);
        self.replay.merge(&other.replay);
        self.kvcache.merge(&other.kvcache);
        self.blocked.merge(&other.blocked);
        self.shaped.merge(&other.shaped);
        self.fine.merge(&other.fine);
        for cell in &other.sizes {
            self.size_cell_mut(cell.work, cell.class, cell.from, cell.to)
                .merge(cell);
        }
    }

    /// Empties the tally and keeps its memory.
    pub fn clear(&mut self) {
        self.cells.iter_mut().for_each(Cell::clear);
        self.offered = 0;
        self.offered_bytes = 0;
        self.issued = 0;
        for h in [
            &mut self.lag,
            &mut self.late,
            &mut self.dispatch,
            &mut self.connect_tcp,
            &mut self.connect_tls,
            &mut self.connect_dns,
            &mut self.blocked,
            &mut self.shaped,
        ] {
            h.clear();
        }
        self.connects = 0;
        self.capped = 0;
        self.endpoints.iter_mut().for_each(EndpointTally::clear);
        for span in &mut self.spans {
            span.failed = 0;
            span.makespan.clear();
        }
        self.jobs = JobCounts::default();
        self.replay = ReplayCounts::default();
        self.kvcache = KvCounts::default();
        self.fine.clear();
        self.sizes.iter_mut().for_each(SizeCell::clear);
    }

    /// Number of operations that succeeded, over all cells.
    #[must_use]
    pub fn ok(&self) -> u64 {
        self.cells.iter().map(|c| c.ok).sum()
    }

    /// Number of operations that failed, over all cells, without cancelled ones.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.cells.iter().map(Cell::failures).sum()
    }

    /// Number of operations that ended, over all cells.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.cells.iter().map(Cell::ended).sum()
    }

    /// Object bytes of operations that succeeded, over all cells.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.cells.iter().map(|c| c.bytes).sum()
    }
}

/// Readings at the end of an interval. CPU figures are cumulative since the run's epoch, so a lost interval loses no
/// time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(remote = "Self")]
pub struct Gauges {
    /// Operations due but not ended.
    pub in_flight: u64,
    /// Age of the oldest of these operations, that is the time since it fell due, nanoseconds.
    #[serde(default)]
    pub backlog_ns: u64,
    /// Open sessions.
    pub sessions: u64,
    /// Jobs that have arrived and not ended; 0 for models without jobs.
    #[serde(default)]
    pub jobs: u64,
    /// CPU time of the load threads (user and system), nanoseconds.
    pub load_cpu_ns: u64,
    /// CPU time of the busiest load thread, nanoseconds.
    pub busiest_thread_cpu_ns: u64,
    /// CPU time of the whole process and of the programs that it started and that have ended, nanoseconds.
    pub process_cpu_ns: u64,
    /// Busy CPU time of the whole machine, including soft interrupts, nanoseconds.
    pub machine_busy_ns: u64,
    /// Soft-interrupt CPU time of the whole machine, nanoseconds.
    pub machine_softirq_ns: u64,
    /// CPU time stolen by the hypervisor, nanoseconds.
    pub machine_steal_ns: u64,
    /// CPU time that the machine had: cores times elapsed time, nanoseconds.
    pub machine_total_ns: u64,
    /// Resident memory of the process, bytes.
    pub rss_bytes: u64,
    /// Bytes received on the busiest non-loopback interface since boot.
    pub nic_rx_bytes: u64,
    /// Bytes sent on the busiest non-loopback interface since boot.
    pub nic_tx_bytes: u64,
    /// Wall-clock minus monotonic time, nanoseconds. A jump means that the wall clock was set.
    pub wall_offset_ns: i64,
}

crate::serde_once!(Gauges);

/// Everything recorded between two instants of a phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// Index of the phase in the plan.
    pub phase: u16,
    /// Position within the phase, from 0.
    pub index: u64,
    /// Start, nanoseconds since the run's epoch.
    pub start_ns: u64,
    /// End, nanoseconds since the run's epoch.
    pub end_ns: u64,
    /// Counts of operations that fell due (offered) or ended in the interval.
    pub tally: Tally,
    /// Readings at the end of the interval.
    pub gauges: Gauges,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Tally;
    use crate::error::ErrorKind;
    use crate::op::OpClass;
    use crate::record::{ConnectTimes, OpRecord, Outcome, Part};

    fn record() -> impl Strategy<Value = OpRecord> {
        (0u16..2, 0usize..4, 1u64..1 << 36, 0u64..1 << 20, 0usize..17).prop_map(
            |(work, class, ns, bytes, outcome)| OpRecord {
                work,
                class: OpClass::ALL[class],
                endpoint: (bytes % 2) as u16,
                due_ns: 100,
                taken_ns: 120,
                dispatch_ns: bytes % 3,
                started_ns: 150,
                held_ns: bytes % 5,
                connect: ConnectTimes {
                    tcp_ns: bytes % 5,
                    ..ConnectTimes::default()
                },
                sent_ns: 150 + bytes % 3,
                first_byte_ns: 150 + ns / 2,
                done_ns: 150 + ns,
                bytes,
                outcome: ErrorKind::ALL
                    .get(outcome)
                    .map_or(Outcome::Ok, |&kind| Outcome::Failed(kind)),
                attempts: 1 + (bytes % 2) as u32,
                ..OpRecord::BLANK
            },
        )
    }

    fn tally(records: &[OpRecord]) -> Tally {
        let mut t = Tally::new();
        t.endpoints.resize_with(2, Default::default);
        records.iter().for_each(|r| t.record(r));
        t.cells.sort_by_key(|c| (c.work, c.class));
        t
    }

    proptest! {
        #[test]
        fn merge_is_associative_commutative_and_conserves(
            a in prop::collection::vec(record(), 0..30),
            b in prop::collection::vec(record(), 0..30),
            c in prop::collection::vec(record(), 0..30),
        ) {
            let sorted = |mut t: Tally| { t.cells.sort_by_key(|c| (c.work, c.class)); t };
            let (ta, tb, tc) = (tally(&a), tally(&b), tally(&c));
            let mut left = ta.clone();
            left.merge(&tb);
            left.merge(&tc);
            let mut bc = tc.clone();
            bc.merge(&tb);
            let mut right = bc;
            right.merge(&ta);
            let whole = tally(&[a.as_slice(), &b, &c].concat());
            prop_assert_eq!(sorted(left.clone()), sorted(right));
            prop_assert_eq!(&sorted(left), &whole);
            prop_assert_eq!(whole.ended(), (a.len() + b.len() + c.len()) as u64);
            let routed: u64 = whole.endpoints.iter().map(|e| e.ok + e.failed).sum();
            let cancelled: u64 = whole.cells.iter().map(|c| c.cancelled()).sum();
            prop_assert_eq!(routed, whole.ended() - cancelled);
            for cell in &whole.cells {
                let parts: u128 = Part::ALL.iter().map(|&p| cell.anatomy.sum_ns(p)).sum();
                prop_assert_eq!(parts, cell.response.sum_ns());
                prop_assert_eq!(cell.response.count(), cell.ok);
                prop_assert_eq!(cell.service.count(), cell.ok);
                prop_assert_eq!(cell.failed_response.count(), cell.failures());
                prop_assert_eq!(cell.ended(), cell.ok + cell.failures() + cell.cancelled());
            }
        }
    }
}
