//! What the consistency oracle found in a drill: which stage wrote what went wrong, and which stage showed it.

use std::collections::BTreeMap;

use bucketload_core::oracle::{Finding, FindingKind};
use serde::{Deserialize, Serialize};

use crate::result::OracleResult;
use crate::units;

/// A stage of a drill, as far as data is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Before anything was broken.
    Before,
    /// From the first break to the last mend.
    Broken,
    /// From the last mend until the drill had recovered, or to the end of the load if it did not.
    Recovering,
    /// From there to the end of the load.
    Recovered,
    /// The audit after the load.
    Audit,
}

impl Stage {
    /// The stage in words that follow a verb.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Before => "before the first break",
            Self::Broken => "during the faults",
            Self::Recovering => "before recovery",
            Self::Recovered => "after recovery",
            Self::Audit => "in the audit",
        }
    }
}

/// The oracle's findings by stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DataTruth {
    /// Whether the audit after the load took place.
    pub audited: bool,
    /// Writes and deletes of the run.
    pub mutations: u64,
    /// Those whose answer was lost: the store may have performed them or not, and they never count as lost.
    pub unknown: u64,
    /// Findings of all kinds.
    pub findings: u64,
    /// The recorded ones by kind and stages. The run directory has the first 100 of each kind.
    pub by_stage: Vec<StagedFindings>,
}

/// Findings of one kind that belong to the same stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedFindings {
    /// What is wrong.
    pub kind: FindingKind,
    /// When the write or delete that the answer contradicts was acknowledged; `None` if the answer contradicts none, or
    /// its history is forgotten.
    pub acknowledged: Option<Stage>,
    /// When an answer showed it first.
    pub shown: Stage,
    /// Their number.
    pub count: u64,
}

impl StagedFindings {
    /// Their number and stages in words.
    #[must_use]
    pub fn words(&self) -> String {
        let count = units::count(self.count);
        let shown = self.shown.words();
        match self.acknowledged {
            Some(stage) => format!("{count}, acknowledged {}, shown {shown}", stage.words()),
            None => format!("{count}, shown {shown}"),
        }
    }
}

/// The instants that divide a drill, nanoseconds since the run's epoch; `u64::MAX` if they did not come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instants {
    pub(crate) broken: u64,
    pub(crate) mended: u64,
    pub(crate) recovered: u64,
}

impl Instants {
    fn stage(self, at: u64) -> Stage {
        match at {
            at if at < self.broken => Stage::Before,
            at if at < self.mended => Stage::Broken,
            at if at < self.recovered => Stage::Recovering,
            _ => Stage::Recovered,
        }
    }
}

impl DataTruth {
    /// Sorts `all` recorded findings by the stages between `instants`.
    pub(crate) fn of(oracle: &OracleResult, all: &[Finding], instants: Instants) -> Self {
        let mut sums: BTreeMap<_, u64> = BTreeMap::new();
        for finding in all {
            let acknowledged = finding.missed.as_ref().and_then(|m| m.acknowledged_ns);
            let shown = match finding.audit {
                true => Stage::Audit,
                false => instants.stage(finding.end_ns),
            };
            let key = (
                finding.kind,
                acknowledged.map(|at| instants.stage(at)),
                shown,
            );
            *sums.entry(key).or_default() += 1;
        }
        let summary = oracle.summary.as_ref();
        Self {
            audited: summary.is_some(),
            mutations: summary.map_or(0, |s| s.mutations),
            unknown: summary.map_or(0, |s| s.unknown),
            findings: oracle.found.values().map(|count| count.findings).sum(),
            by_stage: sums
                .into_iter()
                .map(|((kind, acknowledged, shown), count)| StagedFindings {
                    kind,
                    acknowledged,
                    shown,
                    count,
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::op::OpClass;
    use bucketload_core::oracle::{Evidence, Finding, FindingKind};

    use super::{DataTruth, Instants, Stage};
    use crate::result::OracleResult;

    fn finding(kind: FindingKind, acknowledged_ns: u64, end_ns: u64, audit: bool) -> Finding {
        let missed = Evidence {
            what: "put".to_owned(),
            version: 1,
            size: 1,
            seq: 1,
            phase: 0,
            work: 0,
            start_ns: 0,
            acknowledged_ns: Some(acknowledged_ns),
            request_id: String::new(),
            endpoint: 0,
        };
        Finding {
            kind,
            class: OpClass::Get,
            key: "k".to_owned(),
            phase: 0,
            audit,
            seq: 0,
            start_ns: end_ns,
            end_ns,
            request_id: String::new(),
            endpoint: 0,
            observed: String::new(),
            expected: String::new(),
            offset: None,
            shown: None,
            missed: Some(missed),
            explains: 0,
        }
    }

    #[test]
    fn findings_are_sorted_by_when_they_were_written_and_shown() {
        let all = [
            finding(FindingKind::Lost, 150, 400, true),
            finding(FindingKind::Lost, 160, 400, true),
            finding(FindingKind::Stale, 50, 120, false),
            finding(FindingKind::Stale, 50, 220, false),
            finding(FindingKind::Stale, 50, 320, false),
        ];
        let instants = Instants {
            broken: 100,
            mended: 200,
            recovered: 300,
        };
        let oracle = OracleResult::new(None, all.to_vec());
        let data = DataTruth::of(&oracle, &all, instants);
        let rows: Vec<_> = data
            .by_stage
            .iter()
            .map(|row| (row.kind.name(), row.acknowledged, row.shown, row.count))
            .collect();
        assert_eq!(
            rows,
            [
                ("stale", Some(Stage::Before), Stage::Broken, 1),
                ("stale", Some(Stage::Before), Stage::Recovering, 1),
                ("stale", Some(Stage::Before), Stage::Recovered, 1),
                ("lost", Some(Stage::Broken), Stage::Audit, 2),
            ]
        );
        assert_eq!((data.findings, data.audited), (5, false));
    }
}
