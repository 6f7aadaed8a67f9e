//! One load phase: starts the load threads, collects their recordings, ends the threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use bucketload_core::driver::AnyDriver;
use bucketload_core::error::ErrorKind;
use bucketload_core::oracle::FindingKind;
use bucketload_core::payload::Arena;
use bucketload_core::plan::{PhaseKind, Plan};
use bucketload_core::ranks::{PhaseRanks, RankSum};
use bucketload_core::rows::PhaseRows;
use bucketload_core::sink::{Event, PhaseEnd, RunSink, StreamSum};
use tokio::sync::watch;

use crate::buckets::WorkloadBuckets;
use crate::clock::now_ns;
use crate::collect::{Intervals, PhaseTotals};
use crate::error::RunError;
use crate::feed::Reader;
use crate::machine::Machine;
use crate::options::{RunOptions, failing_note};
use crate::oracle::{KEPT_PER_KIND, Oracle};
use crate::prepared::{Filling, Progress};
use crate::ranks::History;
use crate::recorder::{INTERVALS_AHEAD, Message, ThreadDone};
use crate::shard::{FailureBudget, PhaseShared};
use crate::slow::SlowRequests;
use crate::source::Source;
use crate::stop::{StopHandle, StopLevel};
use crate::streams::StreamClock;
use crate::supervisor::Command;
use crate::thread::{ThreadSetup, load_thread};
use crate::version_table::VersionTable;

/// How long before its start a phase is announced to the load threads, nanoseconds.
const LEAD_NS: u64 = 20_000_000;
/// How often the collector checks the stop handle.
const POLL: Duration = Duration::from_millis(20);

/// The result of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseSummary {
    /// Index in the plan.
    pub phase: u16,
    /// Start, nanoseconds since the run's epoch.
    pub start_ns: u64,
    /// Instant at which the last operation was offered, nanoseconds since the run's epoch.
    pub at_ns: u64,
    /// Instant at which the last operation had ended, nanoseconds since the run's epoch.
    pub drained_ns: u64,
    /// Why it ended.
    pub end: PhaseEnd,
    /// Its counts; all zero for phases without load.
    pub totals: PhaseTotals,
}

/// State that the phases of one run share.
pub(crate) struct RunContext<'a> {
    pub(crate) plan: Arc<Plan>,
    pub(crate) options: &'a RunOptions,
    pub(crate) stop: &'a StopHandle,
    pub(crate) arena: Arc<Arena>,
    pub(crate) oracle: Option<Arc<Oracle>>,
    /// The identifiers of versions, if an operation names one.
    pub(crate) versions: Option<Arc<VersionTable>>,
    /// The buckets that the workload makes itself, if any.
    pub(crate) workload_buckets: Option<Arc<WorkloadBuckets>>,
    pub(crate) failures: FailureBudget,
    /// What later phases need to know about earlier ones.
    pub(crate) history: Arc<History>,
    /// Which objects of a kept data set the next phase prepares.
    pub(crate) progress: Option<Arc<Progress>>,
    /// The same, if other processes prepare them.
    pub(crate) filling: Option<Arc<Filling>>,
    /// Number of the measurement on the same data set.
    pub(crate) generation: u32,
    pub(crate) machine: Machine,
    /// Core of each load thread.
    pub(crate) layout: Vec<Option<usize>>,
    /// CPU time of each thread position in earlier phases, nanoseconds.
    pub(crate) cpu_base: Vec<u64>,
}

/// Runs phase `phase` of the plan, which must have works.
pub(crate) fn run_phase(
    driver: &AnyDriver,
    context: &mut RunContext<'_>,
    phase: usize,
    sink: &mut dyn RunSink,
) -> Result<PhaseSummary, RunError> {
    let number = u16::try_from(phase).unwrap_or(u16::MAX);
    let mut load = Load::start(driver, context, phase)?;
    let outcome = load.collect(context, number, sink);
    let joined = load.join();
    context.cpu_base = load.intervals.cpu_ns();
    // A panic comes first: it caused whatever the collector noticed.
    let outcome = joined.and(outcome);
    if !load.intervals.is_started() {
        // The sink has not been told that the phase began.
        return outcome;
    }
    let now = now_ns();
    let (at_ns, end, drained_ns) = match &outcome {
        Ok(summary) => (summary.at_ns, summary.end, summary.drained_ns),
        Err(_) => (now, PhaseEnd::Aborted, now),
    };
    if !load.streams.is_empty() {
        load.streams.sort_by_key(|s| (s.work, s.worker));
        sink.event(&Event::Streams {
            phase: number,
            streams: std::mem::take(&mut load.streams),
        });
    }
    if let Some(rows) = load.rows.take() {
        sink.event(&Event::Rows(rows));
    }
    if !load.ranks.is_empty() {
        let works = &context.plan.phases[phase].works;
        let stonewalls = works
            .iter()
            .filter_map(|work| Some(work.model.ranks()?.stonewall_ns));
        sink.event(&Event::Ranks(PhaseRanks {
            phase: number,
            stonewall_ns: stonewalls.max().unwrap_or(0),
            ranks: RankSum::folded(std::mem::take(&mut load.ranks)),
        }));
    }
    sink.event(&Event::PhaseEnded {
        phase: number,
        at_ns,
        end,
        drained_ns,
    });
    outcome
}

/// The running threads of a phase.
struct Load {
    shared: Arc<PhaseShared>,
    /// Threads that read traces.
    readers: Vec<JoinHandle<()>>,
    threads: Vec<JoinHandle<()>>,
    commands: watch::Sender<Command>,
    messages: std::sync::mpsc::Receiver<Message>,
    intervals: Intervals,
    slowest: SlowRequests,
    done: Vec<Option<ThreadDone>>,
    /// Whether each thread was seen to have ended without reporting.
    exited: Vec<bool>,
    /// Sums of each stream, in phases that ask for them.
    streams: Vec<StreamSum>,
    /// Figures of works on named objects.
    rows: Option<PhaseRows>,
    /// Sums of the ranks.
    ranks: Vec<RankSum>,
}

impl Load {
    fn start(driver: &AnyDriver, context: &RunContext<'_>, phase: usize) -> Result<Self, RunError> {
        let options = context.options;
        let number = u16::try_from(phase).unwrap_or(u16::MAX);
        let threads = context.layout.len();
        let works = context.plan.phases[phase].works.len();
        let shared = Arc::new(PhaseShared {
            plan: Arc::clone(&context.plan),
            phase: number,
            sources: (0..works)
                .map(|work| {
                    Source::new(&context.plan, phase, work, options, threads)
                        .map(|source| source.of_generation(&context.plan, context.generation))
                })
                .collect::<Result<_, _>>()?,
            arena: Arc::clone(&context.arena),
            oracle: context.oracle.clone(),
            versions: context.versions.clone(),
            bucket: options.bucket.clone(),
            workload_buckets: context.workload_buckets.clone(),
            share: options.share,
            threads,
            check_writes: options.check_writes,
            endpoints: driver.facts().endpoints.len(),
            op_log: options.op_log.clone(),
            pacing: options.pacing,
            failures: Arc::clone(&context.failures),
            bytes: AtomicU64::new(0),
            tickets: AtomicU64::new(0),
            streams: StreamClock::of(&context.plan.phases[phase]),
            history: Arc::clone(&context.history),
            progress: context.progress.clone(),
        });
        // Room for every tally that can exist and every failure that is reported in full, so load threads never find
        // the channel full.
        let failures = options.failures_per_kind as usize * ErrorKind::ALL.len()
            + KEPT_PER_KIND as usize * FindingKind::ALL.len();
        let (to_collector, messages) =
            sync_channel(threads * (INTERVALS_AHEAD + 4) + failures.min(1 << 16));
        let (commands, receiver) = watch::channel(Command {
            start_ns: 0,
            level: StopLevel::Run,
        });
        let mut handles = Vec::with_capacity(threads);
        let mut back = Vec::with_capacity(threads);
        for (thread, &core) in context.layout.iter().enumerate() {
            let (give, spares) = sync_channel(INTERVALS_AHEAD + 1);
            back.push(give);
            let setup = ThreadSetup {
                driver: driver.clone(),
                shared: Arc::clone(&shared),
                thread,
                core,
                interval_ns: options.interval_ns(),
                to_collector: to_collector.clone(),
                spares,
                commands: receiver.clone(),
            };
            let handle = std::thread::Builder::new()
                .name(format!("load-{thread}"))
                .spawn(move || load_thread(setup))
                .map_err(RunError::Thread)?;
            handles.push(handle);
        }
        let readers = read_traces(&shared, options, &to_collector)?;
        Ok(Self {
            slowest: SlowRequests::new(number),
            shared,
            readers,
            threads: handles,
            commands,
            messages,
            intervals: Intervals::new(
                number,
                options.interval_ns(),
                context.cpu_base.clone(),
                back,
            ),
            done: vec![None; threads],
            exited: vec![false; threads],
            streams: Vec::new(),
            rows: None,
            ranks: Vec::new(),
        })
    }

    /// Collects until every thread is done. After an error the caller stops the threads.
    fn collect(
        &mut self,
        context: &mut RunContext<'_>,
        phase: u16,
        sink: &mut dyn RunSink,
    ) -> Result<PhaseSummary, RunError> {
        let whole = Arc::clone(&context.plan);
        let plan = &whole.phases[usize::from(phase)];
        // Works on named objects have their own limit on failures.
        let prepares = plan.kind == PhaseKind::Prepare && !whole.is_named();
        let mut ready = 0;
        let mut start_ns = 0;
        let mut end = None;
        let mut cutoff_ns = u64::MAX;
        while self.done.iter().any(Option::is_none) {
            match self.messages.recv_timeout(POLL) {
                Ok(Message::Ready) => ready += 1,
                Ok(Message::Failed(error)) => return Err(error),
                Ok(Message::Report(event)) => sink.event(&event),
                Ok(Message::Streams(mut streams)) => self.streams.append(&mut streams),
                Ok(Message::Ranks(mut ranks)) => self.ranks.append(&mut ranks),
                Ok(Message::Rows(rows)) => self.rows.get_or_insert_default().merge(*rows),
                Ok(Message::Tally {
                    thread,
                    index,
                    recording,
                    gauges,
                    slow,
                }) => {
                    self.intervals.add(thread, index, recording, gauges);
                    self.slowest.add(slow, sink);
                }
                Ok(Message::Done(done)) => {
                    self.intervals.done(done.thread);
                    self.done[done.thread] = Some(done);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    self.check_alive()?;
                }
            }
            // A phase that is stopped before its start never begins.
            let can_start = ready == self.threads.len() && start_ns == 0 && end.is_none();
            let gate = context.options.gate.as_ref();
            let agreed = || gate.map_or_else(|| Some(now_ns() + LEAD_NS), |g| g.start_ns(phase));
            if let Some(agreed) = can_start.then(agreed).flatten() {
                start_ns = agreed;
                self.intervals.start(start_ns);
                context.history.begins(usize::from(phase));
                sink.event(&Event::PhaseStarted {
                    phase,
                    at_ns: start_ns,
                });
                self.commands.send_modify(|c| c.start_ns = start_ns);
            }
            let drained = self.drained_ns();
            let hook = context.options.converged.as_ref();
            let hook = hook.filter(|_| end.is_none());
            let mut early = None;
            self.intervals
                .emit(&mut context.machine, drained, |interval| {
                    sink.interval(interval);
                    early = early.or_else(|| hook.and_then(|hook| (hook.borrow_mut())(interval)));
                });
            if early == Some(PhaseEnd::Failing) {
                sink.event(&Event::Warning {
                    message: failing_note(&plan.name),
                });
            }
            if prepares {
                self.check_preparation(false)?;
            }
            let level = context.stop.level();
            let wanted = match early {
                Some(_) => level.max(StopLevel::Finish),
                None => level,
            };
            if wanted > self.commands.borrow().level {
                if end.is_none() {
                    cutoff_ns = now_ns();
                }
                end = match wanted {
                    StopLevel::Abort => Some(PhaseEnd::Aborted),
                    _ => early.or(Some(PhaseEnd::Interrupted)),
                };
                self.commands.send_modify(|c| c.level = wanted);
            }
        }
        if prepares && end.is_none() {
            self.check_preparation(true)?;
        }
        if start_ns == 0 {
            start_ns = now_ns();
        }
        let done = || self.done.iter().flatten();
        let last_due_ns = done().map(|d| d.last_due_ns).max().unwrap_or(0);
        let time_end = start_ns.saturating_add(plan.limits.duration_ns);
        let by_time = done().any(|d| d.time_limit);
        let natural_end = match () {
            () if done().any(|d| d.byte_limit) => PhaseEnd::ByteLimit,
            () if by_time => PhaseEnd::TimeLimit,
            () => PhaseEnd::Complete,
        };
        // A request to stop that came after the phase's own end did not end the phase.
        let end = end.filter(|_| !by_time || cutoff_ns < time_end);
        let end = end.unwrap_or(natural_end);
        Ok(PhaseSummary {
            phase,
            start_ns,
            at_ns: match end {
                PhaseEnd::TimeLimit => time_end,
                _ => last_due_ns.max(start_ns),
            },
            drained_ns: self.drained_ns().unwrap_or(start_ns).max(start_ns),
            end,
            totals: self.intervals.totals,
        })
    }

    /// Refuses to go on with an incomplete data set: reads of missing objects would distort the store's figures. A
    /// hundred failures are enough to judge before the end.
    fn check_preparation(&self, complete: bool) -> Result<(), RunError> {
        let totals = self.intervals.totals;
        let (failed, all) = (totals.failed, totals.failed + totals.ok);
        if failed * 100 > all && (complete || failed >= 100) {
            return Err(RunError::Prepare { failed, all });
        }
        Ok(())
    }

    /// When the last operation in flight ended, nanoseconds since the epoch; `None` while a thread is not done.
    fn drained_ns(&self) -> Option<u64> {
        let drained = self.done.iter().map(|d| d.map(|d| d.drained_ns));
        drained.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// Fails if a thread exited without reporting. A thread counts as lost if it had already exited the last time the
    /// channel was empty: then no message of it can still be under way.
    fn check_alive(&mut self) -> Result<(), RunError> {
        for (thread, handle) in self.threads.iter().enumerate() {
            if self.done[thread].is_none() && handle.is_finished() {
                if self.exited[thread] {
                    return Err(RunError::Panicked {
                        thread: format!("load thread {thread}"),
                        message: "it exited without reporting".to_owned(),
                    });
                }
                self.exited[thread] = true;
            }
        }
        Ok(())
    }

    /// Ends all threads and waits for them.
    fn join(&mut self) -> Result<(), RunError> {
        self.commands.send_modify(|c| c.level = StopLevel::Abort);
        let mut outcome = Ok(());
        for (thread, handle) in self.threads.drain(..).enumerate() {
            // Empty the channel: a thread may be waiting for room in it.
            while !handle.is_finished() {
                while self.messages.recv_timeout(Duration::from_millis(1)).is_ok() {}
            }
            if let Err(panic) = handle.join() {
                outcome = Err(RunError::Panicked {
                    thread: format!("load thread {thread}"),
                    message: panic_text(&*panic),
                });
            }
        }
        let replays = self.shared.sources.iter().filter_map(|s| s.replay());
        for queue in replays.flat_map(|(_, queues)| queues).flatten() {
            queue.close();
        }
        for reader in self.readers.drain(..) {
            // A panic of the reader was reported by its last message.
            let _ = reader.join();
        }
        outcome
    }
}

/// Starts a reader thread for each work that replays a trace.
fn read_traces(
    shared: &PhaseShared,
    options: &RunOptions,
    to_collector: &SyncSender<Message>,
) -> Result<Vec<JoinHandle<()>>, RunError> {
    let mut readers = Vec::new();
    for source in &shared.sources {
        let (Some((plan, queues)), Some(trace)) = (source.replay(), &options.trace) else {
            continue;
        };
        let reader = Reader::new(plan, source.mix(), queues.to_vec());
        let (trace, to_collector) = (Arc::clone(trace), to_collector.clone());
        let handle = std::thread::Builder::new()
            .name("trace".to_owned())
            .spawn(move || {
                // Reported as a failure: otherwise the load threads would wait for ever for the rest of the trace.
                let read = catch_unwind(AssertUnwindSafe(|| reader.run(&*trace)));
                let failure = match read {
                    Ok(Ok(())) => return,
                    Ok(Err(error)) => RunError::Trace(error),
                    Err(panic) => RunError::Panicked {
                        thread: "the thread that reads the trace".to_owned(),
                        message: panic_text(&*panic),
                    },
                };
                // A closed channel means that the collector has given up already.
                let _ = to_collector.send(Message::Failed(failure));
            })
            .map_err(RunError::Thread)?;
        readers.push(handle);
    }
    Ok(readers)
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}
