//! The controller: holds the queue, runs one job after the other, and stops cancelled jobs.
//!
//! ```text
//! submit ──check (--dry-run)──> queue ──┐            ┌── LiveRun (follows the run directory)
//! cancel, shift ────────────────────────┤── drive() ─┤
//!                                       └─ save      └── process: wait, SIGINT, SIGKILL after the grace time
//! ```
//!
//! A counter of changes notifies everything that shows the queue ([`Controller::watch`]).

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bucketload_results::rundir::Manifest;
use bucketload_workload::spec::BUILTIN_WORKLOADS;
use tokio::sync::{Notify, Semaphore, watch};

use crate::launcher::{CheckResult, Launcher, RUN, Task, last_messages};
use crate::live::LiveRun;
use crate::lock;
use crate::options::RunOptions;
use crate::outcome::Outcome;
use crate::queue::data_dir::DataDir;
use crate::queue::{Job, JobId, NewJob, ProcessExit, Queue, QueueError};
use crate::upload::Upload;

/// Maximum number of simultaneous workload checks: they take processor time from a run on the same machine.
const CHECKS: usize = 1;

/// Settings of a controller.
pub struct ControllerConfig {
    /// Data directory.
    pub data: PathBuf,
    /// Starts the processes of jobs.
    pub launcher: Arc<dyn Launcher>,
    /// Time between SIGINT and SIGKILL: a run that is asked to stop removes its objects first.
    pub grace: Duration,
    /// Returns the time, milliseconds since 1970.
    pub clock: Arc<dyn Fn() -> u64 + Send + Sync>,
}

/// The workload of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A workload file.
    File {
        /// The submitter's name of the file.
        name: String,
        /// The contents.
        bytes: Vec<u8>,
    },
    /// A built-in workload.
    Builtin(String),
}

/// Why a submission was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The workload or an option is wrong; the text says where.
    #[error("{0}")]
    Refused(String),
    /// The queue refused it.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// The controller cannot store it.
    #[error("the controller cannot store the workload: {0}")]
    Storage(String),
}

/// A queue of workloads and the task that runs them. Clones share the same controller.
#[derive(Clone)]
pub struct Controller {
    inner: Arc<Inner>,
}

struct Inner {
    config: ControllerConfig,
    data_dir: DataDir,
    queue: Mutex<Queue>,
    /// Counts changes of the queue.
    changes: watch::Sender<u64>,
    /// Wakes the driver after a submission.
    wake: Notify,
    /// Wakes the driver to stop the running job.
    cancel: Notify,
    /// Whether the controller should stop.
    stopping: watch::Sender<bool>,
    live: Mutex<Option<Arc<LiveRun>>>,
    checks: Semaphore,
    /// Counts all submissions, accepted or not.
    incoming: AtomicU64,
}

impl std::fmt::Debug for Controller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Controller")
            .field("data", &self.inner.config.data)
            .finish_non_exhaustive()
    }
}

impl Controller {
    /// Opens the data directory with the queue of the last controller.
    ///
    /// # Errors
    /// When the directory cannot be used, is in use, or its queue cannot be read.
    pub fn open(mut config: ControllerConfig) -> Result<Self, String> {
        // Jobs run in other working directories, so the path must be absolute.
        config.data = std::path::absolute(&config.data)
            .map_err(|e| format!("--data {}: {e}", config.data.display()))?;
        let data_dir = DataDir::open(&config.data)?;
        let queue = data_dir.load()?;
        Ok(Self {
            inner: Arc::new(Inner {
                config,
                data_dir,
                queue: Mutex::new(queue),
                changes: watch::Sender::new(0),
                wake: Notify::new(),
                cancel: Notify::new(),
                stopping: watch::Sender::new(false),
                live: Mutex::new(None),
                checks: Semaphore::new(CHECKS),
                incoming: AtomicU64::new(0),
            }),
        })
    }

    /// Reads the queue.
    pub fn with_queue<T>(&self, look: impl FnOnce(&Queue) -> T) -> T {
        look(&self.queue())
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.inner.queue)
    }

    /// Returns a receiver that is notified of changes of the queue.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    /// Returns a receiver that becomes true when the controller should stop.
    #[must_use]
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.inner.stopping.subscribe()
    }

    /// The current time, milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        (self.inner.config.clock)()
    }

    /// The directory of a job.
    #[must_use]
    pub fn job_dir(&self, id: JobId) -> PathBuf {
        self.inner.data_dir.job(id)
    }

    /// The directory of all jobs.
    pub(crate) fn jobs_dir(&self) -> PathBuf {
        self.inner.config.data.join("jobs")
    }

    /// Directory of COSBench's archive, for XML workloads.
    pub(crate) fn archive(&self) -> PathBuf {
        self.inner.data_dir.archive()
    }

    /// The run directory of a job.
    #[must_use]
    pub fn run_dir(&self, id: JobId) -> PathBuf {
        self.job_dir(id).join(RUN)
    }

    /// The followed run of a job, if it is the latest one.
    pub(crate) fn live(&self, id: JobId) -> Option<Arc<LiveRun>> {
        let live = lock(&self.inner.live);
        live.clone().filter(|live| live.id == id)
    }

    /// Checks a workload and appends it to the queue. A refused workload leaves nothing behind and uses up no id.
    ///
    /// # Errors
    /// When it is refused, with the reason from `bucketload run`, or cannot be stored.
    pub async fn submit(&self, source: Source, options: RunOptions) -> Result<JobId, SubmitError> {
        let (workload, file) = match source {
            Source::File { name, bytes } => {
                let upload = Upload::check(&name, &bytes).map_err(SubmitError::Refused)?;
                (upload.file, Some(upload.text))
            }
            Source::Builtin(name) => {
                if !BUILTIN_WORKLOADS.iter().any(|(known, _)| *known == name) {
                    return Err(SubmitError::Refused(
                        "there is no built-in workload with this name".to_owned(),
                    ));
                }
                (name, None)
            }
        };
        let number = self.inner.incoming.fetch_add(1, Ordering::Relaxed);
        let incoming = Incoming(self.inner.data_dir.incoming(number));
        let storage =
            |e: std::io::Error| SubmitError::Storage(format!("{}: {e}", incoming.0.display()));
        make_dir(&incoming.0).map_err(storage)?;
        if let Some(text) = &file {
            write_private(&incoming.0.join(&workload), text.as_bytes()).map_err(storage)?;
        }
        let task = Task {
            dir: incoming.0.clone(),
            workload: workload.clone(),
            arguments: options.arguments(),
            archive: None,
        };
        let CheckResult { name, notes } = {
            let _turn = self.inner.checks.acquire().await;
            let checked = self.inner.config.launcher.check(&task).await;
            checked.map_err(SubmitError::Refused)?
        };
        let job = match file {
            Some(_) => NewJob {
                name,
                file: Some(workload),
                options,
                notes,
            },
            // A built-in workload is run by its own name, not by the name in the check.
            None => NewJob {
                name: workload,
                file: None,
                options,
                notes,
            },
        };
        let id = self.accept(&incoming, job)?;
        self.inner.changes.send_modify(|n| *n += 1);
        self.inner.wake.notify_one();
        Ok(id)
    }

    /// Gives a checked submission its id and its directory.
    fn accept(&self, incoming: &Incoming, job: NewJob) -> Result<JobId, SubmitError> {
        let mut queue = self.queue();
        // A controller that is killed between the two steps below leaves a directory without a job.
        let id = queue.next_id(|id| self.job_dir(id).exists())?;
        let dir = self.job_dir(id);
        let storage = |e: std::io::Error| SubmitError::Storage(format!("{}: {e}", dir.display()));
        fs::rename(&incoming.0, &dir).map_err(storage)?;
        let before = queue.clone();
        queue.submit(id, job, self.now_ms());
        if let Err(e) = self.inner.data_dir.save(&queue) {
            *queue = before;
            // Moves it back to be removed.
            let _ = fs::rename(&dir, &incoming.0);
            return Err(SubmitError::Storage(e.to_string()));
        }
        Ok(id)
    }

    /// The task that runs a job.
    fn task(&self, job: Job) -> Task {
        let archive = job.file.as_deref().is_some_and(is_xml);
        Task {
            dir: self.job_dir(job.id),
            archive: archive.then(|| (self.archive(), job.id.0)),
            workload: job.file.unwrap_or(job.name),
            arguments: job.options.arguments(),
        }
    }

    /// Submits the workload of `id` again.
    ///
    /// # Errors
    /// As [`Controller::submit`].
    pub async fn resubmit(&self, id: JobId) -> Result<JobId, SubmitError> {
        let job = self.queue().get(id).cloned();
        let job = job.ok_or(QueueError::Unknown(id))?;
        let source = match &job.file {
            None => Source::Builtin(job.name),
            Some(file) => {
                let path = self.job_dir(id).join(file);
                let bytes = fs::read(&path)
                    .map_err(|e| SubmitError::Storage(format!("{}: {e}", path.display())))?;
                Source::File {
                    name: file.clone(),
                    bytes,
                }
            }
        };
        self.submit(source, job.options).await
    }

    /// Cancels a job.
    ///
    /// # Errors
    /// When there is no such job, or it has ended.
    pub fn cancel(&self, id: JobId) -> Result<(), QueueError> {
        let stop = self.queue().cancel(id, self.now_ms())?;
        self.changed();
        if stop {
            self.inner.cancel.notify_one();
        }
        Ok(())
    }

    /// Moves a waiting job; see [`Queue::shift`].
    ///
    /// # Errors
    /// When there is no such job, or it is not waiting.
    pub fn shift(&self, id: JobId, places: i64) -> Result<(), QueueError> {
        self.queue().shift(id, places)?;
        self.changed();
        Ok(())
    }

    /// Ends [`Controller::drive`]: the running job is stopped, waiting jobs stay in the queue.
    pub fn stop(&self) {
        self.inner.stopping.send_replace(true);
    }

    /// Records the verdict of a run whose report was made after its end.
    pub(crate) fn note_verdict(&self, id: JobId) {
        let known = self.queue().get(id).map(|job| job.verdict.clone());
        let found = verdict(&self.run_dir(id));
        if found.is_some() && known.is_some_and(|known| known != found) {
            self.change(|queue| queue.verdict(id, found));
        }
    }

    /// The result of an ended job, noted for the lists. Reads the whole run directory if the run was killed.
    ///
    /// # Errors
    /// When there is no result.
    pub(crate) async fn outcome(&self, id: JobId) -> Result<Outcome, String> {
        let run = self.run_dir(id);
        let outcome = tokio::task::spawn_blocking(move || Outcome::of(&run))
            .await
            .map_err(|_| "the result could not be computed; see the controller's output")??;
        let known = self.queue().get(id).map(|job| job.figures.is_some());
        if known == Some(false) {
            let figures = outcome.figures.clone();
            self.change(|queue| queue.figures(id, figures));
        }
        Ok(outcome)
    }

    /// Saves the queue and notifies all watchers.
    fn changed(&self) {
        let saved = {
            let queue = self.queue();
            self.inner.data_dir.save(&queue)
        };
        if let Err(e) = saved {
            eprintln!("bucketload: the queue could not be saved: {e}");
        }
        self.inner.changes.send_modify(|n| *n += 1);
    }

    fn change(&self, change: impl FnOnce(&mut Queue)) {
        change(&mut self.queue());
        self.changed();
    }

    /// Runs the jobs one after the other until [`Controller::stop`].
    pub async fn drive(&self) {
        let mut stopping = self.stopping();
        self.recover(&mut stopping).await;
        while !*stopping.borrow() {
            let next = self.queue().start(self.now_ms());
            match next {
                Some(id) => {
                    self.changed();
                    self.run(id, &mut stopping).await;
                }
                None => tokio::select! {
                    () = self.inner.wake.notified() => {}
                    _ = stopping.wait_for(|stop| *stop) => {}
                },
            }
        }
    }

    /// Ends the job that an earlier controller left running; its run keeps its measurements.
    async fn recover(&self, stopping: &mut watch::Receiver<bool>) {
        let Some(id) = self.queue().running().map(|job| job.id) else {
            return;
        };
        let dir = self.job_dir(id);
        tokio::select! {
            () = self.inner.config.launcher.wait_until_unused(&dir) => {}
            _ = stopping.wait_for(|stop| *stop) => return,
        }
        let verdict = verdict(&self.run_dir(id));
        let figures = Outcome::stored(&self.run_dir(id)).map(|outcome| outcome.figures);
        self.change(|queue| {
            queue.verdict(id, verdict);
            if let Some(figures) = figures {
                queue.figures(id, figures);
            }
            queue.terminate(
                id,
                "the controller exited while this workload was running; what was measured until then is kept"
                    .to_owned(),
                self.now_ms(),
            );
        });
    }

    async fn run(&self, id: JobId, stopping: &mut watch::Receiver<bool>) {
        let Some(job) = self.queue().get(id).cloned() else {
            return;
        };
        let task = self.task(job);
        let mut process = match self.inner.config.launcher.start(&task) {
            Ok(process) => process,
            Err(e) => {
                let message = format!("the run could not be started: {e}");
                self.change(|queue| queue.terminate(id, message, self.now_ms()));
                return;
            }
        };
        let live = LiveRun::new(id);
        *lock(&self.inner.live) = Some(Arc::clone(&live));
        self.inner.changes.send_modify(|n| *n += 1);
        let over = watch::Sender::new(false);
        let watching = tokio::spawn(live.follow(self.run_dir(id), over.subscribe()));
        let mut stopped = false;
        let ended = loop {
            let cancelling = self.queue().get(id).is_some_and(|job| job.cancelling);
            if cancelling || *stopping.borrow() {
                stopped = !cancelling;
                process.interrupt();
                break match tokio::time::timeout(self.inner.config.grace, process.wait()).await {
                    Ok(ended) => ended,
                    Err(_) => {
                        process.kill();
                        process.wait().await
                    }
                };
            }
            tokio::select! {
                ended = process.wait() => break ended,
                () = self.inner.cancel.notified() => {}
                _ = stopping.wait_for(|stop| *stop) => {}
            }
        };
        over.send_replace(true);
        let _ = watching.await;
        let verdict = verdict(&self.run_dir(id));
        let figures = Outcome::stored(&self.run_dir(id)).map(|outcome| outcome.figures);
        let mut message = match &ended {
            Ok(ProcessExit::Signal(signal)) => {
                let kept = match self.run_dir(id).is_dir() {
                    true => "what was measured is kept",
                    false => "nothing was measured yet",
                };
                format!("the run's process was killed by signal {signal}; {kept}")
            }
            Ok(ProcessExit::Code(_)) => last_messages(&task.dir),
            Err(e) => format!("waiting for the run's process failed: {e}"),
        };
        if stopped {
            "the controller was stopped; what was measured until then is kept"
                .clone_into(&mut message);
        }
        self.change(|queue| {
            queue.verdict(id, verdict);
            if let Some(figures) = figures {
                queue.figures(id, figures);
            }
            match ended {
                Ok(exit) => queue.record_exit(id, exit, message, self.now_ms()),
                Err(_) => queue.terminate(id, message, self.now_ms()),
            }
        });
    }
}

/// A submission being checked; its directory is removed on drop.
struct Incoming(PathBuf);

impl Drop for Incoming {
    fn drop(&mut self) {
        // The directory of an accepted submission has been moved away.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whether a stored file is a COSBench workload: its ending was chosen by its content.
fn is_xml(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|e| e == "xml")
}

/// The verdict in the manifest of a run directory.
fn verdict(dir: &Path) -> Option<String> {
    let manifest = Manifest::read(dir).ok()?;
    manifest.verdict.map(|verdict| verdict.word.to_string())
}

fn make_dir(dir: &Path) -> std::io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
}

fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;

    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?
        .write_all(bytes)
}
