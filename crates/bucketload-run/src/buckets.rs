//! The buckets that a workload makes itself: their names, and their states in this run.
//!
//! ```text
//!  claim: no such bucket exists ─► names in the run's marker ─► make-bucket ─► Made ─► delete-bucket ─► Gone
//!                                                                  │
//!            operations inside a bucket are sent only while it is Made
//! ```
//!
//! So an operation never touches a bucket of the same name that somebody else made, and the clean-up knows which
//! buckets are left ([`crate::cleanup`]). All load threads share the states and read one per operation on a key set
//! with buckets; other key sets cost a comparison.

use std::sync::atomic::{AtomicU8, Ordering};

use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{Op, OpClass};
use bucketload_core::plan::{BucketService, BucketsPlan, Plan};

use crate::error::RunError;
use crate::options::RunOptions;

/// What this run has done to a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BucketState {
    /// Nothing, as far as is known.
    Unknown = 0,
    /// Made it.
    Made = 1,
    /// Deleted it.
    Gone = 2,
}

/// The buckets of one key set.
pub(crate) struct BucketSet {
    pub(crate) plan: BucketsPlan,
    /// Beginning of their names.
    stem: String,
    states: Box<[AtomicU8]>,
    /// Whether the states no longer change.
    frozen: bool,
}

impl BucketSet {
    fn new(plan: &BucketsPlan, run_id: &str) -> Self {
        Self {
            stem: plan.stem(run_id),
            states: (0..plan.count).map(|_| AtomicU8::new(0)).collect(),
            plan: plan.clone(),
            frozen: false,
        }
    }

    /// Writes the name of bucket `number` into `out`.
    pub(crate) fn render(&self, number: u64, out: &mut String) {
        self.plan.render(&self.stem, number, out);
    }

    pub(crate) fn name(&self, number: u64) -> String {
        let mut out = String::new();
        self.render(number, &mut out);
        out
    }

    pub(crate) fn state(&self, number: u64) -> BucketState {
        match self.states[number as usize].load(Ordering::Acquire) {
            1 => BucketState::Made,
            2 => BucketState::Gone,
            _ => BucketState::Unknown,
        }
    }

    fn set(&self, number: u64, state: BucketState) {
        self.states[number as usize].store(state as u8, Ordering::Release);
    }

    /// Notes that an operation of `class` succeeded on bucket `number`.
    pub(crate) fn done(&self, class: OpClass, number: u64) {
        match class {
            _ if self.frozen => {}
            OpClass::MakeBucket => self.set(number, BucketState::Made),
            OpClass::DeleteBucket => self.set(number, BucketState::Gone),
            _ => {}
        }
    }

    /// Whether an operation of `class` may be sent to bucket `number`.
    pub(crate) fn admits(&self, class: OpClass, number: u64) -> bool {
        matches!(class, OpClass::MakeBucket | OpClass::HeadBucket)
            || self.state(number) == BucketState::Made
    }
}

/// The buckets of all key sets of a run.
pub(crate) struct WorkloadBuckets {
    sets: Vec<Option<BucketSet>>,
}

impl WorkloadBuckets {
    /// The buckets of `plan`; `None` when it makes none.
    pub(crate) fn of(plan: &Plan, run_id: &str) -> Option<Self> {
        let sets: Vec<Option<BucketSet>> = plan
            .keysets
            .iter()
            .map(|set| Some(BucketSet::new(set.buckets.as_ref()?, run_id)))
            .collect();
        sets.iter().any(Option::is_some).then_some(Self { sets })
    }

    /// The bucket that `op` acts on or in, if it is one of these.
    #[inline]
    pub(crate) fn find(&self, op: &Op) -> Option<(&BucketSet, u64)> {
        let set = self.sets.get(usize::from(op.keyset))?.as_ref()?;
        (op.class != OpClass::ListBuckets).then(|| (set, set.plan.number_of(op.key)))
    }

    pub(crate) fn sets(&self) -> impl Iterator<Item = &BucketSet> {
        self.sets.iter().flatten()
    }

    /// Treats every bucket as made from now on, whatever operations do: the null driver has all of them.
    pub(crate) fn assume_made(&mut self) {
        for set in self.sets.iter_mut().flatten() {
            (0..set.plan.count).for_each(|number| set.set(number, BucketState::Made));
            set.frozen = true;
        }
    }
}

/// Why an operation was not sent.
#[cold]
pub(crate) fn not_made(bucket: &str) -> OpError {
    let detail = format!("this run has not made bucket `{bucket}`; nothing was sent");
    OpError::new(ErrorKind::Conflict, detail)
}

/// Refuses names that the service behind `driver` does not accept, and plans that several agents cannot share.
pub(crate) fn check(plan: &Plan, options: &RunOptions, driver: &str) -> Result<(), RunError> {
    let Some(buckets) = WorkloadBuckets::of(plan, &options.run_id) else {
        return Ok(());
    };
    if options.share.of > 1 {
        let text = "works that make buckets need a single agent: the others would not \
                    know which buckets exist";
        return Err(RunError::Options(text.to_owned()));
    }
    for set in buckets.sets() {
        for number in [0, set.plan.count - 1] {
            let name = set.name(number);
            for service in [set.plan.service, BucketService::of_driver(driver)] {
                // A stated service is more specific than the one implied by the driver.
                if service == BucketService::Any && set.plan.service != service {
                    continue;
                }
                service.check(&name).map_err(|rule| {
                    RunError::Options(format!(
                        "no bucket can be called `{name}`: the name {rule}; change \
                         keysets.NAME.buckets.name or .service"
                    ))
                })?;
            }
        }
        if set.name(0) == options.bucket {
            return Err(RunError::Options(format!(
                "`{}` is the bucket of the target, which holds the run's marker; choose another name for \
                 the buckets that the workload makes",
                options.bucket
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use bucketload_core::op::OpClass;
    use bucketload_core::plan::{BucketService, BucketsPlan};

    use super::{BucketSet, BucketState};

    #[test]
    fn operations_inside_a_bucket_need_it_made() {
        let plan = BucketsPlan {
            count: 2,
            name: "b".into(),
            exact: false,
            service: BucketService::Any,
            per_rank: 0,
        };
        let set = BucketSet::new(&plan, "17-ab");
        assert_eq!(set.name(1), "b-17-ab-1");
        for class in [
            OpClass::Put,
            OpClass::Get,
            OpClass::List,
            OpClass::DeleteBucket,
        ] {
            assert!(!set.admits(class, 1), "{class}");
        }
        assert!(set.admits(OpClass::MakeBucket, 1) && set.admits(OpClass::HeadBucket, 1));
        set.done(OpClass::MakeBucket, 1);
        assert!(set.admits(OpClass::Put, 1) && !set.admits(OpClass::Put, 0));
        set.done(OpClass::Put, 1);
        assert_eq!(set.state(1), BucketState::Made);
        set.done(OpClass::DeleteBucket, 1);
        assert!(!set.admits(OpClass::Delete, 1));
        assert_eq!(set.state(1), BucketState::Gone);
    }
}
