//! Works on buckets and objects that the user names: what a worker does next, and the check of the store before the
//! run.
//!
//! Names that the user states may belong to somebody else. So before such a plan begins, every bucket that it changes
//! is looked up. A bucket passes if it does not exist, or if the plan does not delete it and it holds nothing under
//! the names of the workload. Then everything that the run replaces or deletes was written by the run. Otherwise the
//! run is refused unless the user allows it ([`crate::RunOptions::change_existing`]).

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bucketload_core::driver::{AnyDriver, AnySession};
use bucketload_core::error::ErrorKind;
use bucketload_core::generate::named::{NamedCursor, NamedGen};
use bucketload_core::op::{Op, OpClass};
use bucketload_core::plan::Plan;
use bucketload_core::plan::buckets::MOST_BUCKETS;
use bucketload_core::plan::named::NamePattern;

use crate::closed::WorkerShare;
use crate::due::{DueOp, OpEnd};
use crate::error::RunError;
use crate::options::RunOptions;
use crate::ownership::{open_control, timed};
use crate::worker_rows::Window;

/// The operations of a work on named objects, shared by all threads.
pub(crate) struct NamedWork {
    pub(crate) ops: NamedGen,
    crew: Range<u32>,
    /// Workers of this process that have not finished their walk.
    left: AtomicU32,
    /// Whether the warning about objects without trailers was given.
    warned: AtomicBool,
}

impl NamedWork {
    /// The work with the workers `crew` in this process.
    pub(crate) fn new(ops: NamedGen, crew: Range<u32>) -> Self {
        Self {
            ops,
            left: AtomicU32::new(crew.len() as u32),
            crew,
            warned: AtomicBool::new(false),
        }
    }

    /// Whether the warning about objects without trailers was given already. Counts it as given.
    pub(crate) fn has_warned(&self) -> bool {
        self.warned.swap(true, Ordering::Relaxed)
    }

    /// The workers of this process, numbered from 0 over all agents.
    pub(crate) fn crew(&self) -> Range<u32> {
        self.crew.clone()
    }
}

/// Progress of a worker on named objects.
pub(crate) struct NamedTurns {
    at: NamedCursor,
    window: Window,
    start_ns: u64,
    /// Operations in the window, and the worker's share of the limit on them.
    ops: (u64, Option<u64>),
    /// Bytes in the window, and the worker's share of the limit on them.
    bytes: (u64, Option<u64>),
    /// Bytes of all operations, for the rate limit.
    moved: u64,
    /// Number of buckets deleted after the walk. Only the worker that finishes last deletes them; `u64::MAX` for
    /// others.
    after: Option<u64>,
}

impl NamedTurns {
    /// A worker that has done nothing yet, in a phase that began at `start_ns`.
    pub(crate) fn new(
        work: &NamedWork,
        worker: WorkerShare,
        window: Window,
        start_ns: u64,
    ) -> Self {
        let plan = work.ops.plan();
        let share = |limit: u64| (limit > 0).then(|| plan.share(limit, worker.index));
        Self {
            at: work.ops.cursor(worker.index),
            window,
            start_ns,
            ops: (0, share(plan.ops)),
            bytes: (0, share(plan.bytes)),
            moved: 0,
            after: None,
        }
    }

    /// When the work's own time limit is reached, nanoseconds since the epoch.
    pub(crate) fn cutoff_ns(&self, work: &NamedWork) -> u64 {
        let stop = work.ops.plan().stop_ns();
        stop.map_or(u64::MAX, |stop| self.start_ns.saturating_add(stop))
    }

    /// The instant before which a rate limit allows no further operation, nanoseconds since the epoch.
    pub(crate) fn not_before_ns(&self, work: &NamedWork) -> u64 {
        let plan = work.ops.plan();
        let workers = u128::from(plan.workers);
        // Rate limits cover all workers, and each worker gets the same share.
        let after = |amount: u128, per_s: u64| match per_s {
            0 => 0,
            rate => u64::try_from(amount * 1_000_000_000 / u128::from(rate)).unwrap_or(u64::MAX),
        };
        let number = u128::from(self.at.index()) + u128::from(self.at.turn()) * workers;
        let by_ops = after(number, plan.max_ops_per_s);
        let by_bytes = after(u128::from(self.moved) * workers, plan.max_bytes_per_s);
        self.start_ns.saturating_add(by_ops.max(by_bytes))
    }

    /// The next operation; `None` when the worker has finished.
    pub(crate) fn next(&mut self, work: &NamedWork) -> Option<Op> {
        let used_up = |(done, share): (u64, Option<u64>)| share.is_some_and(|share| done >= share);
        if used_up(self.ops) || used_up(self.bytes) {
            return None;
        }
        if self.after.is_none() {
            if let Some(op) = work.ops.next(&mut self.at) {
                return Some(op);
            }
            let plan = work.ops.plan();
            let last = work.left.fetch_sub(1, Ordering::AcqRel) == 1;
            if !(plan.buckets_too && last && work.ops.deletes_buckets()) {
                self.after = Some(u64::MAX);
                return None;
            }
            self.after = Some(0);
        }
        let done = self.after.filter(|done| *done != u64::MAX)?;
        self.after = Some(done + 1);
        work.ops.bucket_after(&mut self.at, done)
    }

    /// An operation of the worker has ended.
    pub(crate) fn ended(&mut self, due_op: &DueOp, end: &OpEnd) {
        self.moved += end.bytes;
        if due_op.due_ns >= self.window.begin_ns && self.window.has_end(end.done_ns) {
            self.ops.0 += 1;
            self.bytes.0 += end.bytes;
        }
    }
}

/// Whether an answer that says "exists already" or "does not exist" counts as success. When several agents empty a
/// bucket together, the last one deletes it, and the others find it not empty.
pub(crate) const fn expected(op: &Op, kind: ErrorKind, agents: u32) -> bool {
    match (kind, op.class) {
        (ErrorKind::Conflict, OpClass::MakeBucket) => true,
        // Entry 1 deletes the buckets whose objects entry 0 walks.
        (ErrorKind::Conflict, OpClass::DeleteBucket) => agents > 1 && op.entry == 1,
        (ErrorKind::NotFound, class) => matches!(class, OpClass::Delete | OpClass::DeleteBucket),
        _ => false,
    }
}

/// The changes of a plan to the buckets of a name pattern.
#[derive(Default)]
struct Change {
    /// First and last number of each selector.
    numbers: Vec<(u32, u32)>,
    /// Whether the buckets themselves are deleted.
    deletes: bool,
    /// Prefixes of the objects that are written or deleted.
    objects: Vec<String>,
}

/// The changes of `plan`, by prefix and suffix of the buckets' names.
fn changes(plan: &Plan, options: &RunOptions) -> BTreeMap<(String, String), Change> {
    let mut all: BTreeMap<(String, String), Change> = BTreeMap::new();
    let phases = plan.phases.iter().enumerate();
    for (_, phase) in phases.filter(|(index, _)| options.includes(*index)) {
        for work in &phase.works {
            let Some(named) = work.model.named() else {
                continue;
            };
            for (mix, entry) in work.mix.iter().zip(&named.entries) {
                let deletes = mix.class == OpClass::DeleteBucket;
                // Local files are no objects, and whoever allows them answers for them.
                let local = mix.class == OpClass::LocalWrite;
                let writes = !mix.class.only_reads() && !mix.class.on_bucket() && !local;
                let Some(numbers) = entry.bucket.numbers.bounds() else {
                    continue;
                };
                if !(deletes || writes) {
                    continue;
                }
                let NamePattern { prefix, suffix, .. } = &entry.bucket;
                let change = all.entry((prefix.clone(), suffix.clone())).or_default();
                change.numbers.push(numbers);
                change.deletes |= deletes;
                if writes && entry.files.is_empty() {
                    let object = entry.object.as_ref().map(|o| o.prefix.clone());
                    change.objects.push(object.unwrap_or_default());
                }
                change
                    .objects
                    .extend(entry.files.iter().map(|file| file.name.clone()));
            }
        }
    }
    for change in all.values_mut() {
        change.objects.sort();
        change.objects.dedup();
    }
    all
}

/// Looks at every bucket that `plan` changes, without writing anything.
///
/// # Errors
/// When the target cannot be reached, when something exists that would be replaced or deleted, or when there are too
/// many buckets to look at.
pub(crate) async fn check(
    driver: &AnyDriver,
    plan: &Plan,
    options: &RunOptions,
) -> Result<(), RunError> {
    let mut session = open_control(driver, plan)
        .await
        .map_err(RunError::Unreachable)?;
    // The first agent looks on behalf of all: the others might already see the buckets that it makes. The null driver
    // has every bucket and keeps nothing.
    let looks = options.share.index == 0 && driver.facts().driver != "null";
    if options.change_existing || !looks {
        return Ok(());
    }
    for ((prefix, suffix), change) in changes(plan, options) {
        let mut ranges = change.numbers.clone();
        ranges.sort_unstable();
        let mut next = 0u64;
        let mut numbers = Vec::new();
        for (lo, hi) in ranges {
            let first = u64::from(lo).max(next);
            let past = u64::from(hi) + 1;
            if past.saturating_sub(first) + numbers.len() as u64 > MOST_BUCKETS {
                return Err(RunError::Options(format!(
                    "the workload changes more than {MOST_BUCKETS} buckets named \
                     `{prefix}NUMBER{suffix}`, too many to check first whether they belong to \
                     somebody else; name fewer, or allow changes with --delete-named"
                )));
            }
            numbers.extend(first..past);
            next = next.max(past);
        }
        for number in numbers {
            let bucket = format!("{prefix}{number}{suffix}");
            if let Some(found) = found(&mut session, plan.timeout_ns, &bucket, &change).await? {
                return Err(RunError::InUse { bucket, found });
            }
        }
    }
    Ok(())
}

/// Why `bucket` may not be changed, if there is a reason.
async fn found(
    session: &mut AnySession,
    timeout_ns: u64,
    bucket: &str,
    change: &Change,
) -> Result<Option<String>, RunError> {
    const STEP: &str = "checking whether it is in use";
    match timed(timeout_ns, session.head_bucket(bucket)).await {
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(None),
        // A bucket to which access is denied exists.
        Err(error) if error.kind == ErrorKind::Auth => {
            return Ok(Some(format!("cannot be checked ({error})")));
        }
        Err(error) => return Err(RunError::of_bucket(bucket, STEP, error)),
        Ok(()) if change.deletes => {
            return Ok(Some("exists already and would be deleted".to_owned()));
        }
        Ok(()) => {}
    }
    for prefix in &change.objects {
        let page = timed(timeout_ns, session.list_keys(bucket, prefix, None)).await;
        let page = page.map_err(|error| RunError::of_bucket(bucket, STEP, error))?;
        if let Some(key) = page.keys.first() {
            return Ok(Some(format!(
                "holds `{key}` already: objects of such names would be replaced or deleted"
            )));
        }
    }
    Ok(None)
}
