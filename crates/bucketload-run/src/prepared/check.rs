//! Which data sets can be kept.

use bucketload_core::driver::Capabilities;
use bucketload_core::op::OpClass;
use bucketload_core::plan::{KeyLaw, ModelPlan, PhaseKind, PhasePlan, Plan};

use super::preparing;
use crate::error::RunError;
use crate::options::RunOptions;

/// Refuses plans and options whose data sets cannot be kept.
pub(crate) fn check(
    plan: &Plan,
    options: &RunOptions,
    (capabilities, driver): (&Capabilities, &str),
) -> Result<(), RunError> {
    let Some(set) = &options.data_set else {
        return Ok(());
    };
    let reads = capabilities.verify && capabilities.classes.contains(&OpClass::Get);
    if set.check > 0 && !reads {
        return Err(RunError::Unsupported {
            driver: driver.to_owned(),
            what: "comparing objects with what was prepared (--check)".to_owned(),
        });
    }
    let refuse = |text: &str| Err(RunError::Options(text.to_owned()));
    let simple = |phase: &PhasePlan| match phase.works.as_slice() {
        [work] => match work.mix.as_slice() {
            [entry] => {
                matches!(work.model, ModelPlan::Closed(_)) && entry.keys == KeyLaw::Sequential
            }
            _ => false,
        },
        _ => false,
    };
    if preparing(plan).next().is_none() {
        return refuse("the workload prepares no objects, so there is no data set to keep");
    }
    if !preparing(plan).all(simple) {
        return refuse("the workload does not write its objects one by one before it measures");
    }
    if plan.has_oracle() {
        return refuse(
            "the consistency oracle must see every write, so it cannot judge a data set of an \
             earlier run; leave out --oracle",
        );
    }
    if plan.phases.iter().any(|p| p.kind == PhaseKind::Cleanup) {
        return refuse("a data set that is kept must not be deleted at the end of the run");
    }
    Ok(())
}
