//! What the consistency oracle found.

use std::collections::BTreeMap;

use bucketload_core::oracle::{Finding, FindingKind, KindCount, OracleSummary};
use serde::{Deserialize, Serialize};

/// Most findings in a result; all that were written down stand in the run directory.
const SHOWN: usize = 50;

/// The oracle's part of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OracleResult {
    /// What was done and how much was found; absent when the run did not come to its end.
    pub summary: Option<OracleSummary>,
    /// What was found, by kind; of a run without an end what was written down until then.
    pub found: BTreeMap<FindingKind, KindCount>,
    /// The first findings, at most 50, with all kinds among them.
    pub findings: Vec<Finding>,
}

impl OracleResult {
    /// Puts together what a run directory holds.
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

    /// Whether the store did anything wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.found.values().all(|count| count.findings == 0)
    }
}
