//! Checkpoints: the ranks of a training job, each with one or more workers.
//!
//! ```text
//!  rank 0 ┬ worker 0 ─ range 0 ─ range 2 ─ range 3 ─ …     a rank's workers take its next operation in turn
//!         └ worker 1 ─ range 1 ───────── range 4 ─ …
//!  rank 1 ┬ …
//! ```
//!
//! All workers of a rank belong to one process, and neighbouring ranks too, as the processes of a job do on its hosts.
//! Operations take the same path as in any closed loop ([`crate::closed`]).

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use bucketload_core::error::ErrorKind;
use bucketload_core::generate::checkpoint::CheckpointGen;
use bucketload_core::op::{Op, OpClass, VersionId};
use bucketload_core::plan::Model as _;
use bucketload_core::record::Outcome;

use crate::due::{DueOp, OpEnd};
use crate::perform::CurrentVersion;
use crate::ranks::{History, RankRecord};

/// The work of all ranks of this process.
pub(crate) struct CheckpointWork {
    pub(crate) ops: CheckpointGen,
    /// The ranks of this process.
    ranks: Range<u32>,
    /// The next operation of each of them.
    next: Vec<AtomicU64>,
}

impl CheckpointWork {
    /// The work of agent `agent` of `agents`.
    pub(crate) fn new(ops: CheckpointGen, (agent, agents): (u32, u32)) -> Self {
        // A rank is in the same process whatever the phase does.
        let (all, active) = (u64::from(ops.plan().ranks), ops.plan().active());
        let first = |agent: u32| {
            let first = all * u64::from(agent) / u64::from(agents.max(1));
            (first as u32).min(active)
        };
        let ranks = first(agent)..first(agent + 1);
        Self {
            next: ranks.clone().map(|_| AtomicU64::new(0)).collect(),
            ranks,
            ops,
        }
    }

    /// Workers of each rank.
    fn lanes(&self) -> u32 {
        let plan = self.ops.plan();
        plan.max_sessions() / plan.active().max(1)
    }

    /// The workers of this process, by their numbers over all processes: those of a rank follow each other.
    pub(crate) fn crew(&self) -> Range<u32> {
        self.ranks.start * self.lanes()..self.ranks.end * self.lanes()
    }
}

/// A worker's part in the work of its rank.
pub(crate) struct CheckpointTurns {
    rank: u32,
    record: Rc<RankRecord>,
    /// The entity tag of the marker, where its writes are conditional.
    tag: Option<Rc<Cell<VersionId>>>,
}

impl CheckpointTurns {
    /// Worker number `worker` before its first operation.
    pub(crate) fn new(work: &CheckpointWork, worker: u32, history: &History) -> Self {
        let rank = worker / work.lanes().max(1);
        let conditional = work.ops.class(0) == OpClass::PutIfMatch;
        Self {
            rank,
            record: Rc::new(RankRecord::new(rank)),
            tag: conditional.then(|| Rc::new(Cell::new(history.marker()))),
        }
    }

    /// Where the session finds the entity tag of the marker, and leaves the new one.
    pub(crate) fn version(&self) -> Option<Box<CurrentVersion>> {
        let id = Rc::clone(self.tag.as_ref()?);
        Some(Box::new(CurrentVersion::kept_in(id)))
    }

    /// What the worker has done, which it keeps updating.
    pub(crate) fn record(&self) -> Rc<RankRecord> {
        Rc::clone(&self.record)
    }

    /// The rank's next operation.
    pub(crate) fn next(&self, work: &CheckpointWork) -> Option<Op> {
        let next = &work.next[(self.rank - work.ranks.start) as usize];
        work.ops.op(self.rank, next.fetch_add(1, Ordering::Relaxed))
    }

    /// An operation of the worker has ended.
    pub(crate) fn ended(&self, due_op: &DueOp, end: &OpEnd, history: &History) {
        if let Some(tag) = &self.tag {
            history.set_marker(tag.get());
        }
        // Nobody waited for its end, so it neither failed nor transferred anything.
        if end.outcome == Outcome::Failed(ErrorKind::Cancelled) {
            return;
        }
        let failed = self.record.count(due_op, end);
        self.record.step(!failed);
    }
}
