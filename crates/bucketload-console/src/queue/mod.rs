//! The queue of workloads: submissions, their order, and how they ended.
//!
//! [`Queue`] is a state machine without clock, files or processes: the controller reports events with their times,
//! and `data_dir` keeps the queue on disk. The states are the ones that users of COSBench know:
//!
//! ```text
//! queuing ──> processing ──> finished     the run completed and passed its gates (exit code 0; 5: objects were left)
//!    │             ├───────> failed       the run completed, a gate failed (1)
//!    │             ├───────> terminated   the run did not complete (2, 3, 4, 130, a signal, a restart)
//!    └─────────────┴───────> cancelled    by the user
//! ```

pub(crate) mod data_dir;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::options::RunOptions;
use crate::outcome::Figures;

/// Maximum number of waiting jobs.
pub const MAX_WAITING: usize = 1000;
/// Maximum number of listed jobs; the oldest ended jobs leave the list (their directories stay).
pub const MAX_JOBS: usize = 2000;

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// Waiting for its turn.
    Queuing,
    /// Running.
    Processing,
    /// Completed.
    Finished,
    /// Completed, but a gate failed: verification, objective, oracle.
    Failed,
    /// Did not complete.
    Terminated,
    /// Cancelled by the user.
    Cancelled,
}

impl JobState {
    /// The name, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queuing => "queuing",
            Self::Processing => "processing",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Terminated => "terminated",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the job has ended.
    #[must_use]
    pub const fn is_over(self) -> bool {
        !matches!(self, Self::Queuing | Self::Processing)
    }
}

impl std::fmt::Display for JobState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// Id of a job, written `w1`, `w2`, … as in COSBench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub u64);

impl std::fmt::Display for JobId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "w{}", self.0)
    }
}

impl std::str::FromStr for JobId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.strip_prefix('w')
            .filter(|number| !number.starts_with('+'))
            .and_then(|number| number.parse().ok())
            .map(Self)
            .ok_or_else(|| format!("`{text}` is not a workload id; ids are w1, w2, …"))
    }
}

/// A submitted workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Its number.
    pub id: JobId,
    /// Its name: the file name without its ending, or the name of the built-in workload.
    pub name: String,
    /// Name of the workload file in the job's directory; `None` for a built-in workload.
    pub file: Option<String>,
    /// The options of the submission.
    pub options: RunOptions,
    /// Remarks of the check on the accepted workload.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Its state.
    pub state: JobState,
    /// Time of submission, milliseconds since 1970.
    pub submitted_ms: u64,
    /// When it started, milliseconds since 1970; 0 before.
    pub started_ms: u64,
    /// When it ended, milliseconds since 1970; 0 before.
    pub ended_ms: u64,
    /// Why it ended this way; empty if there is nothing to say.
    pub message: String,
    /// The verdict of its run, once there is one.
    pub verdict: Option<String>,
    /// The figures of its run, once there is a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<Figures>,
    /// Whether the user has cancelled it.
    pub cancelling: bool,
}

/// The data of a new submission.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewJob {
    /// Its name.
    pub name: String,
    /// Name of the workload file; `None` for a built-in workload.
    pub file: Option<String>,
    /// The options of the submission.
    pub options: RunOptions,
    /// Remarks of the check.
    pub notes: Vec<String>,
}

/// How the process of a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessExit {
    /// The exit code.
    Code(i32),
    /// The signal that killed it.
    Signal(i32),
}

/// Why the queue refused a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// There is no such job.
    #[error("there is no workload {0}")]
    Unknown(JobId),
    /// The job has ended.
    #[error("workload {0} is {1} already")]
    Over(JobId, JobState),
    /// The job is not waiting.
    #[error("workload {0} is {1}; only waiting workloads can be moved")]
    NotWaiting(JobId, JobState),
    /// Too many jobs are waiting.
    #[error("the queue is full: {MAX_WAITING} workloads are waiting")]
    Full,
}

/// All jobs, and the order of the waiting ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    next: u64,
    waiting: Vec<JobId>,
    jobs: BTreeMap<JobId, Job>,
}

impl Queue {
    /// The id of the next job: the first id after all earlier ones that is not `taken`. The call does not use it up.
    ///
    /// # Errors
    /// When too many jobs are waiting.
    pub fn next_id(&self, taken: impl Fn(JobId) -> bool) -> Result<JobId, QueueError> {
        if self.waiting.len() >= MAX_WAITING {
            return Err(QueueError::Full);
        }
        let mut id = JobId(self.next + 1);
        while taken(id) {
            id.0 += 1;
        }
        Ok(id)
    }

    /// Appends a job to the queue, under an id from [`Queue::next_id`].
    pub fn submit(&mut self, id: JobId, job: NewJob, now_ms: u64) {
        self.next = self.next.max(id.0);
        self.jobs.insert(
            id,
            Job {
                id,
                name: job.name,
                file: job.file,
                options: job.options,
                notes: job.notes,
                state: JobState::Queuing,
                submitted_ms: now_ms,
                started_ms: 0,
                ended_ms: 0,
                message: String::new(),
                verdict: None,
                figures: None,
                cancelling: false,
            },
        );
        self.waiting.push(id);
        let over: Vec<JobId> = self
            .jobs
            .values()
            .filter(|job| job.state.is_over())
            .map(|job| job.id)
            .take(self.jobs.len().saturating_sub(MAX_JOBS))
            .collect();
        for id in over {
            self.jobs.remove(&id);
        }
    }

    /// Starts the first waiting job, unless one is running.
    pub fn start(&mut self, now_ms: u64) -> Option<JobId> {
        if self.running().is_some() || self.waiting.is_empty() {
            return None;
        }
        let id = self.waiting.remove(0);
        let job = self.jobs.get_mut(&id)?;
        job.state = JobState::Processing;
        job.started_ms = now_ms;
        Some(id)
    }

    /// Records how the process of a running job exited.
    pub fn record_exit(&mut self, id: JobId, exit: ProcessExit, message: String, now_ms: u64) {
        let state = match exit {
            // 5: the clean-up left objects, as the message says.
            ProcessExit::Code(0 | 5) => JobState::Finished,
            ProcessExit::Code(1) => JobState::Failed,
            ProcessExit::Code(_) | ProcessExit::Signal(_) => JobState::Terminated,
        };
        self.close(id, state, message, now_ms);
    }

    /// Ends a running job that could not be started or was cut off.
    pub fn terminate(&mut self, id: JobId, message: String, now_ms: u64) {
        self.close(id, JobState::Terminated, message, now_ms);
    }

    fn close(&mut self, id: JobId, state: JobState, message: String, now_ms: u64) {
        if let Some(job) = self.jobs.get_mut(&id)
            && job.state == JobState::Processing
        {
            // A run that completed before it was stopped keeps its state.
            job.state = match state {
                JobState::Terminated if job.cancelling => JobState::Cancelled,
                other => other,
            };
            job.message = message;
            job.ended_ms = now_ms;
        }
    }

    /// Cancels a waiting job, or marks a running one; returns true if its process must be stopped.
    ///
    /// # Errors
    /// When there is no such job, or it has ended.
    pub fn cancel(&mut self, id: JobId, now_ms: u64) -> Result<bool, QueueError> {
        let job = self.jobs.get_mut(&id).ok_or(QueueError::Unknown(id))?;
        match job.state {
            JobState::Queuing => {
                job.state = JobState::Cancelled;
                job.ended_ms = now_ms;
                self.waiting.retain(|waiting| *waiting != id);
                Ok(false)
            }
            JobState::Processing => {
                job.cancelling = true;
                Ok(true)
            }
            over => Err(QueueError::Over(id, over)),
        }
    }

    /// Moves a waiting job by `places` towards the head (negative) or the end of the queue.
    ///
    /// # Errors
    /// When there is no such job, or it is not waiting.
    pub fn shift(&mut self, id: JobId, places: i64) -> Result<(), QueueError> {
        let job = self.jobs.get(&id).ok_or(QueueError::Unknown(id))?;
        let Some(at) = self.waiting.iter().position(|waiting| *waiting == id) else {
            return Err(QueueError::NotWaiting(id, job.state));
        };
        let last = self.waiting.len() - 1;
        let to = (at as i64)
            .saturating_add(places)
            .clamp(0, last as i64)
            .unsigned_abs() as usize;
        self.waiting.remove(at);
        self.waiting.insert(to, id);
        Ok(())
    }

    /// Records the verdict of a job's run.
    pub fn verdict(&mut self, id: JobId, verdict: Option<String>) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.verdict = verdict;
        }
    }

    /// Records the figures of a job's run.
    pub(crate) fn figures(&mut self, id: JobId, figures: Figures) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.figures = Some(figures);
        }
    }

    /// The running job.
    #[must_use]
    pub fn running(&self) -> Option<&Job> {
        self.jobs
            .values()
            .find(|job| job.state == JobState::Processing)
    }

    /// The job with this id.
    #[must_use]
    pub fn get(&self, id: JobId) -> Option<&Job> {
        self.jobs.get(&id)
    }

    /// The waiting jobs, in the order in which they will run.
    pub fn waiting(&self) -> impl Iterator<Item = &Job> {
        self.waiting.iter().filter_map(|id| self.jobs.get(id))
    }

    /// The ended jobs, latest first.
    pub fn history(&self) -> impl Iterator<Item = &Job> {
        let mut over: Vec<&Job> = self
            .jobs
            .values()
            .filter(|job| job.state.is_over())
            .collect();
        over.sort_by_key(|job| std::cmp::Reverse((job.ended_ms, job.id)));
        over.into_iter()
    }

    /// Repairs a file that was edited by hand: the order must name exactly the waiting jobs.
    fn repair(&mut self) {
        let jobs = &self.jobs;
        let mut seen = std::collections::BTreeSet::new();
        self.waiting.retain(|id| {
            jobs.get(id)
                .is_some_and(|job| job.state == JobState::Queuing)
                && seen.insert(*id)
        });
        for job in self.jobs.values() {
            if job.state == JobState::Queuing && seen.insert(job.id) {
                self.waiting.push(job.id);
            }
            self.next = self.next.max(job.id.0);
        }
    }
}
