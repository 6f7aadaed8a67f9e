//! Where a run tells what happens: run directory, live view, metrics endpoint.
//!
//! The runner calls one [`RunSink`] from the collector thread, never from a load thread.

use serde::{Deserialize, Serialize};

use crate::oracle::{Finding, OracleSummary};
use crate::ranks::PhaseRanks;
use crate::rows::PhaseRows;
use crate::slowest::SlowRequest;
use crate::tally::Interval;

/// Why a phase ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseEnd {
    /// Its schedule or its operation count was complete.
    Complete,
    /// Its time limit was reached (the normal end of a timed phase).
    TimeLimit,
    /// Its byte limit was reached.
    ByteLimit,
    /// The stopping rule was satisfied before the time limit.
    Converged,
    /// The user interrupted the run.
    Interrupted,
    /// The run was aborted by an error.
    Aborted,
}

/// Something that happened during a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
#[serde(remote = "Self")]
pub enum Event {
    /// A phase begins.
    PhaseStarted {
        /// Index in the plan.
        phase: u16,
        /// Instant, nanoseconds since the run's epoch.
        at_ns: u64,
    },
    /// A phase has ended and all its intervals were delivered.
    PhaseEnded {
        /// Index in the plan.
        phase: u16,
        /// Instant at which the last operation was offered, nanoseconds since the run's epoch.
        at_ns: u64,
        /// Why.
        end: PhaseEnd,
        /// Instant at which the last operation had ended, nanoseconds since the run's epoch.
        drained_ns: u64,
    },
    /// The null target was driven with the same schedule: what the client alone can do.
    Calibrated(Calibration),
    /// Something the user should know.
    Warning {
        /// The text, with what to do about it.
        message: String,
    },
    /// What each stream of a phase did, where the plan asks for it (bounded: 4096 streams).
    Streams {
        /// Index in the plan.
        phase: u16,
        /// The streams that performed anything.
        streams: Vec<StreamSum>,
    },
    /// The first failures of each kind, in full (bounded per run).
    Failure {
        /// Index of the phase.
        phase: u16,
        /// Operation class.
        class: crate::op::OpClass,
        /// Key or bucket concerned.
        key: String,
        /// Kind, status and detail.
        error: String,
        /// Instant, nanoseconds since the run's epoch.
        at_ns: u64,
    },
    /// A step of a round of the list-consistency model is over.
    Round(Round),
    /// What each entry and worker of works on named objects did, at the end of the phase.
    Rows(PhaseRows),
    /// What each rank did, at the end of a phase of ranks.
    Ranks(PhaseRanks),
    /// The consistency oracle found something (the first findings of each kind, bounded per run).
    Finding(Box<Finding>),
    /// What the consistency oracle did, at the end of the run.
    Oracle(OracleSummary),
}

/// How long a listing took to show what was written or deleted in one step of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Round {
    /// Index of the phase.
    pub phase: u16,
    /// Number of the round, from 0.
    pub iteration: u32,
    /// Whether objects were deleted (else written) in this step.
    pub deleted: bool,
    /// Objects whose write or delete was acknowledged in this step.
    pub objects: u32,
    /// Listings until one was right.
    pub lists: u32,
    /// Objects that the first listing lacked although they were there.
    pub missing: u32,
    /// Objects that the first listing showed although they were deleted.
    pub ghosts: u32,
    /// From the last acknowledgement to the end of the listing that was right, or of the last one,
    /// nanoseconds.
    pub window_ns: u64,
    /// Whether a listing was right before the limit.
    pub right: bool,
    /// When the step was over, nanoseconds since the run's epoch.
    pub at_ns: u64,
}

/// Sums over the operations of one closed-loop worker. Instants are nanoseconds since the run's epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct StreamSum {
    /// Index of the work within the phase.
    pub work: u16,
    /// Index of the worker.
    pub worker: u32,
    /// Start of its first operation.
    pub first_start_ns: u64,
    /// End of its last operation.
    pub last_stop_ns: u64,
    /// Operations that succeeded.
    pub ops: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Object bytes of the successes.
    pub bytes: u64,
    /// Sum of the service times of all its operations, nanoseconds.
    pub busy_ns: u64,
    /// The same over the operations that lie inside the time in which every stream was active.
    pub active: ActiveSum,
}

/// Sums over the operations of a stream that lie inside the time in which every stream of the phase
/// was active: from the latest first start to the earliest last stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveSum {
    /// Start of the first of them; 0 when there is none.
    pub first_start_ns: u64,
    /// End of the last of them.
    pub last_stop_ns: u64,
    /// Successes.
    pub ops: u64,
    /// Object bytes of the successes.
    pub bytes: u64,
    /// Sum of their service times, nanoseconds.
    pub busy_ns: u64,
}

/// Outcome of driving the null target (docs/spec/statistics.md section 2, rule V5).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Calibration {
    /// Operations per second offered by the schedule of the run; 0 for closed loops.
    pub offered_ops_per_s: f64,
    /// Operations per second that the client could drive against the null target.
    pub null_ops_per_s: f64,
    /// 99th percentile of the response time against the null target at the offered rate, ns.
    pub null_p99_ns: u64,
    /// Client CPU time per operation against the null target, ns.
    pub null_cpu_ns_per_op: f64,
}

crate::serde_once!(Event, StreamSum, Calibration, Round);

/// Receives the course of a run, in order.
pub trait RunSink: Send {
    /// Something happened.
    fn event(&mut self, event: &Event);

    /// An interval of a phase is complete.
    fn interval(&mut self, interval: &Interval);

    /// Requests that have just become some of the slowest of their phase, in no order.
    fn slow_requests(&mut self, _requests: &[SlowRequest]) {}
}
