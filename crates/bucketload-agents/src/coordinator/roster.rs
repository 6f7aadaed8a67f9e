//! The coordinator's knowledge of each agent, and the file in the run directory that records it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use bucketload_core::agent::{
    AGENTS, AgentRecord, AgentState, AgentTotals, AgentsFile, LastInterval,
};
use bucketload_core::plan::crews::Pins;
use bucketload_run::now_ns;

use crate::clock::{Offset, OffsetEstimate};
use crate::host;
use crate::lock;
use crate::message::Greeting;

/// The agents of a run, shared by network and collector.
#[derive(Debug)]
pub(crate) struct Roster {
    run_id: String,
    agents: Mutex<Vec<Entry>>,
    pins: Mutex<Pins>,
    /// The run directory, once there is one.
    directory: Mutex<Option<PathBuf>>,
}

#[derive(Debug)]
struct Entry {
    record: AgentRecord,
    clock: OffsetEstimate,
    /// The agent's wall clock minus its run clock, nanoseconds.
    wall_ns: i64,
}

impl Roster {
    pub(crate) fn new(run_id: &str, addresses: Vec<String>) -> Self {
        let agents = addresses.into_iter().zip(0..).map(|(address, rank)| Entry {
            record: AgentRecord {
                rank,
                address,
                ..AgentRecord::default()
            },
            clock: OffsetEstimate::default(),
            wall_ns: 0,
        });
        Self {
            run_id: run_id.to_owned(),
            agents: Mutex::new(agents.collect()),
            pins: Mutex::default(),
            directory: Mutex::new(None),
        }
    }

    fn agents(&self) -> MutexGuard<'_, Vec<Entry>> {
        lock(&self.agents)
    }

    /// Records the agents of the drivers to which works are pinned.
    pub(crate) fn pin(&self, pins: Pins) {
        *lock(&self.pins) = pins;
    }

    /// Changes an agent's record; `None` if there is no such agent.
    pub(crate) fn change<T>(
        &self,
        rank: u32,
        body: impl FnOnce(&mut AgentRecord) -> T,
    ) -> Option<T> {
        let mut agents = self.agents();
        agents.get_mut(rank as usize).map(|e| body(&mut e.record))
    }

    pub(crate) fn greeted(&self, rank: u32, greeting: &Greeting, plaintext: bool) {
        self.change(rank, |record| {
            record.clear = plaintext;
            record.host.clone_from(&greeting.host);
            record.pid = greeting.pid;
        });
    }

    /// Notes that a message came from the agent.
    pub(crate) fn heard(&self, rank: u32) {
        let now = host::unix_ns();
        self.change(rank, |record| record.heard_unix_ns = now);
    }

    /// Adds an exchange of clock readings and returns the number of exchanges so far.
    pub(crate) fn exchanged(
        &self,
        rank: u32,
        (t0, t1, t2): (u64, u64, u64),
        wall_ns: i64,
    ) -> usize {
        let t3 = now_ns();
        let mut agents = self.agents();
        let Some(entry) = agents.get_mut(rank as usize) else {
            return 0;
        };
        entry.record.round_trip_ns = entry.clock.add(t0, t1, t2, t3);
        entry.wall_ns = wall_ns;
        entry.clock.exchanges()
    }

    /// The agent's clock offset now.
    pub(crate) fn offset(&self, rank: u32) -> Option<Offset> {
        self.agents().get(rank as usize)?.clock.at(now_ns())
    }

    /// Marks the agent failed; the first reason stays. Returns whether it had not failed before.
    pub(crate) fn failed(&self, rank: u32, state: AgentState, reason: &str) -> bool {
        let news = self.change(rank, |record| {
            let news = !record.state.is_failed();
            if news {
                record.state = state;
                record.reason = Some(reason.to_owned());
            }
            news
        });
        news.unwrap_or(false)
    }

    /// Moves an agent to another state, unless it has failed.
    pub(crate) fn state(&self, rank: u32, state: AgentState) {
        self.change(rank, |record| {
            if !record.state.is_failed() {
                record.state = state;
            }
        });
    }

    pub(crate) fn is_failed(&self, rank: u32) -> bool {
        self.change(rank, |record| record.state.is_failed())
            .unwrap_or(true)
    }

    pub(crate) fn delivered(&self, rank: u32, interval: LastInterval, totals: &AgentTotals) {
        self.change(rank, |record| {
            record.last_interval = Some(interval);
            record.totals.add(totals);
        });
    }

    /// The agent's rank and host, for messages, and its address if others run on the same host.
    pub(crate) fn name(&self, rank: u32) -> String {
        let agents = self.agents();
        let Some(record) = agents.get(rank as usize).map(|e| &e.record) else {
            return format!("agent {rank}");
        };
        let (host, address) = (&record.host, &record.address);
        let same = agents.iter().filter(|other| other.record.host == *host);
        match (host.is_empty(), same.count()) {
            (true, _) => format!("agent {rank} ({address})"),
            (false, 0 | 1) => format!("agent {rank} ({host})"),
            (false, _) => format!("agent {rank} ({host}, {address})"),
        }
    }

    /// The current contents of `agents.json`.
    pub(crate) fn snapshot(&self) -> AgentsFile {
        let now = now_ns();
        let here_ns = host::wall_minus_run_clock_ns();
        let mut agents = self.agents();
        for entry in agents.iter_mut() {
            if let Some(known) = entry.clock.at(now) {
                entry.record.clock_offset_ns = known.offset_ns;
                entry.record.clock_bound_ns = known.bound_ns;
                // Compares both wall clocks at one instant: the run clocks differ by the offset.
                let wall = entry.wall_ns.saturating_sub(here_ns);
                entry.record.wall_offset_ns = wall.saturating_add(known.offset_ns);
            }
        }
        AgentsFile {
            run_id: self.run_id.clone(),
            written_unix_ns: host::unix_ns(),
            agents: agents.iter().map(|entry| entry.record.clone()).collect(),
            pins: lock(&self.pins).clone(),
        }
    }

    /// Notes that the run directory exists.
    pub(crate) fn set_directory(&self, directory: &Path) {
        let mut known = lock(&self.directory);
        *known = Some(directory.to_owned());
    }

    /// Replaces `agents.json`, if there is a run directory.
    pub(crate) fn write(&self) -> io::Result<()> {
        let known = lock(&self.directory);
        let Some(directory) = &*known else {
            return Ok(());
        };
        let path = directory.join(AGENTS);
        let temporary = directory.join(format!("{AGENTS}.new"));
        let text = serde_json::to_vec(&self.snapshot()).map_err(io::Error::from)?;
        std::fs::write(&temporary, text)?;
        std::fs::rename(&temporary, &path)
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::agent::{AgentState, AgentsFile};
    use bucketload_run::now_ns;

    use super::Roster;

    #[test]
    fn the_file_is_replaced_whole_and_the_first_reason_stays() {
        let dir = tempfile::tempdir().unwrap();
        let roster = Roster::new("17-ab", vec!["h1:1".into(), "h2:1".into()]);
        roster.write().unwrap();
        assert!(
            dir.path().read_dir().unwrap().next().is_none(),
            "no directory yet"
        );
        roster.set_directory(dir.path());
        let now = now_ns();
        roster.exchanged(1, (now, now + 5_000, now + 5_000), 77);
        assert!(roster.failed(1, AgentState::Lost, "silent"));
        assert!(!roster.failed(1, AgentState::Failed, "later"));
        roster.state(1, AgentState::Running);
        roster.write().unwrap();
        let text = std::fs::read(dir.path().join("agents.json")).unwrap();
        let file: AgentsFile = serde_json::from_slice(&text).unwrap();
        assert_eq!(file.run_id, "17-ab");
        assert_eq!(file.agents[1].reason.as_deref(), Some("silent"));
        assert_eq!(file.agents[1].state, AgentState::Lost);
        assert!(file.agents[1].clock_bound_ns > 0 && file.agents[0].clock_bound_ns == 0);
        assert_eq!(file.failed().count(), 1);
        assert_eq!(
            dir.path().read_dir().unwrap().count(),
            1,
            "no temporary file is left"
        );
    }
}
