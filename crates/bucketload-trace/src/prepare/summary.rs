//! The summary of a preparation: identity of the input, and the shares that a result must state (docs/spec/traces.md
//! section 6).

use std::collections::BTreeMap;

use bucketload_core::trace::TraceOp;
use serde::{Deserialize, Serialize};

/// An input file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFacts {
    /// The path as given.
    pub path: String,
    /// Name of the format.
    pub format: String,
    /// Size as stored, bytes.
    pub bytes: u64,
    /// SHA-256 of the file as stored, hexadecimal.
    pub sha256: String,
    /// Number of lines or objects.
    pub frames: u64,
}

/// Sources of the sizes of reads and writes (docs/spec/traces.md section 5.3): number of records by source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeSources {
    /// The record itself.
    pub record: u64,
    /// Another record of the key.
    pub key: u64,
    /// The furthest byte read of the key.
    pub extent: u64,
    /// The bytes sent for a read of the whole object.
    pub sent: u64,
    /// Drawn from the sizes of other records, always the same for a key.
    pub drawn: u64,
    /// The default size.
    pub default: u64,
}

impl SizeSources {
    /// Share of drawn and default sizes; above 0.2, byte throughput is only indicative.
    #[must_use]
    pub fn guessed(&self) -> f64 {
        let known = self.record + self.key + self.extent + self.sent;
        let guessed = self.drawn + self.default;
        guessed as f64 / (known + guessed).max(1) as f64
    }
}

/// Recorded server times of one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedLatency {
    /// Number of records with a time.
    pub n: u64,
    /// Median, nanoseconds, within 1 %.
    pub p50_ns: u64,
    /// 99th percentile, nanoseconds, within 1 %.
    pub p99_ns: u64,
}

/// The contents of a canonical trace, and its sources.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Files, in the order given.
    pub files: Vec<FileFacts>,
    /// Number of lines or objects read.
    pub frames: u64,
    /// Number of records to replay.
    pub records: u64,
    /// Number of requests: records times their repetitions.
    pub requests: u64,
    /// First instant, nanoseconds since 1970 or since the trace's own origin.
    pub first_ts_ns: i64,
    /// Time from the first to the last record, nanoseconds.
    pub span_ns: i64,
    /// Resolution of the trace's clock, nanoseconds.
    pub resolution_ns: i64,
    /// Number of backward steps of more than 1 s in the order of the input.
    pub backward_steps: u64,
    /// Treatment of records in one tick: `spread`, `burst` or `jitter`.
    pub ticks: String,
    /// Number of dropped lines and records by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Number of records by operation.
    pub ops: BTreeMap<String, u64>,
    /// Bytes read and written by the requests.
    pub bytes: u64,
    /// Number of distinct keys.
    pub keys: u64,
    /// Number of objects that must exist before the replay.
    pub preload_objects: u64,
    /// Bytes of the objects that must exist before the replay.
    pub preload_bytes: u64,
    /// Whether records create or delete objects, so that a second lap finds another state.
    pub changes_population: bool,
    /// Number of writes inserted before reads of objects whose existence no record explains.
    pub inserted: u64,
    /// Number of ranges cut at the end of their object.
    pub clamped: u64,
    /// Sources of the sizes.
    pub sizes: SizeSources,
    /// Share of the recorded requests to the ten most frequent keys.
    pub top10_recorded: f64,
    /// Share of the replayed requests to their ten most frequent keys.
    pub top10_replayed: f64,
    /// Share of the recorded requests to those of the ten most frequent keys that were kept.
    pub top10_kept: f64,
    /// Bucket names by number.
    pub buckets: Vec<String>,
    /// Recorded server time by operation, if the log has it. It comes from other hardware, so it is only informative.
    pub recorded_latency: BTreeMap<String, RecordedLatency>,
    /// Records per interval of recorded time.
    pub rate: RateSeries,
    /// Whether names were replaced by hashes.
    pub anonymised: bool,
    /// Further notes.
    pub notes: Vec<String>,
}

impl Summary {
    /// Counts a record of an operation.
    pub(crate) fn count(&mut self, op: TraceOp) {
        *self.ops.entry(op.name().to_owned()).or_insert(0) += 1;
    }

    /// Number of records dropped for a reason.
    #[must_use]
    pub fn dropped(&self, reason: crate::DropReason) -> u64 {
        self.dropped.get(reason.name()).copied().unwrap_or(0)
    }
}

/// Counts over time in at most 512 intervals, whose length doubles as needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateSeries {
    /// Length of an interval, nanoseconds.
    pub interval_ns: i64,
    /// Records per interval.
    pub counts: Vec<u64>,
}

impl Default for RateSeries {
    fn default() -> Self {
        Self {
            interval_ns: 1_000_000_000,
            counts: Vec::new(),
        }
    }
}

impl RateSeries {
    const MAX_INTERVALS: usize = 512;

    /// Counts `times` at an instant of 0 or more.
    pub fn add(&mut self, ts_ns: i64, times: u64) {
        let place = |interval: i64| (ts_ns.max(0) / interval) as usize;
        while place(self.interval_ns) >= Self::MAX_INTERVALS {
            self.interval_ns = self.interval_ns.saturating_mul(2);
            self.counts = self
                .counts
                .chunks(2)
                .map(|pair| pair.iter().sum())
                .collect();
        }
        let at = place(self.interval_ns);
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += times;
    }
}

#[cfg(test)]
mod tests {
    use super::RateSeries;

    #[test]
    fn series_stay_short_and_complete() {
        let mut series = RateSeries::default();
        for s in 0..100_000i64 {
            series.add(s * 1_000_000_000, 1);
        }
        assert!(series.counts.len() <= 512);
        assert_eq!(series.interval_ns, 256_000_000_000);
        assert_eq!(series.counts.iter().sum::<u64>(), 100_000);
        assert_eq!(series.counts[3], 256);
    }
}
