//! The workload models in the language: how a workload specifies each, its expected load, and its description
//! in results.
//!
//! Each model is a file `models/NAME/language.rs`.

#[path = "../../../../models"]
mod folders {
    bucketload_core::model_files!(language);
}

use bucketload_core::generate::LawError;
use bucketload_core::plan::{Limits, Model, ModelPlan, Plan, WorkPlan};

use super::dryrun::{Rates, mix_rates, ops_by_limits};

/// The description of a model.
pub(super) fn of(model: &ModelPlan) -> &dyn DescribedModel {
    bucketload_core::selected_model!(model)
}

/// A workload model in words, as shown in results.
#[must_use]
pub fn describe(model: &ModelPlan) -> String {
    of(model).in_results()
}

/// A workload model, as seen by dry runs and results.
pub(super) trait DescribedModel: Model {
    /// The model in words, for a dry run.
    fn in_outlook(&self) -> String;

    /// The model in words, for results.
    fn in_results(&self) -> String {
        self.in_outlook()
    }

    /// Bytes per operation and shares of classes of work number `work` of phase number `phase`.
    fn rates(&self, plan: &Plan, phase: usize, work: usize) -> Result<Rates, LawError> {
        mix_rates(plan, phase, work)
    }

    /// Number of operations of a work without arrivals, if limits determine it. `alone` is true if the phase
    /// has no other work.
    fn ops(&self, _work: &WorkPlan, limits: &Limits, rates: &Rates, alone: bool) -> Option<f64> {
        // Only a limit that concerns this work alone determines the operations of a closed loop.
        ops_by_limits(limits, rates).filter(|_| alone)
    }

    /// Objects that the work writes in addition to those counted by its phase's limit.
    fn written(&self, _work: &WorkPlan) -> u64 {
        0
    }
}

/// A closed loop of `workers` workers, in words.
fn workers(workers: u32) -> String {
    let plural = if workers == 1 { "" } else { "s" };
    format!("closed loop, {workers} worker{plural}")
}
