//! A run that is watched while its process writes the run directory.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bucketload_results::rundir::Follow;
use tokio::sync::watch;

use crate::course::Course;
use crate::queue::JobId;

/// Time between two looks at the run directory, which grows once a second.
const PERIOD: Duration = Duration::from_millis(500);
/// Intervals that are read in one go: a long run that is caught up with lets others in between.
const BATCH: usize = 128;

/// The course of a job's run, and word of every change.
#[derive(Debug)]
pub(crate) struct LiveRun {
    /// Whose run it is.
    pub(crate) id: JobId,
    /// None until the run directory has a manifest.
    course: Mutex<Option<Course>>,
    /// Counts changes. Who misses some sees the latest state all the same.
    changes: watch::Sender<u64>,
}

impl LiveRun {
    /// A run of which nothing is known yet.
    pub(crate) fn new(id: JobId) -> Arc<Self> {
        Arc::new(Self {
            id,
            course: Mutex::new(None),
            changes: watch::Sender::new(0),
        })
    }

    /// Is told of changes.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Looks at the course, if there is one.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&Course) -> T) -> Option<T> {
        let course = self.course.lock().unwrap_or_else(PoisonError::into_inner);
        course.as_ref().map(look)
    }

    /// Changes the course and tells everybody.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Option<Course>)) {
        let mut course = self.course.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut course);
        drop(course);
        self.changes.send_modify(|n| *n += 1);
    }

    /// Follows the run directory `dir` until `over` becomes true and everything was read.
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
            // A panic in there ends the watching, not the run or the controller.
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

    /// Reads what is new; true when there is more.
    fn step(&self, follow: &mut Option<Follow>, dir: &std::path::Path, last: bool) -> bool {
        if follow.is_none() {
            match Follow::open(dir) {
                Ok(opened) => {
                    self.change(|course| *course = Some(Course::new(opened.manifest())));
                    *follow = Some(opened);
                }
                Err(_) => return false,
            }
        }
        let Some(follow) = follow else {
            return false;
        };
        let mut told = 0;
        self.change(|course| {
            if let Some(course) = course {
                // What cannot be read now is tried again at the next look.
                told = follow.poll(course, BATCH).unwrap_or(0);
                if last
                    && told < BATCH
                    && let Ok(manifest) = follow.refresh()
                {
                    course.status(manifest);
                }
            }
        });
        told == BATCH
    }
}
