//! One load phase on all agents: barrier, agreed start, intervals, end.

mod deadlines;
mod ending;

use std::time::{Duration, Instant};

use bucketload_core::agent::AgentState;
use bucketload_core::plan::PhasePlan;
use bucketload_core::ranks::PhaseRanks;
use bucketload_core::rows::PhaseRows;
use bucketload_core::sink::{Event, PhaseEnd, RunSink};
use bucketload_core::slowest::{KEPT, Slowest};
use bucketload_run::{
    Filling, PhaseSummary, RemotePhase, RunError, RunOptions, StopHandle, StopLevel, failing_note,
    now_ns,
};

use self::deadlines::{END_GRACE, READY_TIMEOUT};
use self::ending::is_planned;
use super::net::Inbound;
use super::{FleetLoad, POLL};
use crate::host;
use crate::message::{AgentPhaseEnd, ToAgent, ToCoordinator};
use crate::tally::shifted;

/// Maximum number of failures reported individually in a run, over all agents and kinds.
pub(super) const FAILURES: u32 = 300;
/// How long before its start a phase is announced, in addition to the messages' delay.
const LEAD_NS: u64 = 100_000_000;
/// Longest announcement.
const MAX_LEAD_NS: u64 = 5_000_000_000;
/// Clock bound above which the user is warned, nanoseconds.
const WIDE_BOUND_NS: u64 = 10_000_000;
/// Messages handled before the loop checks for other events.
const BATCH: usize = 512;

/// A phase in progress.
pub(super) struct PhaseCourse<'a> {
    remote: &'a mut FleetLoad,
    phase: u16,
    plan: PhasePlan,
    /// The data set that the phase fills, if it does.
    filling: Option<&'a Filling>,
    options: &'a RunOptions,
    stop: &'a StopHandle,
    ready: Vec<bool>,
    done: Vec<Option<AgentPhaseEnd>>,
    /// Agents that have dropped out. The roster may know of a loss before its message is handled.
    out: Vec<bool>,
    /// Clock offset of each agent in this phase, from its start on.
    offsets: Vec<i64>,
    start_ns: u64,
    /// When unfinished agents count as lost; `None` for no limit.
    deadline: Option<Instant>,
    stop_level: StopLevel,
    end: Option<PhaseEnd>,
    converged: bool,
    failed: Option<RunError>,
    slowest: Slowest<()>,
    /// Rows of works on named objects, on our clock.
    rows: Option<PhaseRows>,
    /// Rows of ranks, on our clock.
    ranks: Option<PhaseRanks>,
    /// Steps that the ranks of each agent have made.
    reached: Vec<Option<u64>>,
    /// The number of steps on which the agents have agreed last.
    agreed: Option<u64>,
}

impl<'a> PhaseCourse<'a> {
    /// Tells all agents to open their sessions.
    pub(super) fn new(
        remote: &'a mut FleetLoad,
        order: RemotePhase<'a>,
        options: &'a RunOptions,
        stop: &'a StopHandle,
    ) -> Result<Self, RunError> {
        let agents = remote.fleet.len();
        let index = order.index;
        let Some(plan) = remote.plan.phases.get(index).cloned() else {
            return Err(RunError::Options(format!("there is no phase {index}")));
        };
        if let Some(rank) = (0..agents as u32).find(|rank| remote.fleet.roster.is_failed(*rank)) {
            return Err(RunError::Agents(remote.fleet.lost(rank).message));
        }
        let phase = u16::try_from(index).unwrap_or(u16::MAX);
        for rank in 0..agents as u32 {
            remote.fleet.roster.state(rank, AgentState::Preparing);
            let part = order.filling.and_then(|filling| filling.part(rank));
            let order = ToAgent::Phase {
                phase,
                generation: order.generation,
                part: part.cloned(),
            };
            remote.fleet.tell(rank, &order);
        }
        remote.dropped.resize(agents, 0);
        Ok(Self {
            remote,
            phase,
            plan,
            filling: order.filling,
            options,
            stop,
            ready: vec![false; agents],
            done: vec![None; agents],
            out: vec![false; agents],
            offsets: vec![0; agents],
            start_ns: 0,
            deadline: Some(Instant::now() + READY_TIMEOUT),
            stop_level: StopLevel::Run,
            end: None,
            converged: false,
            failed: None,
            slowest: Slowest::new(KEPT),
            rows: None,
            ranks: None,
            reached: vec![None; agents],
            agreed: None,
        })
    }

    /// Carries the phase out.
    pub(super) fn run(mut self, sink: &mut dyn RunSink) -> Result<PhaseSummary, RunError> {
        if self.stop.level() > StopLevel::Run {
            self.look_at_stop();
        }
        while !self.is_over() {
            if let Some(first) = self.remote.fleet.next(POLL) {
                self.take(first, sink);
                for _ in 1..BATCH {
                    match self.remote.fleet.inbound.try_recv() {
                        Ok(message) => self.take(message, sink),
                        Err(_) => break,
                    }
                }
            }
            if self.start_ns == 0
                && self.stop_level == StopLevel::Run
                && self.ready.iter().all(|r| *r)
            {
                self.start(sink);
            }
            self.emit(sink);
            self.check_preparation();
            self.look_at_holder();
            self.look_at_stop();
            self.look_at_deadlines();
        }
        self.emit(sink);
        self.finish(sink)
    }

    /// Whether no agent owes anything more.
    fn is_over(&self) -> bool {
        (0..self.done.len()).all(|rank| self.is_out(rank))
    }

    /// Whether an agent has finished or dropped out.
    fn is_out(&self, rank: usize) -> bool {
        self.done[rank].is_some() || self.out[rank]
    }

    fn take(&mut self, message: Inbound, sink: &mut dyn RunSink) {
        match message {
            Inbound::Interval(rank, bytes) => match self.remote.merger.add(rank as usize, &bytes) {
                Some((last, totals)) => {
                    self.remote.fleet.roster.delivered(rank, last, &totals);
                }
                None => self.fail(rank, AgentState::Failed, "it sent a damaged interval"),
            },
            Inbound::Lost(rank) => {
                let lost = self.remote.fleet.lost(rank).message;
                self.drop_out(rank, lost);
            }
            Inbound::Control(rank, message) => self.control(rank, message, sink),
        }
    }

    fn control(&mut self, rank: u32, message: ToCoordinator, sink: &mut dyn RunSink) {
        let at = rank as usize;
        match message {
            ToCoordinator::Ready { phase } if phase == self.phase => self.ready[at] = true,
            ToCoordinator::Late { phase, late_ns } if phase == self.phase => {
                let message = format!(
                    "{} learned of the start {:.1} ms late; operations due until then were late too",
                    self.remote.fleet.roster.name(rank),
                    late_ns as f64 / 1e6
                );
                sink.event(&Event::Warning { message });
            }
            ToCoordinator::Reached { phase, steps } if phase == self.phase => {
                self.reached[at] = Some(steps);
                self.agree();
            }
            ToCoordinator::Filled { phase, ranges } if phase == self.phase => {
                let filling = self.filling;
                if !filling.is_some_and(|filling| filling.acknowledged(rank, ranges)) {
                    let reason = "it reports objects that it was not to write";
                    self.fail(rank, AgentState::Failed, reason);
                }
            }
            ToCoordinator::Event(event) => self.event(rank, event, sink),
            ToCoordinator::Slow(mut requests) => {
                requests.retain(|r| self.slowest.offer(r.response_ns, ()));
                let offset = self.offsets[at];
                for r in &mut requests {
                    for instant in [
                        &mut r.due_ns,
                        &mut r.started_ns,
                        &mut r.first_byte_ns,
                        &mut r.done_ns,
                    ] {
                        *instant = shifted(*instant, offset);
                    }
                }
                if !requests.is_empty() {
                    sink.slow_requests(&requests);
                }
            }
            ToCoordinator::PhaseDone {
                phase,
                outcome,
                dropped,
            } if phase == self.phase => {
                if let Some(log) = &self.options.op_log {
                    let more = dropped.saturating_sub(self.remote.dropped[at]);
                    let counter = log.dropped();
                    counter.fetch_add(more, std::sync::atomic::Ordering::Relaxed);
                }
                self.remote.dropped[at] = dropped;
                match outcome {
                    Ok(part) => {
                        let told = self.stop_level > StopLevel::Run || self.converged;
                        if !told && !is_planned(part.end) {
                            let reason = "it stopped its load without being told to";
                            self.fail(rank, AgentState::Failed, reason);
                        }
                        self.done[at] = Some(part);
                        self.remote.merger.done(at);
                        self.remote.fleet.roster.state(rank, AgentState::Ready);
                    }
                    Err(problem) => self.fail(rank, AgentState::Failed, &problem.message),
                }
            }
            ToCoordinator::Bye { reason } => self.fail(rank, AgentState::Failed, &reason),
            ToCoordinator::Refused(problem) => {
                self.fail(rank, AgentState::Failed, &problem.message);
            }
            // From an earlier phase, or handled by the network thread.
            ToCoordinator::Ready { .. }
            | ToCoordinator::Late { .. }
            | ToCoordinator::Reached { .. }
            | ToCoordinator::Filled { .. }
            | ToCoordinator::PhaseDone { .. }
            | ToCoordinator::Hello(_)
            | ToCoordinator::Accepted { .. }
            | ToCoordinator::Calibrated(_)
            | ToCoordinator::Pong { .. } => {}
        }
    }

    /// Passes on an event of an agent.
    fn event(&mut self, rank: u32, event: Event, sink: &mut dyn RunSink) {
        let name = self.remote.fleet.roster.name(rank);
        match event {
            Event::Warning { message } => sink.event(&Event::Warning {
                message: format!("{name}: {message}"),
            }),
            Event::Failure {
                phase,
                class,
                key,
                error,
                at_ns,
            } if self.remote.failures_left > 0 => {
                self.remote.failures_left -= 1;
                sink.event(&Event::Failure {
                    phase,
                    class,
                    key,
                    error: format!("{error} [{name}]"),
                    at_ns: shifted(at_ns, self.offsets[rank as usize]),
                });
            }
            Event::Rows(mut rows) if rows.phase == self.phase => {
                let offset = self.offsets[rank as usize];
                rows.shift(|at| shifted(at, offset));
                self.rows.get_or_insert_default().merge(rows);
            }
            Event::Train(mut epoch) if epoch.phase == self.phase => {
                let offset = self.offsets[rank as usize];
                epoch.shift(|at| shifted(at, offset));
                sink.event(&Event::Train(epoch));
            }
            Event::Ranks(mut ranks) if ranks.phase == self.phase => {
                let offset = self.offsets[rank as usize];
                ranks.shift(|at| shifted(at, offset));
                self.ranks.get_or_insert_default().merge(ranks);
            }
            // Plans with the other events are refused on agents, or the coordinator reports the event itself.
            _ => {}
        }
    }

    /// Once every agent with ranks has reported its steps, tells all agents the maximum. Accelerators report each
    /// step; then all agents learn which one all have made.
    fn agree(&mut self) {
        let works = &self.plan.works;
        let ranks = works
            .iter()
            .find_map(|work| Some(work.model.ranks()?.ranks as usize));
        let trains = works.iter().any(|work| work.model.train().is_some());
        // Agents beyond the number of ranks have none. Each has an accelerator.
        let having = match trains {
            true => self.reached.len(),
            false => ranks.unwrap_or(0).min(self.reached.len()),
        };
        let having = &self.reached[..having];
        let Some(all) = having.iter().copied().collect::<Option<Vec<u64>>>() else {
            return;
        };
        let steps = match trains {
            true => all.into_iter().min(),
            false => all.into_iter().max(),
        };
        let Some(steps) = steps else {
            return;
        };
        let is_news = match self.agreed {
            None => true,
            Some(last) => trains && steps > last,
        };
        if !is_news {
            return;
        }
        self.agreed = Some(steps);
        let phase = self.phase;
        for rank in 0..self.reached.len() as u32 {
            let told = self
                .remote
                .fleet
                .tell(rank, &ToAgent::Agreed { phase, steps });
            if !told && !self.is_out(rank as usize) {
                // Its ranks would wait forever.
                self.fail(rank, AgentState::Lost, "it no longer accepts messages");
            }
        }
    }

    /// Marks an agent as failed.
    fn fail(&mut self, rank: u32, state: AgentState, reason: &str) {
        let name = self.remote.fleet.roster.name(rank);
        let message = match self.remote.fleet.roster.failed(rank, state, reason) {
            true => format!("{name}: {reason}"),
            // The network thread has seen the connection break in the meantime.
            false => self.remote.fleet.lost(rank).message,
        };
        self.drop_out(rank, message);
    }

    /// Continues without an agent: the others finish.
    fn drop_out(&mut self, rank: u32, message: String) {
        self.out[rank as usize] = true;
        self.remote.merger.done(rank as usize);
        if self.done[rank as usize].is_some() {
            // It has finished this phase; the next phase will not begin without it.
            return;
        }
        self.end = Some(PhaseEnd::Aborted);
        self.failed.get_or_insert(RunError::Agents(message));
        self.tell(StopLevel::Finish);
    }

    /// Chooses the start instant and announces it.
    fn start(&mut self, sink: &mut dyn RunSink) {
        let roster = &self.remote.fleet.roster;
        let agents = self.ready.len();
        let known: Vec<_> = (0..agents as u32).map(|rank| roster.offset(rank)).collect();
        let widest = known
            .iter()
            .flatten()
            .map(|o| o.bound_ns)
            .max()
            .unwrap_or(0);
        // A message takes at most twice the bound, which is half a round trip.
        let lead = LEAD_NS.saturating_add(widest.saturating_mul(4));
        self.start_ns = now_ns() + lead.min(MAX_LEAD_NS);
        let unix_s = i64::try_from(host::unix_ns() / 1_000_000_000).unwrap_or(i64::MAX);
        for (rank, offset) in known.iter().enumerate() {
            let offset_ns = offset.map_or(0, |o| o.offset_ns);
            self.offsets[rank] = offset_ns;
            let at_ns = shifted(self.start_ns, -offset_ns);
            let phase = self.phase;
            let start = ToAgent::Start {
                phase,
                at_ns,
                unix_s,
            };
            self.remote.fleet.tell(rank as u32, &start);
            self.remote
                .fleet
                .roster
                .state(rank as u32, AgentState::Running);
        }
        let offsets: Vec<_> = (0..agents)
            .map(|rank| (!self.is_out(rank)).then_some(self.offsets[rank]))
            .collect();
        self.remote
            .merger
            .begin(self.phase, self.start_ns, &offsets);
        if let Some(log) = &self.options.op_log {
            let mut base = 0u16;
            let origins = self.offsets.iter().zip(&self.remote.fleet.threads);
            let origins = origins.map(|(offset, threads)| {
                let of = (*offset, base);
                base = base.saturating_add(u16::try_from(*threads).unwrap_or(u16::MAX));
                of
            });
            let origins = origins.collect();
            self.remote.fleet.relay.begin(log, self.phase, origins);
        }
        sink.event(&Event::PhaseStarted {
            phase: self.phase,
            at_ns: self.start_ns,
        });
        if widest > WIDE_BOUND_NS && !self.remote.told_clock {
            self.remote.told_clock = true;
            let message = format!(
                "the agents' clocks are known to within ±{:.1} ms, so agents begin that far apart and \
                 instants of different agents compare only that well (agents.json has each bound); \
                 latencies are not affected: each is measured on one clock",
                widest as f64 / 1e6
            );
            sink.event(&Event::Warning { message });
        }
        let limits = self.plan.limits;
        self.deadline = (limits.duration_ns > 0).then(|| {
            let planned = lead.saturating_add(limits.duration_ns);
            Instant::now()
                + Duration::from_nanos(planned.saturating_add(limits.drain_ns))
                + END_GRACE
        });
    }

    /// Reports complete intervals, and ends the phase when they satisfy its stopping rule or show nothing but failures.
    fn emit(&mut self, sink: &mut dyn RunSink) {
        if self.start_ns == 0 {
            return;
        }
        let hook = self
            .options
            .converged
            .as_ref()
            .filter(|_| self.end.is_none());
        let mut early = None;
        self.remote.merger.emit(|interval| {
            sink.interval(interval);
            early = early.or_else(|| hook.and_then(|hook| (hook.borrow_mut())(interval)));
        });
        if let Some(end) = early {
            self.converged = true;
            self.end = Some(end);
            if end == PhaseEnd::Failing {
                let message = failing_note(&self.plan.name);
                sink.event(&Event::Warning { message });
            }
            let told = ToAgent::Converged { phase: self.phase };
            self.remote.fleet.tell_all(&told);
            self.end_within(END_GRACE);
        }
    }
}
