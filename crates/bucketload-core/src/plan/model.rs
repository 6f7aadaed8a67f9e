//! The workload models: their plans and the questions that every model answers.

use serde::{Deserialize, Serialize};

use super::{
    ArrivalLaw, ClosedPlan, JobsPlan, NamedPlan, OpenPlan, Plan, RanksPlan, ReplayPlan, RoundsPlan,
};
use crate::generate::LawError;

/// Properties of a workload model known before the run starts.
pub trait Model {
    /// Maximum number of sessions, over all agents.
    fn max_sessions(&self) -> u32;

    /// Maximum number of operations in flight, over all agents, if arrivals do not wait for the store; `None`
    /// for closed loops.
    fn open_cap(&self) -> Option<u32> {
        None
    }

    /// The arrival process and the mean number of operations per arrival; `None` if the plan has no such
    /// process.
    fn arrivals(&self) -> Option<(&ArrivalLaw, f64)> {
        None
    }

    /// Whether the work ends even without a limit on its phase.
    fn ends_by_itself(&self) -> bool {
        false
    }

    /// Whether each operation is drawn by its sequence number from a mix that the workload may choose freely.
    fn has_any_mix(&self) -> bool {
        false
    }

    /// Whether object names are derived from object indices.
    fn has_indexed_names(&self) -> bool {
        true
    }

    /// Passes to `put` the values that identify the operations of work number `work` of phase number `phase`
    /// ([`crate::generate::fingerprint`]).
    ///
    /// # Errors
    /// If the work's operations cannot be generated.
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
    /// Arrivals at absolute instants, independent of the store.
    Open(OpenPlan),
    /// Jobs of several stages arrive; a stage begins when the previous one has ended.
    Jobs(JobsPlan),
    /// The requests of a recorded trace.
    Replay(ReplayPlan),
    /// Workers write together, one of them lists until everything appears, all delete a share together, and
    /// one lists until the deleted objects are gone. Then the next round begins.
    Rounds(RoundsPlan),
    /// Workers on buckets and objects that the user names.
    Named(NamedPlan),
    /// Workers that go through the same steps at the same time.
    Ranks(RanksPlan),
}

/// Access to the selected model; a new model adds one line here.
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

/// Accessors of the variants.
macro_rules! variants {
    ($($doc:literal $name:ident: $variant:ident($plan:ty),)+) => {
        impl ModelPlan {
            $(
                #[doc = $doc]
                #[must_use]
                pub const fn $name(&self) -> Option<&$plan> {
                    match self {
                        Self::$variant(plan) => Some(plan),
                        _ => None,
                    }
                }
            )+
        }
    };
}

variants! {
    "The closed loop, if it is one."
    closed: Closed(ClosedPlan),
    "The open loop, if it is one."
    open: Open(OpenPlan),
    "The jobs, if the work consists of them."
    jobs: Jobs(JobsPlan),
    "The replay of a trace, if it is one."
    replay: Replay(ReplayPlan),
    "The rounds, if the work consists of them."
    rounds: Rounds(RoundsPlan),
    "The work on names chosen by the user, if it is one."
    named: Named(NamedPlan),
    "The ranks, if the work consists of them."
    ranks: Ranks(RanksPlan),
}
