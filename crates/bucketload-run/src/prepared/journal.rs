//! The journal of a data set: which objects are there.

use bucketload_core::driver::{AnyDriver, AnySession};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::plan::Plan;
use serde::{Deserialize, Serialize};

use super::{keyset, preparing};
use crate::error::RunError;
use crate::ownership::{open_control, timed};

/// Name of the journal below the run's prefix.
pub const JOURNAL: &str = ".bucketload-prepared.json";
/// Version of the format.
const VERSION: u32 = 1;
/// Missing ranges that a message names.
const NAMED: usize = 3;

/// The content of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Journal {
    version: u32,
    /// What determines names and content of the objects.
    identity: String,
    /// Measurements that have begun on the data set.
    pub(super) runs: u32,
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
    /// The objects that are there: first index and index after the last, in order, apart from each other.
    pub(super) done: Vec<(u64, u64)>,
}

impl Filled {
    pub(super) fn filled(&self) -> u64 {
        self.done.iter().map(|(first, end)| end - first).sum()
    }

    /// The gaps, as [`Filled::done`].
    pub(super) fn gaps(&self) -> impl Iterator<Item = (u64, u64)> {
        let ends = self.done.iter().map(|range| range.1);
        let firsts = self.done.iter().map(|range| range.0);
        let gaps = std::iter::once(0)
            .chain(ends)
            .zip(firsts.chain([self.count]));
        gaps.filter(|(first, end)| first < end)
    }

    /// What is missing, in words.
    fn describe(&self) -> String {
        let mut gaps = self.gaps();
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
        let inside = self.done.iter().all(|(first, end)| first < end);
        let apart = self.done.windows(2).all(|two| two[0].1 < two[1].0);
        inside && apart && self.done.last().is_none_or(|last| last.1 <= self.count)
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
            keysets: preparing(plan).map(keyset).map(filled).collect(),
        }
    }

    /// The journal below `prefix`; `None` if there is none.
    pub(super) async fn read(
        session: &mut AnySession,
        bucket: &str,
        prefix: &str,
    ) -> Result<Option<Self>, OpError> {
        let read = session
            .get_small(bucket, &format!("{prefix}{JOURNAL}"))
            .await;
        match read {
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
            Ok(body) => match serde_json::from_slice::<Self>(&body) {
                Ok(journal) if journal.keysets.iter().all(Filled::is_sound) => Ok(Some(journal)),
                _ => Err(OpError::new(
                    ErrorKind::Corrupt,
                    format!("`{prefix}{JOURNAL}` is damaged, or a newer program wrote it"),
                )),
            },
        }
    }

    /// Writes the journal below `prefix`, through a session of its own.
    pub(super) async fn write(
        &self,
        driver: &AnyDriver,
        plan: &Plan,
        (bucket, prefix): (&str, &str),
    ) -> Result<(), OpError> {
        let body = serde_json::to_vec(self).expect("numbers and strings are valid JSON");
        let key = format!("{prefix}{JOURNAL}");
        let mut session = open_control(driver, plan).await?;
        timed(plan.timeout_ns, session.put_small(bucket, &key, &body)).await
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

    pub(super) fn of(&mut self, keyset: usize) -> &mut Filled {
        let mut sets = self.keysets.iter_mut();
        let set = sets.find(|set| set.keyset == keyset);
        set.expect("every prepared key set is in the journal")
    }
}

#[cfg(test)]
mod tests {
    use super::Filled;

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
        assert_eq!(set.gaps().collect::<Vec<_>>(), [(10, 12), (50, 100)]);
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
        assert_eq!(filled(7, &[(0, 7)]).gaps().count(), 0);
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
