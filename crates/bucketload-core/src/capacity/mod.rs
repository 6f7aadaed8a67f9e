//! How much load a store takes before it breaks its objectives (docs/spec/statistics.md section 6).
//!
//! [`slo`] is the language of objectives, [`eval`] judges one trial, [`search`] decides which rate is
//! tried next, and [`threshold`] fits the capacity to all trials at once. Nothing here runs a trial
//! or knows a clock: the caller runs what [`search::Search::ask`] asks for and records what it found,
//! so the whole search is tested in virtual time against queues whose capacity is known.
//!
//! ```text
//! Search ── Trial { rate, purpose } ──> caller runs it ── Tally, Verdict ──> eval::judge
//!    ^                                                                          │
//!    └──────────────────────── Finding { pass | fail | client, p50 } ───────────┘
//! ```

pub mod eval;
pub mod search;
pub mod slo;
pub mod threshold;

#[cfg(test)]
mod simulated;

pub use eval::{Checked, Evidence, Judgement, Meaning, judge};
pub use search::{Finding, Limit, Outcome, Purpose, Recovery, Search, Settings, Side, Trial, Word};
pub use slo::{Bound, Objective, Slo, Statistic, Timing};
pub use threshold::Threshold;

/// Shortest trial that the objectives deserve, seconds: 60 s, and long enough for 100 operations
/// beyond the highest quantile at `rate` operations per second (docs/spec/statistics.md section 6).
#[must_use]
pub fn trial_seconds(slo: &Slo, rate: f64) -> f64 {
    let tail = slo
        .highest_quantile()
        .map_or(0.0, |q| 100.0 / (1.0 - q) / rate);
    tail.max(60.0)
}
