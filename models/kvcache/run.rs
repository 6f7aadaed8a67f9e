//! The key-value cache of a language model.

use std::io;

use bucketload_core::generate::users::UserGen;
use bucketload_core::plan::{
    ClosedPlan, KvKind, KvUsers, KvcachePlan, Model as _, ModelPlan, PhasePlan, WorkPlan,
};

use crate::error::RunError;
use crate::feed::Stretch;
use crate::kvcache::KvWork;
use crate::models::{Checked, RunModel, check_cap, refuse};
use crate::options::RunOptions;
use crate::source::{Draft, Generators, Ops};
use crate::thread::Starting;

/// Workers that calibration drives without pauses.
const CALIBRATING: u32 = 64;

/// Sessions that open before the start.
const SESSIONS: usize = 16;

/// Refuses users that cannot ask, or that the agents cannot divide.
fn check_users(users: &KvUsers, at: &Checked<'_>) -> Result<(), RunError> {
    let (work, agents) = (&at.work.name, at.options.share.of);
    let ranges = |kind: &KvKind| {
        let all = [kind.context, kind.output, kind.think_ns];
        all.iter().all(|range| range[0] <= range[1] && range[1] > 0)
    };
    if users.all() == 0 || users.kinds.is_empty() || !users.kinds.iter().all(ranges) {
        return refuse(format!(
            "work `{work}` has no users, or users with empty ranges"
        ));
    }
    match users.clients < agents {
        true => refuse(format!(
            "work `{work}` has {} clients, fewer than the {agents} agents; raise their number (--clients {agents}), or use fewer \
             agents",
            users.clients
        )),
        false => Ok(()),
    }
}

impl RunModel for KvcachePlan {
    fn check(&self, at: &Checked<'_>) -> Result<(), RunError> {
        let work = &at.work.name;
        if let Some(users) = &self.users {
            check_users(users, at)?;
        } else if at.options.trace.is_none() {
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

    fn sessions(&self, _: &PhasePlan, _: usize, options: &RunOptions) -> u64 {
        let Some(users) = &self.users else {
            return u64::from(self.max_sessions());
        };
        let clients = u64::from(users.clients.div_ceil(options.share.of));
        clients * u64::from(self.max_in_flight / users.clients.max(1))
    }

    fn check_divisible(&self, work: &WorkPlan) -> Result<(), RunError> {
        if self.users.is_some() {
            return Ok(());
        }
        refuse(format!(
            "work `{}` keeps one index of its cache, which one process must see; leave out --agents and --launch, or \
             let users ask (--preset mlperf-1), whose clients are independent",
            work.name
        ))
    }

    fn generators(&self, draft: &Draft<'_>) -> Result<Generators, RunError> {
        let mix = &draft.plan.phases[draft.phase].works[draft.work].mix;
        // What lies below the prefix of the key set belongs to the run.
        let set = draft.plan.keysets.first();
        let prefix = set.map_or("", |set| set.prefix.as_str());
        let prefix = format!("{}{prefix}", draft.options.prefix);
        let (phase, work) = draft.numbers;
        let users = self.users.as_ref();
        let users = users.map(|users| UserGen::new(users, draft.plan.seed, phase, work));
        Ok(Ops::Kvcache(KvWork::new(self, mix, &prefix, users)).into())
    }

    fn start(&self, starting: &mut Starting<'_>, work: u16) -> io::Result<()> {
        match &self.users {
            None => starting.fed_alone(work, self.max_in_flight, SESSIONS),
            Some(users) => {
                let each = self.max_in_flight / users.clients;
                starting.fed_in_units(work, users.clients, each, SESSIONS)
            }
        }
    }

    fn faster(&self, _: &Stretch) -> ModelPlan {
        ClosedPlan::without_pauses(CALIBRATING.min(self.max_in_flight)).into()
    }

    fn saturating(&self, workers: u32) -> ModelPlan {
        ClosedPlan::without_pauses(workers.min(self.max_in_flight)).into()
    }
}
