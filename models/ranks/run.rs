//! Ranks.

use bucketload_core::generate::ranks::RankGen;
use bucketload_core::plan::{Plan, RanksPlan};

use crate::closed::crew;
use crate::error::RunError;
use crate::models::{Checked, RunModel, refuse};
use crate::ownership::{in_workload_buckets, prefix_in_workload_buckets};
use crate::ranks::RankWork;
use crate::source::{Draft, Generators, Ops, refused};

impl RunModel for RanksPlan {
    fn check(&self, at: &Checked<'_>) -> Result<(), RunError> {
        if at.options.share.of > 1 && at.phase.works.len() > 1 {
            return refuse(format!(
                "phase `{}` has ranks and other works, whose steps several agents cannot tell apart",
                at.phase.name
            ));
        }
        match self.ranks {
            0 => refuse(format!("work `{}` has no workers", at.work.name)),
            _ => Ok(()),
        }
    }

    fn generators(&self, draft: &Draft<'_>) -> Result<Generators, RunError> {
        let (plan, options) = (draft.plan, draft.options);
        let ops = match plan.keysets.iter().any(|set| set.buckets.is_some()) {
            true => {
                let keysets = plan.keysets.iter().map(in_workload_buckets).collect();
                let plan = Plan {
                    keysets,
                    ..plan.clone()
                };
                let prefix = prefix_in_workload_buckets(&options.prefix);
                RankGen::new(&plan, draft.phase, draft.work, &prefix)
            }
            false => RankGen::new(plan, draft.phase, draft.work, &options.prefix),
        };
        let share = (options.share.index, options.share.of);
        let local_ranks = crew(self.ranks, share).count() as u32;
        let work = RankWork::new(
            ops.map_err(refused)?,
            draft.numbers.0,
            local_ranks,
            options.agreement.clone(),
        );
        Ok(Ops::Ranks(work).into())
    }
}
