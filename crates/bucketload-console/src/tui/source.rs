//! Where the terminal console gets its run from.

use std::path::PathBuf;

use bucketload_results::rundir::Follow;

use crate::agents::{self, AgentState};
use crate::client::Client;
use crate::course::Course;
use crate::course::view::View;

/// Intervals that are read at a look, so that a long run does not keep the screen waiting.
const BATCH: usize = 256;

/// What is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shown {
    /// Where it comes from.
    pub title: String,
    /// The run, if there is one.
    pub view: Option<View>,
    /// Its agents.
    pub agents: Vec<AgentState>,
    /// Workloads that wait.
    pub waiting: usize,
}

impl Shown {
    /// Whether there is a run that has come to its end.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.view
            .as_ref()
            .is_some_and(|view| view.run.status != "running")
    }
}

/// Brings what is shown.
pub trait Source {
    /// The latest, with the points of `phase`, or of the current one.
    ///
    /// # Errors
    /// With the reason for the user; the next look may succeed.
    fn look(&mut self, phase: Option<usize>) -> Result<Shown, String>;
}

/// A run directory, of a run under way or of one that is over.
#[derive(Debug)]
pub struct RunDirSource {
    dir: PathBuf,
    open: Option<(Follow, Course)>,
}

impl RunDirSource {
    /// The run in `dir`.
    #[must_use]
    pub const fn new(dir: PathBuf) -> Self {
        Self { dir, open: None }
    }
}

impl Source for RunDirSource {
    fn look(&mut self, phase: Option<usize>) -> Result<Shown, String> {
        if self.open.is_none() {
            let follow = Follow::open(&self.dir).map_err(|e| e.to_string())?;
            let course = Course::new(follow.manifest());
            self.open = Some((follow, course));
        }
        let Some((follow, course)) = &mut self.open else {
            return Err("there is no run".to_owned());
        };
        let read = follow.poll(course, BATCH).map_err(|e| e.to_string())?;
        // It counts as over when everything was read.
        if read < BATCH {
            let manifest = follow.refresh().map_err(|e| e.to_string())?;
            course.status(manifest);
        }
        Ok(Shown {
            title: self.dir.display().to_string(),
            view: Some(course.view(phase)),
            agents: agents::of_run(&self.dir),
            waiting: 0,
        })
    }
}

/// The run that a controller carries out.
#[derive(Debug)]
pub struct ControllerSource {
    client: Client,
    name: String,
}

impl ControllerSource {
    /// The controller of `client`, called `name` on the screen.
    #[must_use]
    pub const fn new(client: Client, name: String) -> Self {
        Self { client, name }
    }
}

impl Source for ControllerSource {
    fn look(&mut self, phase: Option<usize>) -> Result<Shown, String> {
        let live = self.client.live(phase).map_err(|e| e.to_string())?;
        let title = match &live.job {
            Some(job) => format!("{} {job}", self.name),
            None => self.name.clone(),
        };
        Ok(Shown {
            title,
            view: live.view,
            agents: live.agents,
            waiting: live.waiting,
        })
    }
}
