//! Training.

use std::io;

use bucketload_core::generate::train::TrainGen;
use bucketload_core::plan::TrainPlan;

use crate::closed::crew;
use crate::error::RunError;
use crate::models::{Checked, RunModel, refuse};
use crate::source::{Draft, Generators};
use crate::thread::Starting;
use crate::train::TrainWork;

impl RunModel for TrainPlan {
    fn check(&self, at: &Checked<'_>) -> Result<(), RunError> {
        let (name, agents) = (&at.work.name, at.options.share.of);
        if agents > 1 && at.phase.works.len() > 1 {
            return refuse(format!(
                "phase `{}` trains and has other works, whose steps several agents cannot tell apart",
                at.phase.name
            ));
        }
        if self.accelerators < agents {
            return refuse(format!(
                "work `{name}` has {} accelerators for {agents} agents; each agent needs at least one",
                self.accelerators
            ));
        }
        match self.steps() {
            0 => refuse(format!(
                "work `{name}` makes no step: the data set has fewer samples than a batch of each accelerator"
            )),
            _ => Ok(()),
        }
    }

    fn generators(&self, draft: &Draft<'_>) -> Result<Generators, RunError> {
        let (plan, options) = (draft.plan, draft.options);
        let keyset = plan.phases[draft.phase].works[draft.work].mix[0].keyset;
        let share = (options.share.index, options.share.of);
        let local = crew(self.accelerators, share).count() as u32;
        let reads = TrainGen::new(self.clone(), plan.seed, keyset);
        let agreement = options.agreement.clone();
        let train = TrainWork::new(reads, draft.numbers.0, local, agreement);
        Ok(Generators {
            train: Some(train),
            ..draft.mix()?
        })
    }

    fn start(&self, starting: &mut Starting<'_>, work: u16) -> io::Result<()> {
        starting.train(work, self)
    }
}
