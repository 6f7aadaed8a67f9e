//! Jobs of several stages.

use std::io;

use bucketload_core::generate::arrivals::Schedule;
use bucketload_core::generate::jobs::JobGen;
use bucketload_core::plan::{ArrivalLaw, JobStart, JobsPlan, ModelPlan, StagePace};

use crate::calibrate::LEAST_RATE;
use crate::error::RunError;
use crate::feed::Stretch;
use crate::models::{Checked, RunModel, check_cap};
use crate::source::{Draft, Generators, Ops, refused};
use crate::thread::Starting;

impl RunModel for JobsPlan {
    fn check(&self, at: &Checked<'_>) -> Result<(), RunError> {
        check_cap(self, at)
    }

    fn generators(&self, draft: &Draft<'_>) -> Result<Generators, RunError> {
        let (phase, work) = draft.numbers;
        let ops = JobGen::new(draft.plan, phase, work).map_err(refused)?;
        let schedule = match &self.start {
            JobStart::Open { arrival } => Some(draft.arrivals(arrival)?),
            JobStart::Closed { .. } => None,
        };
        Ok(Generators {
            schedule,
            ..Generators::from(Ops::Jobs(self.clone(), ops))
        })
    }

    fn start(&self, starting: &mut Starting<'_>, work: u16) -> io::Result<()> {
        // Enough for a stage and the deletions beside it.
        let sessions = (2 * self.widest() as usize).clamp(4, 256);
        starting.fed(work, self.max_in_flight, |_| sessions)
    }

    /// Jobs at twice their rate or more, with stages that last milliseconds, so that enough of them arrive and end
    /// within the schedule.
    fn faster(&self, _: &Stretch) -> ModelPlan {
        let each = self.mean_job_ops().max(1.0);
        let start = match &self.start {
            JobStart::Open { arrival } => {
                // The mean over a minute, which is long enough for any law.
                let mean =
                    Schedule::new(0, 0, 0, arrival).map_or(0.0, |s| s.mean_rate(60_000_000_000));
                JobStart::Open {
                    arrival: ArrivalLaw::Poisson {
                        rate: (2.0 * mean).max(LEAST_RATE / each),
                    },
                }
            }
            closed @ JobStart::Closed { .. } => closed.clone(),
        };
        Self {
            start,
            pace: match self.pace {
                StagePace::Poisson { rate } => StagePace::Poisson {
                    rate: rate.max(10_000.0),
                },
                other => other,
            },
            limit: 0,
            ..self.clone()
        }
        .into()
    }

    /// Jobs without pauses, and enough at a time to keep all workers busy.
    fn saturating(&self, workers: u32) -> ModelPlan {
        Self {
            start: JobStart::Closed { jobs: workers },
            pace: StagePace::Burst,
            limit: 0,
            max_jobs: workers,
            retain: self.retain.min(1),
            max_in_flight: workers,
            ..self.clone()
        }
        .into()
    }
}
