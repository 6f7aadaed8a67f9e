//! The start of a phase on one load thread, from the opening of sessions; and panics of the thread's tasks.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::task::Poll;

use bucketload_core::error::OpError;

use crate::error::RunError;
use crate::shard::Shard;

/// Payload of a panic.
type Panic = Box<dyn Any + Send>;

/// State of a load thread before the start of the phase.
#[derive(Default)]
pub(crate) struct Startup {
    /// Number of closed-loop sessions being opened.
    opening: Cell<usize>,
    /// The first failure to open a session.
    error: RefCell<Option<OpError>>,
    /// Whether a closed-loop worker has no session.
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

    /// Remembers the first failure to open a session.
    pub(crate) fn note_open_error(&self, error: OpError) {
        self.startup.error.borrow_mut().get_or_insert(error);
    }

    /// Whether sessions for the start are still being opened.
    pub(crate) fn is_opening(&self) -> bool {
        self.startup.opening.get() > 0 || self.batons().iter().any(|b| b.is_connecting())
    }

    /// Why the phase cannot start, if it cannot: a closed-loop worker has no session, or an open work has none at all.
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

    /// Runs `task` on the thread. A runtime swallows panics of its tasks. Here they are kept for
    /// [`Shard::resume_panic`], because a run that lost a worker must not go on.
    pub(crate) fn spawn(this: &Rc<Self>, task: impl Future<Output = ()> + 'static) {
        let shard = Rc::clone(this);
        // Boxed: an `async` block that pins a captured future stores it twice.
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

    /// Panics if a task of the thread has panicked.
    pub(crate) fn resume_panic(&self) {
        if let Some(payload) = self.startup.panic.take() {
            resume_unwind(payload);
        }
    }
}
