//! From the opening of sessions to the start of a phase on one load thread, and the tasks' panics.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::task::Poll;

use bucketload_core::error::OpError;

use crate::error::RunError;
use crate::shard::Shard;

/// What a panic carries.
type Panic = Box<dyn Any + Send>;

/// How far a load thread has got before the start.
#[derive(Default)]
pub(crate) struct Startup {
    /// Closed-loop sessions that are being opened.
    opening: Cell<usize>,
    /// The first session that could not be opened.
    error: RefCell<Option<OpError>>,
    /// Whether a closed-loop worker is without a session.
    worker_missing: Cell<bool>,
    /// Whether closed-loop workers may begin.
    released: Cell<bool>,
    /// Payload of the first panic in a task of the thread.
    panic: Cell<Option<Panic>>,
}

impl Shard {
    /// One more session is being opened before the start.
    pub(crate) fn opening_begun(&self) {
        self.startup.opening.set(self.startup.opening.get() + 1);
    }

    /// A closed-loop worker's session was opened before the start, or failed to.
    pub(crate) fn opening_ended(&self, error: Option<OpError>) {
        self.startup.opening.set(self.startup.opening.get() - 1);
        if let Some(error) = error {
            self.startup.worker_missing.set(true);
            self.note_open_error(error);
        }
        self.wake_main();
    }

    /// Remembers the first session that could not be opened.
    pub(crate) fn note_open_error(&self, error: OpError) {
        self.startup.error.borrow_mut().get_or_insert(error);
    }

    /// Whether sessions for the start are still being opened.
    pub(crate) fn is_opening(&self) -> bool {
        self.startup.opening.get() > 0 || self.batons().iter().any(|b| b.is_connecting())
    }

    /// Why the phase cannot start, if it cannot: a closed-loop worker has no session, or an open
    /// work has none at all.
    pub(crate) fn open_error(&self) -> Option<RunError> {
        let error = self.startup.error.take()?;
        let lacking =
            self.startup.worker_missing.get() || self.batons().iter().any(|b| b.sessions() == 0);
        lacking.then(|| RunError::Session {
            open: self.sessions.get(),
            error,
        })
    }

    /// Lets closed-loop workers begin.
    pub(crate) fn release(&self) {
        if !self.startup.released.replace(true) {
            self.slots.wake_all();
        }
    }

    /// Waits for the start of the phase.
    pub(crate) async fn started(&self) {
        poll_fn(|_| match self.startup.released.get() {
            false => Poll::Pending,
            true => Poll::Ready(()),
        })
        .await;
    }

    /// Runs `task` on the thread. A runtime swallows the panics of its tasks; here they are kept for
    /// [`Shard::resume_panic`], because a run that lost a worker must not go on.
    pub(crate) fn spawn(this: &Rc<Self>, task: impl Future<Output = ()> + 'static) {
        let shard = Rc::clone(this);
        // In a box of its own: an `async` block that pins what it has captured holds it twice.
        let mut task = Box::pin(task);
        tokio::task::spawn_local(poll_fn(move |cx| {
            let poll = AssertUnwindSafe(|| task.as_mut().poll(cx));
            catch_unwind(poll).unwrap_or_else(|payload| {
                shard.startup.panic.set(Some(payload));
                shard.wake_main();
                Poll::Ready(())
            })
        }));
    }

    /// Panics when a task of the thread has.
    pub(crate) fn resume_panic(&self) {
        if let Some(payload) = self.startup.panic.take() {
            resume_unwind(payload);
        }
    }
}
