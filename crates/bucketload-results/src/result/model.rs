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
    pub(crate) fn rows(&self) -> [(&'static str, u64); 15] {
        let c = &self.counts;
        let ended = c.written + c.unwritten;
        [
            ("requests", c.requests),
            ("begun late by the client", c.late),
            ("blocks looked up", c.blocks),
            ("hits", c.hits),
            ("objects found beyond a miss, in vain", c.wasted),
            ("requests that could not read a written block", c.lost),
            ("blocks missed", c.missed),
            ("blocks written", c.written),
            ("blocks whose write failed", c.unwritten),
            (
                "blocks not written by the end",
                c.missed.saturating_sub(ended),
            ),
            ("duplicate writes of blocks", c.duplicates),
            ("writes avoided because the object existed", c.avoided),
            ("blocks evicted", c.evicted),
            ("objects removed", c.removed),
            ("most objects waiting to be written", c.most_pending),
        ]
    }
}
