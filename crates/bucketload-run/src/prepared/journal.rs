//! The journal of a data set: which objects are there.

use std::sync::Arc;

use bucketload_core::driver::AnyDriver;
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::plan::Plan;
use serde::{Deserialize, Serialize};

use super::lease::Lease;
use super::progress::{MOST_BLOCKS, Part};
use super::ranges::{Range, are_within, gaps, longest, total, union};
use super::{keyset, preparing};
use crate::error::RunError;
use crate::options::RunOptions;
use crate::ownership::{open_control, timed};

/// Name of the journal below the run's prefix.
pub const JOURNAL: &str = ".bucketload-prepared.json";
/// Version of the format.
const VERSION: u32 = 1;
/// Missing ranges that a message names.
const NAMED: usize = 3;
/// Most ranges of a key set, at some 24 bytes each. Blocks alone need half; failed objects may add some.
const MOST_RANGES: usize = MOST_BLOCKS as usize;
/// How often an entry begins anew because others have written theirs in between.
const CONFLICTS: u32 = 8;

/// The content of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Journal {
    version: u32,
    /// What determines names and content of the objects.
    identity: String,
    /// Measurements that have begun on the data set.
    pub(super) runs: u32,
    /// The session that prepares the data set now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lease: Option<Lease>,
    pub(super) keysets: Vec<Filled>,
}

/// How far a key set is filled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Filled {
    /// Index in the plan.
    pub(super) keyset: usize,
    name: String,
    /// Number of objects.
    pub(super) count: u64,
    /// The objects that are there, as ranges in order and apart from each other.
    pub(super) done: Vec<Range>,
}

impl Filled {
    pub(super) fn filled(&self) -> u64 {
        total(&self.done)
    }

    /// Adds `ranges`. If there are too many, the shortest are forgotten, so their objects are written once more.
    pub(super) fn add(&mut self, ranges: &[Range]) {
        let all = self.done.iter().chain(ranges);
        self.done = longest(union(all.copied().collect()), MOST_RANGES);
    }

    /// What is to be written.
    pub(super) fn part(&self) -> Part {
        Part {
            count: self.count,
            missing: gaps(&self.done, self.count).collect(),
        }
    }

    /// What is missing, in words.
    fn describe(&self) -> String {
        let mut gaps = gaps(&self.done, self.count);
        let named: Vec<String> = gaps
            .by_ref()
            .take(NAMED)
            .map(|(first, end)| match end - first {
                1 => first.to_string(),
                _ => format!("{first} to {}", end - 1),
            })
            .collect();
        let more = match gaps.count() {
            0 => String::new(),
            n => format!(" and {n} more ranges"),
        };
        format!(
            "key set `{}` has {} of {} objects, without {}{more}",
            self.name,
            self.filled(),
            self.count,
            named.join(", ")
        )
    }

    /// Whether the ranges are in order, apart from each other and inside the key set.
    fn is_sound(&self) -> bool {
        are_within(&self.done, &[(0, self.count)])
    }
}

impl Journal {
    /// The journal of the key sets that `plan` prepares, with no object yet.
    pub(super) fn new(plan: &Plan, identity: &str) -> Self {
        let filled = |set: usize| Filled {
            keyset: set,
            name: plan.keysets[set].name.clone(),
            count: plan.keysets[set].count,
            done: Vec::new(),
        };
        Self {
            version: VERSION,
            identity: identity.to_owned(),
            runs: 0,
            lease: None,
            keysets: preparing(plan).map(keyset).map(filled).collect(),
        }
    }

    /// Refuses the plan of `wanted` on this data set if its objects would be others.
    pub(super) fn check(&self, wanted: &Self, run_id: &str) -> Result<(), RunError> {
        if self.version == VERSION && self.identity == wanted.identity {
            return Ok(());
        }
        let sets = |journal: &Self| {
            let sets = journal.keysets.iter();
            let sets = sets.map(|set| format!("{} objects in `{}`", set.count, set.name));
            sets.collect::<Vec<_>>().join(", ")
        };
        let (have, want) = (sets(self), sets(wanted));
        let differ = match have == want {
            true => "with another seed, other sizes or another content".to_owned(),
            false => format!("with {have}, and this workload needs {want}"),
        };
        Err(RunError::Options(format!(
            "the data set of run {run_id} was prepared {differ}; give the same workload and settings as then"
        )))
    }

    /// What is missing, in words; `None` if nothing is.
    pub(super) fn incomplete(&self) -> Option<String> {
        let missing = self.keysets.iter().filter(|set| set.filled() < set.count);
        let missing: Vec<String> = missing.map(Filled::describe).collect();
        (!missing.is_empty()).then(|| missing.join("; "))
    }

    /// Adds what `other`, of the same data set, says is there.
    pub(super) fn learn(&mut self, other: &Self) {
        for set in &other.keysets {
            self.of(set.keyset).add(&set.done);
        }
    }

    pub(super) fn of(&mut self, keyset: usize) -> &mut Filled {
        let mut sets = self.keysets.iter_mut();
        let set = sets.find(|set| set.keyset == keyset);
        set.expect("every prepared key set is in the journal")
    }
}

/// Where the journal of a data set is.
#[derive(Clone)]
pub(super) struct Place {
    driver: AnyDriver,
    timeout_ns: u64,
    plan: Arc<Plan>,
    bucket: String,
    key: String,
}

impl Place {
    /// The journal below the prefix of `options`.
    pub(super) fn new(driver: &AnyDriver, plan: &Plan, options: &RunOptions) -> Self {
        Self {
            driver: driver.clone(),
            timeout_ns: plan.timeout_ns,
            plan: Arc::new(plan.clone()),
            bucket: options.bucket.clone(),
            key: format!("{}{JOURNAL}", options.prefix),
        }
    }

    /// The journal, and by what a conditional write recognises it; `None` if there is none.
    pub(super) async fn read(&self) -> Result<Option<(Journal, Option<String>)>, OpError> {
        let mut session = open_control(&self.driver, &self.plan).await?;
        let read = session.get_small_version(&self.bucket, &self.key);
        match timed(self.timeout_ns, read).await {
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
            Ok((body, version)) => match serde_json::from_slice::<Journal>(&body) {
                Ok(journal) if journal.keysets.iter().all(Filled::is_sound) => {
                    Ok(Some((journal, version)))
                }
                _ => Err(OpError::new(
                    ErrorKind::Corrupt,
                    format!("`{}` is damaged, or a newer program wrote it", self.key),
                )),
            },
        }
    }

    /// Writes the first entry.
    pub(super) async fn create(&self, journal: &Journal) -> Result<(), OpError> {
        self.write(journal, None).await
    }

    /// Writes `journal`, if the one in the store is still `version`, where that is known and the store can compare it.
    async fn write(&self, journal: &Journal, version: Option<&str>) -> Result<(), OpError> {
        let body = serde_json::to_vec(journal).expect("numbers and strings are valid JSON");
        let mut session = open_control(&self.driver, &self.plan).await?;
        let write = session.put_small_if(&self.bucket, &self.key, &body, version);
        timed(self.timeout_ns, write).await
    }

    /// Replaces the journal by what `change` makes of it, anew if somebody else replaces it in between. Returns what
    /// was written, or what `change` returned instead.
    pub(super) async fn change<E>(
        &self,
        mut change: impl FnMut(&mut Journal) -> Result<(), E>,
    ) -> Result<Result<Journal, E>, OpError> {
        let mut outcome = Err(OpError::new(ErrorKind::NotFound, "the journal is gone"));
        for _ in 0..CONFLICTS {
            let Some((mut journal, version)) = self.read().await? else {
                break;
            };
            if let Err(refused) = change(&mut journal) {
                return Ok(Err(refused));
            }
            match self.write(&journal, version.as_deref()).await {
                Ok(()) => return Ok(Ok(journal)),
                Err(error) if error.kind == ErrorKind::Conflict => outcome = Err(error),
                Err(error) => return Err(error),
            }
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::{Filled, MOST_RANGES};

    fn filled(count: u64, done: &[(u64, u64)]) -> Filled {
        Filled {
            keyset: 0,
            name: "main".to_owned(),
            count,
            done: done.to_vec(),
        }
    }

    #[test]
    fn messages_name_what_is_missing() {
        let set = filled(100, &[(0, 10), (12, 50)]);
        assert_eq!(set.part().missing, [(10, 12), (50, 100)]);
        assert_eq!(
            set.describe(),
            "key set `main` has 48 of 100 objects, without 10 to 11, 50 to 99"
        );
        let odd: Vec<_> = (0..10).map(|i| (2 * i + 1, 2 * i + 2)).collect();
        let set = filled(20, &odd);
        assert!(
            set.describe()
                .ends_with("without 0, 2, 4 and 7 more ranges")
        );
        assert!(filled(7, &[(0, 7)]).part().missing.is_empty());
    }

    #[test]
    fn the_journal_stays_small_whatever_is_missing() {
        let count = 1_000_000_000;
        let mut set = filled(count, &[(0, 500)]);
        let scattered: Vec<_> = (1..200_000).map(|n| (n * 4_999, n * 4_999 + 2)).collect();
        set.add(&scattered);
        assert!(set.done.len() == MOST_RANGES && set.is_sound());
        assert_eq!(set.done[0], (0, 500), "the longest are kept");
        let text = serde_json::to_vec(&set).unwrap();
        assert!(text.len() < 2 << 20, "{} bytes", text.len());
    }

    #[test]
    fn damaged_ranges_are_recognised() {
        assert!(filled(9, &[(0, 3), (4, 9)]).is_sound() && filled(9, &[]).is_sound());
        for bad in [
            &[(3, 3)][..],
            &[(0, 3), (3, 5)],
            &[(4, 5), (0, 2)],
            &[(5, 10)],
        ] {
            assert!(!filled(9, bad).is_sound(), "{bad:?}");
        }
    }
}
