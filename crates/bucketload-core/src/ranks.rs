//! Sums of each rank in a phase ([`crate::plan::ranks`]), from which IO500's scores are computed.

use serde::{Deserialize, Serialize};

/// Sums of one rank. Instants are nanoseconds since the run's epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct RankSum {
    /// The rank.
    pub rank: u32,
    /// Number of steps that it completed.
    pub steps: u64,
    /// Number of these steps in which no operation failed.
    pub good: u64,
    /// Number of operations that succeeded.
    pub ops: u64,
    /// Number of operations that failed.
    pub failed: u64,
    /// Object bytes of the successes.
    pub bytes: u64,
    /// Start of its first operation.
    pub first_ns: u64,
    /// End of its last operation.
    pub last_ns: u64,
    /// Duration of its longest operation, nanoseconds.
    pub longest_ns: u64,
    /// When it reached the stonewall; 0 if it did not.
    #[serde(default)]
    pub wall_ns: u64,
    /// Steps without failure up to the stonewall.
    #[serde(default)]
    pub wall_good: u64,
    /// Bytes up to the stonewall.
    #[serde(default)]
    pub wall_bytes: u64,
    /// Number of names that its search saw.
    #[serde(default)]
    pub seen: u64,
    /// Number of names among them that matched.
    #[serde(default)]
    pub found: u64,
}

crate::serde_once!(RankSum);

impl RankSum {
    /// One sum per rank, in order, from the sums of its workers.
    #[must_use]
    pub fn folded(mut parts: Vec<Self>) -> Vec<Self> {
        parts.sort_by_key(|part| part.rank);
        parts.dedup_by(|part, sum| {
            let same = part.rank == sum.rank;
            if same {
                sum.absorb(part);
            }
            same
        });
        parts
    }

    /// Adds what another worker of the same rank did.
    fn absorb(&mut self, part: &Self) {
        let done = |sum: &Self| sum.ops + sum.failed > 0;
        self.first_ns = match (done(self), done(part)) {
            (true, true) => self.first_ns.min(part.first_ns),
            (false, _) => part.first_ns,
            (true, false) => self.first_ns,
        };
        self.last_ns = self.last_ns.max(part.last_ns);
        self.longest_ns = self.longest_ns.max(part.longest_ns);
        self.wall_ns = self.wall_ns.max(part.wall_ns);
        for (sum, part) in [
            (&mut self.steps, part.steps),
            (&mut self.good, part.good),
            (&mut self.ops, part.ops),
            (&mut self.failed, part.failed),
            (&mut self.bytes, part.bytes),
            (&mut self.wall_good, part.wall_good),
            (&mut self.wall_bytes, part.wall_bytes),
            (&mut self.seen, part.seen),
            (&mut self.found, part.found),
        ] {
            *sum += part;
        }
    }
}

/// The sums of all ranks of a phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseRanks {
    /// Index of the phase.
    pub phase: u16,
    /// Time from the start of the phase to the stonewall, nanoseconds; 0 without a stonewall.
    pub stonewall_ns: u64,
    /// The ranks, in order.
    pub ranks: Vec<RankSum>,
}

impl PhaseRanks {
    /// Adds other ranks of the same phase. The ranks stay in order.
    pub fn merge(&mut self, other: Self) {
        self.phase = other.phase;
        self.stonewall_ns = self.stonewall_ns.max(other.stonewall_ns);
        self.ranks.extend(other.ranks);
        self.ranks.sort_by_key(|rank| rank.rank);
    }

    /// Moves every instant by `shift`. An instant of 0, which means none, stays 0.
    pub fn shift(&mut self, shift: impl Fn(u64) -> u64) {
        for rank in &mut self.ranks {
            for at in [&mut rank.first_ns, &mut rank.last_ns, &mut rank.wall_ns] {
                if *at > 0 {
                    *at = shift(*at);
                }
            }
        }
    }

    /// Time from the start of the first operation of all ranks to the end of the last, nanoseconds.
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

#[cfg(test)]
mod tests {
    use super::{PhaseRanks, RankSum};

    #[test]
    fn the_workers_of_a_rank_are_one_rank() {
        let part = |rank, first_ns, last_ns, ops| RankSum {
            rank,
            first_ns,
            last_ns,
            ops,
            bytes: 10 * ops,
            ..RankSum::default()
        };
        let idle = part(1, 0, 0, 0);
        let folded = RankSum::folded(vec![
            part(1, 30, 90, 2),
            part(0, 5, 6, 1),
            idle,
            part(1, 20, 70, 3),
        ]);
        assert_eq!(folded, [part(0, 5, 6, 1), part(1, 20, 90, 5)]);
        assert_eq!(
            RankSum::folded(vec![idle, part(1, 30, 90, 2)]),
            [part(1, 30, 90, 2)]
        );
    }

    #[test]
    fn parts_of_several_processes_are_one_phase() {
        let part = |rank, first_ns| PhaseRanks {
            phase: 4,
            stonewall_ns: 5,
            ranks: vec![RankSum {
                rank,
                first_ns,
                last_ns: first_ns + 10,
                ops: 1,
                ..RankSum::default()
            }],
        };
        let mut whole = PhaseRanks::default();
        let mut later = part(2, 200);
        later.shift(|at| at - 100);
        whole.merge(later);
        whole.merge(part(1, 95));
        assert_eq!((whole.phase, whole.stonewall_ns), (4, 5));
        let ranks: Vec<u32> = whole.ranks.iter().map(|rank| rank.rank).collect();
        assert_eq!(ranks, [1, 2]);
        assert_eq!(whole.length_ns(), 15);
        assert_eq!(whole.ranks[0].wall_ns, 0, "none");
    }
}
