//! Clean-up: deletes what this run created and nothing else.
//!
//! ```text
//!  list the prefix ──▶ pages of keys ──▶ keep the run's own names ──▶ delete batches (in parallel)
//!  ──▶ abort unfinished uploads ──▶ remove the marker ──▶ delete the bucket, if this run made it
//! ```
//!
//! Buckets that the workload made itself come first: each is emptied in the same way and then deleted.
//!
//! Deleting while listing is safe: a listing continues after the last key that it returned.

use std::cell::RefCell;
use std::rc::Rc;

use bucketload_core::driver::{AnyDriver, AnySession};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::generate::names::{HASH_DIGITS, INDEX_DIGITS, file_index};
use bucketload_core::plan::{KeyNaming, KeysetPlan, PhaseKind, Plan};
use tokio::task::JoinSet;

use crate::buckets::{BucketState, WorkloadBuckets};
use crate::error::RunError;
use crate::leftover;
use crate::options::RunOptions;
use crate::ownership::{
    Claim, Marker, in_workload_buckets, marker_key, open_control, prefix_in_workload_buckets,
    read_marker,
};
use crate::stop::{StopHandle, StopLevel};
use crate::uploads::{abort_uploads, abort_uploads_in, delete_bucket, may_leave_uploads};
use crate::versions;

/// Most delete requests under way at the same time.
const PARALLEL: usize = 8;
/// Most attempts of each request of the clean-up.
pub(crate) const ATTEMPTS: u32 = 5;

/// Repeats a fallible call until it succeeds, fails for good or has used up its attempts.
macro_rules! retry {
    ($timeout_ns:expr, $call:expr) => {{
        let mut attempt = 1;
        loop {
            match $crate::ownership::timed($timeout_ns, $call).await {
                Err(error)
                    if $crate::cleanup::worth_another_try(error.kind)
                        && attempt < $crate::cleanup::ATTEMPTS =>
                {
                    let pause = std::time::Duration::from_millis(50 << attempt);
                    tokio::time::sleep(pause).await;
                    attempt += 1;
                }
                result => break result,
            }
        }
    }};
}
pub(crate) use retry;

/// Whether a call of the clean-up is repeated after a failure of this kind. The credentials have worked before, so if
/// they are refused now, a token has probably expired and is being renewed.
pub(crate) fn worth_another_try(kind: ErrorKind) -> bool {
    kind.is_retryable() || kind == ErrorKind::Auth
}

/// The result of a clean-up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CleanupReport {
    /// Objects deleted.
    pub objects: u64,
    /// Versions and delete markers removed, in buckets that keep versions.
    pub versions: u64,
    /// Unfinished multipart uploads aborted.
    pub uploads: u64,
    /// Objects under the prefix that do not belong to this run and were left alone.
    pub foreign: u64,
    /// Deleted buckets that the workload had made itself.
    pub buckets: u64,
    /// Whether the bucket was deleted.
    pub bucket_deleted: bool,
    /// Whether everything that the run created is gone.
    pub complete: bool,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// What is left of the run, where, why, and how to remove it; `None` when nothing is left.
    pub left: Option<String>,
}

/// Which objects [`crate::discard`] deletes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discard {
    /// Objects that measuring phases wrote beyond the prepared data set: fresh objects, and the objects of key sets
    /// that no preparation writes.
    Written,
    /// Every object of the run, including the prepared ones.
    Everything,
}

impl Discard {
    /// Whether object `index` of key set `keyset` is deleted.
    fn takes(self, plan: &Plan, keyset: usize, index: u64) -> bool {
        self == Self::Everything
            || index >= plan.keysets[keyset].count
            || !is_prepared(plan, keyset)
    }
}

/// Whether a phase of the plan writes the initial objects of a key set before the measurement.
fn is_prepared(plan: &Plan, keyset: usize) -> bool {
    plan.phases
        .iter()
        .filter(|phase| phase.kind == PhaseKind::Prepare)
        .flat_map(|phase| &phase.works)
        .flat_map(|work| &work.mix)
        .any(|entry| usize::from(entry.keyset) == keyset)
}

/// Deletes the objects that `what` selects and aborts unfinished uploads. Keeps marker and bucket.
pub(crate) async fn discard(
    driver: &AnyDriver,
    plan: &Plan,
    options: &RunOptions,
    what: Discard,
    stop: &StopHandle,
) -> Result<CleanupReport, RunError> {
    let failed = |error: OpError| failure(options, error);
    let mut report = CleanupReport::default();
    let mut session = open_control(driver, plan).await.map_err(failed)?;
    let marker = retry!(
        plan.timeout_ns,
        read_marker(&mut session, &options.bucket, &options.prefix)
    )
    .map_err(failed)?;
    if let Err(refusal) = owned(marker, None, options) {
        return Err(failed(OpError::new(ErrorKind::Conflict, refusal.why)));
    }
    let mut sweep = Sweep {
        driver,
        plan,
        options,
        stop,
        session: &mut session,
        report: &mut report,
    };
    let buckets = WorkloadBuckets::of(plan, &options.run_id);
    let mut aborted = match &buckets {
        Some(buckets) => sweep.workload_buckets(buckets).await.map_err(failed)?,
        None => false,
    };
    if !aborted {
        let take = |keyset, index| what.takes(plan, keyset, index);
        aborted = sweep
            .objects((plan, &options.prefix), &options.bucket, &take)
            .await
            .map_err(failed)?;
    }
    if !aborted {
        if may_leave_uploads(plan, &driver.facts()) {
            abort_uploads(plan, options, &mut session, &mut report).await;
        }
        report.complete = true;
    }
    Ok(report)
}

fn failure(options: &RunOptions, error: OpError) -> RunError {
    RunError::Cleanup {
        bucket: options.bucket.clone(),
        prefix: options.prefix.clone(),
        error,
    }
}

impl CleanupReport {
    /// Adds a warning unless it is already there.
    pub(crate) fn warn(&mut self, text: String) {
        if !self.warnings.contains(&text) {
            self.warnings.push(text);
        }
    }
}

/// Deletes everything that the run wrote and notes in `report` how far it got. `claim` is the result of the run's
/// claim, if this process made one; `buckets` holds the states of the buckets that the workload made itself.
pub(crate) async fn clean(
    driver: &AnyDriver,
    plan: &Plan,
    options: &RunOptions,
    claim: Option<&Claim>,
    buckets: Option<&WorkloadBuckets>,
    stop: &StopHandle,
    report: &mut CleanupReport,
) -> Result<(), OpError> {
    let mut session = retry!(plan.timeout_ns, open_control(driver, plan))?;
    let marker = retry!(
        plan.timeout_ns,
        read_marker(&mut session, &options.bucket, &options.prefix)
    )?;
    let marker = match owned(marker, claim, options) {
        Ok(marker) => marker,
        Err(Refusal { why, ours: true }) => {
            report.left = Some(leftover::unmarked(options, &why));
            return Ok(());
        }
        Err(Refusal { why, ours: false }) => {
            report.warn(why);
            return Ok(());
        }
    };
    let mut sweep = Sweep {
        driver,
        plan,
        options,
        stop,
        session: &mut session,
        report,
    };
    let mut aborted = match buckets {
        Some(buckets) => sweep.workload_buckets(buckets).await?,
        None => false,
    };
    if !aborted {
        let all = |_, _| true;
        aborted = sweep
            .objects((plan, &options.prefix), &options.bucket, &all)
            .await?;
    }
    if aborted {
        return Ok(());
    }
    if may_leave_uploads(plan, &driver.facts()) {
        abort_uploads(plan, options, &mut session, report).await;
    }
    let key = [marker_key(&options.prefix)];
    retry!(plan.timeout_ns, session.delete_keys(&options.bucket, &key))?;
    report.complete = true;
    let own = |name: &str| name == key[0] || own_object(plan, &options.prefix, name).is_some();
    let place = (options.bucket.as_str(), options.prefix.as_str());
    let locked = plan.bucket_needs().lock;
    versions::remove(
        options,
        place,
        (plan.timeout_ns, locked),
        &mut session,
        &own,
        report,
    )
    .await;
    if report.foreign > 0 {
        report.warnings.push(format!(
            "{} objects under `{}/{}` do not belong to this run and were left alone",
            report.foreign, options.bucket, options.prefix
        ));
    }
    if marker.created_bucket || claim.is_some_and(|c| c.created_bucket) {
        match delete_bucket(&mut session, &options.bucket, plan.timeout_ns).await {
            Ok(_) => report.bucket_deleted = true,
            // Others use the bucket.
            Err(error) if error.kind == ErrorKind::Conflict => report.warnings.push(format!(
                "bucket `{}`, which this run created, was not deleted: {error}",
                options.bucket
            )),
            Err(error) => {
                report.complete = false;
                report.left = Some(leftover::bucket(options, &error));
            }
        }
    }
    Ok(())
}

/// Why nothing may be deleted.
struct Refusal {
    why: String,
    /// Whether the objects there belong to the run nevertheless.
    ours: bool,
}

/// The marker, if the prefix belongs to this run.
fn owned(
    marker: Option<Marker>,
    claim: Option<&Claim>,
    options: &RunOptions,
) -> Result<Marker, Refusal> {
    let place = format!("`{}/{}`", options.bucket, options.prefix);
    let (why, ours) = match marker {
        _ if claim.is_some_and(|c| c.foreign) => {
            (format!("{place} held other objects before this run"), false)
        }
        None => {
            let why = format!("{place} carries no ownership marker any more");
            return Err(Refusal { why, ours: true });
        }
        Some(m) if m.run_id != options.run_id => {
            (format!("{place} belongs to run {}", m.run_id), false)
        }
        Some(marker) => return Ok(marker),
    };
    let why = format!("nothing was deleted: {why}; remove by hand what you no longer need");
    Err(Refusal { why, ours })
}

/// A clean-up under way.
struct Sweep<'a> {
    driver: &'a AnyDriver,
    plan: &'a Plan,
    options: &'a RunOptions,
    stop: &'a StopHandle,
    session: &'a mut AnySession,
    report: &'a mut CleanupReport,
}

impl Sweep<'_> {
    /// Empties and deletes the buckets that the workload made itself. Returns whether the user aborted the clean-up.
    ///
    /// A bucket belongs to the run if this process made it, if its name carries the run's identifier, or if it holds
    /// objects of the run. Objects of others stay, and so does their bucket.
    async fn workload_buckets(&mut self, buckets: &WorkloadBuckets) -> Result<bool, OpError> {
        let prefix = prefix_in_workload_buckets(&self.options.prefix);
        let mut plan = self.plan.clone();
        plan.keysets = plan.keysets.iter().map(in_workload_buckets).collect();
        for set in buckets.sets() {
            for number in 0..set.plan.count {
                if set.state(number) == BucketState::Gone {
                    continue;
                }
                let name = set.name(number);
                let before = self.report.objects;
                match self.objects((&plan, &prefix), &name, &|_, _| true).await {
                    Ok(true) => return Ok(true),
                    Ok(false) => {}
                    // The bucket was never made.
                    Err(error) if error.kind == ErrorKind::NotFound => continue,
                    Err(error) => return Err(error),
                }
                if may_leave_uploads(&plan, &self.driver.facts()) {
                    let place = (name.as_str(), prefix.as_str());
                    abort_uploads_in(&plan, place, self.session, self.report).await;
                }
                let own = |key: &str| own_object(&plan, &prefix, key).is_some();
                let place = (name.as_str(), prefix.as_str());
                let (limit, options) = (self.plan.timeout_ns, self.options);
                let limit = (limit, false);
                versions::remove(options, place, limit, self.session, &own, self.report).await;
                let proven = !set.plan.exact
                    || set.state(number) == BucketState::Made
                    || self.report.objects > before;
                if !proven {
                    self.report.warnings.push(format!(
                        "bucket `{name}` was left alone: nothing proves that this run made it"
                    ));
                    continue;
                }
                match delete_bucket(self.session, &name, self.plan.timeout_ns).await {
                    Ok(deleted) => self.report.buckets += u64::from(deleted),
                    Err(error) => self.report.warnings.push(format!(
                        "bucket `{name}`, which this run made, was not deleted: {error}"
                    )),
                }
            }
        }
        Ok(false)
    }

    /// Lists the objects below `prefix` in `bucket` that carry names of `plan`, and deletes those that `take` selects
    /// by key set and index. Returns whether the user aborted the clean-up.
    async fn objects(
        &mut self,
        (plan, prefix): (&Plan, &str),
        bucket: &str,
        take: &dyn Fn(usize, u64) -> bool,
    ) -> Result<bool, OpError> {
        let driver = self.driver;
        let marker = marker_key(prefix);
        let sessions: Rc<RefCell<Vec<AnySession>>> = Rc::default();
        let mut deletions: JoinSet<Result<u64, OpError>> = JoinSet::new();
        let mut after: Option<String> = None;
        loop {
            if self.stop.level() == StopLevel::Abort {
                return Ok(true);
            }
            let page = retry!(
                plan.timeout_ns,
                self.session.list_keys(bucket, prefix, after.as_deref())
            )?;
            if let Some(note) = page.note {
                self.report.warn(note.into());
            }
            let mut keys = page.keys;
            keys.retain(|key| match own_object(plan, prefix, key) {
                Some((keyset, index)) => take(keyset, index),
                None => {
                    self.report.foreign += u64::from(*key != marker);
                    false
                }
            });
            if !keys.is_empty() {
                while deletions.len() >= PARALLEL {
                    self.report.objects += joined(deletions.join_next().await)?;
                }
                let spare = sessions.borrow_mut().pop();
                let mut session = match spare {
                    Some(session) => session,
                    None => open_control(driver, plan).await?,
                };
                let (sessions, bucket) = (Rc::clone(&sessions), bucket.to_owned());
                let timeout_ns = plan.timeout_ns;
                deletions.spawn_local(async move {
                    retry!(timeout_ns, session.delete_keys(&bucket, &keys))?;
                    sessions.borrow_mut().push(session);
                    Ok(keys.len() as u64)
                });
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        while !deletions.is_empty() {
            self.report.objects += joined(deletions.join_next().await)?;
        }
        Ok(false)
    }
}

fn joined(
    ended: Option<Result<Result<u64, OpError>, tokio::task::JoinError>>,
) -> Result<u64, OpError> {
    match ended {
        Some(Ok(result)) => result,
        Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
        None => Ok(0),
    }
}

/// Key set and index of the object called `key`, if the plan gives such names to objects (see
/// [`bucketload_core::generate::names`]): the run's prefix, a key set's prefix, perhaps a shard, an index. Any other
/// object does not belong to the run.
fn own_object(plan: &Plan, prefix: &str, key: &str) -> Option<(usize, u64)> {
    let digits = |text: &str, least: usize| {
        text.len() >= least && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let replays = plan
        .phases
        .iter()
        .flat_map(|phase| &phase.works)
        .any(|work| !work.model.has_indexed_names());
    let is_hash =
        |text: &str| text.len() == HASH_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let named = |set: &KeysetPlan| {
        let name = key
            .strip_prefix(prefix)?
            .strip_prefix(set.prefix.as_str())?;
        if replays {
            // Names come from a trace or are paths: everything below the key set's prefix belongs to the run, and
            // nothing there has an index.
            return Some(u64::MAX);
        }
        let index = match (set.shards > 1, name.split_once('/')) {
            (false, None) => name,
            (true, Some((shard, index))) if digits(shard, 2) => index,
            _ => return None,
        };
        if set.naming.file_ending().is_some() {
            return file_index(set, index);
        }
        let index = match (set.naming, index.split_once('-')) {
            (KeyNaming::Index, None) => index,
            (KeyNaming::Hashed, Some((hash, index))) if is_hash(hash) => index,
            _ => return None,
        };
        // Too many digits for an index: not a name of ours.
        digits(index, INDEX_DIGITS).then(|| index.parse().ok())?
    };
    let mut sets = plan.keysets.iter().enumerate();
    sets.find_map(|(number, set)| Some((number, named(set)?)))
}

#[cfg(test)]
mod tests {
    use bucketload_core::generate::names::KeyNames;
    use bucketload_core::payload::PayloadKind;
    use bucketload_core::plan::{
        KeyNaming, KeysetPlan, Plan, RetryPlan, SizeAssign, SizeKind, SizeLaw,
    };
    use proptest::prelude::*;

    use super::own_object;

    fn plan(shards: u32, naming: KeyNaming) -> Plan {
        Plan {
            workload: String::new(),
            profile: String::new(),
            compat: String::new(),
            seed: 0,
            scale: 1.0,
            size_scale: 1.0,
            payload: PayloadKind::Zeros,
            verify: false,
            timeout_ns: 1,
            retry: RetryPlan {
                max_attempts: 1,
                backoff_ns: 0,
                max_backoff_ns: 0,
            },
            not_found_is_failure: true,
            keysets: vec![KeysetPlan {
                name: "r".into(),
                prefix: "r/".into(),
                shards,
                count: 10,
                size: SizeLaw {
                    law: SizeKind::Const { bytes: 1 },
                    min: 1,
                    max: 1,
                },
                assign: SizeAssign::Random,
                overwritten: false,
                naming,
                existing: false,
                buckets: None,
            }],
            phases: Vec::new(),
        }
    }

    proptest! {
        #[test]
        fn every_name_of_the_plan_belongs_to_the_run(
            key in any::<u64>(), shards in 1u32..300, naming in 0usize..3,
        ) {
            let naming = [KeyNaming::Index, KeyNaming::Hashed, KeyNaming::DlioNpz][naming];
            let plan = plan(shards, naming);
            let names = KeyNames::new("p/", &plan.keysets[0]).unwrap();
            let mut name = String::new();
            names.render(key, &mut name);
            prop_assert_eq!(own_object(&plan, "p/", &name), Some((0, key)));
            prop_assert_eq!(own_object(&plan, "q/", &name), None);
        }
    }

    #[test]
    fn other_names_are_foreign() {
        for name in [
            "p/x",
            "p/r/",
            "p/r/1",
            "p/r/readme.txt",
            "p/r/00/0000000000001",
            "p/s/0000000000001",
        ] {
            let plan = plan(1, KeyNaming::Index);
            assert_eq!(own_object(&plan, "p/", name), None, "{name}");
        }
        let sharded = plan(4, KeyNaming::Index);
        assert_eq!(own_object(&sharded, "p/", "p/r/0000000000001"), None);
        assert_eq!(own_object(&sharded, "p/", "p/r/a0/0000000000001"), None);
        let beyond = format!("p/r/{}0", u64::MAX);
        assert_eq!(own_object(&plan(1, KeyNaming::Index), "p/", &beyond), None);
        let hashed = plan(1, KeyNaming::Hashed);
        for name in [
            "p/r/0000000000001",
            "p/r/0123456789-1",
            "p/r/012345678x-0000000000001",
        ] {
            assert_eq!(own_object(&hashed, "p/", name), None, "{name}");
        }
    }
}
