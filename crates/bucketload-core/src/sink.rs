//! The output of a run: run directory, live view and metrics endpoint implement [`RunSink`].
//!
//! The runner calls one sink from the collector thread, never from a load thread.

use serde::{Deserialize, Serialize};

use crate::oracle::{Finding, OracleSummary};
use crate::ranks::PhaseRanks;
use crate::rows::PhaseRows;
use crate::slowest::SlowRequest;
use crate::tally::Interval;
use crate::train::TrainEpoch;

/// Why a phase ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseEnd {
    /// Its schedule or its number of operations was complete.
    Complete,
    /// Its time limit was reached (the normal end of a timed phase).
    TimeLimit,
    /// Its byte limit was reached.
    ByteLimit,
    /// The stopping rule was satisfied before the time limit.
    Converged,
    /// Nearly all of its operations failed, so it was ended before its limits.
    Failing,
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
    /// A phase has ended, and all its intervals have been delivered.
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
    /// The result of calibration: what the client alone can do with the same schedule.
    Calibrated(Calibration),
    /// A warning for the user.
    Warning {
        /// The text, with what to do about it.
        message: String,
    },
    /// Sums of each stream of a phase, if the plan asks for them (at most 4096 streams).
    Streams {
        /// Index in the plan.
        phase: u16,
        /// The streams that performed anything.
        streams: Vec<StreamSum>,
    },
    /// A failure in full. Only the first of each kind are reported, up to a bound per run.
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
    /// A step of a round of the list-consistency model has ended.
    Round(Round),
    /// Figures of each entry and worker of works on named objects, at the end of the phase.
    Rows(PhaseRows),
    /// Sums of each rank, at the end of a phase of ranks.
    Ranks(PhaseRanks),
    /// An accelerator has gone through an epoch, or as much of it as the phase allowed.
    Train(TrainEpoch),
    /// A finding of the consistency oracle. Only the first of each kind are reported, up to a bound per run.
    Finding(Box<Finding>),
    /// Summary of the consistency oracle, at the end of the run.
    Oracle(OracleSummary),
}

/// How soon a listing showed the writes or deletions of one step of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Round {
    /// Index of the phase.
    pub phase: u16,
    /// Number of the round, from 0.
    pub iteration: u32,
    /// Whether objects were deleted in this step; otherwise they were written.
    pub deleted: bool,
    /// Number of objects whose write or deletion was acknowledged in this step.
    pub objects: u32,
    /// Number of listings until one was right.
    pub lists: u32,
    /// Number of existing objects that the first listing lacked.
    pub missing: u32,
    /// Number of deleted objects that the first listing showed.
    pub ghosts: u32,
    /// From the last acknowledgement to the end of the first listing that was right, or of the last listing,
    /// nanoseconds.
    pub window_ns: u64,
    /// Whether a listing was right within the time limit.
    pub right: bool,
    /// When the step ended, nanoseconds since the run's epoch.
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
    /// Number of operations that succeeded.
    pub ops: u64,
    /// Number of operations that failed.
    pub failed: u64,
    /// Object bytes of the operations that succeeded.
    pub bytes: u64,
    /// Sum of the service times of all its operations, nanoseconds.
    pub busy_ns: u64,
    /// The same sums over the operations that lie inside the time in which every stream was active.
    pub active: ActiveSum,
}

/// Sums over the operations of a stream that lie inside the time in which every stream of the phase
/// was active: from the latest first start to the earliest last stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveSum {
    /// Start of the first of them; 0 if there is none.
    pub first_start_ns: u64,
    /// End of the last of them.
    pub last_stop_ns: u64,
    /// Number of operations that succeeded.
    pub ops: u64,
    /// Object bytes of the successes.
    pub bytes: u64,
    /// Sum of their service times, nanoseconds.
    pub busy_ns: u64,
}

/// Result of calibration against the null target (docs/spec/statistics.md section 2, rule V5).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Calibration {
    /// Operations per second offered by the schedule of the run; 0 for closed loops.
    pub offered_ops_per_s: f64,
    /// Operations per second that the client reached against the null target.
    pub null_ops_per_s: f64,
    /// 99th percentile of the response time against the null target at the offered rate, nanoseconds.
    pub null_p99_ns: u64,
    /// Client CPU time per operation against the null target, nanoseconds.
    pub null_cpu_ns_per_op: f64,
    /// Age of these figures in seconds if an earlier run measured them; absent if this one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_s: Option<u64>,
}

crate::serde_once!(Event, StreamSum, Calibration, Round);

/// Receives the events and intervals of a run, in order.
pub trait RunSink: Send {
    /// Takes an event.
    fn event(&mut self, event: &Event);

    /// Takes a complete interval of a phase.
    fn interval(&mut self, interval: &Interval);

    /// Takes requests that have just entered the slowest of their phase, in no order.
    fn slow_requests(&mut self, _requests: &[SlowRequest]) {}
}
