//! Refuses plans and options that cannot be carried out, before anything is written.

use bucketload_core::driver::Capabilities;
use bucketload_core::op::OpClass;
use bucketload_core::plan::{MixEntry, PhaseKind, PhasePlan, Plan};

use crate::error::RunError;
use crate::models::{self, Checked, refuse};
use crate::options::RunOptions;
use crate::source::Source;

/// Refuses plans that no run can carry out. A resolved plan always passes.
pub(crate) fn check_plan(plan: &Plan, options: &RunOptions) -> Result<(), RunError> {
    if plan.timeout_ns == 0 || plan.retry.max_attempts == 0 {
        return refuse("the timeout and the number of attempts must be at least 1".to_owned());
    }
    let makes_buckets = |class| matches!(class, OpClass::MakeBucket | OpClass::DeleteBucket);
    for phase in &plan.phases {
        let load = matches!(phase.kind, PhaseKind::Prepare | PhaseKind::Run);
        if load && (phase.works.is_empty() || phase.works.iter().any(|w| w.mix.is_empty())) {
            return refuse(format!("phase `{}` has no work to do", phase.name));
        }
        let limits = phase.limits;
        let ends = phase.works.iter().all(|work| work.model.ends_by_itself());
        if load && !ends && limits.duration_ns == 0 && limits.ops == 0 && limits.bytes == 0 {
            return refuse(format!(
                "phase `{}` has no limit and would never end; set a time, operation or byte limit",
                phase.name
            ));
        }
        for work in &phase.works {
            models::of(&work.model).check(&Checked {
                plan,
                phase,
                work,
                options,
            })?;
            let workload_buckets = |set: u16| {
                plan.keysets
                    .get(usize::from(set))
                    .and_then(|s| s.buckets.as_ref())
            };
            let foreign = |entry: &&MixEntry| {
                makes_buckets(entry.class) && workload_buckets(entry.keyset).is_none()
            };
            if work.model.named().is_none()
                && let Some(entry) = work.mix.iter().find(foreign)
            {
                return refuse(format!(
                    "work `{}` contains {} without buckets of its own: works may neither make nor \
                     delete the bucket of the target",
                    work.name, entry.class
                ));
            }
        }
    }
    Ok(())
}

/// Refuses plans that several processes cannot carry out together.
pub(crate) fn check_divisible(plan: &Plan) -> Result<(), RunError> {
    for phase in &plan.phases {
        if phase.accounting.streams {
            return Err(RunError::Options(format!(
                "phase `{}` sums each stream over the time in which all streams are active, which one \
                 process must see; leave out --agents and --launch",
                phase.name
            )));
        }
        for work in &phase.works {
            models::of(&work.model).check_divisible(work)?;
        }
    }
    Ok(())
}

/// Refuses ranks spread over several processes without a [`crate::RankAgreement`].
pub(crate) fn check_agreement(plan: &Plan, options: &RunOptions) -> Result<(), RunError> {
    match (plan.has_ranks() || plan.trains()) && options.share.of > 1 && options.agreement.is_none() {
        true => Err(RunError::Options(
            "ranks of several processes go on to the highest count of all, which needs an agreement"
                .to_owned(),
        )),
        false => Ok(()),
    }
}

/// Refuses plans that need something the driver cannot do.
pub(crate) fn check_capabilities(
    plan: &Plan,
    capabilities: &Capabilities,
    driver: &str,
) -> Result<(), RunError> {
    let mut missing: Vec<&str> = plan
        .phases
        .iter()
        .flat_map(|phase| &phase.works)
        .flat_map(|work| &work.mix)
        .map(|entry| entry.class)
        .filter(|class| !capabilities.classes.contains(class))
        .map(|class| class.name())
        .collect();
    missing.sort_unstable();
    missing.dedup();
    let mut works = plan.phases.iter().flat_map(|phase| &phase.works);
    let parts = |entry: &MixEntry| entry.class == OpClass::MultipartPut && entry.pages > 1;
    if !capabilities.parts_in_flight && works.any(|work| work.mix.iter().any(parts)) {
        missing.push("several parts of an upload at the same time (parts-in-flight = 1 sends one after another)");
    }
    if plan.verify && !capabilities.verify {
        missing.push("verification");
    }
    if judges_trailers(plan) && !capabilities.verify {
        missing.push("judging objects by the checksum at their end (hashCheck)");
    }
    if plan.has_oracle() && !capabilities.verify {
        missing.push("the consistency oracle");
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(RunError::Unsupported {
        driver: driver.to_owned(),
        what: missing.join(", "),
    })
}

/// Refuses plans that need an operation that the store is known not to perform.
pub(crate) fn check_refused(plan: &Plan, options: &RunOptions) -> Result<(), RunError> {
    let works = plan.phases.iter().flat_map(|phase| &phase.works);
    let needed = |class: OpClass| {
        works
            .clone()
            .any(|w| w.mix.iter().any(|e| e.class == class))
    };
    match options.refused.iter().find(|(class, _)| needed(*class)) {
        None => Ok(()),
        Some((class, why)) => Err(RunError::Refused {
            class: *class,
            why: why.clone(),
        }),
    }
}

/// Whether any read checks the checksum at the end of the object.
fn judges_trailers(plan: &Plan) -> bool {
    let mut works = plan.phases.iter().flat_map(|phase| &phase.works);
    works.any(|work| {
        let named = work
            .model
            .named()
            .into_iter()
            .flat_map(|named| &named.entries);
        let mut entries = work.mix.iter().zip(named);
        entries.any(|(mix, named)| mix.class == OpClass::Get && named.trailer)
    })
}

/// Refuses plans that read the objects of an earlier run when none is named, and plans that would change them.
pub(crate) fn check_existing(plan: &Plan, options: &RunOptions) -> Result<(), RunError> {
    let existing = plan.keysets.iter().any(|set| set.existing);
    if existing != options.data.is_some() {
        let message = if existing {
            "the plan reads the objects of an earlier run, but none is named"
        } else {
            "an earlier run is named, but the plan does not read existing objects"
        };
        return Err(RunError::Options(message.to_owned()));
    }
    let entries = plan.phases.iter().flat_map(|phase| &phase.works);
    let changes = entries
        .flat_map(|work| &work.mix)
        .find(|entry| !entry.class.only_reads());
    match changes {
        Some(entry) if existing => Err(RunError::Options(format!(
            "`{}` would change the objects of an earlier run, which are only read",
            entry.class
        ))),
        _ => Ok(()),
    }
}

/// Refuses plans whose generators cannot be built.
pub(crate) fn check_generators(plan: &Plan, options: &RunOptions) -> Result<(), RunError> {
    for (phase, phase_plan) in plan.phases.iter().enumerate() {
        for work in 0..phase_plan.works.len() {
            Source::new(plan, phase, work, options, 1)?;
        }
    }
    Ok(())
}

/// Most sessions that any phase of the plan may open in this process.
pub(crate) fn most_sessions(plan: &Plan, options: &RunOptions) -> u64 {
    let of_phase = |phase: &PhasePlan| {
        let works = phase.works.iter().enumerate();
        let sessions =
            works.map(|(index, work)| models::of(&work.model).sessions(phase, index, options));
        sessions.sum::<u64>()
    };
    plan.phases.iter().map(of_phase).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use bucketload_core::plan::Plan;
    use bucketload_workload::resolve::{Overrides, ResolveContext, resolve};
    use bucketload_workload::spec::WorkloadFile;

    use super::check_divisible;

    #[test]
    fn plans_that_one_process_must_see_are_not_divided() {
        let plan = |name: &str| {
            let file = WorkloadFile::builtin(name).unwrap();
            let resolved = resolve(&file, &Overrides::default(), &ResolveContext::default());
            resolved.unwrap().plan
        };
        let refused = |plan: Plan| check_divisible(&plan).unwrap_err().to_string();
        assert!(check_divisible(&plan("mixed")).is_ok());
        assert!(refused(plan("multi-stream")).contains("streams"));
    }
}
