//! Follows a run while its process writes the run directory.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bucketload_results::rundir::Follow;
use tokio::sync::watch;

use crate::lock;
use crate::monitor::RunMonitor;
use crate::queue::JobId;

/// Time between two reads of the run directory, which grows once a second.
const PERIOD: Duration = Duration::from_millis(500);
/// Maximum number of intervals read at once, so that catching up with a long run does not hold the lock for long.
const BATCH: usize = 128;

/// The monitor of a job's run, with notifications of changes.
#[derive(Debug)]
pub(crate) struct LiveRun {
    /// The job.
    pub(crate) id: JobId,
    /// `None` until the run directory has a manifest.
    monitor: Mutex<Option<RunMonitor>>,
    /// Counts changes. A watcher that misses some still sees the latest state.
    changes: watch::Sender<u64>,
}

impl LiveRun {
    /// Makes a run without data yet.
    pub(crate) fn new(id: JobId) -> Arc<Self> {
        Arc::new(Self {
            id,
            monitor: Mutex::new(None),
            changes: watch::Sender::new(0),
        })
    }

    /// Returns a receiver that is notified of changes.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Reads the monitor, if there is one.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&RunMonitor) -> T) -> Option<T> {
        let monitor = lock(&self.monitor);
        monitor.as_ref().map(look)
    }

    /// Changes the monitor and notifies all watchers.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Option<RunMonitor>)) {
        let mut monitor = lock(&self.monitor);
        change(&mut monitor);
        drop(monitor);
        self.changes.send_modify(|n| *n += 1);
    }

    /// Follows the run directory `dir` until `over` becomes true and everything has been read.
    pub(crate) async fn follow(self: Arc<Self>, dir: PathBuf, mut over: watch::Receiver<bool>) {
        let mut follow: Option<Follow> = None;
        loop {
            let last = *over.borrow();
            let live = Arc::clone(&self);
            let dir = dir.clone();
            let step = tokio::task::spawn_blocking(move || {
                let more = live.step(&mut follow, &dir, last);
                (follow, more)
            });
            // A panic in the step ends the watching, not the run or the controller.
            let Ok((back, more)) = step.await else {
                return;
            };
            follow = back;
            if more {
                continue;
            }
            if last {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(PERIOD) => {}
                _ = over.wait_for(|over| *over) => {}
            }
        }
    }

    /// Reads new data; returns true if there is more.
    fn step(&self, follow: &mut Option<Follow>, dir: &std::path::Path, last: bool) -> bool {
        if follow.is_none() {
            match Follow::open(dir) {
                Ok(opened) => {
                    self.change(|monitor| *monitor = Some(RunMonitor::new(opened.manifest())));
                    *follow = Some(opened);
                }
                Err(_) => return false,
            }
        }
        let Some(follow) = follow else {
            return false;
        };
        let mut read = 0;
        self.change(|monitor| {
            if let Some(monitor) = monitor {
                // A failed read is retried at the next step.
                read = follow.poll(monitor, BATCH).unwrap_or(0);
                if last
                    && read < BATCH
                    && let Ok(manifest) = follow.refresh()
                {
                    monitor.status(manifest);
                }
            }
        });
        read == BATCH
    }
}
