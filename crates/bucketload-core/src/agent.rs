//! The agents of a run: the contents of `agents.json` in its run directory.
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
    /// Agents that a COSBench workload's driver names are pinned to.
    #[serde(default, skip_serializing_if = "Pins::is_empty")]
    pub pins: Pins,
}

impl AgentsFile {
    /// Agents that were lost or refused.
    pub fn failed(&self) -> impl Iterator<Item = &AgentRecord> {
        self.agents.iter().filter(|agent| agent.state.is_failed())
    }

    /// Maps the driver names that a COSBench workload may use to agents: `driver1`, `driver2` and so on, the
    /// agent's address, the host part of that address, and the agent's host name. Addresses and host names
    /// count only if no other agent has the same one. If two agents have the same name, the first one gets
    /// it.
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
        let names: [fn(&AgentRecord) -> &str; 3] = [
            |agent| &agent.address,
            |agent| agent.address.rsplit_once(':').map_or("", |(host, _)| host),
            |agent| &agent.host,
        ];
        for name in names {
            for agent in &self.agents {
                let same = |other: &&AgentRecord| name(other) == name(agent);
                if self.agents.iter().filter(same).count() == 1 {
                    add(name(agent), agent.rank);
                }
            }
        }
        all
    }

    /// The warning to print if secrets crossed a network unencrypted.
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

    /// The largest uncertainty of any agent's clock offset, nanoseconds.
    #[must_use]
    pub fn worst_bound_ns(&self) -> u64 {
        let bounds = self.agents.iter().map(|agent| agent.clock_bound_ns);
        bounds.max().unwrap_or(0)
    }
}

/// What an agent is doing.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum AgentState {
    /// Connected, without a plan yet.
    #[default]
    Connected,
    /// Holds its share of the plan and waits for a phase.
    Ready,
    /// Opening its sessions for a phase.
    Preparing,
    /// Running a phase.
    Running,
    /// Done with the run.
    Finished,
    /// Failed; [`AgentRecord::reason`] says why.
    Failed,
    /// Lost: killed, disconnected or silent.
    Lost,
}

impl AgentState {
    /// Whether its share of the run is missing.
    #[must_use]
    pub const fn is_failed(self) -> bool {
        matches!(self, Self::Failed | Self::Lost)
    }

    /// The name used in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// One agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct AgentRecord {
    /// Agent number in the run, from 0.
    pub rank: u32,
    /// Host name.
    pub host: String,
    /// How the coordinator reached it: an address, or the program that started it.
    pub address: String,
    /// Whether data sent to it, including the target's credentials, crossed a network without TLS.
    #[serde(default)]
    pub clear: bool,
    /// Process id on that host.
    pub pid: u32,
    /// Load threads.
    pub threads: u32,
    /// Current state.
    pub state: AgentState,
    /// Why it failed or was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The agent's run clock minus the coordinator's, nanoseconds. Instants in the run directory use the
    /// coordinator's clock.
    pub clock_offset_ns: i64,
    /// Uncertainty of that offset, nanoseconds: half of the shortest round trip plus the drift that the
    /// clocks may have accumulated since (see `bucketload_agents::clock`).
    pub clock_bound_ns: u64,
    /// The agent's wall clock minus the coordinator's, nanoseconds, with the same uncertainty.
    pub wall_offset_ns: i64,
    /// Latest round trip of a heartbeat, nanoseconds.
    pub round_trip_ns: u64,
    /// Wall-clock time of its last message, nanoseconds since 1970.
    pub heard_unix_ns: u64,
    /// The last interval it delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_interval: Option<LastInterval>,
    /// Totals over all phases.
    pub totals: AgentTotals,
}

crate::serde_once!(AgentRecord);

/// The last interval delivered by an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastInterval {
    /// Index of the phase in the plan.
    pub phase: u16,
    /// Position within the phase, from 0.
    pub index: u64,
    /// End, nanoseconds since the run's epoch.
    pub end_ns: u64,
}

/// Totals of one agent. The agents' totals add up to the run's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentTotals {
    /// Operations that fell due.
    pub offered: u64,
    /// Operations that a worker started.
    pub issued: u64,
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that failed, without cancelled ones.
    pub failed: u64,
    /// Operations cut off by the end of a phase.
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
            // Two agents share this name.
            ("two", None),
            ("10.0.0.2", None),
            ("driver4", None),
        ] {
            assert_eq!(drivers.get(name).copied(), rank, "{name}");
        }
    }

    #[test]
    fn unencrypted_agents_produce_one_warning() {
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
