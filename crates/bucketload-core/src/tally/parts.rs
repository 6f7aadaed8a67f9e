//! The parts of a tally for jobs, replays and caches: makespans and counts.

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

/// Counts of a key-value cache. A block that is stored in several objects counts once, except where objects are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct KvCounts {
    /// Requests that arrived.
    pub requests: u64,
    /// Requests that the client began more than 1 ms after their arrival was due.
    pub late: u64,
    /// Requests whose blocks were looked up and whose hits were read.
    pub loaded: u64,
    /// Blocks of these requests.
    pub blocks: u64,
    /// Blocks found before the first miss of their request.
    pub hits: u64,
    /// Tokens of these requests, also those of blocks that are not stored.
    pub tokens: u64,
    /// Tokens of the hits.
    pub hit_tokens: u64,
    /// Bytes of the hits.
    pub hit_bytes: u64,
    /// Objects found beyond the first miss of their request: read or looked up in vain.
    pub wasted: u64,
    /// Requests for which a block that had been written could not be read.
    pub lost: u64,
    /// Blocks to write: those from the first miss of their request on.
    pub missed: u64,
    /// Blocks written, each time.
    pub written: u64,
    /// Blocks whose write failed.
    pub unwritten: u64,
    /// Blocks written although they existed or were being written.
    pub duplicates: u64,
    /// Objects that were not written because they existed.
    pub avoided: u64,
    /// Blocks evicted.
    pub evicted: u64,
    /// Objects removed in consequence.
    pub removed: u64,
    /// Reads of an entry that the memory of a client answered, so that the store got none.
    #[serde(default, skip_serializing_if = "crate::plan::is_default")]
    pub absorbed: u64,
    /// Most objects due to be written and not written, at any time.
    pub most_pending: u64,
    /// Most bytes that the cache held.
    pub most_bytes: u64,
}

impl KvCounts {
    /// The counts that add up.
    #[must_use]
    pub const fn sums(&mut self) -> [&mut u64; 18] {
        [
            &mut self.requests,
            &mut self.late,
            &mut self.loaded,
            &mut self.blocks,
            &mut self.hits,
            &mut self.tokens,
            &mut self.hit_tokens,
            &mut self.hit_bytes,
            &mut self.wasted,
            &mut self.lost,
            &mut self.missed,
            &mut self.written,
            &mut self.unwritten,
            &mut self.duplicates,
            &mut self.avoided,
            &mut self.evicted,
            &mut self.removed,
            &mut self.absorbed,
        ]
    }

    /// The largest values over time.
    #[must_use]
    pub const fn peaks(&mut self) -> [&mut u64; 2] {
        [&mut self.most_pending, &mut self.most_bytes]
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        let mut other = *other;
        for (mine, theirs) in self.sums().into_iter().zip(other.sums()) {
            *mine += *theirs;
        }
        for (mine, theirs) in self.peaks().into_iter().zip(other.peaks()) {
            *mine = (*mine).max(*theirs);
        }
    }

    /// Share of the blocks that were found, from 0 to 1.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        self.hits as f64 / self.blocks.max(1) as f64
    }

    /// Share of the tokens that were found, from 0 to 1.
    #[must_use]
    pub fn token_hit_ratio(&self) -> f64 {
        self.hit_tokens as f64 / self.tokens.max(1) as f64
    }
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
