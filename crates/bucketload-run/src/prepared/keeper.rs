//! The thread that writes the journal while objects are prepared, and so holds on to the data set.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bucketload_core::error::{ErrorKind, OpError};

use super::journal::{Journal, Place};
use super::lease::Lease;
use super::progress::Known;
use crate::error::RunError;

/// Pauses between two entries: the first, and the longest. They double in between. The longest is far below
/// [`super::PATIENCE`], so that a slow store does not make its holder look dead.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// Writes the journal from time to time, through connections of its own.
pub(super) struct Keeper {
    stop: Sender<()>,
    thread: JoinHandle<Option<OpError>>,
    shared: Arc<Mutex<Shared>>,
}

/// What the thread is to write.
struct Shared {
    /// What is known of the data set without the current phase.
    journal: Journal,
    /// The key set that the current phase fills.
    current: Option<(usize, Arc<dyn Known>)>,
    /// Who holds the data set instead of this session.
    lost_to: Option<String>,
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Everything that is known now.
    fn known(&self) -> Journal {
        let mut journal = self.journal.clone();
        if let Some((set, known)) = &self.current {
            journal.of(*set).add(&known.filled());
        }
        journal
    }
}

impl Keeper {
    /// Starts the thread of the session whose `lease` is in `journal`.
    pub(super) fn start(place: Place, journal: Journal, lease: Lease) -> Result<Self, RunError> {
        let (stop, stopped) = channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(RunError::Thread)?;
        let shared = Arc::new(Mutex::new(Shared {
            journal,
            current: None,
            lost_to: None,
        }));
        let of = Arc::clone(&shared);
        let body = move || {
            let (mut lease, mut pause) = (lease, PAUSES.0);
            loop {
                let last = stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout);
                let known = lock(&of).known();
                lease = lease.renewed();
                let kept = (!last).then(|| lease.clone());
                let entry = place.change(|journal| match &journal.lease {
                    Some(other) if !other.is_of(&lease) => Err(other.holder()),
                    _ => {
                        journal.learn(&known);
                        journal.lease.clone_from(&kept);
                        Ok(())
                    }
                });
                let entry = tokio::task::LocalSet::new().block_on(&runtime, entry);
                if let Ok(Err(holder)) = entry {
                    let mut shared = lock(&of);
                    shared.lost_to = Some(holder);
                    if let Some((_, known)) = &shared.current {
                        known.give_up();
                    }
                    return None;
                }
                if last {
                    return entry.err();
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
            shared,
        })
    }

    /// A phase begins to fill key set `set`.
    ///
    /// # Errors
    /// When another session holds the data set.
    pub(super) fn begin(&self, set: usize, known: Arc<dyn Known>) -> Result<(), RunError> {
        let mut shared = lock(&self.shared);
        match &shared.lost_to {
            Some(holder) => Err(taken(holder)),
            None => {
                shared.current = Some((set, known));
                Ok(())
            }
        }
    }

    /// The phase has ended. Returns what is known of the data set now.
    ///
    /// # Errors
    /// When another session holds the data set.
    pub(super) fn phase_ended(&self) -> (Journal, Result<(), RunError>) {
        let mut shared = lock(&self.shared);
        shared.journal = shared.known();
        shared.current = None;
        let held = match &shared.lost_to {
            Some(holder) => Err(taken(holder)),
            None => Ok(()),
        };
        (shared.journal.clone(), held)
    }

    /// Writes the last entry and gives the data set back. Returns why the entry could not be written.
    pub(super) fn end(self) -> Option<OpError> {
        drop(self.stop);
        self.thread.join().unwrap_or_else(|_| {
            let text = "the thread that writes it panicked";
            Some(OpError::new(ErrorKind::Cancelled, text))
        })
    }
}

fn taken(holder: &str) -> RunError {
    RunError::TakenOver {
        holder: holder.to_owned(),
    }
}
