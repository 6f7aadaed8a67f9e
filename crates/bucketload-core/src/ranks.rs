//! What each rank did in a phase ([`crate::plan::ranks`]): what IO500's scores are computed from.

use serde::{Deserialize, Serialize};

/// Sums of one rank. Instants are nanoseconds since the run's epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankSum {
    /// The rank.
    pub rank: u32,
    /// Steps that it went through.
    pub steps: u64,
    /// Of these, steps in which no operation failed.
    pub good: u64,
    /// Operations that succeeded.
    pub ops: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Object bytes of the successes.
    pub bytes: u64,
    /// Start of its first operation.
    pub first_ns: u64,
    /// End of its last operation.
    pub last_ns: u64,
    /// Longest operation, nanoseconds.
    pub longest_ns: u64,
    /// When it came to the stonewall; 0 where it did not.
    #[serde(default)]
    pub wall_ns: u64,
    /// Steps without failure up to there.
    #[serde(default)]
    pub wall_good: u64,
    /// Bytes up to there.
    #[serde(default)]
    pub wall_bytes: u64,
    /// Names that a search saw, and those among them that it sought.
    #[serde(default)]
    pub seen: u64,
    /// Names that a search sought.
    #[serde(default)]
    pub found: u64,
}

/// What the ranks of a phase did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseRanks {
    /// Index of the phase.
    pub phase: u16,
    /// Length of the stonewall, nanoseconds; 0 for none.
    pub stonewall_ns: u64,
    /// The ranks, in order.
    pub ranks: Vec<RankSum>,
}

impl PhaseRanks {
    /// From the first operation of all to the end of the last, nanoseconds.
    #[must_use]
    pub fn length_ns(&self) -> u64 {
        let begun = self.ranks.iter().filter(|rank| rank.ops + rank.failed > 0);
        let first = begun.clone().map(|rank| rank.first_ns).min().unwrap_or(0);
        let last = begun.map(|rank| rank.last_ns).max().unwrap_or(0);
        last.saturating_sub(first)
    }

    /// The sum of a figure over all ranks.
    #[must_use]
    pub fn sum(&self, of: impl Fn(&RankSum) -> u64) -> u64 {
        self.ranks.iter().map(of).sum()
    }
}
