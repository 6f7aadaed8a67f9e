//! What a preparation found and did: the identity of the input and the shares that a result must
//! state (docs/spec/traces.md section 6).

use std::collections::BTreeMap;

use bucketload_core::trace::TraceOp;
use serde::{Deserialize, Serialize};

/// A file that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFacts {
    /// Its path as given.
    pub path: String,
    /// Name of its format.
    pub format: String,
    /// Size as stored, bytes.
    pub bytes: u64,
    /// SHA-256 of the file as stored, hexadecimal.
    pub sha256: String,
    /// Lines or objects.
    pub frames: u64,
}

/// Where the sizes of reads and writes come from (docs/spec/traces.md section 5.3): records by source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeSources {
    /// The record itself.
    pub record: u64,
    /// Another record of the key.
    pub key: u64,
    /// The furthest byte that was read of the key.
    pub extent: u64,
    /// The bytes answered to a read of the whole object.
    pub sent: u64,
    /// Drawn from the sizes of the other records, the same for a key each time.
    pub drawn: u64,
    /// The default.
    pub default: u64,
}

impl SizeSources {
    /// Share of sizes that were drawn or set by default; above 0.2 byte throughput is indicative.
    #[must_use]
    pub fn guessed(&self) -> f64 {
        let known = self.record + self.key + self.extent + self.sent;
        let guessed = self.drawn + self.default;
        guessed as f64 / (known + guessed).max(1) as f64
    }
}

/// Recorded times in the server of one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedLatency {
    /// Records with a time.
    pub n: u64,
    /// Median, nanoseconds, within 1 %.
    pub p50_ns: u64,
    /// 99th percentile, nanoseconds, within 1 %.
    pub p99_ns: u64,
}

/// What a canonical trace is and where it comes from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Files, in the order given.
    pub files: Vec<FileFacts>,
    /// Lines or objects read.
    pub frames: u64,
    /// Records to replay.
    pub records: u64,
    /// Requests: records by their multiplicity.
    pub requests: u64,
    /// First instant, nanoseconds since 1970 or since the trace's own origin.
    pub first_ts_ns: i64,
    /// From the first to the last record, nanoseconds.
    pub span_ns: i64,
    /// Step of the trace's clock, nanoseconds.
    pub resolution_ns: i64,
    /// Steps backwards of more than 1 s in the order of the input.
    pub backward_steps: u64,
    /// What became of records in one tick: `spread`, `burst` or `jitter`.
    pub ticks: String,
    /// What was left out, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Records by operation.
    pub ops: BTreeMap<String, u64>,
    /// Bytes that the requests read and write.
    pub bytes: u64,
    /// Different keys.
    pub keys: u64,
    /// Objects that must exist before.
    pub preload_objects: u64,
    /// Their bytes.
    pub preload_bytes: u64,
    /// Whether records create or delete objects, so that a second lap meets another state.
    pub changes_population: bool,
    /// Writes that were inserted before reads which no record accounts for.
    pub inserted: u64,
    /// Ranges that were cut at the end of their object.
    pub clamped: u64,
    /// Where sizes come from.
    pub sizes: SizeSources,
    /// Share of the requests that went to the ten most frequent keys, as recorded.
    pub top10_recorded: f64,
    /// Share of the requests that goes to the ten most frequent keys of what is replayed.
    pub top10_replayed: f64,
    /// Share of the recorded requests to the ten most frequent keys whose keys were kept.
    pub top10_kept: f64,
    /// Names of the buckets by their number.
    pub buckets: Vec<String>,
    /// Recorded time in the server, by operation, where the log has it: other hardware, so for
    /// information only.
    pub recorded_latency: BTreeMap<String, RecordedLatency>,
    /// Records per interval of the recorded time.
    pub rate: RateSeries,
    /// Whether names were replaced by hashes.
    pub anonymised: bool,
    /// What else must be said.
    pub notes: Vec<String>,
}

impl Summary {
    /// Counts an operation.
    pub(crate) fn count(&mut self, op: TraceOp) {
        *self.ops.entry(op.name().to_owned()).or_insert(0) += 1;
    }

    /// Records that a reason left out.
    #[must_use]
    pub fn dropped(&self, reason: crate::Reason) -> u64 {
        self.dropped.get(reason.name()).copied().unwrap_or(0)
    }
}

/// Counts over time in at most 512 intervals, whose length doubles when the time grows.
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
    const MOST: usize = 512;

    /// Counts `times` at an instant of 0 or more.
    pub fn add(&mut self, ts_ns: i64, times: u64) {
        let place = |interval: i64| (ts_ns.max(0) / interval) as usize;
        while place(self.interval_ns) >= Self::MOST {
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
