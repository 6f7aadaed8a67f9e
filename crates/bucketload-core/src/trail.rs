//! Everything that is known about one operation: what the operation log stores and the list of the
//! slowest requests shows.

use crate::driver::Place;
use crate::op::Op;
use crate::record::{AnswerIds, OpRecord, Probe};

/// One operation with everything that is known about it. A plain value of bounded size: names are
/// rendered from `op` by whoever writes it down, not by the load thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trail {
    /// What was recorded.
    pub record: OpRecord,
    /// What was planned.
    pub op: Op,
    /// Where it went.
    pub place: Place,
    /// Status of the last answer; 0 when there was none, or the API has no statuses.
    pub status: u16,
    /// The store's identifiers of the request; empty where they were not kept.
    pub ids: AnswerIds,
}

impl Trail {
    /// The trail of an operation that `probe` has watched.
    #[must_use]
    pub fn new(record: &OpRecord, op: &Op, place: Place, probe: &Probe) -> Self {
        Self {
            record: *record,
            op: *op,
            place,
            status: probe.status(),
            ids: probe.ids().copied().unwrap_or_default(),
        }
    }
}
