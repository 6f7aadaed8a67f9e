//! Figures of phases with jobs, replays or the cache of a language model.

use bucketload_core::tally::{JobCounts, KvCounts, ReplayCounts};
use bucketload_core::verdict::Backlog;
use serde::{Deserialize, Serialize};

use super::Latency;

/// Jobs of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobsResult {
    /// Numbers of jobs that started, ended and had to wait, over the whole phase.
    pub counts: JobCounts,
    /// Growth of the jobs in progress over the window; `None` with too few data or without open arrivals of jobs.
    pub growth: Option<Backlog>,
    /// Whether the number of jobs in progress kept growing.
    pub unstable: bool,
    /// Makespans of stages and of whole jobs that ended in the window or the drain.
    pub spans: Vec<SpanResult>,
}

/// Makespans of one part of the jobs: from its start (for a whole job, its arrival) to the end of its last
/// operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpanResult {
    /// Index of the work in the phase.
    pub work: u16,
    /// Name of the work.
    pub work_name: String,
    /// Index of the stage; the number of stages for whole jobs.
    pub part: u16,
    /// Name, such as `stage 0 (write)` or `job`.
    pub name: String,
    /// Number of these with a failed operation.
    pub failed: u64,
    /// The makespans.
    pub makespan: Latency,
}

/// Figures of a replay besides its requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayResult {
    /// Identity of the replayed trace.
    pub trace: String,
    /// Counts over the whole phase.
    pub counts: ReplayCounts,
    /// Wait for an earlier request on the same key, of the requests that had to wait. Part of the response
    /// time.
    pub blocked: Latency,
    /// Shift of the due instant by a rate limit, of the requests that were delayed. Not part of the response
    /// time.
    pub shaped: Latency,
}

impl ReplayResult {
    /// The counts with their names for readers.
    pub(crate) fn rows(&self) -> [(&'static str, u64); 8] {
        let c = &self.counts;
        [
            ("shed for being late", c.shed),
            ("objects absent contrary to the trace", c.absent),
            ("objects absent as in the trace", c.absent_as_recorded),
            ("objects found contrary to the trace", c.unexpected),
            (
                "skipped because the key is known to be absent",
                c.skipped_absent,
            ),
            ("records without a request of their own", c.skipped_other),
            ("waited for an earlier request on their key", c.blocked),
            ("delayed by the rate limit", c.shaped),
        ]
    }
}

/// Figures of the key-value cache of a language model besides its operations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KvcacheResult {
    /// Identity of the trace.
    pub trace: String,
    /// Counts over the whole phase.
    pub counts: KvCounts,
    /// Share of the blocks that were found before the first miss of their request, from 0 to 1.
    pub block_hit_ratio: f64,
    /// The same of tokens.
    pub token_hit_ratio: f64,
    /// Durations per request, in the window or the drain: load, arrival to loaded, first token later and earlier,
    /// write-behind.
    pub durations: Vec<KvDuration>,
    /// How far each class of requests kept its targets; empty without classes.
    pub classes: Vec<KvClassResult>,
    /// The figures of MLPerf Storage under its names; only where users ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mlperf: Option<KvMlperf>,
}

/// The figures that MLPerf Storage reports of a key-value cache (docs/spec/ai-kvcache.md section 5), over all clients.
/// The percentiles are those of all objects, not the largest of the clients' percentiles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct KvMlperf {
    /// Bytes read from the store, GiB per second.
    pub aggregated_read_bandwidth_gbps: f64,
    /// Bytes written to the store, GiB per second.
    pub aggregated_write_bandwidth_gbps: f64,
    /// Tokens whose keys and values were read or written, per second.
    pub aggregated_storage_throughput_tokens_per_sec: f64,
    /// 95th percentile of the service time of a read, milliseconds; `None` without reads.
    pub aggregated_device_read_p95_ms: Option<f64>,
    /// The same of a write.
    pub aggregated_device_write_p95_ms: Option<f64>,
    /// Number of clients.
    pub total_ranks: u32,
    /// Number of clients with memory.
    pub cpu_tier_ranks: u32,
}

/// One duration of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KvDuration {
    /// Name.
    pub name: String,
    /// The figures.
    pub time: Latency,
}

/// A class of requests: the times from arrival to loaded against its targets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KvClassResult {
    /// Name.
    pub name: String,
    /// The times, of requests with a hit.
    pub time: Latency,
    /// Share of the requests within the first target, from 0 to 1; 0 without requests.
    pub within: f64,
    /// The targets.
    pub targets: Vec<KvTarget>,
}

/// A percentile that a class has to keep.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct KvTarget {
    /// The quantile, such as 0.99.
    pub q: f64,
    /// Its highest allowed value, nanoseconds.
    pub target_ns: u64,
    /// Its value, nanoseconds; `None` if there are too few requests beyond it to tell.
    pub value_ns: Option<u64>,
    /// Whether the target was kept; `None` if that is not known.
    pub kept: Option<bool>,
}

impl KvcacheResult {
    /// The counts with their names for readers.
    pub(crate) fn rows(&self) -> Vec<(&'static str, u64)> {
        let c = &self.counts;
        let ended = c.written + c.unwritten;
        let left = c.missed.saturating_sub(ended);
        if self.mlperf.is_some() {
            return vec![
                ("requests", c.requests),
                ("begun late by the client", c.late),
                ("entries of earlier turns", c.blocks),
                ("of these found", c.hits),
                ("entries that could not be read", c.lost),
                ("reads answered by the memory of clients", c.absorbed),
                ("entries that left the memory", c.evicted),
                ("entries written", c.written),
                ("entries whose write failed", c.unwritten),
                ("entries not written by the end", left),
                ("most objects waiting to be written", c.most_pending),
            ];
        }
        vec![
            ("requests", c.requests),
            ("begun late by the client", c.late),
            ("blocks looked up", c.blocks),
            ("hits", c.hits),
            ("objects found beyond a miss, in vain", c.wasted),
            ("requests that could not read a written block", c.lost),
            ("blocks missed", c.missed),
            ("blocks written", c.written),
            ("blocks whose write failed", c.unwritten),
            ("blocks not written by the end", left),
            ("duplicate writes of blocks", c.duplicates),
            ("writes avoided because the object existed", c.avoided),
            ("blocks evicted", c.evicted),
            ("objects removed", c.removed),
            ("most objects waiting to be written", c.most_pending),
        ]
    }
}
