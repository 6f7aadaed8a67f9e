//! Generators: random streams, arrival processes, sizes, key popularity, operations.
//!
//! Each is a pure function of the seed and a counter, so any part of a workload can be recomputed
//! anywhere and no part depends on how many workers there are:
//!
//! ```text
//! plan ─┬─ arrivals::Schedule ── Arrivals ────────────> (seq, due instant)
//!       │                                                  │ seq
//!       ├─ ops::OpGen ── mix ── keys (popularity, latest) ─┴─ sizes ──> Op
//!       │                  └ objects::Population: size and popularity rank of every object
//!       ├─ named::NamedGen ── (worker, turn) ──────────────────────────────> Op, exact names
//!       ├─ ranks::RankGen ── (rank, step, entry) ──────────────────────────> Op, paths
//!       ├─ jobs::JobGen ── (job, stage, position) ─────────────────────> Op
//!       ├─ names::KeyNames ───────────────────────────────────────────> key text
//!       └─ think::ThinkTime (worker, iteration) ──────────────────────> pause
//! ```
//!
//! All of it rests on [`rng`] (Philox streams) and [`elementary`] (exponential and logarithm with the
//! same bits everywhere), so that agents on different machines agree on every operation.
//!
//! Nothing here grows with the number of objects or operations: a population of 10^9 objects costs
//! the same memory as one of 10^3.

mod alias;
pub mod arrivals;
pub mod elementary;
pub mod fingerprint;
pub mod jobs;
pub mod math;
pub mod named;
pub mod names;
pub mod objects;
pub mod ops;
pub mod permute;
pub mod popularity;
pub mod power;
pub mod ranks;
pub mod rng;
pub mod sizes;
pub mod think;

/// A parameter of a law or of a mix that cannot be generated from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct LawError {
    /// The parameter, named as in the plan, such as `phases[1].works[0].mix[2].keys.theta`.
    pub field: String,
    /// What is wrong with it and what would be right.
    pub reason: String,
}

impl LawError {
    /// An error about `field`.
    pub(crate) fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            reason: reason.into(),
        }
    }

    /// The same error seen from the enclosing structure `outer`.
    pub(crate) fn within(mut self, outer: &str) -> Self {
        self.field = format!("{outer}.{}", self.field);
        self
    }
}

/// Refuses `value` unless it is finite and greater than 0.
pub(crate) fn positive(field: &str, value: f64) -> Result<(), LawError> {
    if value.is_finite() && value > 0.0 {
        Ok(())
    } else {
        Err(LawError::new(
            field,
            format!("is {value}, must be greater than 0"),
        ))
    }
}

/// Refuses `value` unless it is finite and at least 0.
pub(crate) fn not_negative(field: &str, value: f64) -> Result<(), LawError> {
    if value.is_finite() && value >= 0.0 {
        Ok(())
    } else {
        Err(LawError::new(
            field,
            format!("is {value}, must be 0 or more"),
        ))
    }
}
