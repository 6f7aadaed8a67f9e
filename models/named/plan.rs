//! Works on buckets and objects that the user names: numbers between a prefix and a suffix, as in COSBench
//! workloads (docs/spec/cosbench.md sections 1.7 to 1.9).
//!
//! ```text
//!  bucket  {prefix}{number}{suffix}     numbers chosen by a selector, from all numbers or the worker's slice
//!  object  {prefix}{number}{suffix}
//! ```
//!
//! Such names carry no run identifier, so they may refer to somebody else's objects. The runner therefore
//! checks before it starts.

use serde::{Deserialize, Serialize};

use crate::generate::LawError;
use crate::generate::fingerprint::{HASHED_JOBS, hash_op};
use crate::generate::named::NamedGen;
use crate::generate::names::push_decimal;
use crate::plan::{Model, Plan, is_default};

/// How numbers are chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Numbers {
    /// Always the same number.
    Constant {
        /// The number.
        n: u32,
    },
    /// Each number with the same probability.
    Uniform {
        /// Smallest.
        lo: u32,
        /// Largest.
        hi: u32,
    },
    /// Consecutive numbers, starting over at the end; within the worker's slice if workers divide the range.
    Range {
        /// First.
        lo: u32,
        /// Last.
        hi: u32,
    },
    /// Consecutive numbers over all workers together, whether or not workers divide the range.
    Sequential {
        /// First.
        lo: u32,
        /// Last.
        hi: u32,
    },
    /// One of several number ranges chosen by weight, then uniform within that range.
    Weighted {
        /// Smallest number, largest number and weight of each range; weights are above 0.
        buckets: Vec<(u32, u32, u32)>,
    },
    /// No numbers: a walk over nothing.
    Empty,
}

impl Numbers {
    /// The smallest and the largest number; `None` for [`Numbers::Empty`].
    #[must_use]
    pub fn bounds(&self) -> Option<(u32, u32)> {
        match self {
            Self::Constant { n } => Some((*n, *n)),
            Self::Uniform { lo, hi } | Self::Range { lo, hi } | Self::Sequential { lo, hi } => {
                Some((*lo, *hi))
            }
            Self::Weighted { buckets } => {
                let lo = buckets.iter().map(|b| b.0).min()?;
                Some((lo, buckets.iter().map(|b| b.1).max()?))
            }
            Self::Empty => None,
        }
    }

    /// The mean number, weighted by probability.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let middle = |lo: u32, hi: u32| (f64::from(lo) + f64::from(hi)) / 2.0;
        match self {
            Self::Constant { n } => f64::from(*n),
            Self::Uniform { lo, hi } | Self::Range { lo, hi } | Self::Sequential { lo, hi } => {
                middle(*lo, *hi)
            }
            Self::Weighted { buckets } => {
                let all: f64 = buckets.iter().map(|b| f64::from(b.2)).sum();
                let sum: f64 = buckets
                    .iter()
                    .map(|b| f64::from(b.2) * middle(b.0, b.1))
                    .sum();
                sum / all.max(1.0)
            }
            Self::Empty => 0.0,
        }
    }
}

/// Names built from numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamePattern {
    /// Before the number.
    pub prefix: String,
    /// After the number.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suffix: String,
    /// The numbers.
    pub numbers: Numbers,
    /// Whether each worker has its own slice of the numbers.
    #[serde(default, skip_serializing_if = "is_default")]
    pub divided: bool,
}

impl NamePattern {
    /// Writes name number `n` into `out`, replacing its contents.
    #[inline]
    pub fn render(&self, n: u32, out: &mut String) {
        out.clear();
        out.push_str(&self.prefix);
        push_decimal(u64::from(n), 1, out);
        out.push_str(&self.suffix);
    }

    /// Length of the longest name, bytes.
    #[must_use]
    pub fn max_len(&self) -> usize {
        // A u32 has at most 10 digits.
        self.prefix.len() + 10 + self.suffix.len()
    }
}

/// Sizes of written objects: numbers of units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedSizes {
    /// The numbers.
    pub numbers: Numbers,
    /// Bytes per unit.
    pub unit_bytes: u64,
    /// Whether a size belongs to the object's name, so that readers know it; otherwise each write draws a
    /// size.
    #[serde(default, skip_serializing_if = "is_default")]
    pub by_name: bool,
}

/// A range read at a random offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedRange {
    /// Bytes of the object.
    pub object_bytes: u64,
    /// Bytes to read.
    pub len: u64,
}

/// A local file whose name and length an object takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedFile {
    /// File name without directories.
    pub name: String,
    /// Length of the file, bytes.
    pub bytes: u64,
}

/// What one entry of the mix works on; [`NamedPlan::entries`] has the same order as the mix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedEntry {
    /// Identifier in reports, such as `op1`.
    pub id: String,
    /// Name in reports.
    pub title: String,
    /// The buckets.
    pub bucket: NamePattern,
    /// The objects; `None` for operations on the bucket and for listing all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<NamePattern>,
    /// Sizes of written objects, and of objects read if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes: Option<NamedSizes>,
    /// The range, for range reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<NamedRange>,
    /// Whether written objects end with a checksum and objects read are checked against the one at their end
    /// ([`crate::payload::trailer`]).
    #[serde(default, skip_serializing_if = "is_default")]
    pub trailer: bool,
    /// Files that the objects are named after, numbered from 1; empty for none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<NamedFile>,
}

/// Closed-loop workers on named buckets and objects.
///
/// Worker `w` (from 0) of `W` performs operations until its share of a limit is used up or time runs out.
/// Each operation's entry is drawn by weight. With `walk`, each worker instead goes through its slice once,
/// looping over buckets outside and objects inside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamedPlan {
    /// Number of workers, over all agents.
    pub workers: u32,
    /// The driver that performs the whole work if a driver of that name exists ([`crate::plan::crews`]); empty for
    /// none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub driver: String,
    /// What the entries of the mix work on, in the mix's order.
    pub entries: Vec<NamedEntry>,
    /// Whether each worker walks through its slice once.
    #[serde(default, skip_serializing_if = "is_default")]
    pub walk: bool,
    /// Whether the walk also creates each bucket on reaching it (entry 1 of the mix), or the last worker to
    /// finish deletes them all (entry 1 of the mix).
    #[serde(default, skip_serializing_if = "is_default")]
    pub buckets_too: bool,
    /// Time before the measured window, nanoseconds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rampup_ns: u64,
    /// Length of the measured window, nanoseconds; 0 = until the work is done.
    #[serde(default, skip_serializing_if = "is_default")]
    pub runtime_ns: u64,
    /// Time after the measured window, nanoseconds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rampdown_ns: u64,
    /// Operations in the measured window, over all workers; 0 = no limit.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ops: u64,
    /// Object bytes in the measured window, over all workers; 0 = no limit.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bytes: u64,
    /// Maximum operations per second, over all workers; 0 = no limit.
    #[serde(default, skip_serializing_if = "is_default")]
    pub max_ops_per_s: u64,
    /// Maximum object bytes per second, over all workers; 0 = no limit.
    #[serde(default, skip_serializing_if = "is_default")]
    pub max_bytes_per_s: u64,
    /// Acceptable failures per million operations of the measured window.
    pub max_failed_ppm: u32,
    /// Whether sequences repeat as in COSBench: containers and objects advance in step, so only as many
    /// combinations occur as their least common multiple (docs/spec/cosbench.md section 7, B16).
    #[serde(default, skip_serializing_if = "is_default")]
    pub legacy_sequences: bool,
}

/// One worker's numbers: `len` consecutive ones starting at `first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedSlice {
    /// First number; meaningless if `len` is 0.
    pub first: u64,
    /// How many.
    pub len: u64,
}

impl NamedSlice {
    /// The slice of worker `index` (from 0) of `of` in the numbers `lo` to `hi`. If they do not divide
    /// evenly, the first workers get one number more (docs/spec/cosbench.md section 1.7).
    #[must_use]
    pub fn of(lo: u32, hi: u32, index: u32, of: u32) -> Self {
        let range = u64::from(hi) - u64::from(lo.min(hi)) + 1;
        let (all, index) = (u64::from(of.max(1)), u64::from(index));
        let (base, extra) = (range / all, range % all);
        Self {
            first: u64::from(lo) + base * index + index.min(extra),
            len: base + u64::from(index < extra),
        }
    }
}

impl NamedPlan {
    /// When the worker stops offering operations, nanoseconds after the start; `None` without a time limit.
    #[must_use]
    pub const fn stop_ns(&self) -> Option<u64> {
        match self.runtime_ns {
            0 => None,
            runtime => Some(self.rampup_ns + runtime + self.rampdown_ns),
        }
    }

    /// The measured window, nanoseconds after the start.
    #[must_use]
    pub const fn window_ns(&self) -> (u64, u64) {
        match self.runtime_ns {
            0 => (0, u64::MAX),
            runtime => (self.rampup_ns, self.rampup_ns + runtime),
        }
    }

    /// The share of worker `index` (from 0) in a limit over all workers. The remainder of an uneven division
    /// is not lost (docs/spec/cosbench.md section 7, B3).
    #[must_use]
    pub fn share(&self, limit: u64, index: u32) -> u64 {
        let all = u64::from(self.workers.max(1));
        limit / all + u64::from(u64::from(index) < limit % all)
    }
}

impl Model for NamedPlan {
    fn max_sessions(&self) -> u32 {
        self.workers
    }

    fn ends_by_itself(&self) -> bool {
        self.walk || self.runtime_ns > 0 || self.ops > 0 || self.bytes > 0
    }

    fn fingerprint(
        &self,
        plan: &Plan,
        (phase, work): (usize, usize),
        put: &mut dyn FnMut(u64),
    ) -> Result<(), LawError> {
        let ops = NamedGen::new(plan, phase, work)?;
        put(u64::from(self.workers));
        for worker in 0..self.workers.min(HASHED_JOBS as u32) {
            let mut at = ops.cursor(worker);
            for op in std::iter::from_fn(|| ops.next(&mut at)).take(HASHED_JOBS as usize) {
                hash_op(&op, put);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{NamePattern, NamedPlan, NamedSlice, Numbers};

    fn plan(workers: u32) -> NamedPlan {
        NamedPlan {
            workers,
            driver: String::new(),
            entries: Vec::new(),
            walk: false,
            buckets_too: false,
            rampup_ns: 0,
            runtime_ns: 0,
            rampdown_ns: 0,
            ops: 0,
            bytes: 0,
            max_ops_per_s: 0,
            max_bytes_per_s: 0,
            max_failed_ppm: 0,
            legacy_sequences: false,
        }
    }

    #[test]
    fn names_are_exact() {
        let pattern = NamePattern {
            prefix: "my".into(),
            suffix: ".x".into(),
            numbers: Numbers::Constant { n: 0 },
            divided: false,
        };
        let mut out = "old".to_owned();
        for (n, name) in [
            (0, "my0.x"),
            (7, "my7.x"),
            (10, "my10.x"),
            (2_147_483_647, "my2147483647.x"),
        ] {
            pattern.render(n, &mut out);
            assert_eq!(out, name);
            assert!(out.len() <= pattern.max_len());
        }
    }

    /// B3: the remainder of a division among workers is not lost.
    #[test]
    fn shares_of_a_limit_add_up() {
        for (workers, limit) in [(5, 10), (5, 12), (3, 100), (7, 7)] {
            let plan = plan(workers);
            let sum: u64 = (0..workers).map(|w| plan.share(limit, w)).sum();
            assert_eq!(sum, limit);
        }
    }

    #[test]
    fn slices_cover_the_numbers_once() {
        for (lo, hi, of) in [(1, 10, 3), (5, 5, 4), (1, 100, 7)] {
            let mut next = u64::from(lo);
            for index in 0..of {
                let slice = NamedSlice::of(lo, hi, index, of);
                if slice.len > 0 {
                    assert_eq!(slice.first, next);
                    next += slice.len;
                }
            }
            assert_eq!(next, u64::from(hi) + 1);
        }
    }
}
