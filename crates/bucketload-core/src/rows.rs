//! Figures per entry and worker of works on named objects, in addition to the histograms of every run. COSBench's own
//! tables are computed from them (docs/spec/cosbench.md section 4).
//!
//! Two sets are kept. *Finished* holds the operations that ended in the work's measured window. *Inside* holds those
//! that also began in it, in COSBench's whole milliseconds: they started in [begin, end) and finished in (begin, end].

use serde::{Deserialize, Serialize};

use crate::op::OpClass;
use crate::record::{OpRecord, Outcome};

/// Sums over operations. Times are summed exactly, and also as COSBench does, each rounded down to whole milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct RowSums {
    /// Number of operations that ended, including failed ones.
    pub samples: u64,
    /// Number of operations that succeeded.
    pub ok: u64,
    /// Object bytes of the successes.
    pub bytes: u64,
    /// Response times of the successes, milliseconds.
    pub response_ms: u64,
    /// Times from the first to the last byte of the body, of the successes, milliseconds.
    pub transfer_ms: u64,
    /// Response times of the successes, nanoseconds.
    #[serde(default)]
    pub response_ns: u64,
    /// Times from the first to the last byte of the body, of the successes, nanoseconds.
    #[serde(default)]
    pub transfer_ns: u64,
}

crate::serde_once!(RowSums);

impl RowSums {
    /// Adds an operation.
    pub fn record(&mut self, record: &OpRecord) {
        self.samples += 1;
        if record.outcome == Outcome::Ok {
            self.ok += 1;
            self.bytes += record.bytes;
            let (response_ns, transfer_ns) = (record.response_ns(), transfer_ns(record));
            self.response_ms += response_ns / 1_000_000;
            self.transfer_ms += transfer_ns / 1_000_000;
            self.response_ns += response_ns;
            self.transfer_ns += transfer_ns;
        }
    }

    /// Adds all of `other`.
    pub const fn merge(&mut self, other: &Self) {
        self.samples += other.samples;
        self.ok += other.ok;
        self.bytes += other.bytes;
        self.response_ms += other.response_ms;
        self.transfer_ms += other.transfer_ms;
        self.response_ns += other.response_ns;
        self.transfer_ns += other.transfer_ns;
    }
}

/// Time from the first to the last byte of the body, nanoseconds: received for reads and lists, sent for writes. 0 for
/// operations without a body.
fn transfer_ns(record: &OpRecord) -> u64 {
    match record.class {
        class if class.writes_body() => record.sent_ns.saturating_sub(record.started_ns),
        class if class.reads_body() || matches!(class, OpClass::List | OpClass::ListV1) => {
            match record.first_byte_ns {
                0 => 0,
                first => record.done_ns.saturating_sub(first),
            }
        }
        _ => 0,
    }
}

/// The figures of one entry of one worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerRow {
    /// Index of the work within the phase.
    pub work: u16,
    /// Index of the entry in the work's mix.
    pub entry: u16,
    /// Index of the worker in the work, from 0.
    pub worker: u32,
    /// Operations that ended in the measured window.
    pub finished: RowSums,
    /// Operations that also began in it.
    pub inside: RowSums,
}

/// First start and last end of a worker's operations inside the window, over all entries. Nanoseconds since the run's
/// epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerSpan {
    /// Index of the work within the phase.
    pub work: u16,
    /// Index of the worker in the work, from 0.
    pub worker: u32,
    /// Start of the first operation.
    pub first_ns: u64,
    /// End of the last operation.
    pub last_ns: u64,
}

/// Response times of an entry, over all workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowLatencies {
    /// Index of the work within the phase.
    pub work: u16,
    /// Index of the entry in the work's mix.
    pub entry: u16,
    /// Successes inside the window, by COSBench's buckets of 10 ms ([`LEGACY_BUCKETS`]): bucket and count.
    pub legacy: Vec<(u32, u64)>,
    /// Successes that ended in the window, by the buckets of [`crate::histogram::Histogram`]: bucket and count.
    pub fine: Vec<(u32, u64)>,
}

/// Number of buckets of COSBench's histogram: 50000 of 10 ms, and one for longer times.
pub const LEGACY_BUCKETS: usize = 50_001;

/// The bucket of a response time.
#[must_use]
pub const fn legacy_bucket(response_ns: u64) -> usize {
    let bucket = response_ns / 10_000_000;
    if bucket < LEGACY_BUCKETS as u64 - 1 {
        bucket as usize
    } else {
        LEGACY_BUCKETS - 1
    }
}

/// The figures of a phase, from one thread, one agent or all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseRows {
    /// Index of the phase.
    pub phase: u16,
    /// Figures per worker and entry.
    pub workers: Vec<WorkerRow>,
    /// Spans per worker.
    pub spans: Vec<WorkerSpan>,
    /// Response times per entry.
    pub latencies: Vec<RowLatencies>,
}

impl PhaseRows {
    /// Adds all of `other`, which covers other workers of the same phase.
    pub fn merge(&mut self, other: Self) {
        self.phase = other.phase;
        self.workers.extend(other.workers);
        self.workers
            .sort_by_key(|row| (row.work, row.worker, row.entry));
        self.spans.extend(other.spans);
        self.spans.sort_by_key(|span| (span.work, span.worker));
        for theirs in other.latencies {
            let same =
                |mine: &&mut RowLatencies| (mine.work, mine.entry) == (theirs.work, theirs.entry);
            match self.latencies.iter_mut().find(same) {
                Some(mine) => {
                    add(&mut mine.legacy, &theirs.legacy);
                    add(&mut mine.fine, &theirs.fine);
                }
                None => self.latencies.push(theirs),
            }
        }
        self.latencies.sort_by_key(|l| (l.work, l.entry));
    }

    /// Splits the figures into parts of at most `most` rows or spans each. Merging the parts gives the whole again.
    #[must_use]
    pub fn parts(self, most: usize) -> Vec<Self> {
        let most = most.max(1);
        let mut parts = vec![Self {
            phase: self.phase,
            latencies: self.latencies,
            ..Self::default()
        }];
        parts.extend(self.workers.chunks(most).map(|workers| Self {
            phase: self.phase,
            workers: workers.to_vec(),
            ..Self::default()
        }));
        parts.extend(self.spans.chunks(most).map(|spans| Self {
            phase: self.phase,
            spans: spans.to_vec(),
            ..Self::default()
        }));
        parts
    }

    /// Moves every instant by `shift`.
    pub fn shift(&mut self, mut shift: impl FnMut(u64) -> u64) {
        for span in &mut self.spans {
            span.first_ns = shift(span.first_ns);
            span.last_ns = shift(span.last_ns);
        }
    }

    /// The sums of an entry over all workers: of finished operations, and of those inside.
    #[must_use]
    pub fn sums(&self, work: u16, entry: u16) -> (RowSums, RowSums) {
        let mut sums = (RowSums::default(), RowSums::default());
        for row in self
            .workers
            .iter()
            .filter(|r| (r.work, r.entry) == (work, entry))
        {
            sums.0.merge(&row.finished);
            sums.1.merge(&row.inside);
        }
        sums
    }
}

/// Adds the counts of `theirs` to `mine`, which stays sorted by bucket.
fn add(mine: &mut Vec<(u32, u64)>, theirs: &[(u32, u64)]) {
    for (bucket, count) in theirs {
        match mine.binary_search_by_key(bucket, |b| b.0) {
            Ok(at) => mine[at].1 += count,
            Err(at) => mine.insert(at, (*bucket, *count)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        LEGACY_BUCKETS, PhaseRows, RowLatencies, RowSums, WorkerRow, WorkerSpan, legacy_bucket,
    };

    #[test]
    fn buckets_are_ten_milliseconds_and_the_last_is_open() {
        assert_eq!(legacy_bucket(0), 0);
        assert_eq!(legacy_bucket(9_999_999), 0);
        assert_eq!(legacy_bucket(10_000_000), 1);
        assert_eq!(legacy_bucket(499_999_999_999), 49_999);
        assert_eq!(legacy_bucket(u64::MAX), LEGACY_BUCKETS - 1);
    }

    #[test]
    fn threads_are_merged_in_any_order() {
        let part = |worker: u32, bucket: u32| PhaseRows {
            phase: 2,
            workers: vec![WorkerRow {
                worker,
                finished: RowSums {
                    samples: 2,
                    ok: 1,
                    ..RowSums::default()
                },
                ..WorkerRow::default()
            }],
            spans: Vec::new(),
            latencies: vec![RowLatencies {
                legacy: vec![(bucket, 1)],
                ..RowLatencies::default()
            }],
        };
        let mut one = PhaseRows::default();
        one.merge(part(1, 5));
        one.merge(part(0, 3));
        let mut other = PhaseRows::default();
        other.merge(part(0, 3));
        other.merge(part(1, 5));
        assert_eq!(one, other);
        assert_eq!(one.latencies[0].legacy, [(3, 1), (5, 1)]);
        assert_eq!(one.sums(0, 0).0.samples, 4);
    }

    #[test]
    fn parts_merge_to_the_whole_and_instants_can_be_shifted() {
        let span = |worker: u32| WorkerSpan {
            work: 0,
            worker,
            first_ns: 100 + u64::from(worker),
            last_ns: 200,
        };
        let row = |worker: u32| WorkerRow {
            worker,
            ..WorkerRow::default()
        };
        let whole = PhaseRows {
            phase: 3,
            workers: (0..7).map(row).collect(),
            spans: (0..7).map(span).collect(),
            latencies: vec![RowLatencies {
                fine: vec![(4, 2)],
                ..RowLatencies::default()
            }],
        };
        let mut again = PhaseRows::default();
        let parts = whole.clone().parts(3);
        assert_eq!(parts.len(), 1 + 3 + 3);
        assert!(parts.iter().all(|part| part.phase == 3));
        parts.into_iter().rev().for_each(|part| again.merge(part));
        assert_eq!(again, whole);
        again.shift(|at| at - 100);
        assert_eq!((again.spans[6].first_ns, again.spans[6].last_ns), (6, 100));
    }
}
