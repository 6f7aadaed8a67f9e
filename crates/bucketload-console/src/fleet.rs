//! Health of the agents that a controller's runs use: whether they answer, their version, and their clock offset.
//!
//! The fleet probes the agents every ten seconds while no run is in progress, and immediately after a run. During a
//! run the coordinator hears from them constantly (`agents.json` in the run directory), and nothing else disturbs
//! them. A [`Prober`] does the probing.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::agents::AgentAddress;
use crate::controller::Controller;
use crate::launcher::BoxFuture;
use crate::lock;

/// Time between two rounds of probes.
const PERIOD: Duration = Duration::from_secs(10);
/// Maximum number of simultaneous probes.
const MAX_PROBES: usize = 32;
/// Maximum length of a stored reason, characters.
const MAX_REASON: usize = 300;

/// Probes an agent, and gives up after a few seconds.
pub trait Prober: Send + Sync + 'static {
    /// Returns the agent's answer, or the reason why there is none.
    fn probe<'a>(&'a self, agent: &'a AgentAddress) -> BoxFuture<'a, Result<ProbeAnswer, String>>;
}

/// An agent's answer to a probe.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProbeAnswer {
    /// Version of the agent's program.
    pub version: String,
    /// Name of the agent's host.
    pub host: String,
    /// The run that the agent is serving.
    pub busy: Option<String>,
    /// The agent's wall clock minus the controller's, nanoseconds.
    pub clock_offset_ns: i64,
    /// Maximum error of the offset, nanoseconds.
    pub clock_bound_ns: u64,
    /// Shortest round trip, nanoseconds.
    pub round_trip_ns: u64,
}

/// The health of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "health")]
pub enum Health {
    /// Not probed yet.
    #[default]
    Unknown,
    /// The last probe succeeded.
    Ready(ProbeAnswer),
    /// The last probe failed.
    Absent {
        /// The reason.
        reason: String,
    },
}

/// An agent and the result of its last probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AgentStatus {
    /// The agent's address.
    pub address: AgentAddress,
    /// The result.
    #[serde(flatten)]
    pub health: Health,
    /// Time of the last probe, milliseconds since 1970; 0 before the first.
    pub asked_ms: u64,
}

/// The configured agents.
#[derive(Default)]
pub struct Fleet {
    statuses: Mutex<Vec<AgentStatus>>,
    prober: Option<Arc<dyn Prober>>,
    /// Counts changes.
    changes: watch::Sender<u64>,
}

impl std::fmt::Debug for Fleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fleet")
            .field("statuses", &self.statuses())
            .finish_non_exhaustive()
    }
}

impl Fleet {
    /// Makes a fleet of agents that have not been probed yet.
    #[must_use]
    pub fn new(agents: Vec<AgentAddress>, prober: Arc<dyn Prober>) -> Self {
        let status = |address| AgentStatus {
            address,
            health: Health::Unknown,
            asked_ms: 0,
        };
        Self {
            statuses: Mutex::new(agents.into_iter().map(status).collect()),
            prober: Some(prober),
            changes: watch::Sender::new(0),
        }
    }

    /// The status of every agent.
    #[must_use]
    pub fn statuses(&self) -> Vec<AgentStatus> {
        lock(&self.statuses).clone()
    }

    /// The number of agents that answer, and of all agents.
    #[must_use]
    pub fn ready(&self) -> (usize, usize) {
        let statuses = self.statuses();
        let ready = |s: &&AgentStatus| matches!(s.health, Health::Ready(_));
        (statuses.iter().filter(ready).count(), statuses.len())
    }

    /// Returns a receiver that is notified of changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Probes the agents until `controller` stops; returns at once if there are none.
    pub async fn poll(self: Arc<Self>, controller: Controller) {
        let Some(prober) = self.prober.clone().filter(|_| self.ready().1 > 0) else {
            return;
        };
        let mut stopping = controller.stopping();
        let mut queue = controller.watch();
        let mut ticks = tokio::time::interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut paused = false;
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = queue.changed(), if paused => {}
                _ = stopping.wait_for(|stop| *stop) => return,
            }
            queue.borrow_and_update();
            paused = controller.with_queue(|queue| queue.running().is_some());
            if !paused {
                self.probe_all(&prober, controller.now_ms()).await;
                ticks.reset();
            }
        }
    }

    /// Probes every agent once.
    async fn probe_all(&self, prober: &Arc<dyn Prober>, now_ms: u64) {
        let slots = Arc::new(Semaphore::new(MAX_PROBES));
        let mut asked = JoinSet::new();
        for (index, status) in self.statuses().into_iter().enumerate() {
            let (prober, slots) = (Arc::clone(prober), Arc::clone(&slots));
            asked.spawn(async move {
                let _slot = slots.acquire().await;
                (index, prober.probe(&status.address).await)
            });
        }
        while let Some(joined) = asked.join_next().await {
            let Ok((index, answer)) = joined else {
                continue;
            };
            let health = match answer {
                Ok(answer) => Health::Ready(answer),
                Err(reason) => Health::Absent {
                    reason: reason.chars().take(MAX_REASON).collect(),
                },
            };
            let mut statuses = lock(&self.statuses);
            if let Some(status) = statuses.get_mut(index) {
                status.health = health;
                status.asked_ms = now_ms;
            }
        }
        self.changes.send_modify(|n| *n += 1);
    }
}
