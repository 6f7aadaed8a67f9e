//! The agents that a controller's runs use: whether they answer, in which version, and how far their clocks
//! are from the controller's.
//!
//! They are asked every ten seconds while nothing runs, and at once when a run has ended. While one runs its
//! coordinator hears from them all the time (`agents.json` in the run directory), and nobody else disturbs
//! them. How they are asked is the program's business ([`Prober`]).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::agents::AgentAddress;
use crate::controller::Controller;
use crate::launcher::Boxed;

/// Time between two rounds of questions.
const PERIOD: Duration = Duration::from_secs(10);
/// Agents that are asked at the same time.
const AT_ONCE: usize = 32;
/// Longest reason that is kept, characters.
const MAX_REASON: usize = 300;

/// Asks an agent; gives up by itself after a few seconds.
pub trait Prober: Send + Sync + 'static {
    /// What the agent says, or why it says nothing.
    fn probe<'a>(&'a self, agent: &'a AgentAddress) -> Boxed<'a, Result<Answer, String>>;
}

/// What an agent says without a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// Version of its program.
    pub version: String,
    /// Name of its host.
    pub host: String,
    /// The run that it works for.
    pub busy: Option<String>,
    /// Its wall clock minus the controller's, nanoseconds.
    pub clock_offset_ns: i64,
    /// The offset is off by at most this, nanoseconds.
    pub clock_bound_ns: u64,
    /// Shortest round trip, nanoseconds.
    pub round_trip_ns: u64,
}

/// How an agent is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "health")]
pub enum Health {
    /// It was not asked yet.
    #[default]
    Unknown,
    /// It answers.
    Ready(Answer),
    /// It does not.
    Absent {
        /// Why.
        reason: String,
    },
}

/// An agent, and how it was when it was asked last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// Where it listens.
    pub address: AgentAddress,
    /// How it is.
    #[serde(flatten)]
    pub health: Health,
    /// When it was asked, milliseconds since 1970; 0 before.
    pub asked_ms: u64,
}

/// The configured agents.
#[derive(Default)]
pub struct Fleet {
    standings: Mutex<Vec<Standing>>,
    prober: Option<Arc<dyn Prober>>,
    /// Counts changes.
    changes: watch::Sender<u64>,
}

impl std::fmt::Debug for Fleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fleet")
            .field("standings", &self.standings())
            .finish_non_exhaustive()
    }
}

impl Fleet {
    /// Agents of which nothing is known yet.
    #[must_use]
    pub fn new(agents: Vec<AgentAddress>, prober: Arc<dyn Prober>) -> Self {
        let standing = |address| Standing {
            address,
            health: Health::Unknown,
            asked_ms: 0,
        };
        Self {
            standings: Mutex::new(agents.into_iter().map(standing).collect()),
            prober: Some(prober),
            changes: watch::Sender::new(0),
        }
    }

    /// How every agent is.
    #[must_use]
    pub fn standings(&self) -> Vec<Standing> {
        let standings = self.standings.lock();
        standings.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many answer, and how many there are.
    #[must_use]
    pub fn ready(&self) -> (usize, usize) {
        let standings = self.standings();
        let ready = |s: &&Standing| matches!(s.health, Health::Ready(_));
        (standings.iter().filter(ready).count(), standings.len())
    }

    /// Is told of changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Asks the agents again and again until `controller` stops; returns at once when there are none.
    pub async fn look_after(self: Arc<Self>, controller: Controller) {
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
                self.ask(&prober, controller.now_ms()).await;
                ticks.reset();
            }
        }
    }

    /// Asks every agent once.
    async fn ask(&self, prober: &Arc<dyn Prober>, now_ms: u64) {
        let slots = Arc::new(Semaphore::new(AT_ONCE));
        let mut asked = JoinSet::new();
        for (index, standing) in self.standings().into_iter().enumerate() {
            let (prober, slots) = (Arc::clone(prober), Arc::clone(&slots));
            asked.spawn(async move {
                let _slot = slots.acquire().await;
                (index, prober.probe(&standing.address).await)
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
            let mut standings = self
                .standings
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if let Some(standing) = standings.get_mut(index) {
                standing.health = health;
                standing.asked_ms = now_ms;
            }
        }
        self.changes.send_modify(|n| *n += 1);
    }
}
