//! The scores of a run as part of its result, for the report page and machine-readable output.

use serde::{Deserialize, Serialize};

use super::measure::Report;
use super::score::{PhaseScore, Scores};

/// The scores of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoreTable {
    /// Mapping of files to objects.
    pub mapping: String,
    /// Number of ranks.
    pub ranks: u32,
    /// The phases, in order of execution; phases that did not run have a score of 0.
    pub phases: Vec<PhaseScore>,
    /// The official score.
    pub scores: Scores,
    /// The score without the search.
    pub without_find: Scores,
    /// The score including the phases of the extended mode, if these ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extended: Option<Scores>,
}

impl From<&Report> for ScoreTable {
    fn from(report: &Report) -> Self {
        Self {
            mapping: report.mapping.clone(),
            ranks: report.ranks,
            phases: report.phases.clone(),
            scores: Scores::of(&report.phases),
            without_find: Scores::without_find(&report.phases),
            extended: report.extended.then(|| Scores::extended(&report.phases)),
        }
    }
}
