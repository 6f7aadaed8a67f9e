//! The workload models: what a plan says of each, and what everybody may ask of all.

use serde::{Deserialize, Serialize};

use super::{
    ArrivalLaw, ClosedPlan, JobsPlan, NamedPlan, OpenPlan, Plan, RanksPlan, ReplayPlan, RoundsPlan,
};
use crate::generate::LawError;

/// What is known of a workload model before anything is done. Each model answers for itself.
pub trait Model {
    /// Most sessions, over all agents.
    fn max_sessions(&self) -> u32;

    /// Most operations in flight, over all agents, where arrivals do not wait for the store; `None`
    /// for closed loops.
    fn open_cap(&self) -> Option<u32> {
        None
    }

    /// The arrival process and the mean number of operations that an arrival brings; `None` where the
    /// plan holds no such process.
    fn arrivals(&self) -> Option<(&ArrivalLaw, f64)> {
        None
    }

    /// Whether the work ends without a limit of its phase.
    fn ends_by_itself(&self) -> bool {
        false
    }

    /// Whether each operation is drawn from the mix that the workload states, by its sequence number.
    fn has_any_mix(&self) -> bool {
        false
    }

    /// Whether names of objects are made of their indices.
    fn has_indexed_names(&self) -> bool {
        true
    }

    /// Gives `put` what identifies the operations of work number `work` of phase number `phase`
    /// ([`crate::generate::fingerprint`]).
    ///
    /// # Errors
    /// When the work cannot be generated from.
    fn fingerprint(
        &self,
        plan: &Plan,
        at: (usize, usize),
        put: &mut dyn FnMut(u64),
    ) -> Result<(), LawError>;
}

/// When operations are due: the workload model of a work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum ModelPlan {
    /// A fixed number of workers with think times.
    Closed(ClosedPlan),
    /// Arrivals at absolute instants, whatever the store does.
    Open(OpenPlan),
    /// Jobs of several stages arrive; a stage begins when the one before it has ended.
    Jobs(JobsPlan),
    /// The requests of a recorded trace.
    Replay(ReplayPlan),
    /// Workers write together, one of them lists until all is listed, they delete a part together,
    /// and one lists again until it is gone; then the next round begins.
    Rounds(RoundsPlan),
    /// Workers on buckets and objects whose names the user states.
    Named(NamedPlan),
    /// Workers that go through the same steps at the same time.
    Ranks(RanksPlan),
}

/// What answers for the model; a further model is one line here.
impl std::ops::Deref for ModelPlan {
    type Target = dyn Model;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Closed(plan) => plan,
            Self::Open(plan) => plan,
            Self::Jobs(plan) => plan,
            Self::Replay(plan) => plan,
            Self::Rounds(plan) => plan,
            Self::Named(plan) => plan,
            Self::Ranks(plan) => plan,
        }
    }
}

impl ModelPlan {
    /// The closed loop, if it is one.
    #[must_use]
    pub const fn closed(&self) -> Option<&ClosedPlan> {
        match self {
            Self::Closed(plan) => Some(plan),
            _ => None,
        }
    }

    /// The open loop, if it is one.
    #[must_use]
    pub const fn open(&self) -> Option<&OpenPlan> {
        match self {
            Self::Open(plan) => Some(plan),
            _ => None,
        }
    }

    /// The jobs, if the work is made of them.
    #[must_use]
    pub const fn jobs(&self) -> Option<&JobsPlan> {
        match self {
            Self::Jobs(plan) => Some(plan),
            _ => None,
        }
    }

    /// The replay of a trace, if it is one.
    #[must_use]
    pub const fn replay(&self) -> Option<&ReplayPlan> {
        match self {
            Self::Replay(plan) => Some(plan),
            _ => None,
        }
    }

    /// The rounds, if the work goes by them.
    #[must_use]
    pub const fn rounds(&self) -> Option<&RoundsPlan> {
        match self {
            Self::Rounds(plan) => Some(plan),
            _ => None,
        }
    }

    /// The work on names that the user states, if it is one.
    #[must_use]
    pub const fn named(&self) -> Option<&NamedPlan> {
        match self {
            Self::Named(plan) => Some(plan),
            _ => None,
        }
    }

    /// The ranks, if the work consists of them.
    #[must_use]
    pub const fn ranks(&self) -> Option<&RanksPlan> {
        match self {
            Self::Ranks(plan) => Some(plan),
            _ => None,
        }
    }
}
