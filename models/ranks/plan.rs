//! Ranks: workers that go through the same steps at the same time, as the processes of an MPI job do
//! (docs/spec/io500-mdworkbench.md, parts A and B).
//!
//! ```text
//!  opening ─ step 0 ─ step 1 ─ … ┤ stonewall: compare counts; all continue to the highest count ├ closing
//! ```
//!
//! What a rank does in a step depends only on the rank's number and the step's. A rank may work on objects
//! written by another (`shift`), and a phase may take its number of steps from an earlier one.

use serde::{Deserialize, Serialize};

use crate::generate::LawError;
use crate::generate::fingerprint::{HASHED_JOBS, hash_op};
use crate::generate::ranks::{RankGen, StepPosition};
use crate::plan::{Model, Plan, is_default};

/// Bits of an object's number that hold the index within a rank; the higher bits hold the rank.
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

/// Ranks and their steps. Each step performs the entries of the work's mix in order, except the opening and
/// closing entries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RanksPlan {
    /// Number of ranks, over all processes.
    pub ranks: u32,
    /// What a step does.
    pub task: RankTask,
    /// How paths become names of objects.
    pub mapping: RankMapping,
    /// Number of first entries of the mix that are performed once, before the first step.
    #[serde(default, skip_serializing_if = "is_default")]
    pub opening: u16,
    /// Whether only rank 0 performs the opening entries. If they create a bucket, the other ranks wait for
    /// it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub first_opens: bool,
    /// Number of last entries of the mix that are performed once, after the last step.
    #[serde(default, skip_serializing_if = "is_default")]
    pub closing: u16,
    /// Rank `r` works on objects written by rank `r + shift` (modulo the number of ranks).
    #[serde(default, skip_serializing_if = "is_default")]
    pub shift: u32,
    /// Maximum number of steps per rank.
    pub steps: u64,
    /// Index of the earlier phase that limits the number of steps to its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<u16>,
    /// The share of that phase's steps to take; for MD-Workbench, of its number of objects per set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Fraction>,
    /// Indices of earlier phases whose steps precede these: step numbers continue after them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<u16>,
    /// Steps of earlier runs that precede these.
    #[serde(default, skip_serializing_if = "is_default")]
    pub start: u64,
    /// After this time ranks stop, or continue to the highest count that any rank has reached; 0 = never.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stonewall_ns: u64,
    /// Whether ranks continue to the highest count.
    #[serde(default, skip_serializing_if = "is_default")]
    pub wear_out: bool,
    /// Pause after each operation, as a multiple of its duration.
    #[serde(default, skip_serializing_if = "is_default")]
    pub waiting: f64,
    /// Index of an earlier phase. A file is found only if it was modified after that phase started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newer_than: Option<u16>,
}

/// A fraction, rounded down but at least one if the whole is not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fraction {
    /// Numerator.
    pub parts: u64,
    /// Denominator, at least 1.
    pub of: u64,
}

impl Fraction {
    /// This fraction of `whole`.
    #[must_use]
    pub fn take(self, whole: u64) -> u64 {
        let part = u128::from(whole) * u128::from(self.parts) / u128::from(self.of.max(1));
        u64::try_from(part)
            .unwrap_or(u64::MAX)
            .max(u64::from(whole > 0))
    }
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum RankTask {
    /// Transfers the next block of the rank's file, `ior-easy`.
    EasyTransfer {
        /// Bytes per transfer.
        bytes: u64,
    },
    /// Transfers the rank's next block of the file that all ranks share, `ior-hard`: transfer `k` of rank `r`
    /// of `N` is at `(k·N + r)·bytes`.
    HardTransfer {
        /// Bytes per transfer.
        bytes: u64,
    },
    /// Reads `bytes` of the rank's file at a random multiple of `bytes`.
    RandomRead {
        /// Bytes per read.
        bytes: u64,
        /// Bytes per transfer with which the file was written.
        transfer: u64,
    },
    /// Works on the next file in the rank's own directory, `mdtest-easy`.
    EasyItem,
    /// Works on the rank's next file in the directory that all ranks share, `mdtest-hard`.
    HardItem,
    /// Lists part of all files ([`RanksPlan::part`]).
    Find {
        /// Size of the files to find, bytes; `None` if the name decides.
        bytes: Option<u64>,
        /// The only tree to search, by the index of its key set; `None` = all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<u16>,
        /// Whether MD-Workbench files exist beside the four trees of IOR and mdtest.
        #[serde(default, skip_serializing_if = "is_default")]
        workbench: bool,
        /// Number of ranks that search, the first ones; 0 = all.
        #[serde(default, skip_serializing_if = "is_default")]
        searchers: u32,
    },
    /// Counts all objects with one listing, made by rank 0. `steps` is the expected count.
    Count,
    /// Works on the next object of each of the rank's data sets (MD-Workbench).
    Workbench {
        /// Data sets per rank.
        sets: u32,
        /// Objects per set.
        objects: u64,
        /// What is done with the objects.
        stage: WorkbenchStage,
        /// Distance in ranks between an object's producer and its consumer, per set.
        offset: u32,
    },
}

/// Stages of MD-Workbench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkbenchStage {
    /// Step `f` creates object `f` of every set.
    Precreate,
    /// Step `n` looks up, reads and deletes the oldest object of each set and creates a new one.
    Benchmark,
    /// Step `n` deletes one object; the sets are deleted one after another.
    Cleanup,
}

/// How paths become object names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum RankMapping {
    /// Like IOR's backend `S3-libs3` with one bucket: every transfer is an object, and characters other than
    /// letters and digits are spelt out (docs/spec/libs3-abi.md section 12).
    #[serde(rename = "ior-libs3-single")]
    #[strum(serialize = "ior-libs3-single")]
    Libs3Single,
    /// Like that backend with a bucket per file: a transfer is an object named after its offset and length,
    /// in the file's bucket.
    #[serde(rename = "ior-libs3-bucket-per-file")]
    #[strum(serialize = "ior-libs3-bucket-per-file")]
    Libs3Buckets,
    /// Names are paths; every transfer is an object.
    Native,
    /// Like native, but `ior-easy` transfers are uploaded in parts.
    Multipart,
    /// Names are paths; transfers are ranges of one file.
    Files,
}

impl RankMapping {
    /// The name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The last component of a name, after its directories.
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
    /// Number of parts that a search lists, over all ranks: each rank's files of `ior-easy`, `mdtest-easy`
    /// and `mdtest-hard`, and the file of `ior-hard`. A shared directory that can only be read whole is one
    /// part.
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

    /// Number of ranks that take part: all, or those of a search with fewer.
    #[must_use]
    pub const fn searchers(&self) -> u32 {
        match self.task {
            RankTask::Find { searchers, .. } if searchers > 0 => searchers,
            _ if self.ranks > 0 => self.ranks,
            _ => 1,
        }
    }

    /// The part that rank `rank` lists in step `step`. Ranks take parts in turn, and in the opposite order every other
    /// time: the rank with the largest part is the last to get another one.
    #[must_use]
    pub const fn part(&self, rank: u32, step: u64) -> u64 {
        let ranks = self.searchers();
        let place = if step.is_multiple_of(2) {
            rank
        } else {
            ranks - 1 - rank
        };
        step * ranks as u64 + place as u64
    }

    /// Maximum number of steps of rank `rank` after a phase of `written` steps, if it follows one.
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

    /// How many of an earlier phase's `steps` this phase uses.
    #[must_use]
    pub fn taken(&self, steps: u64) -> u64 {
        self.part.map_or(steps, |part| part.take(steps))
    }

    /// Maximum number of steps of rank `rank`, regardless of earlier phases.
    #[must_use]
    pub fn most_steps(&self, rank: u32) -> u64 {
        match self.task {
            RankTask::Count => u64::from(rank == 0),
            RankTask::Find { .. } if rank >= self.searchers() => 0,
            RankTask::Find { .. } => {
                let rounds = self.parts() / u64::from(self.searchers());
                rounds + u64::from(self.part(rank, rounds) < self.parts())
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
                    let position = StepPosition {
                        base: 0,
                        step,
                        set: 0,
                        entry,
                    };
                    hash_op(&ops.op(rank, position, step, 1), put);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Fraction, RankMapping, RankTask, RanksPlan, key_of, split_key};

    #[test]
    fn numbers_hold_rank_and_index() {
        for (rank, index) in [(0, 0), (7, 1), (4095, 9_999_999_999)] {
            assert_eq!(split_key(key_of(rank, index)), (rank, index));
        }
    }

    #[test]
    fn a_fraction_of_a_nonzero_whole_is_at_least_one() {
        let fifth = Fraction { parts: 60, of: 300 };
        assert_eq!([0, 1, 4, 500].map(|n| fifth.take(n)), [0, 1, 1, 100]);
        let whole = Fraction { parts: 7, of: 7 };
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
                    searchers: 0,
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
