//! Checkpoints.

use bucketload_core::generate::checkpoint::CheckpointGen;
use bucketload_core::plan::{CheckpointPlan, Model, PhasePlan};

use crate::checkpoint::CheckpointWork;
use crate::error::RunError;
use crate::models::RunModel;
use crate::options::RunOptions;
use crate::source::{Draft, Generators, Ops, refused};

impl RunModel for CheckpointPlan {
    /// All requests of a rank are made by one process.
    fn sessions(&self, _: &PhasePlan, _: usize, options: &RunOptions) -> u64 {
        let ranks = self.active().div_ceil(options.share.of);
        u64::from(ranks) * u64::from(self.max_sessions() / self.active().max(1))
    }

    fn generators(&self, draft: &Draft<'_>) -> Result<Generators, RunError> {
        let options = draft.options;
        let ops = CheckpointGen::new(draft.plan, draft.phase, draft.work, options.names_prefix());
        let share = (options.share.index, options.share.of);
        let work = CheckpointWork::new(ops.map_err(refused)?, share);
        Ok(Ops::Checkpoint(work).into())
    }
}
