//! The key-value cache of a language model.

use std::io;

use bucketload_core::plan::{ClosedPlan, KvcachePlan, ModelPlan, WorkPlan};

use crate::error::RunError;
use crate::feed::Stretch;
use crate::kvcache::KvWork;
use crate::models::{Checked, RunModel, check_cap, refuse};
use crate::source::{Draft, Generators, Ops};
use crate::thread::Starting;

/// Workers that calibration drives without pauses.
const CALIBRATING: u32 = 64;

impl RunModel for KvcachePlan {
    fn check(&self, at: &Checked<'_>) -> Result<(), RunError> {
        let work = &at.work.name;
        if at.options.trace.is_none() {
            return refuse(format!("work `{work}` needs a trace, but none is given"));
        }
        if !(self.speed.is_finite() && self.speed >= 0.0) {
            return refuse(format!("work `{work}` has a speed that is below 0"));
        }
        let zero = [
            self.block_tokens,
            self.block_bytes,
            self.parts(),
            u64::from(self.gets),
            u64::from(self.puts),
        ]
        .contains(&0);
        if zero || !self.trace_block_tokens.is_multiple_of(self.block_tokens) {
            return refuse(format!(
                "work `{work}` has blocks without tokens, bytes or objects, or that do not divide those of the trace"
            ));
        }
        if at.phase.limits.ops > 0 {
            return refuse(format!(
                "phase `{}` limits the operations of a cache; use a part of the trace instead",
                at.phase.name
            ));
        }
        check_cap(self, at)
    }

    fn check_divisible(&self, work: &WorkPlan) -> Result<(), RunError> {
        refuse(format!(
            "work `{}` keeps one index of its cache, which one process must see; leave out --agents and --launch",
            work.name
        ))
    }

    fn generators(&self, draft: &Draft<'_>) -> Result<Generators, RunError> {
        let mix = &draft.plan.phases[draft.phase].works[draft.work].mix;
        // What lies below the prefix of the key set belongs to the run.
        let set = draft.plan.keysets.first();
        let prefix = set.map_or("", |set| set.prefix.as_str());
        let prefix = format!("{}{prefix}", draft.options.prefix);
        Ok(Ops::Kvcache(KvWork::new(self, mix, &prefix)).into())
    }

    fn start(&self, starting: &mut Starting<'_>, work: u16) -> io::Result<()> {
        starting.fed_alone(work, self.max_in_flight, 16)
    }

    fn faster(&self, _: &Stretch) -> ModelPlan {
        ClosedPlan::without_pauses(CALIBRATING.min(self.max_in_flight)).into()
    }

    fn saturating(&self, workers: u32) -> ModelPlan {
        ClosedPlan::without_pauses(workers.min(self.max_in_flight)).into()
    }
}
