//! What the tasks of one load thread share during one phase.
//!
//! Load threads share only [`PhaseShared`]. It is read-only on the path of an operation, except for the counters of a
//! byte limit or of an operation limit over several works.
//!
//! ```text
//!                 ┌───────────── Shard (one thread, one phase) ──────────────┐
//!  open work  ────┤ Baton: schedule, idle workers     slots: deadlines       ├── recorder ──▶ collector
//!  closed work ───┤                                   cutoff, drain          │
//!                 └──────────────────────────────────────────────────────────┘
//! ```

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{Op, OpClass};
use bucketload_core::oplog::OpLog;
use bucketload_core::payload::Arena;
use bucketload_core::plan::{Limits, PhasePlan, Plan};
use bucketload_core::ranks::RankSum;
use bucketload_core::record::{OpRecord, Outcome};
use bucketload_core::sink::Event;

use tokio::sync::Notify;

use crate::baton::Baton;
use crate::buckets::WorkloadBuckets;
use crate::clock::thread_cpu_ns;
use crate::error::RunError;
use crate::integrity_trailer::TrailerVerdict;
use crate::named_objects::NamedWork;
use crate::options::{Pacing, Share};
use crate::oracle::{AnswerContext, Oracle, Ticket};
use crate::prepared::Progress;
use crate::ranks::{History, RankRecord};
use crate::recorder::{Message, Recorder, ThreadDone, ThreadGauges};
use crate::slots::Slots;
use crate::source::{Source, body_bytes};
use crate::startup::Startup;
use crate::streams::{StreamClock, Streams};
use crate::train::Accelerator;
use crate::version_table::VersionTable;
use crate::worker_rows::Rows;

/// Failures of each kind that may still be reported in full, over all threads and phases.
pub(crate) type FailureBudget = Arc<[AtomicU32; ErrorKind::ALL.len()]>;

/// What all load threads of a phase share.
pub(crate) struct PhaseShared {
    pub(crate) plan: Arc<Plan>,
    /// Index of the phase in the plan.
    pub(crate) phase: u16,
    pub(crate) sources: Vec<Source>,
    pub(crate) arena: Arc<Arena>,
    /// The consistency oracle, in runs that have one.
    pub(crate) oracle: Option<Arc<Oracle>>,
    /// The identifiers of versions, in runs with operations on one version.
    pub(crate) versions: Option<Arc<VersionTable>>,
    pub(crate) bucket: String,
    /// The buckets that the workload makes itself, if any.
    pub(crate) workload_buckets: Option<Arc<WorkloadBuckets>>,
    pub(crate) share: Share,
    pub(crate) threads: usize,
    /// Whether writes are read back and compared.
    pub(crate) check_writes: bool,
    /// Number of endpoints that the driver's sessions are spread over.
    pub(crate) endpoints: usize,
    pub(crate) op_log: Option<OpLog>,
    pub(crate) pacing: Pacing,
    pub(crate) failures: FailureBudget,
    /// Object bytes transferred so far; counted only under a byte limit.
    pub(crate) bytes: AtomicU64,
    /// Operations offered so far; counted only under an operation limit over several works.
    pub(crate) tickets: AtomicU64,
    /// When the streams of the phase run; `None` in phases that do not sum streams.
    pub(crate) streams: Option<Arc<StreamClock>>,
    /// What later phases need to know about earlier ones.
    pub(crate) history: Arc<History>,
    /// Which objects of a kept data set the phase prepares; `None` = no such phase.
    pub(crate) progress: Option<Arc<Progress>>,
}

impl PhaseShared {
    pub(crate) fn phase_plan(&self) -> &PhasePlan {
        &self.plan.phases[usize::from(self.phase)]
    }
}

/// The state of one load thread in one phase.
pub(crate) struct Shard {
    pub(crate) shared: Arc<PhaseShared>,
    pub(crate) thread: usize,
    pub(crate) slots: Slots,
    pub(crate) recorder: Recorder,
    pub(crate) batons: OnceCell<Vec<Rc<Baton>>>,
    /// Closed-loop workers that have not ended.
    pub(crate) closed_live: Cell<usize>,
    /// Open sessions.
    pub(crate) sessions: Cell<u64>,
    /// Start of the phase, nanoseconds since the epoch.
    pub(crate) start_ns: Cell<u64>,
    /// Nothing that is due at or after this instant is offered.
    pub(crate) cutoff_ns: Cell<u64>,
    /// Latest due instant offered.
    pub(crate) last_due_ns: Cell<u64>,
    /// A copy of the phase's limits, which are read before and after every operation.
    limits: Limits,
    byte_limit_hit: Cell<bool>,
    workers: Cell<u32>,
    pub(crate) startup: Startup,
    /// Sums per closed-loop worker, in phases that ask for them.
    pub(crate) streams: Option<Streams>,
    /// Figures per entry and worker, in phases with named objects.
    pub(crate) rows: Option<Rows>,
    /// The thread's accelerators, in phases that train.
    pub(crate) accelerators: RefCell<Vec<Rc<Accelerator>>>,
    /// What the thread's ranks have done so far.
    pub(crate) ranks: RefCell<Vec<Rc<RankRecord>>>,
    main: Notify,
}

impl Shard {
    #[inline]
    pub(crate) fn source(&self, work: u16) -> &Source {
        &self.shared.sources[usize::from(work)]
    }

    pub(crate) fn new(shared: Arc<PhaseShared>, thread: usize, recorder: Recorder) -> Self {
        let streams = shared
            .streams
            .as_ref()
            .map(|clock| Streams::new(Arc::clone(clock), shared.threads));
        Self {
            streams,
            rows: Rows::of(shared.phase_plan(), shared.threads),
            limits: shared.phase_plan().limits,
            shared,
            thread,
            slots: Slots::default(),
            recorder,
            batons: OnceCell::new(),
            closed_live: Cell::new(0),
            sessions: Cell::new(0),
            start_ns: Cell::new(0),
            cutoff_ns: Cell::new(u64::MAX),
            last_due_ns: Cell::new(0),
            byte_limit_hit: Cell::new(false),
            workers: Cell::new(0),
            startup: Startup::default(),
            accelerators: RefCell::default(),
            ranks: RefCell::default(),
            main: Notify::new(),
        }
    }

    /// The phase begins at `start_ns`.
    pub(crate) fn start(&self, start_ns: u64) {
        self.start_ns.set(start_ns);
        let duration = self.limits.duration_ns;
        if duration > 0 {
            self.cutoff_ns.set(start_ns.saturating_add(duration));
        }
        self.recorder.start(start_ns);
        if let Some(rows) = &self.rows {
            rows.start(start_ns);
        }
        for baton in self.batons() {
            baton.start(start_ns, &self.slots);
        }
    }

    /// An index for a new worker, unique among all workers of the agent.
    pub(crate) fn next_worker(&self) -> u32 {
        let n = self.workers.get();
        self.workers.set(n + 1);
        let (threads, thread) = (self.shared.threads, self.thread);
        u32::try_from(n as usize * threads + thread).unwrap_or(u32::MAX)
    }

    /// The batons of the thread's open works.
    pub(crate) fn batons(&self) -> &[Rc<Baton>] {
        self.batons.get().map_or(&[], Vec::as_slice)
    }

    /// From now on offers nothing that is due at or after `now_ns`.
    pub(crate) fn close(&self, now_ns: u64) {
        if now_ns < self.cutoff_ns.get() {
            self.cutoff_ns.set(now_ns);
            for baton in self.batons() {
                baton.wake_leader(&self.slots);
            }
            self.wake_main();
        }
    }

    /// Whether the phase's operation limit excludes sequence number `seq`, of whichever work.
    #[inline]
    pub(crate) fn beyond_ops(&self, seq: u64) -> bool {
        let limit = self.limits.ops;
        if limit == 0 {
            false
        } else if self.shared.sources.len() == 1 {
            seq >= limit
        } else {
            let mine = self.shared.share.part(limit);
            self.shared.tickets.fetch_add(1, Ordering::Relaxed) >= mine
        }
    }

    /// Closes the phase when its byte limit is reached.
    #[inline]
    pub(crate) fn check_bytes(&self, now_ns: u64) {
        let bytes = self.limits.bytes;
        if bytes > 0 {
            self.check_bytes_of(bytes, now_ns);
        }
    }

    /// As [`Shard::check_bytes`] for a limit of `bytes` over all agents.
    fn check_bytes_of(&self, bytes: u64, now_ns: u64) {
        let limit = self.shared.share.part(bytes);
        if limit > 0
            && now_ns < self.cutoff_ns.get()
            && self.shared.bytes.load(Ordering::Relaxed) >= limit
        {
            self.byte_limit_hit.set(true);
            self.close(now_ns);
        }
    }

    /// Delivers all intervals that have ended by `now_ns`. Call before recording or taking anything at `now_ns`.
    #[inline]
    pub(crate) fn tick(&self, now_ns: u64) {
        if now_ns >= self.recorder.boundary() {
            self.rotate_until(now_ns);
        }
    }

    #[cold]
    fn rotate_until(&self, now_ns: u64) {
        while now_ns >= self.recorder.boundary() {
            let boundary = self.recorder.boundary();
            self.count_offered(boundary);
            self.recorder.rotate(self.gauges(boundary));
        }
    }

    /// Counts every uncounted arrival that is due before `until_ns` as offered.
    fn count_offered(&self, until_ns: u64) {
        for baton in self.batons() {
            baton.count_until(until_ns, self);
        }
    }

    /// Ends the run because an object is missing that existed when the trace was recorded.
    #[cold]
    pub(crate) fn fail_absent(&self, op: &Op) {
        let class = op.class;
        self.recorder
            .try_send(Message::Failed(RunError::Absent { class }));
    }

    /// Operations due but not ended.
    pub(crate) fn in_flight(&self) -> u64 {
        self.slots.busy() + self.batons().iter().map(|b| b.backlog()).sum::<u64>()
    }

    /// Readings at `at_ns`.
    fn gauges(&self, at_ns: u64) -> ThreadGauges {
        let waiting = self.batons().iter().map(|b| b.oldest_due_ns()).min();
        let oldest_due_ns = self.slots.oldest_due_ns().min(waiting.unwrap_or(u64::MAX));
        ThreadGauges {
            in_flight: self.in_flight(),
            sessions: self.sessions.get(),
            jobs: self.batons().iter().map(|b| b.jobs()).sum(),
            backlog_ns: at_ns.saturating_sub(oldest_due_ns),
            cpu_ns: thread_cpu_ns(),
        }
    }

    /// Counts an operation as offered.
    #[inline]
    pub(crate) fn offered(&self, due_ns: u64, op: &Op) {
        let mut tally = self.recorder.tally();
        tally.offered += 1;
        tally.offered_bytes += body_bytes(op);
        tally.fine.offered(due_ns);
        drop(tally);
        self.last_due_ns.set(self.last_due_ns.get().max(due_ns));
    }

    /// Accounts for an operation that ended at about `now_ns`: streams and limits. The recorder counts the rest.
    #[inline]
    pub(crate) fn account(&self, record: &OpRecord, now_ns: u64) {
        if let Some(streams) = &self.streams {
            streams.record(record);
        }
        if self.limits.bytes > 0 {
            self.shared.bytes.fetch_add(record.bytes, Ordering::Relaxed);
            self.check_bytes(now_ns);
        }
        if now_ns >= self.cutoff_ns.get() {
            self.wake_main();
        }
    }

    /// The error of an object that its trailer shows to be damaged. Warns once per work about objects without a
    /// trailer.
    pub(crate) fn judged(&self, work: &NamedWork, judged: TrailerVerdict) -> Option<OpError> {
        match judged {
            TrailerVerdict::Right => None,
            TrailerVerdict::Wrong(error) => Some(error),
            TrailerVerdict::Without => {
                if !work.has_warned() {
                    let message = "hashCheck: objects without a checksum at their end were read; they are \
                                   not checked";
                    self.recorder.try_send(Message::Report(Event::Warning {
                        message: message.to_owned(),
                    }));
                }
                None
            }
        }
    }

    /// Reports a failure in full, unless the budget of its kind is used up.
    pub(crate) fn report_failure(&self, class: OpClass, key: &str, error: &OpError, at_ns: u64) {
        let left = &self.shared.failures[error.kind as usize];
        let take = |n: u32| n.checked_sub(1);
        if left.load(Ordering::Relaxed) == 0
            || left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
                .is_err()
        {
            return;
        }
        self.recorder.try_send(Message::Report(Event::Failure {
            phase: self.shared.phase,
            class,
            key: key.to_owned(),
            error: error.to_string(),
            at_ns,
        }));
    }

    /// Whether everything offered has ended and nothing more will be offered.
    pub(crate) fn is_complete(&self, now_ns: u64) -> bool {
        let closed = now_ns >= self.cutoff_ns.get() || self.closed_live.get() == 0;
        closed && self.slots.busy() == 0 && self.batons().iter().all(|b| b.is_finished())
    }

    /// Gives up at `now_ns`: cancels operations in flight. Arrivals that are due but not taken stay offered and
    /// unissued.
    pub(crate) fn abandon(&self, now_ns: u64) {
        self.close(now_ns);
        self.tick(now_ns);
        self.count_offered(now_ns);
        for baton in self.batons() {
            self.recorder.tally().capped += baton.capped_backlog();
            baton.finish();
        }
        self.slots.cancel_all();
    }

    /// Has the oracle judge an operation that has ended. A read whose body is wrong in itself becomes a failure.
    #[cold]
    pub(crate) fn judge(
        &self,
        ticket: &Ticket<'_>,
        op: &Op,
        (outcome, bytes): (Outcome, u64),
        context: AnswerContext<'_>,
    ) -> (Outcome, u64) {
        let on_finding = &mut |finding| {
            let event = Event::Finding(Box::new(finding));
            self.recorder.try_send(Message::Report(event));
        };
        if ticket.end(op, outcome, context, on_finding) {
            (Outcome::Failed(ErrorKind::Corrupt), 0)
        } else {
            (outcome, bytes)
        }
    }

    /// Wakes the thread's main task to check whether the phase is complete.
    pub(crate) fn wake_main(&self) {
        self.main.notify_one();
    }

    /// Waits for the next [`Shard::wake_main`].
    pub(crate) async fn woken(&self) {
        self.main.notified().await;
    }

    /// Delivers the last interval and the thread's sums.
    pub(crate) fn finish(&self, now_ns: u64) {
        self.tick(now_ns);
        let duration = self.limits.duration_ns;
        let done = ThreadDone {
            thread: self.thread,
            last_due_ns: self.last_due_ns.get(),
            drained_ns: now_ns,
            time_limit: duration > 0
                && self.cutoff_ns.get() == self.start_ns.get().saturating_add(duration)
                && now_ns >= self.cutoff_ns.get(),
            byte_limit: self.byte_limit_hit.get(),
        };
        if let Some(rows) = &self.rows {
            let rows = Box::new(rows.take(self.shared.phase));
            self.recorder.send(Message::Rows(rows));
        }
        for accelerator in self.accelerators.take() {
            accelerator.report(self);
        }
        let ranks: Vec<RankSum> = self.ranks.take().iter().map(|rank| rank.sum()).collect();
        if !ranks.is_empty() {
            self.recorder.send(Message::Ranks(ranks));
        }
        let streams = self.streams.as_ref().map(Streams::take);
        self.recorder
            .finish(self.gauges(now_ns), streams.unwrap_or_default(), done);
    }
}
