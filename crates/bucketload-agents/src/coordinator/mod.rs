//! The coordinator: gathers agents, gives each its share of the plan, and makes one run of what they
//! measure.
//!
//! ```text
//!  Gather ─▶ Fleet::gather ─▶ Fleet::assign ─▶ Remote (bucketload_run::RemoteLoad)
//!                                                │ phase by phase, called by bucketload_run::run
//!  network thread: one task per agent ── Inbound ▶ Course: ready, start, intervals, end ─▶ RunSink
//!        │ pings, clock, rows of the operation log      └ Merger
//!        └ Roster ─▶ agents.json
//! ```
//!
//! Preflight, ownership, audit and clean-up are done by the coordinator itself, with the driver that it
//! has opened like in a local run: so it must be able to reach the target too.

mod course;
mod gather;
mod merge;
mod net;
mod oplog;
mod roster;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bucketload_core::agent::{AgentState, AgentsFile};
use bucketload_core::plan::Plan;
use bucketload_core::plan::crews::Pins;
use bucketload_core::sink::{Calibration, RunSink};
use bucketload_run::{PhaseSummary, RemoteLoad, RunError, RunOptions, StopHandle, StopLevel};
use tokio::sync::mpsc;

use self::course::Course;
pub use self::gather::{Child, Gather};
use self::merge::Merger;
use self::net::{Inbound, Network};
use self::oplog::Relay;
use self::roster::Roster;
use crate::error::AgentsError;
use crate::message::{Assignment, ToAgent, ToCoordinator, control};
use crate::service::Out;

/// How long agents may take to open the target.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a calibration may take.
const CALIBRATE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long agents may take to leave at the end.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the collector looks at the stop handle.
const POLL: Duration = Duration::from_millis(20);

/// The agents of a run.
pub struct Fleet {
    peers: Vec<Out>,
    inbound: mpsc::Receiver<Inbound>,
    roster: Arc<Roster>,
    relay: Relay,
    timeout: Duration,
    /// Load threads of each agent.
    threads: Vec<u32>,
    children: Vec<tokio::process::Child>,
    /// Last, so that everything else is gone when it ends.
    net: Network,
}

impl Fleet {
    /// Number of agents.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.peers.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.peers.is_empty()
    }

    /// Load threads of all agents.
    #[must_use]
    pub fn threads(&self) -> u32 {
        self.threads.iter().sum()
    }

    /// What is known of the agents now.
    #[must_use]
    pub fn snapshot(&self) -> AgentsFile {
        self.roster.snapshot()
    }

    /// Works that name a driver of these are its agent's.
    pub fn pin(&mut self, pins: Pins) {
        self.roster.pin(pins);
    }

    /// A look at the agents that outlives the run.
    #[must_use]
    pub fn watch(&self) -> Watch {
        Watch(Arc::clone(&self.roster))
    }

    /// Gives each agent what `make` makes for its number, and waits until all have opened the target.
    ///
    /// # Errors
    /// When one cannot, or is lost.
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

    /// Carries out the load phases of `plan`, whose intervals are `interval` long, on these agents.
    #[must_use]
    pub fn remote(self, plan: &Plan, interval: Duration) -> Remote {
        let interval_ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        Remote {
            merger: Merger::new(self.peers.len(), interval_ns),
            fleet: self,
            plan: plan.clone(),
            interval,
            dropped: Vec::new(),
            failures_left: course::FAILURES,
            told_clock: false,
        }
    }

    fn lost(&self, rank: u32) -> AgentsError {
        let reason = self.roster.change(rank, |record| record.reason.clone());
        let reason = reason.flatten().unwrap_or_default();
        AgentsError::aborted(format!("{} was lost: {reason}", self.roster.name(rank)))
    }

    /// Tells an agent something; `false` when it takes nothing any more, which its silence will show too.
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

    /// The next message of any agent; `None` when there is none within `wait`.
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
                // Ends when every agent has left.
                while inbound.recv().await.is_some() {}
                for child in children.iter_mut() {
                    let _ = child.wait().await;
                }
            };
            if tokio::time::timeout(LEAVE_TIMEOUT, leave).await.is_err() {
                // Our own children, by their handles.
                for child in children.iter_mut() {
                    let _ = child.start_kill();
                    let _ = tokio::time::timeout(Duration::from_secs(2), child.wait()).await;
                }
            }
        });
    }
}

/// A look at the agents of a run.
#[derive(Clone, Debug)]
pub struct Watch(Arc<Roster>);

impl Watch {
    /// The run directory exists from now on: `agents.json` in it is replaced once a second.
    pub fn set_directory(&self, directory: &Path) {
        self.0.set_directory(directory);
        // A directory that cannot be written is told by the run directory's own files.
        let _ = self.0.write();
    }

    /// What is known of the agents now.
    #[must_use]
    pub fn snapshot(&self) -> AgentsFile {
        self.0.snapshot()
    }
}

/// Load phases on agents.
pub struct Remote {
    fleet: Fleet,
    plan: Plan,
    interval: Duration,
    merger: Merger,
    /// Rows of the operation log that each agent says it has dropped so far.
    dropped: Vec<u64>,
    /// Failures that may still be reported in full.
    failures_left: u32,
    told_clock: bool,
}

impl RemoteLoad for Remote {
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
                    let text = format!("{open} agents did not answer while they were calibrated");
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
        phase: usize,
        options: &RunOptions,
        sink: &mut dyn RunSink,
        stop: &StopHandle,
    ) -> Result<PhaseSummary, RunError> {
        Course::new(self, phase, options, stop)?.run(sink)
    }
}

/// Rates of several clients add up; the tail is that of the slowest. CPU times are summed for their
/// mean.
fn join(a: Calibration, b: Calibration) -> Calibration {
    Calibration {
        offered_ops_per_s: a.offered_ops_per_s + b.offered_ops_per_s,
        null_ops_per_s: a.null_ops_per_s + b.null_ops_per_s,
        null_p99_ns: a.null_p99_ns.max(b.null_p99_ns),
        null_cpu_ns_per_op: a.null_cpu_ns_per_op + b.null_cpu_ns_per_op,
    }
}
