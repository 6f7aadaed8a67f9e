//! The closed loop: a fixed number of workers with pauses between their operations.

use serde::{Deserialize, Serialize};

use crate::generate::LawError;
use crate::generate::fingerprint::hash_mix;
use crate::plan::{Model, Plan};

/// A fixed number of workers. Each starts an operation once its previous one has completed and its think time
/// has passed. Worker `w` of `W` performs the sequence numbers congruent to `w` modulo `W`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClosedPlan {
    /// Number of workers, over all agents.
    pub workers: u32,
    /// Pause between operations.
    pub think: GapLaw,
}

impl ClosedPlan {
    /// Workers without think time.
    #[must_use]
    pub const fn without_pauses(workers: u32) -> Self {
        Self {
            workers,
            think: GapLaw::None,
        }
    }
}

impl Model for ClosedPlan {
    fn max_sessions(&self) -> u32 {
        self.workers
    }

    fn has_any_mix(&self) -> bool {
        true
    }

    fn fingerprint(
        &self,
        plan: &Plan,
        (phase, work): (usize, usize),
        put: &mut dyn FnMut(u64),
    ) -> Result<(), LawError> {
        hash_mix(plan, phase, work, put)
    }
}

/// Pauses between operations of a closed loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum GapLaw {
    /// No pause.
    None,
    /// Always the same pause.
    Constant {
        /// Nanoseconds.
        ns: u64,
    },
    /// Exponentially distributed pauses.
    Exponential {
        /// Mean, nanoseconds.
        mean_ns: u64,
    },
    /// Uniformly distributed pauses.
    Uniform {
        /// Shortest, nanoseconds.
        min_ns: u64,
        /// Longest, nanoseconds.
        max_ns: u64,
    },
}
