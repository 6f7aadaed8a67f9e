//! The thread that writes the journal while objects are prepared.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use bucketload_core::driver::AnyDriver;
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::plan::Plan;

use super::Progress;
use super::journal::Journal;
use crate::error::RunError;
use crate::options::RunOptions;

/// Pauses between two entries: the first, and the longest. They double in between.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Writes the journal from time to time, through connections of its own.
pub(super) struct Keeper {
    stop: Sender<()>,
    thread: JoinHandle<Option<OpError>>,
    journal: Journal,
    set: usize,
    progress: Arc<Progress>,
}

impl Keeper {
    /// Starts the thread, which writes `journal` with the progress of key set `set`.
    pub(super) fn start(
        driver: AnyDriver,
        plan: Arc<Plan>,
        options: &RunOptions,
        (journal, set): (Journal, usize),
        progress: Arc<Progress>,
    ) -> Result<Self, RunError> {
        let (stop, stopped) = channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(RunError::Thread)?;
        let (bucket, prefix) = (options.bucket.clone(), options.prefix.clone());
        let (mut written, known) = (journal.clone(), Arc::clone(&progress));
        let body = move || {
            let mut pause = PAUSES.0;
            loop {
                let last = stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout);
                let ranges = known.ranges();
                let mut outcome = Ok(());
                if written.of(set).done != ranges {
                    let before = std::mem::replace(&mut written.of(set).done, ranges);
                    let local = tokio::task::LocalSet::new();
                    let write = written.write(&driver, &plan, (&bucket, &prefix));
                    outcome = local.block_on(&runtime, write);
                    if outcome.is_err() {
                        written.of(set).done = before;
                    }
                }
                if last {
                    return outcome.err();
                }
                pause = PAUSES.1.min(pause * 2);
            }
        };
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(body)
            .map_err(RunError::Thread)?;
        Ok(Self {
            stop,
            thread,
            journal,
            set,
            progress,
        })
    }

    /// Writes the last entry. Returns the journal, and why it could not be written.
    pub(super) fn end(mut self) -> (Journal, Option<OpError>) {
        drop(self.stop);
        let error = self.thread.join().unwrap_or_else(|_| {
            let text = "the thread that writes it panicked";
            Some(OpError::new(ErrorKind::Cancelled, text))
        });
        self.journal.of(self.set).done = self.progress.ranges();
        (self.journal, error)
    }
}
