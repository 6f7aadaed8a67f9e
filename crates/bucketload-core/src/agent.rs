//! What is known of the agents of a run: the contents of `agents.json` in its run directory.
//!
//! The coordinator replaces the file once a second; reports and consoles read it.

use serde::{Deserialize, Serialize};

use crate::plan::crews::Pins;

/// Name of the file in the run directory.
pub const AGENTS: &str = "agents.json";

/// Everything in `agents.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentsFile {
    /// Identifier of the run.
    pub run_id: String,
    /// Wall-clock time of writing, nanoseconds since 1970.
    pub written_unix_ns: u64,
    /// The agents by rank.
    pub agents: Vec<AgentRecord>,
    /// The agents of drivers that works are pinned to.
    #[serde(default, skip_serializing_if = "Pins::is_empty")]
    pub pins: Pins,
}

impl AgentsFile {
    /// Agents that were lost or refused.
    pub fn failed(&self) -> impl Iterator<Item = &AgentRecord> {
        self.agents.iter().filter(|agent| agent.state.is_failed())
    }

    /// The agents as the drivers that a COSBench workload may name: `driver1`, `driver2` and so on, the
    /// address at which an agent was called or the host in it, and the name of its host if that is no
    /// other's. The first agent of a name has it.
    #[must_use]
    pub fn drivers(&self) -> Pins {
        let mut all = Pins::new();
        let mut add = |name: &str, rank: u32| {
            if !name.is_empty() {
                all.entry(name.to_owned()).or_insert(rank);
            }
        };
        for agent in &self.agents {
            add(&format!("driver{}", agent.rank + 1), agent.rank);
        }
        let unique = |name: &dyn Fn(&AgentRecord) -> String, agent: &AgentRecord| {
            let mine = name(agent);
            self.agents
                .iter()
                .filter(|other| name(other) == mine)
                .count()
                == 1
        };
        let host_of = |agent: &AgentRecord| {
            let host = agent.address.rsplit_once(':');
            host.map_or_else(String::new, |(host, _)| host.to_owned())
        };
        let names: [&dyn Fn(&AgentRecord) -> String; 3] =
            [&|agent| agent.address.clone(), &host_of, &|agent| {
                agent.host.clone()
            }];
        for name in names {
            for agent in self.agents.iter().filter(|agent| unique(name, agent)) {
                add(&name(agent), agent.rank);
            }
        }
        all
    }

    /// What to tell the user when secrets crossed a network in clear.
    #[must_use]
    pub fn clear_warning(&self) -> Option<String> {
        let clear = || self.agents.iter().filter(|agent| agent.clear);
        let first = clear().next()?;
        let more = match clear().count() - 1 {
            0 => String::new(),
            n => format!(" and to {n} more"),
        };
        Some(format!(
            "the agents' token and the target's credentials cross the network without TLS, to agent {} \
             ({}){more}: who can listen there has them; use --agent-cert, --agent-key and --agent-ca on \
             both sides, or --launch ssh",
            first.rank, first.address
        ))
    }

    /// The largest bound of an agent's clock offset, nanoseconds.
    #[must_use]
    pub fn worst_bound_ns(&self) -> u64 {
        let bounds = self.agents.iter().map(|agent| agent.clock_bound_ns);
        bounds.max().unwrap_or(0)
    }
}

/// What an agent is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentState {
    /// It is connected and has no plan yet.
    #[default]
    Connected,
    /// It has its share of the plan and waits for a phase.
    Ready,
    /// It opens its sessions for a phase.
    Preparing,
    /// It carries out a phase.
    Running,
    /// The run is over for it.
    Finished,
    /// It could not do its part; its reason says why.
    Failed,
    /// It was lost: killed, cut off or silent.
    Lost,
}

impl AgentState {
    /// Whether its part of the run is missing.
    #[must_use]
    pub const fn is_failed(self) -> bool {
        matches!(self, Self::Failed | Self::Lost)
    }

    /// The name used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Ready => "ready",
            Self::Preparing => "preparing",
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Lost => "lost",
        }
    }
}

/// One agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct AgentRecord {
    /// Its number in the run, from 0.
    pub rank: u32,
    /// Name of its host.
    pub host: String,
    /// How it was reached: an address, or the program that started it.
    pub address: String,
    /// Whether what it was told, the target's credentials included, crossed a network without TLS.
    #[serde(default)]
    pub clear: bool,
    /// Its process id on that host.
    pub pid: u32,
    /// Load threads.
    pub threads: u32,
    /// What it is doing.
    pub state: AgentState,
    /// Why it failed or was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its run clock minus the coordinator's, nanoseconds; instants in the run directory are the
    /// coordinator's.
    pub clock_offset_ns: i64,
    /// The offset is known to within this, nanoseconds: half of the shortest round trip, and what the
    /// clocks may have drifted since (see `bucketload_agents::clock`).
    pub clock_bound_ns: u64,
    /// Its wall clock minus the coordinator's, nanoseconds, within the same bound.
    pub wall_offset_ns: i64,
    /// Latest round trip of a heartbeat, nanoseconds.
    pub round_trip_ns: u64,
    /// Wall-clock time at which it was heard last, nanoseconds since 1970.
    pub heard_unix_ns: u64,
    /// The last interval that it delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_interval: Option<LastInterval>,
    /// What it did, over all phases.
    pub totals: AgentTotals,
}

crate::serde_once!(AgentRecord);

/// The last interval that an agent delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastInterval {
    /// Index of the phase in the plan.
    pub phase: u16,
    /// Position within the phase, from 0.
    pub index: u64,
    /// End, nanoseconds since the run's epoch.
    pub end_ns: u64,
}

/// Sums over what an agent did. The sums of all agents are those of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentTotals {
    /// Operations that fell due.
    pub offered: u64,
    /// Operations that a worker took.
    pub issued: u64,
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that failed, without cancelled ones.
    pub failed: u64,
    /// Operations that the end of a phase cut off.
    pub cancelled: u64,
    /// Object bytes of operations that succeeded.
    pub bytes: u64,
}

impl AgentTotals {
    /// Adds all of `other`.
    pub const fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.issued += other.issued;
        self.ok += other.ok;
        self.failed += other.failed;
        self.cancelled += other.cancelled;
        self.bytes += other.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::{AgentRecord, AgentsFile};

    #[test]
    fn an_agent_is_a_driver_by_number_address_and_host() {
        let agent = |rank, host: &str, address: &str| AgentRecord {
            rank,
            host: host.to_owned(),
            address: address.to_owned(),
            ..AgentRecord::default()
        };
        let file = AgentsFile {
            agents: vec![
                agent(0, "one", "10.0.0.1:7400"),
                agent(1, "two", "10.0.0.2:7400"),
                agent(2, "two", "10.0.0.2:7401"),
            ],
            ..AgentsFile::default()
        };
        let drivers = file.drivers();
        for (name, rank) in [
            ("driver1", Some(0)),
            ("driver3", Some(2)),
            ("10.0.0.2:7401", Some(2)),
            ("10.0.0.1", Some(0)),
            ("one", Some(0)),
            // Two agents have it.
            ("two", None),
            ("10.0.0.2", None),
            ("driver4", None),
        ] {
            assert_eq!(drivers.get(name).copied(), rank, "{name}");
        }
    }

    #[test]
    fn what_others_can_read_is_told_once() {
        let agent = |rank, clear| AgentRecord {
            rank,
            clear,
            address: format!("h{rank}:7400"),
            ..AgentRecord::default()
        };
        let warning = |agents: Vec<AgentRecord>| {
            let file = AgentsFile {
                agents,
                ..AgentsFile::default()
            };
            file.clear_warning()
        };
        assert_eq!(warning(vec![agent(0, false)]), None);
        let one = warning(vec![agent(0, false), agent(1, true)]).unwrap();
        assert!(one.contains("agent 1 (h1:7400): who"), "{one}");
        let two = warning(vec![agent(0, true), agent(1, true)]).unwrap();
        assert!(
            two.contains("agent 0 (h0:7400) and to 1 more: who"),
            "{two}"
        );
    }
}
