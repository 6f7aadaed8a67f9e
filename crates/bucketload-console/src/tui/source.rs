//! Sources of the run that the terminal console shows.

use std::path::PathBuf;

use bucketload_results::rundir::Follow;

use crate::agents::{self, AgentState};
use crate::client::Client;
use crate::monitor::RunMonitor;
use crate::monitor::view::View;

/// Maximum number of intervals per read, so that a long run does not block the screen.
const BATCH: usize = 256;

/// The data of the screen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Name of the source.
    pub title: String,
    /// The run, if there is one.
    pub view: Option<View>,
    /// Its agents.
    pub agents: Vec<AgentState>,
    /// Number of waiting workloads.
    pub waiting: usize,
}

impl Snapshot {
    /// Whether there is a run and it has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.view
            .as_ref()
            .is_some_and(|view| view.run.status != "running")
    }
}

/// Provides the data of the screen.
pub trait Source {
    /// Returns the latest data, with the points of `phase`, or of the current phase.
    ///
    /// # Errors
    /// With a reason for the user; the next call may succeed.
    fn snapshot(&mut self, phase: Option<usize>) -> Result<Snapshot, String>;
}

/// A run directory, of a running or an ended run.
#[derive(Debug)]
pub struct RunDirSource {
    dir: PathBuf,
    open: Option<(Follow, RunMonitor)>,
}

impl RunDirSource {
    /// Shows the run in `dir`.
    #[must_use]
    pub const fn new(dir: PathBuf) -> Self {
        Self { dir, open: None }
    }
}

impl Source for RunDirSource {
    fn snapshot(&mut self, phase: Option<usize>) -> Result<Snapshot, String> {
        if self.open.is_none() {
            let follow = Follow::open(&self.dir).map_err(|e| e.to_string())?;
            let monitor = RunMonitor::new(follow.manifest());
            self.open = Some((follow, monitor));
        }
        let Some((follow, monitor)) = &mut self.open else {
            return Err("there is no run".to_owned());
        };
        let read = follow.poll(monitor, BATCH).map_err(|e| e.to_string())?;
        // The status is updated only after everything has been read.
        if read < BATCH {
            let manifest = follow.refresh().map_err(|e| e.to_string())?;
            monitor.status(manifest);
        }
        Ok(Snapshot {
            title: self.dir.display().to_string(),
            view: Some(monitor.view(phase)),
            agents: agents::of_run(&self.dir),
            waiting: 0,
        })
    }
}

/// The current run of a controller.
#[derive(Debug)]
pub struct ControllerSource {
    client: Client,
    name: String,
}

impl ControllerSource {
    /// Shows the run of `client`'s controller, called `name` on the screen.
    #[must_use]
    pub const fn new(client: Client, name: String) -> Self {
        Self { client, name }
    }
}

impl Source for ControllerSource {
    fn snapshot(&mut self, phase: Option<usize>) -> Result<Snapshot, String> {
        let live = self.client.live(phase).map_err(|e| e.to_string())?;
        let title = match &live.job {
            Some(job) => format!("{} {job}", self.name),
            None => self.name.clone(),
        };
        Ok(Snapshot {
            title,
            view: live.view,
            agents: live.agents,
            waiting: live.waiting,
        })
    }
}
