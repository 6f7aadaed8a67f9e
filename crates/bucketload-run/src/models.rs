//! How each workload model is carried out: what it refuses, where its operations come from, how its tasks start, and
//! what calibration runs in its place.
//!
//! Each model is a file `models/NAME/run.rs`. Its methods are called once per phase or thread, never per
//! operation.

#[path = "../../../models"]
mod folders {
    bucketload_core::model_files!(run);
}

use std::io;

use bucketload_core::plan::{ClosedPlan, Model, ModelPlan, PhasePlan, Plan, WorkPlan};

use crate::error::RunError;
use crate::feed::Stretch;
use crate::options::RunOptions;
use crate::source::{Draft, Generators};
use crate::thread::Starting;

/// The implementation of a model.
pub(crate) fn of(model: &ModelPlan) -> &dyn RunModel {
    bucketload_core::selected_model!(model)
}

/// A work to check, with its surroundings.
pub(crate) struct Checked<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) phase: &'a PhasePlan,
    pub(crate) work: &'a WorkPlan,
    pub(crate) options: &'a RunOptions,
}

/// A workload model as the runner sees it. The default methods suit the workers of a closed loop.
pub(crate) trait RunModel: Model {
    /// Refuses a work that cannot be carried out.
    fn check(&self, at: &Checked<'_>) -> Result<(), RunError> {
        match self.max_sessions() {
            0 => refuse(format!("work `{}` has no workers", at.work.name)),
            _ => Ok(()),
        }
    }

    /// Refuses a work that several processes cannot carry out together.
    fn check_divisible(&self, _work: &WorkPlan) -> Result<(), RunError> {
        Ok(())
    }

    /// Most sessions that work number `work` of `phase` may open in this process.
    fn sessions(&self, _phase: &PhasePlan, _work: usize, options: &RunOptions) -> u64 {
        u64::from(self.max_sessions()).div_ceil(u64::from(options.share.of))
    }

    /// The generators of its operations.
    fn generators(&self, draft: &Draft<'_>) -> Result<Generators, RunError>;

    /// Starts the tasks of work number `work` on a load thread.
    fn start(&self, starting: &mut Starting<'_>, work: u16) -> io::Result<()> {
        starting.workers(work, self.max_sessions())
    }

    /// The model at twice its rate or more, for calibration. Closed loops become closed loops without pauses.
    fn faster(&self, _stretch: &Stretch) -> ModelPlan {
        closed(self.max_sessions())
    }

    /// A model that keeps `workers` workers busy without any pause, for calibration.
    fn saturating(&self, workers: u32) -> ModelPlan {
        closed(workers.min(self.max_sessions()))
    }
}

/// A closed loop without pauses.
fn closed(workers: u32) -> ModelPlan {
    ClosedPlan::without_pauses(workers).into()
}

/// Refuses a plan for the reason `text`.
pub(crate) fn refuse(text: String) -> Result<(), RunError> {
    Err(RunError::Options(text))
}

/// Refuses a cap on operations in flight that is below the number of agents.
fn check_cap(model: &dyn RunModel, at: &Checked<'_>) -> Result<(), RunError> {
    let (cap, agents) = (model.max_sessions(), at.options.share.of);
    if cap >= agents {
        return Ok(());
    }
    refuse(format!(
        "work `{}` allows {cap} operations in flight over {agents} agents; each agent needs at least one",
        at.work.name
    ))
}
