//! The replay of a trace.

use std::io;

use bucketload_core::plan::{ModelPlan, ReplayPlan, ReplayTiming, WorkPlan};

use crate::calibrate::twice;
use crate::error::RunError;
use crate::feed::Stretch;
use crate::models::{Checked, RunModel, check_cap, refuse};
use crate::source::{Draft, Generators, Ops, Recorded};
use crate::thread::Starting;

impl RunModel for ReplayPlan {
    fn check(&self, at: &Checked<'_>) -> Result<(), RunError> {
        let work = &at.work.name;
        if at.options.trace.is_none() {
            return refuse(format!("work `{work}` replays a trace, but none is given"));
        }
        let is_speed = |speed: f64| speed.is_finite() && speed > 0.0;
        if self.timing.speed().is_some_and(|speed| !is_speed(speed)) {
            return refuse(format!(
                "work `{work}` replays at a speed that is not above 0"
            ));
        }
        if at.plan.verify {
            return refuse(
                "the reads of a replay cannot be verified: the trace may overwrite objects"
                    .to_owned(),
            );
        }
        if at.phase.limits.ops > 0 {
            return refuse(format!(
                "phase `{}` limits the operations of a replay; limit the trace instead",
                at.phase.name
            ));
        }
        check_cap(self, at)
    }

    fn check_divisible(&self, work: &WorkPlan) -> Result<(), RunError> {
        refuse(format!(
            "work `{}` replays a trace, which is read in one place; leave out --agents and --launch",
            work.name
        ))
    }

    fn generators(&self, draft: &Draft<'_>) -> Result<Generators, RunError> {
        let recorded = Recorded::new(self, draft.plan, draft.options, draft.threads);
        Ok(Ops::Recorded(recorded).into())
    }

    fn start(&self, starting: &mut Starting<'_>, work: u16) -> io::Result<()> {
        starting.fed(work, self.max_in_flight, |part| match self.timing {
            ReplayTiming::Asap => part.cap,
            _ => 16,
        })
    }

    fn faster(&self, stretch: &Stretch) -> ModelPlan {
        stretch.paced(self, twice(stretch.rate)).into()
    }

    fn saturating(&self, workers: u32) -> ModelPlan {
        Stretch::saturating(self, workers).into()
    }
}
