//! The options of a run: target names, threads, pacing, permissions.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bucketload_core::op::OpClass;
use bucketload_core::oplog::OpLog;
use bucketload_core::plan::PhasePlan;
use bucketload_core::plan::crews::{Pins, crew};
use bucketload_core::sink::{Calibration, PhaseEnd, RunSink};
use bucketload_core::tally::Interval;
use bucketload_core::trace::TraceSource;

use crate::error::RunError;
use crate::leftover::{self, Leftovers};
use crate::phase::PhaseSummary;
use crate::prepared::{DataSet, Filling};
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
    /// The load threads never sleep: they poll sockets and clock all the time. For latency studies at low concurrency;
    /// keeps the core of each load thread fully busy.
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
    /// This agent's part of a limit over all agents. The parts add up to the limit, except that each is at least 1: 0
    /// means no limit, and only a limit of 0 has parts of 0.
    pub(crate) fn part(self, limit: u64) -> u64 {
        let (index, of) = (u64::from(self.index), u64::from(self.of.max(1)));
        let part = limit / of + u64::from(index < limit % of);
        if limit > 0 { part.max(1) } else { 0 }
    }
}

/// An earlier run that left its objects in the bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierRun {
    /// Its identifier, which the ownership marker has to carry.
    pub run_id: String,
    /// Its key prefix.
    pub prefix: String,
}

/// Decides after each interval whether its phase ends before its limits, and why.
pub type StopHook = RefCell<Box<dyn FnMut(&Interval) -> Option<PhaseEnd>>>;

/// The warning when phase `name` ends with [`PhaseEnd::Failing`].
#[must_use]
pub fn failing_note(name: &str) -> String {
    format!(
        "nearly all operations of phase `{name}` fail, so it ends early; \
         --set phases.{name}.max-failed=100% would let it go on"
    )
}

/// Agrees on the start of load phases, for processes that start together.
pub trait StartGate: Send + Sync {
    /// The start of phase `phase`, nanoseconds on the clock of [`crate::now_ns`], once it is agreed. Called every 20 ms
    /// from the moment this process is ready.
    fn start_ns(&self, phase: u16) -> Option<u64>;
}

/// A load phase for other processes.
#[derive(Clone, Copy, Debug)]
pub struct RemotePhase<'a> {
    /// Its index in the plan.
    pub index: usize,
    /// Number of the measurement on the same data set, as [`RunOptions::generation`].
    pub generation: u32,
    /// The key set of a kept data set that the phase fills, if it does.
    pub filling: Option<&'a Filling>,
}

/// Carries out load phases in other processes.
pub trait RemoteLoad {
    /// Measures what the clients could do together if the store took no time, with the schedule of phase `phase`.
    /// `None` if that cannot be known.
    ///
    /// # Errors
    /// When a client fails or is lost.
    fn calibrate(
        &mut self,
        phase: usize,
        stop: &StopHandle,
    ) -> Result<Option<Calibration>, RunError>;

    /// Carries out load phase `phase` and reports its course to `sink`, from the start event to the end event.
    ///
    /// # Errors
    /// When the phase cannot begin, or not all clients can carry it out.
    fn run_phase(
        &mut self,
        phase: RemotePhase<'_>,
        options: &RunOptions,
        sink: &mut dyn RunSink,
        stop: &StopHandle,
    ) -> Result<PhaseSummary, RunError>;
}

/// Called before each measured phase, for example to empty caches. An error ends the run.
pub type PhaseHook = RefCell<Box<dyn FnMut() -> Result<(), String>>>;

/// A moment of a run at which its caller may act. Phases are given by their index in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseEdge {
    /// Before the phase. An error ends the run without it.
    Begin(usize),
    /// After the phase, however it ended.
    End(usize),
    /// After the last phase that ran.
    RunEnd,
}

/// Called at each [`PhaseEdge`]. An error ends the run.
pub type EdgeHook = RefCell<Box<dyn FnMut(PhaseEdge) -> Result<(), String>>>;

/// The options of a run.
pub struct RunOptions {
    /// Identifier of the run, which goes into the ownership marker.
    pub run_id: String,
    /// Bucket of the run.
    pub bucket: String,
    /// The run's own key prefix, such as `bench/` (empty = the whole bucket).
    pub prefix: String,
    /// Number of load threads; `None` = the number of usable cores, or half of them when the target is on this machine.
    pub threads: Option<usize>,
    /// Cores of the load threads.
    pub cores: Cores,
    /// Whether the target runs on this machine and needs cores of its own.
    pub local_target: bool,
    /// How open loops wait for the next arrival.
    pub pacing: Pacing,
    /// Length of an interval, at least 10 ms. The verdicts need 1 s.
    pub interval: Duration,
    /// This process's share of the load.
    pub share: Share,
    /// Which agents the drivers of pinned works run on.
    pub pins: Pins,
    /// Indices of the phases that [`crate::run`] carries out; `None` = all. A campaign uses the same plan to prepare
    /// once, measure several times and clean up once.
    pub phases: Option<Vec<usize>>,
    /// Number of the measurement on the same data set. Fresh objects of different generations have different names
    /// ([`bucketload_core::generate::ops::OpGen::of_generation`]).
    pub generation: u32,
    /// The earlier run whose objects the plan reads, if it reads existing objects.
    pub data: Option<EarlierRun>,
    /// The data set that the run prepares or measures on, if it is kept. Its prefix is the run's own.
    pub data_set: Option<DataSet>,
    /// Number of the arrival schedule. 0 is the schedule of the plan's seed. Others are independent of it and of each
    /// other, while the operations stay the same, so that repeated trials vary as the arrivals of real users do.
    pub schedule: u32,
    /// Whether to create the bucket if it does not exist.
    pub create_bucket: bool,
    /// Whether a prefix that already holds objects may be used. Nothing under it is deleted then.
    pub allow_foreign: bool,
    /// Whether a plan on named buckets and objects may replace and delete what exists already under
    /// these names.
    pub change_existing: bool,
    /// Whether to read each object back and compare it right after its write was acknowledged, outside the operation's
    /// time. A difference makes the write a failure.
    pub check_writes: bool,
    /// Operations that the store is known not to perform, each with the reason. A plan that needs one is refused.
    pub refused: Vec<(OpClass, String)>,
    /// What happens to objects that the run should delete but does not.
    pub leftovers: Leftovers,
    /// Output, set however the run ends: what it left in the target by mistake and how to remove it, in words.
    pub left: RefCell<Option<String>>,
    /// Output, set however the run ends: what its kept data set lacks, in words.
    pub incomplete: RefCell<Option<String>>,
    /// Most failures of each kind that are reported in full.
    pub failures_per_kind: u32,
    /// The operation log; `None` = none is written.
    pub op_log: Option<OpLog>,
    /// Most keys whose history the consistency oracle keeps, at about 500 bytes each. If there are more keys, it
    /// tracks a share of them.
    pub oracle_keys: usize,
    /// Called after each interval of a phase with load. An end that it returns ends the phase.
    pub converged: Option<StopHook>,
    /// Called before each measured phase, while no load runs.
    pub before_measuring: Option<PhaseHook>,
    /// Called before and after each phase, while no load runs.
    pub at_edges: Option<EdgeHook>,
    /// The trace that the plan replays, if any.
    pub trace: Option<Arc<dyn TraceSource>>,
    /// Decides when load phases begin; `None` = when all load threads are ready.
    pub gate: Option<Arc<dyn StartGate>>,
    /// What ranks agree on with ranks of other processes; `None` = all ranks are in this process.
    pub agreement: Option<Arc<RankAgreement>>,
    /// Carries out load phases in other processes, whose number is `share.of`; `None` = the load threads of this
    /// process carry them out.
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
            data_set: None,
            schedule: 0,
            create_bucket: false,
            allow_foreign: false,
            change_existing: false,
            check_writes: false,
            refused: Vec::new(),
            failures_per_kind: 20,
            op_log: None,
            oracle_keys: crate::oracle::MOST_KEYS,
            leftovers: Leftovers::Stay,
            left: RefCell::default(),
            incomplete: RefCell::default(),
            converged: None,
            before_measuring: None,
            at_edges: None,
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
    /// The message about objects that a run leaves if it ends without cleaning up; `None` if the store ends with the
    /// run.
    #[must_use]
    pub fn aborted(&self) -> Option<String> {
        (self.leftovers != Leftovers::Vanish).then(|| leftover::aborted(self))
    }

    /// Number of load threads of a run with these options on this machine.
    ///
    /// # Errors
    /// When the cores asked for are not usable.
    pub fn load_threads(&self) -> Result<usize, RunError> {
        crate::affinity::layout(self).map(|layout| layout.len())
    }

    /// Refuses invalid values.
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

    /// The workers of this process on named work number `work`, numbered from 0 over all agents.
    pub(crate) fn crew(&self, phase: &PhasePlan, work: usize) -> Range<u32> {
        crew(phase, work, (self.share.index, self.share.of), &self.pins)
    }

    /// Whether phase number `index` of the plan is carried out.
    pub(crate) fn includes(&self, index: usize) -> bool {
        self.phases
            .as_ref()
            .is_none_or(|only| only.contains(&index))
    }

    /// Prefix of the names of objects: that of the earlier run if its objects are read.
    pub(crate) fn names_prefix(&self) -> &str {
        self.data.as_ref().map_or(&self.prefix, |data| &data.prefix)
    }

    pub(crate) fn interval_ns(&self) -> u64 {
        u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX / 4)
    }
}
