//! The parts of a tally for jobs and replays: makespans and counts.

use crate::histogram::Histogram;

/// Durations of a part of jobs (a stage, or whole jobs) of one work.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Index of the work within the phase.
    pub work: u16,
    /// Which part: a stage, or one past the last stage for whole jobs
    /// ([`crate::plan::JobsPlan::span_name`]).
    pub part: u16,
    /// Parts in which an operation failed. They are in the histogram too.
    pub failed: u64,
    /// Makespans: from the beginning of the part, or the arrival of the job, to the end of its last operation.
    pub makespan: Histogram,
}

/// Counts of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct JobCounts {
    /// Jobs that began.
    pub begun: u64,
    /// Jobs whose last stage ended.
    pub ended: u64,
    /// Jobs that had to wait because the limit on concurrent jobs was reached.
    pub delayed: u64,
}

/// Counts of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ReplayCounts {
    /// Requests shed because they were too late. They count as offered, but not as issued.
    pub shed: u64,
    /// Requests that were not replayed because their object is known to be absent.
    pub skipped_absent: u64,
    /// Records that are no request of their own, such as parts of multipart uploads, or whose operation, size or
    /// source is unknown.
    pub skipped_other: u64,
    /// Objects that were absent although they existed when the trace was recorded.
    pub absent: u64,
    /// Objects that were absent as in the trace.
    pub absent_as_recorded: u64,
    /// Objects that existed although they were absent when the trace was recorded.
    pub unexpected: u64,
    /// Requests that waited for an earlier one on their key.
    pub blocked: u64,
    /// Requests whose due instant was delayed by a rate limit.
    pub shaped: u64,
}

impl ReplayCounts {
    /// Adds all of `other`.
    pub const fn merge(&mut self, other: &Self) {
        self.shed += other.shed;
        self.skipped_absent += other.skipped_absent;
        self.skipped_other += other.skipped_other;
        self.absent += other.absent;
        self.absent_as_recorded += other.absent_as_recorded;
        self.unexpected += other.unexpected;
        self.blocked += other.blocked;
        self.shaped += other.shaped;
    }
}

impl JobCounts {
    /// Adds all of `other`.
    pub const fn merge(&mut self, other: &Self) {
        self.begun += other.begun;
        self.ended += other.ended;
        self.delayed += other.delayed;
    }
}
