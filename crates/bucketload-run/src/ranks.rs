//! Ranks: their steps, the stonewall, and the steps after it.
//!
//! ```text
//!  rank 0  step step step step ┤ 4          ├ step ─┐
//!  rank 1  step step ──────────┤ 2   gate   ├ step step step ─┐   all end with the highest count
//!  rank 2  step step step step step ┤ 5     ├ ────────────────┘
//!                              stonewall
//! ```
//!
//! A rank checks the clock between two steps. After the stonewall it reports its count of steps and waits for the
//! others; then all go on to the highest count. Operations take the same path as in any closed loop
//! ([`crate::closed`]). The counts of a phase are kept for the phases that follow. If ranks are spread over several
//! processes, the processes agree on the highest count ([`crate::rank_agreement`]).

use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bucketload_core::generate::ranks::{RankGen, StepPosition};
use bucketload_core::op::{Op, OpClass, VersionId, Watch};
use bucketload_core::plan::Plan;
use bucketload_core::plan::ranks::{RankMapping, RankTask, WorkbenchStage};
use bucketload_core::ranks::RankSum;
use bucketload_core::record::Outcome;
use tokio::sync::Notify;

use crate::clock::now_ns;
use crate::due::{DueOp, OpEnd};
use crate::rank_agreement::RankAgreement;
use crate::shard::Shard;

/// How often waiting ranks check whether the phase has ended.
const LOOK: Duration = Duration::from_millis(50);

/// What later phases of the run need to know about earlier ones.
#[derive(Debug)]
pub(crate) struct History {
    /// Highest number of steps of a rank, per phase.
    steps: Vec<AtomicU64>,
    /// Start of each phase, seconds since 1970.
    began_s: Vec<AtomicI64>,
    /// The entity tag of the marker `latest` as this process last wrote it; empty before.
    marker: Mutex<VersionId>,
    /// The agreement with the other processes of the run, if there are any.
    agreement: Option<Arc<RankAgreement>>,
}

impl History {
    pub(crate) fn new(plan: &Plan, agreement: Option<Arc<RankAgreement>>) -> Arc<Self> {
        Arc::new(Self {
            steps: plan.phases.iter().map(|_| AtomicU64::new(0)).collect(),
            began_s: plan.phases.iter().map(|_| AtomicI64::new(0)).collect(),
            marker: Mutex::default(),
            agreement,
        })
    }

    /// The entity tag of the marker `latest`.
    pub(crate) fn marker(&self) -> VersionId {
        *self.marker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The marker `latest` now has the entity tag `tag`.
    pub(crate) fn set_marker(&self, tag: VersionId) {
        *self.marker.lock().unwrap_or_else(PoisonError::into_inner) = tag;
    }

    /// Phase `phase` begins now.
    pub(crate) fn begins(&self, phase: usize) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = since.map_or(0, |since| since.as_secs());
        self.began_s[phase].store(
            i64::try_from(seconds).unwrap_or(i64::MAX),
            Ordering::Release,
        );
    }

    fn steps(&self, phase: u16) -> u64 {
        let agreed = self
            .agreement
            .as_ref()
            .and_then(|agreement| agreement.steps(phase));
        agreed.unwrap_or_else(|| self.steps[usize::from(phase)].load(Ordering::Acquire))
    }

    fn began_s(&self, phase: u16) -> i64 {
        let agreed = self
            .agreement
            .as_ref()
            .and_then(|agreement| agreement.began_s(phase));
        agreed.unwrap_or_else(|| self.began_s[usize::from(phase)].load(Ordering::Acquire))
    }
}

/// The work of all ranks of this process.
pub(crate) struct RankWork {
    pub(crate) ops: RankGen,
    /// Ranks that have not reported their number of steps.
    pending: AtomicU32,
    /// Highest number of steps reported.
    most: AtomicU64,
    opened: Notify,
    /// Whether rank 0 has opened the shared file.
    open: AtomicBool,
    /// Index of the phase.
    phase: u16,
    /// The agreement with the ranks of other processes, if there are any.
    agreement: Option<Arc<RankAgreement>>,
}

impl RankWork {
    /// The work of the `local_ranks` ranks of this process in phase `phase`.
    pub(crate) fn new(
        ops: RankGen,
        phase: u16,
        local_ranks: u32,
        agreement: Option<Arc<RankAgreement>>,
    ) -> Self {
        Self {
            pending: AtomicU32::new(local_ranks),
            most: AtomicU64::new(0),
            opened: Notify::new(),
            open: AtomicBool::new(false),
            ops,
            phase,
            agreement,
        }
    }

    fn arrive(&self, steps: u64) {
        self.most.fetch_max(steps, Ordering::AcqRel);
        if self.pending.fetch_sub(1, Ordering::AcqRel) == 1 {
            if let Some(agreement) = &self.agreement {
                agreement.reached(self.phase, self.most.load(Ordering::Acquire));
            }
            self.opened.notify_waiters();
        }
    }

    /// The step to which all ranks go on, once every rank has reported.
    fn agreed(&self) -> Option<u64> {
        match &self.agreement {
            Some(agreement) => agreement.steps(self.phase),
            None if self.pending.load(Ordering::Acquire) > 0 => None,
            None => Some(self.most.load(Ordering::Acquire)),
        }
    }

    /// Rank 0 has opened the shared file.
    fn open(&self) {
        self.open.store(true, Ordering::Release);
        self.opened.notify_waiters();
    }

    /// Waits until every rank has reported, or until rank 0 has opened the shared file. Returns `false` if the phase
    /// ends first.
    pub(crate) async fn meet(&self, shard: &Shard, wait: Wait) -> bool {
        let ready = || match wait {
            Wait::Opening => self.open.load(Ordering::Acquire),
            Wait::Stonewall => self.agreed().is_some(),
        };
        loop {
            let agreement = self.agreement.as_ref().filter(|_| wait == Wait::Stonewall);
            let news = agreement.map(|agreement| agreement.changed());
            let mut opened = pin!(news.unwrap_or(&self.opened).notified());
            // Enabled before the check, so nothing that happens in between is missed.
            opened.as_mut().enable();
            if ready() {
                return true;
            }
            if now_ns() >= shard.cutoff_ns.get() {
                return false;
            }
            let _ = tokio::time::timeout(LOOK, opened).await;
        }
    }
}

/// What a worker does next.
pub(crate) enum Turn {
    /// The operation of this sequence number.
    Number(u64),
    /// This operation.
    Op(Op),
    /// Wait for other ranks ([`RankWork::meet`]).
    Meet(Wait),
    /// Nothing more.
    End,
}

/// What a rank waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Rank 0 opens the shared file.
    Opening,
    /// Every rank reports its number of steps.
    Stonewall,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Opening,
    Steps,
    Closing,
}

/// What a rank has done so far. It outlives a rank that the end of the phase interrupts.
pub(crate) struct RankRecord {
    sum: RefCell<RankSum>,
    finder: Option<Rc<Finder>>,
}

impl RankRecord {
    /// Rank `rank`, which has done nothing and searches nothing.
    pub(crate) fn new(rank: u32) -> Self {
        Self {
            sum: RefCell::new(RankSum {
                rank,
                ..RankSum::default()
            }),
            finder: None,
        }
    }

    /// Counts an operation that has ended; returns whether it failed.
    pub(crate) fn count(&self, due_op: &DueOp, end: &OpEnd) -> bool {
        let took_ns = end.done_ns.saturating_sub(due_op.due_ns);
        let failed = matches!(end.outcome, Outcome::Failed(_));
        let mut sum = self.sum.borrow_mut();
        if sum.ops + sum.failed == 0 {
            sum.first_ns = due_op.due_ns;
        }
        sum.last_ns = sum.last_ns.max(end.done_ns);
        sum.longest_ns = sum.longest_ns.max(took_ns);
        sum.failed += u64::from(failed);
        if !failed {
            sum.ops += 1;
            sum.bytes += end.bytes;
        }
        failed
    }

    /// Counts a step that has ended.
    pub(crate) fn step(&self, good: bool) {
        let mut sum = self.sum.borrow_mut();
        sum.steps += 1;
        sum.good += u64::from(good);
    }

    pub(crate) fn sum(&self) -> RankSum {
        let mut sum = *self.sum.borrow();
        if let Some(finder) = &self.finder {
            (sum.seen, sum.found) = (finder.seen.get(), finder.found.get());
        }
        sum
    }
}

/// Progress of a rank.
pub(crate) struct RankTurns {
    rank: u32,
    record: Rc<RankRecord>,
    stage: Stage,
    spot: StepPosition,
    /// Whether a step is under way.
    inside: bool,
    /// Whether an operation of the step has failed.
    bad: bool,
    turn: u64,
    /// Most steps.
    limit: u64,
    /// The step to go on to, once the rank has reported; `u64::MAX` until the ranks agree.
    target: Option<u64>,
    /// Steps of the phase that this one follows.
    written: u64,
    start_ns: u64,
    not_before_ns: u64,
}

impl RankTurns {
    /// Rank `rank` before its first operation, in a phase that began at `start_ns`.
    pub(crate) fn new(work: &RankWork, rank: u32, history: &History, start_ns: u64) -> Self {
        let plan = work.ops.plan();
        let written = plan.follows.map(|phase| plan.taken(history.steps(phase)));
        let limit = plan.limit(rank, written);
        let before: u64 = plan.after.iter().map(|phase| history.steps(*phase)).sum();
        let base = plan.start + before;
        let since_s = plan.newer_than.map_or(0, |phase| history.began_s(phase));
        let sought = match plan.task {
            RankTask::Find { bytes, .. } => Some((true, bytes)),
            RankTask::Count => Some((false, None)),
            _ => None,
        };
        let finder = sought.map(|(by_name, bytes)| {
            Rc::new(Finder {
                mapping: plan.mapping,
                by_name,
                bytes,
                since_s,
                named: Cell::new(false),
                seen: Cell::new(0),
                found: Cell::new(0),
            })
        });
        Self {
            rank,
            record: Rc::new(RankRecord {
                sum: RefCell::new(RankSum {
                    rank,
                    ..RankSum::default()
                }),
                finder,
            }),
            stage: Stage::Opening,
            spot: StepPosition {
                base,
                step: 0,
                set: 0,
                entry: 0,
            },
            inside: false,
            bad: false,
            turn: 0,
            limit,
            target: None,
            written: written.unwrap_or(0),
            start_ns,
            not_before_ns: 0,
        }
    }

    /// Sees what the rank's operations receive, in phases that look at it.
    pub(crate) fn watch(&self) -> Option<Rc<dyn Watch>> {
        let finder = self.record.finder.clone()?;
        Some(finder)
    }

    /// The rank's record, which it keeps updating.
    pub(crate) fn record(&self) -> Rc<RankRecord> {
        Rc::clone(&self.record)
    }

    /// The rank waits until this instant, nanoseconds since the epoch.
    pub(crate) const fn not_before_ns(&self) -> u64 {
        self.not_before_ns
    }

    /// The next operation.
    pub(crate) fn next(&mut self, work: &RankWork, shard: &Shard, now_ns: u64) -> Turn {
        let plan = work.ops.plan();
        let last = work.ops.entries() - plan.closing;
        loop {
            match self.stage {
                Stage::Opening => {
                    let opens = !plan.first_opens || self.rank == 0;
                    if opens && self.spot.entry < plan.opening {
                        let op = self.op(work);
                        self.spot.entry += 1;
                        return Turn::Op(op);
                    }
                    if plan.first_opens && plan.mapping == RankMapping::Libs3Buckets {
                        if opens {
                            work.open();
                        } else if !work.open.load(Ordering::Acquire) {
                            return Turn::Meet(Wait::Opening);
                        }
                    }
                    self.stage = Stage::Steps;
                }
                Stage::Steps => {
                    if !self.inside {
                        match self.boundary(work, shard, now_ns) {
                            Some(true) => {}
                            Some(false) => return Turn::Meet(Wait::Stonewall),
                            None => {
                                self.stage = Stage::Closing;
                                self.spot.entry = last;
                                continue;
                            }
                        }
                        self.inside = true;
                        self.bad = false;
                        self.spot.set = 0;
                        self.spot.entry = plan.opening;
                    }
                    let op = self.op(work);
                    self.spot.entry += 1;
                    if self.spot.entry == last {
                        self.next_set(work);
                    }
                    return Turn::Op(op);
                }
                Stage::Closing if self.spot.entry < work.ops.entries() => {
                    let op = self.op(work);
                    self.spot.entry += 1;
                    return Turn::Op(op);
                }
                Stage::Closing => return Turn::End,
            }
        }
    }

    fn next_set(&mut self, work: &RankWork) {
        self.spot.entry = work.ops.plan().opening;
        self.spot.set += 1;
        self.inside = self.spot.set < work.ops.sets();
    }

    fn op(&mut self, work: &RankWork) -> Op {
        let op = work.ops.op(self.rank, self.spot, self.turn, self.written);
        self.turn += 1;
        op
    }

    /// Between two steps: whether to go on (`Some(true)`), wait for the others, or end (`None`).
    fn boundary(&mut self, work: &RankWork, shard: &Shard, now_ns: u64) -> Option<bool> {
        let plan = work.ops.plan();
        let step = self.spot.step;
        if self.target == Some(u64::MAX) {
            self.target = work.agreed();
        }
        if let Some(target) = self.target {
            return (step < target).then_some(true);
        }
        // The clock is checked after a step, so at least one is made.
        let over = plan.stonewall_ns > 0
            && step > 0
            && now_ns >= self.start_ns.saturating_add(plan.stonewall_ns);
        if step < self.limit && !over {
            return Some(true);
        }
        if over {
            let mut sum = self.record.sum.borrow_mut();
            sum.wall_ns = now_ns;
            sum.wall_good = sum.good;
            sum.wall_bytes = sum.bytes;
        }
        let shared = &shard.shared;
        shared.history.steps[usize::from(shared.phase)].fetch_max(step, Ordering::AcqRel);
        work.arrive(step);
        if over && plan.wear_out {
            self.target = Some(u64::MAX);
            return Some(false);
        }
        self.target = Some(step);
        None
    }

    /// An operation of the rank has ended.
    pub(crate) fn ended(&mut self, work: &RankWork, due_op: &DueOp, end: &OpEnd) {
        let plan = work.ops.plan();
        let took_ns = end.done_ns.saturating_sub(due_op.due_ns);
        if self.record.count(due_op, end) {
            self.bad = true;
            let stage = match plan.task {
                RankTask::Workbench { stage, .. } => Some(stage),
                _ => None,
            };
            // A missing object is neither read nor replaced (docs/spec/io500-mdworkbench.md section B.1).
            let skips =
                stage == Some(WorkbenchStage::Benchmark) && due_op.op.class == OpClass::Head;
            if skips && self.inside && self.spot.entry > plan.opening {
                self.next_set(work);
            }
        }
        if self.stage == Stage::Steps && !self.inside {
            self.spot.step += 1;
            self.record.step(!self.bad);
        }
        if plan.waiting > 0.0 {
            let wait = took_ns as f64 * plan.waiting;
            self.not_before_ns = end.now_ns.saturating_add(wait as u64);
        }
    }
}

/// Searches a listing: part of the name, size and age decide which objects are found.
struct Finder {
    mapping: RankMapping,
    /// Whether names are searched for, or only counted.
    by_name: bool,
    /// The size searched for; `None` if the name suffices.
    bytes: Option<u64>,
    since_s: i64,
    /// Whether the name of the last key matches.
    named: Cell<bool>,
    seen: Cell<u64>,
    found: Cell<u64>,
}

/// Part of the names of files searched for (docs/spec/io500-mdworkbench.md section A.1).
const SOUGHT: &[u8] = b"01";

impl Watch for Finder {
    fn body(&self, _bytes: &[u8]) {}

    fn listed(&self, key: &str) {
        self.seen.set(self.seen.get() + 1);
        let name = || self.mapping.file_name(key).as_bytes();
        let sought = self.by_name && name().windows(SOUGHT.len()).any(|part| part == SOUGHT);
        self.named.set(sought && self.bytes.is_some());
        if sought && self.bytes.is_none() {
            self.found.set(self.found.get() + 1);
        }
    }

    fn takes_any_order(&self) -> bool {
        true
    }

    fn wants_details(&self) -> bool {
        self.named.get()
    }

    fn details(&self, bytes: u64, changed_s: i64) {
        if self.named.replace(false) && Some(bytes) == self.bytes && changed_s >= self.since_s {
            self.found.set(self.found.get() + 1);
        }
    }

    fn cut_short(&self) {}
}
