//! The operations of one stage of a job, or of one set of deletions.

use bucketload_core::generate::jobs::JobGen;
use bucketload_core::op::Op;
use bucketload_core::plan::StagePace;

/// Owner of a flow that no job waits for.
pub(super) const NOBODY: u32 = u32::MAX;

/// The kind of operations in a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The operations of a stage. The next stage waits for them.
    Stage,
    /// The deletion of a stage's objects. Nothing waits for it.
    Deletion,
}

/// A sequence of operations, each with its due instant.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) kind: Kind,
    /// Slot of the job that waits for it, or [`NOBODY`].
    pub(super) owner: u32,
    pub(super) job: u64,
    pub(super) stage: usize,
    /// Start of the flow, nanoseconds since the epoch.
    pub(super) ready_ns: u64,
    /// Latest end of an operation, nanoseconds since the epoch.
    pub(super) done_ns: u64,
    /// Whether an operation failed.
    pub(super) failed: bool,
    n: u32,
    /// Due instants, as far as they are known.
    dues: Vec<u64>,
    taken: usize,
    counted: usize,
    ended: u32,
}

impl Flow {
    /// A flow without operations.
    pub(super) fn idle() -> Self {
        Self {
            kind: Kind::Deletion,
            owner: NOBODY,
            job: 0,
            stage: 0,
            ready_ns: 0,
            done_ns: 0,
            failed: false,
            n: 0,
            dues: Vec::new(),
            taken: 0,
            counted: 0,
            ended: 0,
        }
    }

    /// Starts over at `ready_ns` with the operations of `stage` of `job`. Keeps only the memory.
    pub(super) fn begin(
        &mut self,
        (kind, owner): (Kind, u32),
        (job, stage): (u64, usize),
        ready_ns: u64,
        pace: StagePace,
        ops: &JobGen,
    ) {
        let n = ops.ops_in(job, stage);
        let mut dues = std::mem::take(&mut self.dues);
        dues.clear();
        match (kind, pace) {
            (Kind::Stage, StagePace::Poisson { .. }) => {
                let mut due = ready_ns;
                dues.extend((0..n).map(|i| {
                    due = due.saturating_add(ops.gap_ns(job, stage, i));
                    due
                }));
            }
            (Kind::Stage, StagePace::Sequential) => dues.push(ready_ns),
            (Kind::Stage, StagePace::Burst) | (Kind::Deletion, _) => {
                dues.resize(n as usize, ready_ns);
            }
        }
        *self = Self {
            kind,
            owner,
            job,
            stage,
            ready_ns,
            done_ns: ready_ns,
            n,
            dues,
            ..Self::idle()
        };
    }

    /// Whether operations have yet to end.
    pub(super) fn is_live(&self) -> bool {
        self.ended < self.n
    }

    /// Due instant of the next operation, if it is known.
    pub(super) fn next_due(&self) -> Option<u64> {
        self.dues.get(self.taken).copied()
    }

    fn op(&self, i: usize, ops: &JobGen) -> Op {
        let i = i as u32;
        match self.kind {
            Kind::Stage => ops.op(self.job, self.stage, i),
            Kind::Deletion => ops.delete(self.job, self.stage, i),
        }
    }

    /// The next operation, and whether it is uncounted. Its due instant must be known.
    pub(super) fn take(&mut self, ops: &JobGen) -> (Op, bool) {
        let i = self.taken;
        self.taken += 1;
        let new = i >= self.counted;
        self.counted = self.counted.max(self.taken);
        (self.op(i, ops), new)
    }

    /// Calls `offer` for every uncounted operation that is due before `until_ns`.
    pub(super) fn count_until(
        &mut self,
        until_ns: u64,
        ops: &JobGen,
        offer: &mut dyn FnMut(u64, &Op),
    ) {
        while let Some(&due) = self.dues.get(self.counted)
            && due < until_ns
        {
            offer(due, &self.op(self.counted, ops));
            self.counted += 1;
        }
    }

    /// An operation ended at `done_ns`. In a sequential stage that makes the next one due.
    pub(super) fn end_one(&mut self, done_ns: u64, failed: bool) {
        self.ended += 1;
        self.failed |= failed;
        self.done_ns = self.done_ns.max(done_ns);
        if self.kind == Kind::Stage && self.dues.len() < self.n as usize {
            self.dues.push(done_ns);
        }
    }
}
