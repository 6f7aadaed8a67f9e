//! Findings of the consistency oracle.

use std::collections::BTreeMap;

use bucketload_core::oracle::{Finding, FindingKind, KindCount, OracleSummary};
use serde::{Deserialize, Serialize};

/// Limit on the findings in a result; the run directory has all that were recorded.
const SHOWN: usize = 50;

/// The oracle's part of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OracleResult {
    /// The oracle's work and the number of findings; absent if the run did not finish.
    pub summary: Option<OracleSummary>,
    /// Counts by kind. For an unfinished run, those of the findings recorded so far.
    pub found: BTreeMap<FindingKind, KindCount>,
    /// The first findings, at most 50, including every kind.
    pub findings: Vec<Finding>,
}

impl OracleResult {
    /// Combines the summary and findings of a run directory.
    #[must_use]
    pub fn new(summary: Option<OracleSummary>, all: Vec<Finding>) -> Self {
        let found = match &summary {
            Some(summary) => summary.found.clone(),
            None => {
                let mut found: BTreeMap<FindingKind, KindCount> = BTreeMap::new();
                for finding in &all {
                    let count = found.entry(finding.kind).or_default();
                    count.findings += 1;
                    count.answers += 1;
                }
                found
            }
        };
        let share = SHOWN / found.len().max(1);
        let mut taken: BTreeMap<FindingKind, usize> = BTreeMap::new();
        let mut findings = all;
        findings.retain(|finding| {
            let taken = taken.entry(finding.kind).or_default();
            *taken += 1;
            *taken <= share
        });
        Self {
            summary,
            found,
            findings,
        }
    }

    /// True if there are no findings.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.found.values().all(|count| count.findings == 0)
    }
}
