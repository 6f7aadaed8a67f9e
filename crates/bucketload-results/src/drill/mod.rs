//! Drills: what users noticed while something was broken, computed from the journal and the intervals of a run directory
//! (docs/spec/drills.md).
//!
//! `journal` reads what broke and when, `course` makes spans of it, `baseline` judges whether anything may be broken, `slots` condenses the intervals,
//! `band` says which of them are out of the baseline's band, `data` sorts what the oracle found, `figures` has the result.

mod band;
mod baseline;
mod course;
mod data;
mod figures;
mod journal;
mod slots;
#[cfg(test)]
mod tests;

pub use baseline::{highest_quantile, judge_baseline};
pub use data::{DataTruth, Stage, StagedFindings};
pub use figures::{DrillResult, EndpointShift, FaultSpan, LineCost, Share, Times, Waves, result};
pub use journal::{JOURNAL, read_journal};
