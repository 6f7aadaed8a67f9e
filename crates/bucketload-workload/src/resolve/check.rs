//! The last check of a plan: whether every generator accepts it.
//!
//! Earlier checks use the language of the workload and run first. This one ensures that a plan that resolves
//! can also be generated, whatever they overlook.

use super::builder::PlanBuilder;
use super::phases::RunPhase;
use bucketload_core::generate::LawError;
use bucketload_core::generate::arrivals::Schedule;
use bucketload_core::generate::jobs::JobGen;
use bucketload_core::generate::ops::OpGen;
use bucketload_core::plan::{JobStart, PhaseKind, Plan};

impl PlanBuilder<'_> {
    pub(super) fn check_generators(&mut self, plan: &Plan, runs: &[RunPhase]) {
        let measured = plan
            .phases
            .iter()
            .enumerate()
            .filter(|(_, phase)| phase.kind == PhaseKind::Run);
        if plan.phases.len() > bucketload_core::generate::rng::Stream::MAX_PHASES {
            self.error(
                "phases",
                format!("{} phases are too many", plan.phases.len()),
                "",
            );
            return;
        }
        for ((index, phase), run) in measured.zip(runs) {
            for (work, work_plan) in phase.works.iter().enumerate() {
                if let Some(jobs) = work_plan.model.jobs() {
                    let made = JobGen::new(plan, index as u16, work as u16).map(|_| ());
                    let arrivals = match &jobs.start {
                        JobStart::Open { arrival } => {
                            Schedule::new(plan.seed, index as u16, work as u16, arrival).map(|_| ())
                        }
                        JobStart::Closed { .. } => Ok(()),
                    };
                    if let Err(error) = made.and(arrivals) {
                        let path = format!("{}.jobs", run.work_path(work));
                        self.refuse(plan, &path, &error);
                    }
                    continue;
                }
                if let Err(error) = OpGen::new(plan, index, work) {
                    let path = run.path_of(work, &error.field);
                    self.refuse(plan, &path, &error);
                }
                if let Some(open) = work_plan.model.open()
                    && let Err(error) =
                        Schedule::new(plan.seed, index as u16, work as u16, &open.arrival)
                {
                    let path = format!("{}.arrival", run.work_path(work));
                    self.refuse(plan, &path, &error);
                }
            }
        }
    }

    fn refuse(&mut self, plan: &Plan, path: &str, error: &LawError) {
        // Errors about populations give the key set's number.
        let keyset = error
            .field
            .strip_prefix("keysets[")
            .and_then(|rest| rest.split_once(']'))
            .and_then(|(index, rest)| {
                let set = plan.keysets.get(index.parse::<usize>().ok()?)?;
                Some(format!("keysets.{}{rest}", set.name))
            });
        let parameter = error.field.rsplit('.').next().unwrap_or_default();
        let path = keyset.as_deref().unwrap_or(path);
        self.error(path, format!("`{parameter}` {}", error.reason), "");
    }
}
