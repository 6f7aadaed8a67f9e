//! How soon listings reflected writes and deletions.

use bucketload_core::sink::Round;
use serde::{Deserialize, Serialize};

/// The rounds of a list-consistency run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoundsResult {
    /// Listings after writing.
    pub after_write: StepResult,
    /// Listings after deleting; deleted keys that are still shown count as inconsistent too.
    pub after_delete: StepResult,
}

/// One step, over all rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
    /// Rounds.
    pub rounds: u64,
    /// Rounds whose first listing was correct.
    pub consistent: u64,
    /// Rounds without a correct listing before the limit.
    pub never: u64,
    /// Listings until one was correct, over all rounds.
    pub lists: u64,
    /// Objects missing from first listings.
    pub missing: u64,
    /// Deleted objects in first listings.
    pub ghosts: u64,
    /// Inconsistency windows of the rounds whose first listing was wrong, ascending, nanoseconds: from the last
    /// acknowledgement to the end of the first correct listing (or of the last listing if none was correct).
    pub windows_ns: Vec<u64>,
}

impl RoundsResult {
    /// Sums up the rounds; `None` without rounds.
    #[must_use]
    pub fn new(rounds: &[Round]) -> Option<Self> {
        if rounds.is_empty() {
            return None;
        }
        let mut result = Self::default();
        for round in rounds {
            let step = if round.deleted {
                &mut result.after_delete
            } else {
                &mut result.after_write
            };
            step.rounds += 1;
            step.lists += u64::from(round.lists);
            step.missing += u64::from(round.missing);
            step.ghosts += u64::from(round.ghosts);
            step.never += u64::from(!round.right);
            if round.right && round.missing == 0 && round.ghosts == 0 {
                step.consistent += 1;
            } else {
                step.windows_ns.push(round.window_ns);
            }
        }
        result.after_write.windows_ns.sort_unstable();
        result.after_delete.windows_ns.sort_unstable();
        Some(result)
    }
}

impl StepResult {
    /// Share of the rounds whose first listing was correct.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.consistent as f64 / self.rounds.max(1) as f64
    }

    /// The smallest window that at least `q` of the inconsistent rounds do not exceed, nanoseconds.
    #[must_use]
    pub fn window_ns(&self, q: f64) -> Option<u64> {
        let rank = (q * self.windows_ns.len() as f64).ceil() as usize;
        self.windows_ns.get(rank.max(1) - 1).copied()
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::sink::Round;

    use super::RoundsResult;

    #[test]
    fn rounds_are_summed_up() {
        let round = |iteration, deleted, missing, ghosts, window_ns, right| Round {
            phase: 1,
            iteration,
            deleted,
            objects: 10,
            lists: 2,
            missing,
            ghosts,
            window_ns,
            right,
            at_ns: 0,
        };
        assert_eq!(RoundsResult::new(&[]), None);
        let result = RoundsResult::new(&[
            round(0, false, 0, 0, 5, true),
            round(0, true, 0, 3, 40, true),
            round(1, false, 2, 0, 30, true),
            round(1, true, 1, 0, 20, true),
            round(2, false, 1, 0, 10, false),
        ])
        .unwrap();
        let write = &result.after_write;
        assert_eq!((write.rounds, write.consistent, write.never), (3, 1, 1));
        assert_eq!(write.windows_ns, [10, 30]);
        assert_eq!(
            (write.window_ns(0.5), write.window_ns(1.0)),
            (Some(10), Some(30))
        );
        let delete = &result.after_delete;
        assert_eq!((delete.share(), delete.ghosts, delete.missing), (0.0, 3, 1));
        assert_eq!(delete.windows_ns, [20, 40]);
    }
}
