//! Figures of phases with jobs or replays.

use bucketload_core::tally::{JobCounts, ReplayCounts};
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
