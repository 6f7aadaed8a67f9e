//! Generators: random streams, arrival processes, sizes, key popularity, operations.
//!
//! Each is a pure function of the seed and a counter. Any part of a workload can therefore be recomputed
//! anywhere, and no part depends on the number of workers:
//!
//! ```text
//! plan ─┬─ arrivals::Schedule ── Arrivals ────────────> (seq, due instant)
//!       │                                                  │ seq
//!       ├─ ops::OpGen ── mix ── keys (popularity, latest) ─┴─ sizes ──> Op
//!       │                  └ objects::Population: size and popularity rank of every object
//!       ├─ named::NamedGen ── (worker, turn) ──────────────────────────────> Op, exact names
//!       ├─ ranks::RankGen ── (rank, step, entry) ──────────────────────────> Op, paths
//!       ├─ checkpoint::CheckpointGen ── (rank, turn) ──────────────────────> Op, names of a checkpoint
//!       ├─ train::TrainGen ── (epoch, accelerator, reader) ────────────────> objects and ranges
//!       ├─ users::UserGen ── (user, request) ──────────────────────────────> prompts and pauses of users
//!       ├─ jobs::JobGen ── (job, stage, position) ─────────────────────> Op
//!       ├─ names::KeyNames ───────────────────────────────────────────> key text
//!       └─ think::ThinkTime (worker, iteration) ──────────────────────> pause
//! ```
//!
//! All of them use [`rng`] (Philox streams) and [`elementary`] (exponential and logarithm with identical bits
//! everywhere), so agents on different machines agree on every operation.
//!
//! Memory use does not grow with the number of objects or operations: a population of 10^9 objects takes as
//! much as one of 10^3.

mod alias;
pub mod arrivals;
pub mod checkpoint;
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
pub mod train;
pub mod users;

/// An invalid parameter of a law or mix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct LawError {
    /// The parameter, named as in the plan, such as `phases[1].works[0].mix[2].keys.theta`.
    pub field: String,
    /// What is wrong with it and which values are valid.
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

    /// The same error, with `outer` prepended to the field's path.
    pub(crate) fn within(mut self, outer: &str) -> Self {
        self.field = format!("{outer}.{}", self.field);
        self
    }
}

/// Rejects `value` unless it is finite and greater than 0.
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

/// Rejects `value` unless it is finite and at least 0.
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
