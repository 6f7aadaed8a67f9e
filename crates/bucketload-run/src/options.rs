//! What a caller decides about a run beside its plan: target names, threads, pacing, permissions.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bucketload_core::oplog::OpLog;
use bucketload_core::plan::PhasePlan;
use bucketload_core::plan::crews::{Pins, crew};
use bucketload_core::sink::{Calibration, RunSink};
use bucketload_core::tally::Interval;
use bucketload_core::trace::TraceSource;

use crate::error::RunError;
use crate::leftover::{self, Leftovers};
use crate::phase::PhaseSummary;
use crate::rank_agreement::RankAgreement;
use crate::stop::StopHandle;

/// How the thread waits for the next arrival of an open loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pacing {
    /// A kernel timer: median lateness about 20 µs, the thread sleeps in between.
    #[default]
    Timer,
    /// A kernel timer up to 20 µs before the instant, then spinning. Costs a few per cent of a
    /// core per 1 000 arrivals per second.
    Precise,
    /// The load threads never sleep: they poll sockets and clock all the time. For latency studies
    /// at low concurrency; occupies each load thread's core completely.
    BusyPoll,
}

/// Which cores the load threads are pinned to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cores {
    /// The first cores of the affinity mask.
    #[default]
    First,
    /// These cores, in this order; thread `i` goes to core `i` modulo their number.
    List(Vec<usize>),
    /// No pinning.
    Unpinned,
}

/// This process's share of the plan's load: agent `index` of `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Index of this agent, from 0.
    pub index: u32,
    /// Number of agents, at least 1.
    pub of: u32,
}

impl Share {
    /// This agent's part of a limit over all agents; the parts add up to it. A limit of 0, which is
    /// none, stays 0; a part of another one may not be 0, which would be none, and is at least 1.
    pub(crate) fn part(self, limit: u64) -> u64 {
        let (index, of) = (u64::from(self.index), u64::from(self.of.max(1)));
        let part = limit / of + u64::from(index < limit % of);
        if limit > 0 { part.max(1) } else { 0 }
    }
}

/// An earlier run that left its objects in the bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataOf {
    /// Its identifier, which the ownership marker must carry.
    pub run_id: String,
    /// Its key prefix.
    pub prefix: String,
}

/// Decides after each interval whether a phase with a stopping rule has converged.
pub type StopHook = RefCell<Box<dyn FnMut(&Interval) -> bool>>;

/// Agrees on the instant at which a load phase begins, for processes that begin together.
pub trait StartGate: Send + Sync {
    /// The instant at which phase `phase` begins, nanoseconds on the clock of [`crate::now_ns`], once
    /// it is agreed. Asked every 20 ms from the time when this process could begin.
    fn start_ns(&self, phase: u16) -> Option<u64>;
}

/// Carries out load phases in other processes.
pub trait RemoteLoad {
    /// Measures what the clients can do together if the store costs nothing, with the schedule of
    /// phase `phase`; `None` when that cannot be known.
    ///
    /// # Errors
    /// When one of them cannot, or is lost.
    fn calibrate(
        &mut self,
        phase: usize,
        stop: &StopHandle,
    ) -> Result<Option<Calibration>, RunError>;

    /// Carries out load phase `phase` and reports its course to `sink`, from its start event to its
    /// end event.
    ///
    /// # Errors
    /// When the phase could not begin, or not be carried out by all.
    fn run_phase(
        &mut self,
        phase: usize,
        options: &RunOptions,
        sink: &mut dyn RunSink,
        stop: &StopHandle,
    ) -> Result<PhaseSummary, RunError>;
}

/// Done before each phase that is measured, such as emptying caches; a reason why not ends the run.
pub type PhaseHook = RefCell<Box<dyn FnMut() -> Result<(), String>>>;

/// What a caller decides about a run beside its plan.
pub struct RunOptions {
    /// Identifies the run: goes into the ownership marker.
    pub run_id: String,
    /// Bucket that the run works in.
    pub bucket: String,
    /// The run's own key prefix, such as `bench/` (empty = the whole bucket).
    pub prefix: String,
    /// Number of load threads; `None` = as many as there are usable cores (half of them when the
    /// target is on this machine).
    pub threads: Option<usize>,
    /// Cores of the load threads.
    pub cores: Cores,
    /// Whether the target runs on this machine and needs cores of its own.
    pub local_target: bool,
    /// How open loops wait for the next arrival.
    pub pacing: Pacing,
    /// Length of an interval, at least 10 ms; 1 s for results that are to be judged.
    pub interval: Duration,
    /// This process's share of the load.
    pub share: Share,
    /// The agents of drivers that works are pinned to.
    pub pins: Pins,
    /// Indices of the plan's phases that the call of [`crate::run`] carries out; `None` = all. A
    /// campaign prepares once, measures several times and cleans up once with the same plan.
    pub phases: Option<Vec<usize>>,
    /// Number of the measurement on the same data set: fresh objects of different generations have
    /// different names
    /// ([`bucketload_core::generate::ops::OpGen::of_generation`]).
    pub generation: u32,
    /// The earlier run whose objects the plan reads, where it says that they exist.
    pub data: Option<DataOf>,
    /// Number of the arrival schedule. 0 is that of the plan's seed; others are independent of it and
    /// of each other, while the operations stay the same: repeated trials then differ by chance as
    /// much as the arrivals of real users do.
    pub schedule: u32,
    /// Whether a bucket that does not exist is created.
    pub create_bucket: bool,
    /// Whether a prefix that already holds objects may be used. Nothing under it is deleted then.
    pub allow_foreign: bool,
    /// Whether a plan on named buckets and objects may replace and delete what exists already under
    /// these names.
    pub change_existing: bool,
    /// Whether each object is read back and compared right after its write was acknowledged, outside the
    /// operation's time; one that reads otherwise makes the write a failure.
    pub check_writes: bool,
    /// What becomes of objects that the run does not delete although it should.
    pub leftovers: Leftovers,
    /// What the run has left in the target although it should not, and how to remove it, in words: set when it
    /// ends, however it ends.
    pub left: RefCell<Option<String>>,
    /// Failures of each kind that are reported in full.
    pub failures_per_kind: u32,
    /// Where every operation is logged one by one; `None` = nowhere.
    pub op_log: Option<OpLog>,
    /// Most keys whose history the consistency oracle keeps; each takes about 500 bytes. Of more
    /// keys it tracks a share.
    pub oracle_keys: usize,
    /// Called after each interval of a phase with a stopping rule; `true` ends the phase.
    pub converged: Option<StopHook>,
    /// Called before each measured phase, between loads.
    pub before_measuring: Option<PhaseHook>,
    /// The trace that the plan replays, if it replays one.
    pub trace: Option<Arc<dyn TraceSource>>,
    /// Who says when load phases begin; `None` = they begin when all load threads are ready.
    pub gate: Option<Arc<dyn StartGate>>,
    /// What ranks agree on with those of other processes; `None` = all are in this one.
    pub agreement: Option<Arc<RankAgreement>>,
    /// Who carries out load phases; `None` = the load threads of this process. `share` then says how
    /// many processes they are divided over.
    pub remote: Option<RefCell<Box<dyn RemoteLoad>>>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            run_id: String::new(),
            bucket: String::new(),
            prefix: String::new(),
            threads: None,
            cores: Cores::First,
            local_target: false,
            pacing: Pacing::Timer,
            interval: Duration::from_secs(1),
            share: Share { index: 0, of: 1 },
            pins: Pins::new(),
            phases: None,
            generation: 0,
            data: None,
            schedule: 0,
            create_bucket: false,
            allow_foreign: false,
            change_existing: false,
            check_writes: false,
            failures_per_kind: 20,
            op_log: None,
            oracle_keys: crate::oracle::MOST_KEYS,
            leftovers: Leftovers::Stay,
            left: RefCell::default(),
            converged: None,
            before_measuring: None,
            trace: None,
            gate: None,
            agreement: None,
            remote: None,
        }
    }
}

impl std::fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunOptions")
            .field("run_id", &self.run_id)
            .field("bucket", &self.bucket)
            .field("prefix", &self.prefix)
            .field("threads", &self.threads)
            .field("cores", &self.cores)
            .field("pacing", &self.pacing)
            .field("share", &self.share)
            .field("phases", &self.phases)
            .field("generation", &self.generation)
            .field("schedule", &self.schedule)
            .finish_non_exhaustive()
    }
}

impl RunOptions {
    /// What a run that ends without cleaning up leaves, in words; `None` when the store ends with it.
    #[must_use]
    pub fn aborted(&self) -> Option<String> {
        (self.leftovers != Leftovers::Vanish).then(|| leftover::aborted(self))
    }

    /// Number of load threads that a run with these options has on this machine.
    ///
    /// # Errors
    /// When the cores asked for are not usable.
    pub fn load_threads(&self) -> Result<usize, RunError> {
        crate::affinity::layout(self).map(|layout| layout.len())
    }

    /// Refuses values that no run can have.
    pub(crate) fn check(&self) -> Result<(), RunError> {
        let refuse = |text: &str| Err(RunError::Options(text.to_owned()));
        if self.threads == Some(0) {
            return refuse("the number of load threads must be at least 1");
        }
        if matches!(&self.cores, Cores::List(list) if list.is_empty()) {
            return refuse("the list of cores is empty; name at least one core, or do not pin");
        }
        if self.share.of == 0 || self.share.index >= self.share.of {
            return refuse("the agent's index must be below the number of agents");
        }
        if self.interval < Duration::from_millis(10) {
            return refuse("the interval must be at least 10 ms");
        }
        if self.bucket.is_empty() {
            return refuse("no bucket is named");
        }
        Ok(())
    }

    /// The workers (from 0) of work number `work` on named objects that this process has.
    pub(crate) fn crew(&self, phase: &PhasePlan, work: usize) -> Range<u32> {
        crew(phase, work, (self.share.index, self.share.of), &self.pins)
    }

    /// Whether phase number `index` of the plan is carried out.
    pub(crate) fn includes(&self, index: usize) -> bool {
        self.phases
            .as_ref()
            .is_none_or(|only| only.contains(&index))
    }

    /// Prefix of the names that operations render: the earlier run's where its objects are read.
    pub(crate) fn names_prefix(&self) -> &str {
        self.data.as_ref().map_or(&self.prefix, |data| &data.prefix)
    }

    pub(crate) fn interval_ns(&self) -> u64 {
        u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX / 4)
    }
}
