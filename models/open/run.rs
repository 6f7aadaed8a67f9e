//! The open loop.

use std::io;

use bucketload_core::plan::{ArrivalLaw, ModelPlan, OpenPlan};

use crate::calibrate::faster_arrivals;
use crate::error::RunError;
use crate::feed::Stretch;
use crate::models::{Checked, RunModel, check_cap, closed};
use crate::partition::Partition;
use crate::source::{Draft, Generators};
use crate::thread::Starting;

impl RunModel for OpenPlan {
    fn check(&self, at: &Checked<'_>) -> Result<(), RunError> {
        check_cap(self, at)
    }

    fn generators(&self, draft: &Draft<'_>) -> Result<Generators, RunError> {
        let mix = draft.mix()?;
        Ok(Generators {
            schedule: Some(draft.arrivals(&self.arrival)?),
            ..mix
        })
    }

    fn start(&self, starting: &mut Starting<'_>, work: u16) -> io::Result<()> {
        starting.fed(work, self.max_in_flight, |part| {
            first_sessions(&self.arrival, part)
        })
    }

    fn faster(&self, _: &Stretch) -> ModelPlan {
        let arrival = faster_arrivals(&self.arrival);
        Self { arrival, ..*self }.into()
    }

    fn saturating(&self, workers: u32) -> ModelPlan {
        closed(workers)
    }
}

/// Sessions to open before the start: enough for ten milliseconds of arrivals, or for one batch.
fn first_sessions(arrival: &ArrivalLaw, part: &Partition) -> usize {
    let peak = match arrival {
        ArrivalLaw::Constant { rate }
        | ArrivalLaw::Poisson { rate }
        | ArrivalLaw::LognormalGaps { rate, .. }
        | ArrivalLaw::LognormalRate { rate, .. } => rate / 100.0,
        ArrivalLaw::PeriodicBatch { max, .. } => f64::from(*max),
        ArrivalLaw::Ramp { from, .. } => from / 100.0,
        ArrivalLaw::Steps { rates, .. } => rates.first().copied().unwrap_or(0.0) / 100.0,
    };
    // A cast of a float saturates.
    ((peak / f64::from(part.of)) as usize).clamp(4, 256)
}
