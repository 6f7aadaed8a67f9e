//! What the oracle tells: findings with their evidence, and the summary of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::op::OpClass;

/// What is wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum FindingKind {
    /// A read returned a state older than the latest one acknowledged before it began.
    Stale,
    /// An acknowledged write was not there in the audit: the key was absent or older, and stayed so.
    Lost,
    /// The body mixes versions, or ends before or after the end of its version.
    Torn,
    /// An object was there although its delete had been acknowledged before the read began.
    Resurrected,
    /// The body holds bytes that no version of the object has.
    Corrupt,
    /// The answer is a state that nobody asked for: a version never written, or one that the store
    /// had refused to write.
    Phantom,
    /// A listing lacks a key whose write was acknowledged before the listing began.
    ListMissing,
    /// A listing shows a key whose delete was acknowledged before the listing began.
    ListGhost,
    /// A conditional write had a second winner, or none although there was nothing in its way.
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
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stale => "stale",
            Self::Lost => "lost",
            Self::Torn => "torn",
            Self::Resurrected => "resurrected",
            Self::Corrupt => "corrupt",
            Self::Phantom => "phantom",
            Self::ListMissing => "list-missing",
            Self::ListGhost => "list-ghost",
            Self::Race => "race",
        }
    }

    /// What it means, in a line.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Stale => "older than what was acknowledged before the read began",
            Self::Lost => "acknowledged, but gone in the audit",
            Self::Torn => "mixes versions or is cut short",
            Self::Resurrected => "there again after an acknowledged delete",
            Self::Corrupt => "bytes that no version holds",
            Self::Phantom => "a version that nobody wrote",
            Self::ListMissing => "not listed although its write was acknowledged before",
            Self::ListGhost => "listed although its delete was acknowledged before",
            Self::Race => "not exactly one winner among conditional writes",
        }
    }

    /// Whether the bytes of the answer are wrong in themselves: the operation then counts as failed.
    #[must_use]
    pub const fn spoils_body(self) -> bool {
        matches!(self, Self::Torn | Self::Corrupt)
    }
}

impl std::fmt::Display for FindingKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// A mutation as evidence.
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
    /// When it was acknowledged; `None` while it is under way or its outcome is unknown.
    pub acknowledged_ns: Option<u64>,
    /// The store's identifier of the request, if it gave one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_id: String,
    /// Index of the endpoint it went to.
    pub endpoint: u16,
}

/// An answer that the acknowledged history of its key does not explain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Finding {
    /// What is wrong.
    pub kind: FindingKind,
    /// The operation that showed it.
    pub class: OpClass,
    /// Key of the object.
    pub key: String,
    /// Index of the phase.
    pub phase: u16,
    /// Whether the audit showed it.
    pub audit: bool,
    /// Position of the operation in the sequence of its work.
    pub seq: u64,
    /// When the operation began, nanoseconds since the run's epoch.
    pub start_ns: u64,
    /// When it ended, nanoseconds since the run's epoch.
    pub end_ns: u64,
    /// The store's identifier of the request, if it gave one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_id: String,
    /// Index of the endpoint it went to.
    pub endpoint: u16,
    /// What came, in words.
    pub observed: String,
    /// What had to come, in words.
    pub expected: String,
    /// Object offset at which the body goes wrong, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The mutation that the answer shows, if its history is still known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Evidence>,
    /// The mutation that the answer had to show, or be newer than.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<Evidence>,
    /// Earlier answers (such as stale ones) that this finding explains and that are counted under it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub explains: u64,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the form that serde wants"
)]
const fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// How often a kind was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindCount {
    /// Distinct findings: the same wrong state of a key seen again counts once.
    pub findings: u64,
    /// Answers that showed them.
    pub answers: u64,
}

/// What the oracle did in a run.
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
    /// Answers that could not be judged: too much of the history was forgotten, or the outcome of too
    /// many mutations is unknown.
    pub unjudged: u64,
    /// Keys that the audit read.
    pub audited: u64,
    /// Keys that the audit could not read or judge.
    pub unaudited: u64,
    /// What was found.
    pub found: BTreeMap<FindingKind, KindCount>,
}

crate::serde_once!(OracleSummary, Finding);

impl OracleSummary {
    /// All distinct findings.
    #[must_use]
    pub fn findings(&self) -> u64 {
        self.found.values().map(|count| count.findings).sum()
    }
}
