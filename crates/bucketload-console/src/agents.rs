//! Agents as the console shows them: addresses of configured agents, and the agents of a run.
//!
//! A run with agents keeps `agents.json` in its run directory, replaced once a second. The console reads the fields
//! that it knows and ignores others.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// Name of the file in the run directory.
pub(crate) const FILE: &str = "agents.json";
/// Maximum size of the file, bytes.
const MAX_FILE: u64 = 4 << 20;

/// The address of an agent, `HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct AgentAddress(String);

impl std::str::FromStr for AgentAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not the address of an agent; write HOST:PORT, for example node1:19099"
            )
        };
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let host_ok = !host.is_empty()
            && host
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-._:[]".contains(c))
            && !host.starts_with('-');
        if !host_ok || port.parse::<u16>().is_err() {
            return Err(wrong());
        }
        Ok(Self(text.to_owned()))
    }
}

impl std::fmt::Display for AgentAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// An agent of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentState {
    /// Its rank within the run.
    pub rank: u64,
    /// Its host.
    pub host: String,
    /// Its state: `connected`, `ready`, `preparing`, `running`, `finished`, `failed` or `lost`.
    pub state: String,
    /// Why it failed or was lost.
    pub reason: Option<String>,
    /// Its wall clock minus the coordinator's, nanoseconds.
    pub wall_offset_ns: Option<i64>,
    /// Maximum error of the offset, nanoseconds.
    pub clock_bound_ns: Option<u64>,
    /// The last interval that arrived from it.
    pub last_interval: Option<LastInterval>,
}

impl AgentState {
    /// Whether its share of the run is missing.
    #[must_use]
    pub fn is_failed(&self) -> bool {
        matches!(self.state.as_str(), "failed" | "lost")
    }
}

/// The last interval that an agent delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LastInterval {
    /// Index of the phase.
    pub phase: u16,
    /// Position within the phase, from 0.
    pub index: u64,
}

/// The agents of the run in `dir`; empty if it has none or the file cannot be read.
pub(crate) fn of_run(dir: &Path) -> Vec<AgentState> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum File {
        List(Vec<AgentState>),
        Named { agents: Vec<AgentState> },
    }

    let path = dir.join(FILE);
    let readable = std::fs::metadata(&path).is_ok_and(|m| m.is_file() && m.len() <= MAX_FILE);
    if !readable {
        return Vec::new();
    }
    let text = std::fs::read(&path).unwrap_or_default();
    match serde_json::from_slice(&text) {
        Ok(File::List(agents) | File::Named { agents }) => agents,
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{AgentAddress, FILE, of_run};

    #[test]
    fn addresses_cannot_be_flags() {
        for good in ["node1:19099", "10.0.0.1:1", "[::1]:19099"] {
            assert_eq!(good.parse::<AgentAddress>().unwrap().to_string(), good);
        }
        for bad in [
            "",
            "node1",
            "node1:",
            "node1:x",
            ":1",
            "--out=x:1",
            "a b:1",
            "a,b:1",
        ] {
            assert!(bad.parse::<AgentAddress>().is_err(), "{bad}");
        }
    }

    #[test]
    fn known_fields_of_the_coordinators_file_are_read() {
        let dir = tempfile::tempdir().unwrap();
        assert!(of_run(dir.path()).is_empty());
        let text = r#"{"run_id":"x","agents":[{"rank":1,"host":"n1","state":"running","clock_offset_ns":77,"wall_offset_ns":-5,"last_interval":{"phase":2,"index":7,"end_ns":1},"new":{}}]}"#;
        std::fs::write(dir.path().join(FILE), text).unwrap();
        let agents = of_run(dir.path());
        assert_eq!((agents[0].rank, agents[0].host.as_str()), (1, "n1"));
        assert_eq!(agents[0].wall_offset_ns, Some(-5));
        assert_eq!(agents[0].last_interval.unwrap().index, 7);
        std::fs::write(dir.path().join(FILE), "{torn").unwrap();
        assert!(of_run(dir.path()).is_empty());
    }
}
