//! One operation between its source and its record: [`DueOp`] goes to the worker, [`OpEnd`] comes back.

use bucketload_core::op::Op;
use bucketload_core::record::Outcome;

/// An operation that has fallen due and that a load thread has turned to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DueOp {
    pub(crate) op: Op,
    /// Intended start, nanoseconds since the epoch.
    pub(crate) due_ns: u64,
    /// When the load thread turned to it, nanoseconds since the epoch.
    pub(crate) taken_ns: u64,
    /// Part of the wait from due to taken during which no worker was free, nanoseconds.
    pub(crate) dispatch_ns: u64,
    /// Part of the wait during which an earlier operation on the same key held it up, nanoseconds.
    pub(crate) blocked_ns: u64,
    /// How its feed recognises it when it ends.
    pub(crate) feed_tag: u32,
    /// True until the operation has been counted as offered.
    pub(crate) uncounted: bool,
    /// Whether the expected answer is that the object does not exist.
    pub(crate) absent_expected: bool,
}

impl DueOp {
    /// An operation that waited for nothing but the thread itself and is not yet counted as offered.
    #[inline]
    pub(crate) const fn new(op: Op, due_ns: u64, taken_ns: u64) -> Self {
        Self {
            op,
            due_ns,
            taken_ns,
            dispatch_ns: 0,
            blocked_ns: 0,
            feed_tag: 0,
            uncounted: true,
            absent_expected: false,
        }
    }
}

/// How an operation ended, with all its attempts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpEnd {
    pub(crate) outcome: Outcome,
    /// Whether the object did not exist.
    pub(crate) absent: bool,
    /// When its last attempt was sent, nanoseconds since the epoch.
    pub(crate) started_ns: u64,
    /// End of the operation, nanoseconds since the epoch.
    pub(crate) done_ns: u64,
    /// Object bytes transferred.
    pub(crate) bytes: u64,
    /// Current time, nanoseconds since the epoch.
    pub(crate) now_ns: u64,
    /// Whether the worker ever waited, so that other tasks of the thread could run.
    pub(crate) waited: bool,
}
