//! What jobs and replays add to the figures of a phase.

use bucketload_core::tally::{JobCounts, ReplayCounts};
use bucketload_core::verdict::Backlog;
use serde::{Deserialize, Serialize};

use super::Latency;

/// Jobs of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobsResult {
    /// How many began, ended and had to wait, over the whole phase.
    pub counts: JobCounts,
    /// Growth of the jobs under way over the window; `None` where too little is known or jobs do
    /// not arrive openly.
    pub growth: Option<Backlog>,
    /// Whether the jobs under way kept growing.
    pub unstable: bool,
    /// Makespans of stages and of whole jobs that ended in the window or the drain.
    pub spans: Vec<SpanResult>,
}

/// Makespans of one part of jobs: from its beginning (for a job its arrival) to the end of its last
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
    /// Of these, the ones with an operation that failed.
    pub failed: u64,
    /// The makespans.
    pub makespan: Latency,
}

/// What a replay did beside performing requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayResult {
    /// Identity of the trace as it was replayed.
    pub trace: String,
    /// Counts over the whole phase.
    pub counts: ReplayCounts,
    /// Wait for an earlier request on the same key, of the requests that had to wait. Part of the
    /// response time.
    pub blocked: Latency,
    /// Delay of the due instant by a rate limit, of the requests that were delayed. No part of the
    /// response time.
    pub shaped: Latency,
}
