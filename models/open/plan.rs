//! The open loop: arrivals at absolute instants, independent of the store.

use serde::{Deserialize, Serialize};

use crate::generate::LawError;
use crate::generate::arrivals::Schedule;
use crate::generate::fingerprint::{HASHED_OPS, hash_mix};
use crate::plan::{Model, Plan, is_default};

/// Arrivals at absolute instants, independent of the store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenPlan {
    /// The arrival process.
    pub arrival: ArrivalLaw,
    /// Maximum number of operations in flight, over all agents; reaching it marks the run semi-open.
    pub max_in_flight: u32,
}

impl Model for OpenPlan {
    fn max_sessions(&self) -> u32 {
        self.max_in_flight
    }

    fn has_any_mix(&self) -> bool {
        true
    }

    fn open_cap(&self) -> Option<u32> {
        Some(self.max_in_flight)
    }

    fn arrivals(&self) -> Option<(&ArrivalLaw, f64)> {
        Some((&self.arrival, 1.0))
    }

    fn fingerprint(
        &self,
        plan: &Plan,
        (phase, work): (usize, usize),
        put: &mut dyn FnMut(u64),
    ) -> Result<(), LawError> {
        let schedule = Schedule::new(plan.seed, phase as u16, work as u16, &self.arrival)?;
        for arrival in schedule.arrivals().take(HASHED_OPS as usize) {
            put(arrival.seq);
            put(arrival.due_ns);
        }
        hash_mix(plan, phase, work, put)
    }
}

/// Arrival processes (docs/spec/scenarios.md section 1.3). Rates are operations per second over all agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum ArrivalLaw {
    /// Fixed gaps.
    Constant {
        /// Arrivals per second.
        rate: f64,
    },
    /// Exponential gaps.
    Poisson {
        /// Arrivals per second.
        rate: f64,
    },
    /// Independent log-normal gaps.
    LognormalGaps {
        /// Arrivals per second.
        rate: f64,
        /// Coefficient of variation of the gaps.
        cv: f64,
    },
    /// Cox process: each slot has a log-normal rate and that many arrivals at sorted uniform instants.
    LognormalRate {
        /// Mean arrivals per second.
        rate: f64,
        /// Coefficient of variation of the rate.
        cv: f64,
        /// Slot length, nanoseconds.
        slot_ns: u64,
    },
    /// In every period, each client offers one batch of operations, whose size is uniform.
    PeriodicBatch {
        /// Number of clients; each has its own offset within the period.
        clients: u32,
        /// Period, nanoseconds.
        period_ns: u64,
        /// Minimum operations per batch.
        min: u32,
        /// Maximum operations per batch.
        max: u32,
        /// The batch is spread uniformly over this time, nanoseconds; 0 = all at once.
        spread_ns: u64,
        /// Gap between the operations of a batch, nanoseconds; 0 = not paced.
        #[serde(default, skip_serializing_if = "is_default")]
        gap_ns: u64,
    },
    /// Linearly changing rate with Poisson arrivals of that intensity.
    Ramp {
        /// Rate at the start, arrivals per second.
        from: f64,
        /// Rate at the end, arrivals per second.
        to: f64,
        /// Duration of the change, nanoseconds; constant at `to` afterwards.
        over_ns: u64,
    },
    /// Rate that changes in steps of equal length, with Poisson arrivals within a step.
    Steps {
        /// Rates, arrivals per second; the last one persists.
        rates: Vec<f64>,
        /// Length of a step, nanoseconds.
        step_ns: u64,
    },
}
