//! The oracle's output: findings with their evidence, and the summary of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::op::OpClass;
use crate::plan::is_default;

/// What is wrong with an answer.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::Display,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
#[repr(u8)]
pub enum FindingKind {
    /// A read returned a state older than the latest one acknowledged before it began.
    Stale,
    /// The audit did not find an acknowledged write: the key was absent or older, and remained so.
    Lost,
    /// The body mixes versions, or ends before or after the end of its version.
    Torn,
    /// An object existed although its delete had been acknowledged before the read began.
    Resurrected,
    /// The body holds bytes that no version of the object has.
    Corrupt,
    /// The answer is a state that nobody requested: a version never written, or one that the store had
    /// refused to write.
    Phantom,
    /// A listing lacks a key whose write was acknowledged before the listing began.
    ListMissing,
    /// A listing shows a key whose delete was acknowledged before the listing began.
    ListGhost,
    /// A conditional write had a second winner, or no winner although nothing stood in its way.
    Race,
}

impl FindingKind {
    /// Every kind, in the order of reports.
    pub const ALL: [Self; 9] = [
        Self::Lost,
        Self::Stale,
        Self::Torn,
        Self::Resurrected,
        Self::Corrupt,
        Self::Phantom,
        Self::ListMissing,
        Self::ListGhost,
        Self::Race,
    ];

    /// The name used in files and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The meaning in one line.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Stale => "older than a state acknowledged before the read began",
            Self::Lost => "acknowledged, but gone in the audit",
            Self::Torn => "mixes versions or is cut short",
            Self::Resurrected => "reappeared after an acknowledged delete",
            Self::Corrupt => "bytes that no version holds",
            Self::Phantom => "a version that nobody wrote",
            Self::ListMissing => "not listed although its write had been acknowledged",
            Self::ListGhost => "listed although its delete had been acknowledged",
            Self::Race => "not exactly one winner among conditional writes",
        }
    }

    /// Whether the bytes of the answer are wrong in themselves. The operation then counts as failed.
    #[must_use]
    pub const fn spoils_body(self) -> bool {
        matches!(self, Self::Torn | Self::Corrupt)
    }
}

/// A mutation cited as evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// `put` or `delete`.
    pub what: String,
    /// Number of the mutation among those of its key, from 1; the content carries it.
    pub version: u32,
    /// Size written, bytes; 0 for deletes.
    pub size: u64,
    /// Position in the sequence of its work.
    pub seq: u64,
    /// Index of its phase.
    pub phase: u16,
    /// Index of its work.
    pub work: u16,
    /// When it began, nanoseconds since the run's epoch.
    pub start_ns: u64,
    /// When it was acknowledged; `None` while it is in flight or its outcome is unknown.
    pub acknowledged_ns: Option<u64>,
    /// The store's request identifier, if it sent one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_id: String,
    /// Index of the endpoint it went to.
    pub endpoint: u16,
}

/// An answer that the key's acknowledged history does not explain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Finding {
    /// What is wrong.
    pub kind: FindingKind,
    /// The operation that revealed it.
    pub class: OpClass,
    /// Key of the object.
    pub key: String,
    /// Index of the phase.
    pub phase: u16,
    /// Whether the audit revealed it.
    pub audit: bool,
    /// Position of the operation in the sequence of its work.
    pub seq: u64,
    /// When the operation began, nanoseconds since the run's epoch.
    pub start_ns: u64,
    /// When it ended, nanoseconds since the run's epoch.
    pub end_ns: u64,
    /// The store's request identifier, if it sent one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_id: String,
    /// Index of the endpoint it went to.
    pub endpoint: u16,
    /// The answer, in words.
    pub observed: String,
    /// The expected answer, in words.
    pub expected: String,
    /// Object offset at which the body goes wrong, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The mutation that the answer reflects, if its history is still known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Evidence>,
    /// The mutation that the answer should have reflected, unless a newer one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<Evidence>,
    /// Earlier answers (such as stale ones) that this finding explains and that are counted with it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub explains: u64,
}

/// How often one kind was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindCount {
    /// Distinct findings: the same wrong state of a key seen again counts once.
    pub findings: u64,
    /// Answers that revealed them.
    pub answers: u64,
}

/// The oracle's work in one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct OracleSummary {
    /// Keys whose history was kept at the end.
    pub keys: u64,
    /// Share of all keys that were tracked: 1 unless they did not fit into memory.
    pub share: f64,
    /// Mutations of tracked keys.
    pub mutations: u64,
    /// Mutations whose outcome is unknown.
    pub unknown: u64,
    /// Reads of tracked keys that were judged.
    pub reads: u64,
    /// Listings that were judged.
    pub lists: u64,
    /// Answers that could not be judged, because too much of the history was forgotten or too many mutations
    /// have an unknown outcome.
    pub unjudged: u64,
    /// Keys that the audit read.
    pub audited: u64,
    /// Keys that the audit could not read or judge.
    pub unaudited: u64,
    /// Why, with the number of keys: a kind of failure, or a reason in words.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unaudited_why: BTreeMap<String, u64>,
    /// The findings by kind.
    pub found: BTreeMap<FindingKind, KindCount>,
}

crate::serde_once!(OracleSummary, Finding);

impl OracleSummary {
    /// The reasons why keys could not be audited, as text: `40 timeout, 9 connect`; empty without any.
    #[must_use]
    pub fn unaudited_reasons(&self) -> String {
        let mut reasons: Vec<(&String, &u64)> = self.unaudited_why.iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let reasons = reasons
            .into_iter()
            .map(|(why, count)| format!("{count} {why}"));
        reasons.collect::<Vec<_>>().join(", ")
    }

    /// All distinct findings.
    #[must_use]
    pub fn findings(&self) -> u64 {
        self.found.values().map(|count| count.findings).sum()
    }
}
