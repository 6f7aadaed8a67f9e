//! The coordinator: gathers agents, gives each its share of the plan, and merges their measurements into one
//! run.
//!
//! ```text
//!  GatherOptions ─▶ Fleet::gather ─▶ Fleet::assign ─▶ FleetLoad (bucketload_run::RemoteLoad)
//!                                                │ phase by phase, called by bucketload_run::run
//!  network thread: one task per agent ── Inbound ▶ PhaseCourse: ready, start, intervals, end ─▶ RunSink
//!        │ pings, clock, rows of the operation log      └ Merger
//!        └ Roster ─▶ agents.json
//! ```
//!
//! The coordinator does preflight, ownership, audit and clean-up itself, with its own driver as in a local
//! run, so it must be able to reach the target too.

mod gather;
mod merge;
mod net;
mod oplog;
mod phase;
mod roster;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bucketload_core::agent::{AgentState, AgentsFile};
use bucketload_core::plan::Plan;
use bucketload_core::plan::crews::Pins;
use bucketload_core::sink::{Calibration, RunSink};
use bucketload_run::{
    PhaseSummary, RemoteLoad, RemotePhase, RunError, RunOptions, StopHandle, StopLevel,
};
use tokio::sync::mpsc;

pub use self::gather::{AgentCommand, GatherOptions};
use self::merge::Merger;
use self::net::{Inbound, Network};
use self::oplog::OpLogRelay;
use self::phase::PhaseCourse;
use self::roster::Roster;
use crate::error::AgentsError;
use crate::message::{Assignment, ToAgent, ToCoordinator, control};
use crate::service::Outbox;

/// How long agents may take to open the target.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a calibration may take.
const CALIBRATE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long agents may take to disconnect at the end.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the collector looks at the stop handle.
const POLL: Duration = Duration::from_millis(20);

/// The agents of a run.
pub struct Fleet {
    peers: Vec<Outbox>,
    inbound: mpsc::Receiver<Inbound>,
    roster: Arc<Roster>,
    relay: OpLogRelay,
    timeout: Duration,
    /// Load threads of each agent.
    threads: Vec<u32>,
    children: Vec<tokio::process::Child>,
    /// Dropped last, after everything that uses the network.
    net: Network,
}

impl Fleet {
    /// Number of agents.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.peers.len()
    }

    /// True if there are no agents.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.peers.is_empty()
    }

    /// Load threads of all agents.
    #[must_use]
    pub fn threads(&self) -> u32 {
        self.threads.iter().sum()
    }

    /// The current state of all agents.
    #[must_use]
    pub fn snapshot(&self) -> AgentsFile {
        self.roster.snapshot()
    }

    /// Pins the works of each driver to the agent of that driver.
    pub fn pin(&mut self, pins: Pins) {
        self.roster.pin(pins);
    }

    /// A view of the agents that outlives the run.
    #[must_use]
    pub fn watch(&self) -> FleetWatch {
        FleetWatch(Arc::clone(&self.roster))
    }

    /// Gives each agent the assignment that `make` returns for its rank, and waits until all have opened the target.
    ///
    /// # Errors
    /// When an agent cannot open the target or is lost.
    pub fn assign(&mut self, mut make: impl FnMut(u32) -> Assignment) -> Result<(), AgentsError> {
        for rank in 0..self.peers.len() as u32 {
            let assignment = Box::new(make(rank));
            self.tell(rank, &ToAgent::Assign(assignment));
        }
        let mut open = self.peers.len();
        let begun = Instant::now();
        while open > 0 {
            match self.next(POLL) {
                Some(Inbound::Control(rank, ToCoordinator::Accepted { threads, .. })) => {
                    open -= 1;
                    self.threads[rank as usize] = threads;
                    self.roster.change(rank, |record| record.threads = threads);
                    self.roster.state(rank, AgentState::Ready);
                }
                Some(Inbound::Control(rank, ToCoordinator::Refused(problem))) => {
                    let message = format!("{}: {}", self.roster.name(rank), problem.message);
                    self.roster
                        .failed(rank, AgentState::Failed, &problem.message);
                    return Err(AgentsError {
                        message,
                        exit_code: problem.exit_code,
                    });
                }
                Some(Inbound::Lost(rank)) => return Err(self.lost(rank)),
                Some(_) => {}
                None if begun.elapsed() > ACCEPT_TIMEOUT => {
                    return Err(AgentsError::aborted(format!(
                        "{open} of {} agents have not opened the target within {} s",
                        self.peers.len(),
                        ACCEPT_TIMEOUT.as_secs()
                    )));
                }
                None => {}
            }
        }
        Ok(())
    }

    /// The load phases of `plan` on these agents, with intervals of `interval`.
    #[must_use]
    pub fn remote(self, plan: &Plan, interval: Duration) -> FleetLoad {
        let interval_ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        FleetLoad {
            merger: Merger::new(self.peers.len(), interval_ns),
            fleet: self,
            plan: plan.clone(),
            interval,
            dropped: Vec::new(),
            failures_left: phase::FAILURES,
            told_clock: false,
        }
    }

    fn lost(&self, rank: u32) -> AgentsError {
        let reason = self.roster.change(rank, |record| record.reason.clone());
        let reason = reason.flatten().unwrap_or_default();
        AgentsError::aborted(format!("{} was lost: {reason}", self.roster.name(rank)))
    }

    /// Sends a message to an agent; `false` if its queue is full or closed, in which case its silence will show too.
    fn tell(&self, rank: u32, what: &ToAgent) -> bool {
        let peer = self.peers.get(rank as usize);
        peer.is_some_and(|peer| peer.control.try_send(control(what)).is_ok())
    }

    fn tell_all(&self, what: &ToAgent) {
        let message = control(what);
        for peer in &self.peers {
            let _ = peer.control.try_send(message.clone());
        }
    }

    /// The next message of any agent; `None` if none arrives within `wait`.
    fn next(&mut self, wait: Duration) -> Option<Inbound> {
        if let Ok(message) = self.inbound.try_recv() {
            return Some(message);
        }
        let inbound = &mut self.inbound;
        let received = async { tokio::time::timeout(wait, inbound.recv()).await };
        self.net.wait(received).ok().flatten()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for rank in 0..self.peers.len() as u32 {
            self.roster.state(rank, AgentState::Finished);
        }
        self.tell_all(&ToAgent::Bye);
        let _ = self.roster.write();
        self.peers.clear();
        let (inbound, children) = (&mut self.inbound, &mut self.children);
        self.net.wait(async {
            let leave = async {
                // Ends when every agent has disconnected.
                while inbound.recv().await.is_some() {}
                for child in children.iter_mut() {
                    let _ = child.wait().await;
                }
            };
            if tokio::time::timeout(LEAVE_TIMEOUT, leave).await.is_err() {
                // Only our own children are killed.
                for child in children.iter_mut() {
                    let _ = child.start_kill();
                    let _ = tokio::time::timeout(Duration::from_secs(2), child.wait()).await;
                }
            }
        });
    }
}

/// A view of the agents of a run.
#[derive(Clone, Debug)]
pub struct FleetWatch(Arc<Roster>);

impl FleetWatch {
    /// Notes that the run directory exists: its `agents.json` is replaced once a second from now on.
    pub fn set_directory(&self, directory: &Path) {
        self.0.set_directory(directory);
        // The writer of the other files reports a directory that cannot be written.
        let _ = self.0.write();
    }

    /// The current state of all agents.
    #[must_use]
    pub fn snapshot(&self) -> AgentsFile {
        self.0.snapshot()
    }
}

/// Load phases on agents.
pub struct FleetLoad {
    fleet: Fleet,
    plan: Plan,
    interval: Duration,
    merger: Merger,
    /// Operation log rows that each agent reports as dropped so far.
    dropped: Vec<u64>,
    /// Failures that may still be reported individually.
    failures_left: u32,
    told_clock: bool,
}

impl RemoteLoad for FleetLoad {
    fn calibrate(
        &mut self,
        phase: usize,
        stop: &StopHandle,
    ) -> Result<Option<Calibration>, RunError> {
        let number = u16::try_from(phase).unwrap_or(u16::MAX);
        self.fleet.tell_all(&ToAgent::Calibrate { phase: number });
        let mut all: Option<Calibration> = None;
        let mut open = self.fleet.len();
        let begun = Instant::now();
        while open > 0 && stop.level() == StopLevel::Run {
            match self.fleet.next(POLL) {
                Some(Inbound::Control(rank, ToCoordinator::Calibrated(outcome))) => {
                    open -= 1;
                    let one = outcome.map_err(|problem| {
                        let name = self.fleet.roster.name(rank);
                        RunError::Agents(format!("{name}: {}", problem.message))
                    })?;
                    all = Some(all.map_or(one, |all| join(all, one)));
                }
                Some(Inbound::Lost(rank)) => {
                    return Err(RunError::Agents(self.fleet.lost(rank).message));
                }
                Some(_) => {}
                None if begun.elapsed() > CALIBRATE_TIMEOUT => {
                    let text = format!("{open} agents did not answer the calibration");
                    return Err(RunError::Agents(text));
                }
                None => {}
            }
        }
        let n = self.fleet.len().max(1) as f64;
        Ok(all.filter(|_| open == 0).map(|sum| Calibration {
            null_cpu_ns_per_op: sum.null_cpu_ns_per_op / n,
            ..sum
        }))
    }

    fn run_phase(
        &mut self,
        phase: RemotePhase<'_>,
        options: &RunOptions,
        sink: &mut dyn RunSink,
        stop: &StopHandle,
    ) -> Result<PhaseSummary, RunError> {
        PhaseCourse::new(self, phase, options, stop)?.run(sink)
    }
}

/// Combines calibrations: rates add up, the tail is the slowest client's, and CPU times are summed for the
/// mean.
fn join(a: Calibration, b: Calibration) -> Calibration {
    Calibration {
        offered_ops_per_s: a.offered_ops_per_s + b.offered_ops_per_s,
        null_ops_per_s: a.null_ops_per_s + b.null_ops_per_s,
        null_p99_ns: a.null_p99_ns.max(b.null_p99_ns),
        null_cpu_ns_per_op: a.null_cpu_ns_per_op + b.null_cpu_ns_per_op,
        age_s: a.age_s.max(b.age_s),
    }
}
