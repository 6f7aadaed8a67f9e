//! Works on buckets and objects that the user names.

use bucketload_core::generate::named::NamedGen;
use bucketload_core::plan::{NamedPlan, PhasePlan};

use crate::error::RunError;
use crate::models::RunModel;
use crate::named_objects::NamedWork;
use crate::options::RunOptions;
use crate::source::{Draft, Generators, Ops, refused};

impl RunModel for NamedPlan {
    fn sessions(&self, phase: &PhasePlan, work: usize, options: &RunOptions) -> u64 {
        options.crew(phase, work).len() as u64
    }

    fn generators(&self, draft: &Draft<'_>) -> Result<Generators, RunError> {
        let ops = NamedGen::new(draft.plan, draft.phase, draft.work).map_err(refused)?;
        let phase = &draft.plan.phases[draft.phase];
        let crew = draft.options.crew(phase, draft.work);
        Ok(Ops::Named(NamedWork::new(ops, crew)).into())
    }
}
