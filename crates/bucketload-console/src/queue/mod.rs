//! The queue of workloads: what was submitted, in which order it runs, and how it ended.
//!
//! [`Queue`] is a state machine without clock, files or processes: the controller tells it what happened
//! and when, `store` keeps it on disk. The states are those that users of COSBench know:
//!
//! ```text
//! queuing ──> processing ──> finished     the run ended and passed its gates (exit code 0; 5: it left objects)
//!    │             ├───────> failed       the run ended, a gate failed (1)
//!    │             ├───────> terminated   it could not be run to its end (2, 3, 4, 130, a signal, a restart)
//!    └─────────────┴───────> cancelled    by the user
//! ```

pub(crate) mod store;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::options::RunOptions;

/// Most jobs that wait.
pub const MAX_WAITING: usize = 1000;
/// Most jobs that are listed; the oldest ones that are over leave the list (their directories stay).
pub const MAX_JOBS: usize = 2000;

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Waits for its turn.
    Queuing,
    /// Runs.
    Processing,
    /// Ran to its end.
    Finished,
    /// Ran to its end, but a gate failed: verification, objective, oracle.
    Failed,
    /// Could not be run to its end.
    Terminated,
    /// Was cancelled by the user.
    Cancelled,
}

impl State {
    /// The word, in lower case.
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

    /// Whether nothing will happen to the job any more.
    #[must_use]
    pub const fn is_over(self) -> bool {
        !matches!(self, Self::Queuing | Self::Processing)
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// Number of a job, written `w1`, `w2`, … as COSBench does.
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
            .ok_or_else(|| format!("`{text}` is no identifier of a workload; they are w1, w2, …"))
    }
}

/// A workload that was submitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Its number.
    pub id: JobId,
    /// Its name: that of the file without its ending, or of the built-in workload.
    pub name: String,
    /// Name of the workload file in the job's directory; none for a built-in workload.
    pub file: Option<String>,
    /// What was asked for beside the file.
    pub options: RunOptions,
    /// What the check had to say although it accepted the workload.
    #[serde(default)]
    pub notes: Vec<String>,
    /// How far it is.
    pub state: State,
    /// Milliseconds since 1970.
    pub submitted_ms: u64,
    /// When it began to run; 0 before.
    pub started_ms: u64,
    /// When it was over; 0 before.
    pub ended_ms: u64,
    /// Why it ended as it did; empty when there is nothing to say.
    pub message: String,
    /// The verdict of its run, once there is one.
    pub verdict: Option<String>,
    /// Whether the user wants it to end.
    pub cancelling: bool,
}

/// What is known of a job when it is submitted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewJob {
    /// Its name.
    pub name: String,
    /// Name of the workload file, unless it is built in.
    pub file: Option<String>,
    /// What was asked for beside the file.
    pub options: RunOptions,
    /// What the check had to say.
    pub notes: Vec<String>,
}

/// How the process of a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// Why something cannot be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// There is no such job.
    #[error("there is no workload {0}")]
    Unknown(JobId),
    /// It is over.
    #[error("workload {0} is {1} already")]
    Over(JobId, State),
    /// It does not wait.
    #[error("workload {0} is {1}; only waiting workloads can be moved")]
    NotWaiting(JobId, State),
    /// Too many wait.
    #[error("the queue is full: {MAX_WAITING} workloads wait")]
    Full,
}

/// All jobs, and the order of those that wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    next: u64,
    waiting: Vec<JobId>,
    jobs: BTreeMap<JobId, Job>,
}

impl Queue {
    /// The number of the next job: the first one after all that were given out which is not `taken`
    /// otherwise. Asking does not use it up.
    ///
    /// # Errors
    /// When too many wait.
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

    /// Puts a job at the end of the queue, under a number of [`Queue::next_id`].
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
                state: State::Queuing,
                submitted_ms: now_ms,
                started_ms: 0,
                ended_ms: 0,
                message: String::new(),
                verdict: None,
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

    /// The first job that waits begins to run, unless one runs.
    pub fn start(&mut self, now_ms: u64) -> Option<JobId> {
        if self.running().is_some() || self.waiting.is_empty() {
            return None;
        }
        let id = self.waiting.remove(0);
        let job = self.jobs.get_mut(&id)?;
        job.state = State::Processing;
        job.started_ms = now_ms;
        Some(id)
    }

    /// The process of a running job has ended.
    pub fn ended(&mut self, id: JobId, ended: Ended, message: String, now_ms: u64) {
        let state = match ended {
            // 5: its clean-up left something, as the message says.
            Ended::Code(0 | 5) => State::Finished,
            Ended::Code(1) => State::Failed,
            Ended::Code(_) | Ended::Signal(_) => State::Terminated,
        };
        self.close(id, state, message, now_ms);
    }

    /// A running job could not be started or was cut off.
    pub fn terminated(&mut self, id: JobId, message: String, now_ms: u64) {
        self.close(id, State::Terminated, message, now_ms);
    }

    fn close(&mut self, id: JobId, state: State, message: String, now_ms: u64) {
        if let Some(job) = self.jobs.get_mut(&id)
            && job.state == State::Processing
        {
            // A run that had come to its end by itself did so, whatever was asked for meanwhile.
            job.state = match state {
                State::Terminated if job.cancelling => State::Cancelled,
                other => other,
            };
            job.message = message;
            job.ended_ms = now_ms;
        }
    }

    /// Cancels a job that waits, or marks one that runs; true when a process has to be stopped.
    ///
    /// # Errors
    /// When there is none, or it is over.
    pub fn cancel(&mut self, id: JobId, now_ms: u64) -> Result<bool, QueueError> {
        let job = self.jobs.get_mut(&id).ok_or(QueueError::Unknown(id))?;
        match job.state {
            State::Queuing => {
                job.state = State::Cancelled;
                job.ended_ms = now_ms;
                self.waiting.retain(|waiting| *waiting != id);
                Ok(false)
            }
            State::Processing => {
                job.cancelling = true;
                Ok(true)
            }
            over => Err(QueueError::Over(id, over)),
        }
    }

    /// Moves a waiting job by `places` towards the head (negative) or the end of the queue.
    ///
    /// # Errors
    /// When there is none, or it does not wait.
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

    /// Notes the verdict of a job's run.
    pub fn verdict(&mut self, id: JobId, verdict: Option<String>) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.verdict = verdict;
        }
    }

    /// The job that runs.
    #[must_use]
    pub fn running(&self) -> Option<&Job> {
        self.jobs
            .values()
            .find(|job| job.state == State::Processing)
    }

    /// A job.
    #[must_use]
    pub fn get(&self, id: JobId) -> Option<&Job> {
        self.jobs.get(&id)
    }

    /// The jobs that wait, in the order in which they will run.
    pub fn waiting(&self) -> impl Iterator<Item = &Job> {
        self.waiting.iter().filter_map(|id| self.jobs.get(id))
    }

    /// The jobs that are over, latest first.
    pub fn history(&self) -> impl Iterator<Item = &Job> {
        let mut over: Vec<&Job> = self
            .jobs
            .values()
            .filter(|job| job.state.is_over())
            .collect();
        over.sort_by_key(|job| std::cmp::Reverse((job.ended_ms, job.id)));
        over.into_iter()
    }

    /// Puts right what a file by hand could have made wrong: an order that names other jobs than wait.
    fn mend(&mut self) {
        let jobs = &self.jobs;
        let mut seen = std::collections::BTreeSet::new();
        self.waiting.retain(|id| {
            jobs.get(id).is_some_and(|job| job.state == State::Queuing) && seen.insert(*id)
        });
        for job in self.jobs.values() {
            if job.state == State::Queuing && seen.insert(job.id) {
                self.waiting.push(job.id);
            }
            self.next = self.next.max(job.id.0);
        }
    }
}
