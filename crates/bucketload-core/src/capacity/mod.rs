//! How much load a store sustains within its objectives (docs/spec/statistics.md section 6).
//!
//! [`slo`] is the language of objectives, [`eval`] judges one trial, [`search`] chooses the next rate to try,
//! and [`threshold`] fits the capacity to all trials at once. Nothing here runs a trial or reads a clock: the
//! caller runs the trial that [`search::Search::ask`] requests and records the result, so the whole search is
//! tested in virtual time against queues of known capacity.
//!
//! ```text
//! Search ── Trial { rate, purpose } ──> caller runs it ── Tally, Verdict ──> eval::judge
//!    ^                                                                          │
//!    └──────────────────────── TrialFinding { pass | fail | client, p50 } ───────────┘
//! ```

pub mod eval;
pub mod search;
pub mod slo;
pub mod threshold;

#[cfg(test)]
mod tests;

pub use eval::{CheckedObjective, Judgement, TrialEvidence, TrialMeaning, judge};
pub use search::{
    BracketEnd, Limit, Outcome, Purpose, Recovery, Search, Settings, Trial, TrialFinding,
    TrialResult,
};
pub use slo::{Bound, Objective, Slo, Statistic, Timing};
pub use threshold::Threshold;

/// Shortest trial that the objectives need, seconds: 60 s, and long enough for 100 operations beyond the
/// highest quantile at `rate` operations per second (docs/spec/statistics.md section 6).
#[must_use]
pub fn trial_seconds(slo: &Slo, rate: f64) -> f64 {
    let tail = slo
        .highest_quantile()
        .map_or(0.0, |q| 100.0 / (1.0 - q) / rate);
    tail.max(60.0)
}
