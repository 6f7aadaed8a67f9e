//! Ranks: workers that go through the same steps at the same time, as the processes of an MPI job do
//! (docs/spec/io500-mdworkbench.md, parts A and B).
//!
//! ```text
//!  opening ─ step 0 ─ step 1 ─ … ┤ stonewall: how far has each come? all go on to the highest count ├ closing
//! ```
//!
//! What a rank does in a step is a function of its number and the step's. A rank may work on what
//! another one has written (`shift`), and a phase may take its number of steps from an earlier one.

use serde::{Deserialize, Serialize};

use super::{Model, Plan, is_false, is_zero};
use crate::generate::LawError;
use crate::generate::fingerprint::{HASHED_JOBS, hash_op};
use crate::generate::ranks::{RankGen, Spot};

/// Bits of an object's number that count what one rank has; the higher ones are the rank.
pub const INDEX_BITS: u32 = 40;

/// The number of object `index` of rank `rank`.
#[must_use]
pub const fn key_of(rank: u32, index: u64) -> u64 {
    (rank as u64) << INDEX_BITS | index
}

/// Rank and index of an object's number.
#[must_use]
pub const fn split_key(key: u64) -> (u32, u64) {
    ((key >> INDEX_BITS) as u32, key & ((1 << INDEX_BITS) - 1))
}

/// Ranks and their steps. Each step performs the entries of the work's mix in order, but for those
/// that open and close.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RanksPlan {
    /// Number of ranks, over all processes.
    pub ranks: u32,
    /// What a step does.
    pub task: RankTask,
    /// How paths become names of objects.
    pub mapping: RankMapping,
    /// First entries of the mix that are performed once, before the first step.
    #[serde(default, skip_serializing_if = "is_none")]
    pub opening: u16,
    /// Whether rank 0 alone opens. Where that makes a bucket, the others wait for it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub first_opens: bool,
    /// Last entries of the mix that are performed once, after the last step.
    #[serde(default, skip_serializing_if = "is_none")]
    pub closing: u16,
    /// Rank `r` works on what rank `r + shift` (modulo their number) has written.
    #[serde(default, skip_serializing_if = "is_no_shift")]
    pub shift: u32,
    /// Most steps of a rank.
    pub steps: u64,
    /// Index of the earlier phase whose number of steps is taken, if that is smaller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<u16>,
    /// The part of that phase's steps that is taken; of MD-Workbench, as the number of objects per set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// Indices of earlier phases whose steps come before: numbers of steps begin behind them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<u16>,
    /// Steps of earlier runs that come before these.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub start: u64,
    /// After this time ranks stop, or go on to the highest count that one has reached; 0 = never.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stonewall_ns: u64,
    /// Whether ranks go on to the highest count.
    #[serde(default, skip_serializing_if = "is_false")]
    pub wear_out: bool,
    /// Pause after each operation, as a factor of its time.
    #[serde(default, skip_serializing_if = "is_no_wait")]
    pub waiting: f64,
    /// Index of the earlier phase since whose beginning a file must have been changed to be found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newer_than: Option<u16>,
}

/// A part of something, at least one where there is any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// So many parts …
    pub parts: u64,
    /// … of so many; at least 1.
    pub of: u64,
}

impl Part {
    /// This part of `whole`.
    #[must_use]
    pub fn take(self, whole: u64) -> u64 {
        let part = u128::from(whole) * u128::from(self.parts) / u128::from(self.of.max(1));
        u64::try_from(part)
            .unwrap_or(u64::MAX)
            .max(u64::from(whole > 0))
    }
}

fn is_none(value: &u16) -> bool {
    *value == 0
}

fn is_no_shift(value: &u32) -> bool {
    *value == 0
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands in references"
)]
fn is_no_wait(factor: &f64) -> bool {
    *factor == 0.0
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum RankTask {
    /// Moves the next transfer of the rank's file, `ior-easy`.
    EasyTransfer {
        /// Bytes of a transfer.
        bytes: u64,
    },
    /// Moves the rank's next transfer of the file that all ranks share, `ior-hard`: transfer `k` of
    /// rank `r` of `N` lies at `(k·N + r)·bytes`.
    HardTransfer {
        /// Bytes of a transfer.
        bytes: u64,
    },
    /// Reads `bytes` at a random place, a multiple of them, of what the rank's file holds.
    RandomRead {
        /// Bytes of a read.
        bytes: u64,
        /// Bytes of a transfer that the file was written with.
        transfer: u64,
    },
    /// Works on the next file of the rank's own directory, `mdtest-easy`.
    EasyItem,
    /// Works on the rank's next file in the directory that all ranks share, `mdtest-hard`.
    HardItem,
    /// Lists a part of all files. Step `k` of rank `r` of `N` is part `k·N + r`.
    Find {
        /// Size of the files that are sought, bytes; `None` where their names suffice.
        bytes: Option<u64>,
        /// The only tree that is looked through, by the index of its key set; `None` = all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<u16>,
        /// Whether there are files of MD-Workbench beside the four trees of IOR and mdtest.
        #[serde(default, skip_serializing_if = "is_false")]
        workbench: bool,
    },
    /// Counts all objects by one listing, which rank 0 makes. `steps` says how many there should be.
    Count,
    /// Works on the next object of each of the rank's data sets (MD-Workbench).
    Workbench {
        /// Data sets of a rank.
        sets: u32,
        /// Objects in a set.
        objects: u64,
        /// What is done with them.
        stage: WorkbenchStage,
        /// Distance in ranks between the producer of an object and its consumer, per set.
        offset: u32,
    },
}

/// Stages of MD-Workbench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkbenchStage {
    /// Step `f` makes object `f` of every set.
    Precreate,
    /// Step `n` looks at, reads and deletes the oldest object of each set and makes a new one.
    Benchmark,
    /// Step `n` deletes an object of a set: the sets one after the other.
    Cleanup,
}

/// How paths become names of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RankMapping {
    /// As IOR's backend `S3-libs3` with one bucket does: every transfer is an object, characters
    /// but letters and digits are spelt out (docs/spec/libs3-abi.md section 12).
    #[serde(rename = "ior-libs3-single")]
    Libs3Single,
    /// As that backend with a bucket per file does: a transfer is an object named after its offset and length in
    /// the bucket of its file.
    #[serde(rename = "ior-libs3-bucket-per-file")]
    Libs3Buckets,
    /// Names are paths; every transfer is an object.
    Native,
    /// As native, but that the transfers of `ior-easy` are uploaded in parts.
    Multipart,
    /// Names are paths; transfers are ranges of one file.
    Files,
}

impl RankMapping {
    /// The name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Libs3Single => "ior-libs3-single",
            Self::Libs3Buckets => "ior-libs3-bucket-per-file",
            Self::Native => "native",
            Self::Multipart => "multipart",
            Self::Files => "files",
        }
    }

    /// The last part of a name, behind the last directory.
    #[must_use]
    pub fn file_name(self, key: &str) -> &str {
        let separator = match self {
            Self::Libs3Single => '_',
            Self::Libs3Buckets | Self::Native | Self::Multipart | Self::Files => '/',
        };
        key.rsplit_once(separator).map_or(key, |(_, name)| name)
    }
}

impl RanksPlan {
    /// Parts that a search lists, over all ranks: each rank's files of `ior-easy`, `mdtest-easy` and
    /// `mdtest-hard`, and the file of `ior-hard`. A directory that all ranks share is one part where
    /// it has to be read whole.
    #[must_use]
    pub const fn parts(&self) -> u64 {
        let ranks = self.ranks as u64;
        let whole = matches!(self.mapping, RankMapping::Files);
        match self.task {
            RankTask::Find {
                within: Some(3), ..
            } if whole => 1,
            RankTask::Find {
                within: Some(_), ..
            } => ranks,
            RankTask::Find { workbench, .. } if whole => ranks + 3 + workbench as u64,
            RankTask::Find {
                workbench: true, ..
            } => 4 * ranks + 1,
            _ => 3 * ranks + 1,
        }
    }

    /// Most steps of rank `rank` behind a phase of `written` steps, where it follows one.
    #[must_use]
    pub fn limit(&self, rank: u32, written: Option<u64>) -> u64 {
        let most = self.most_steps(rank);
        match (written, self.task) {
            (None, _) => most,
            (Some(0), _) => 0,
            (Some(_), RankTask::RandomRead { .. }) => most,
            (
                Some(written),
                RankTask::Workbench {
                    sets,
                    stage: WorkbenchStage::Cleanup,
                    ..
                },
            ) => most.min(written.saturating_mul(u64::from(sets))),
            (Some(written), _) => most.min(written),
        }
    }

    /// What this phase takes of a phase of `steps` steps.
    #[must_use]
    pub fn taken(&self, steps: u64) -> u64 {
        self.part.map_or(steps, |part| part.take(steps))
    }

    /// Most steps that rank `rank` has, whatever earlier phases did.
    #[must_use]
    pub fn most_steps(&self, rank: u32) -> u64 {
        match self.task {
            RankTask::Count => u64::from(rank == 0),
            RankTask::Find { .. } => {
                let all = u64::from(self.ranks.max(1));
                (self.parts() + all - 1 - u64::from(rank).min(all - 1)) / all
            }
            _ => self.steps,
        }
    }
}

impl Model for RanksPlan {
    fn max_sessions(&self) -> u32 {
        self.ranks
    }

    fn ends_by_itself(&self) -> bool {
        true
    }

    fn has_indexed_names(&self) -> bool {
        false
    }

    fn fingerprint(
        &self,
        plan: &Plan,
        (phase, work): (usize, usize),
        put: &mut dyn FnMut(u64),
    ) -> Result<(), LawError> {
        let ops = RankGen::new(plan, phase, work, "")?;
        put(u64::from(self.ranks));
        for rank in 0..self.ranks.min(HASHED_JOBS as u32) {
            for step in 0..self.most_steps(rank).min(HASHED_JOBS) {
                for entry in self.opening..ops.entries() - self.closing {
                    let spot = Spot {
                        base: 0,
                        step,
                        set: 0,
                        entry,
                    };
                    hash_op(&ops.op(rank, spot, step, 1), put);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Part, RankMapping, RankTask, RanksPlan, key_of, split_key};

    #[test]
    fn numbers_hold_rank_and_index() {
        for (rank, index) in [(0, 0), (7, 1), (4095, 9_999_999_999)] {
            assert_eq!(split_key(key_of(rank, index)), (rank, index));
        }
    }

    #[test]
    fn a_part_of_something_is_not_nothing() {
        let fifth = Part { parts: 60, of: 300 };
        assert_eq!([0, 1, 4, 500].map(|n| fifth.take(n)), [0, 1, 1, 100]);
        let whole = Part { parts: 7, of: 7 };
        assert_eq!(whole.take(u64::MAX), u64::MAX);
    }

    #[test]
    fn every_part_of_a_search_is_listed_once() {
        for (ranks, mapping) in [(1, RankMapping::Native), (5, RankMapping::Files)] {
            let plan = RanksPlan {
                ranks,
                task: RankTask::Find {
                    bytes: Some(3901),
                    within: None,
                    workbench: ranks > 1,
                },
                mapping,
                opening: 0,
                first_opens: false,
                closing: 0,
                shift: 0,
                steps: u64::MAX,
                follows: None,
                part: None,
                after: Vec::new(),
                start: 0,
                stonewall_ns: 0,
                wear_out: false,
                waiting: 0.0,
                newer_than: None,
            };
            let sum: u64 = (0..ranks).map(|rank| plan.most_steps(rank)).sum();
            assert_eq!(sum, plan.parts());
        }
    }
}
