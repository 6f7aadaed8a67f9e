//! The closed loop.

use bucketload_core::generate::think::ThinkTime;
use bucketload_core::plan::{ClosedPlan, GapLaw};

use crate::error::RunError;
use crate::models::RunModel;
use crate::source::{Draft, Generators, refused};

impl RunModel for ClosedPlan {
    fn generators(&self, draft: &Draft<'_>) -> Result<Generators, RunError> {
        let (phase, work) = draft.numbers;
        let mix = draft.mix()?;
        let think = ThinkTime::new(draft.plan.seed, phase, work, self.think).map_err(refused)?;
        Ok(Generators {
            think: (self.think != GapLaw::None).then_some(think),
            ..mix
        })
    }
}
