//! One HTTP client per load thread. Its connections belong to the thread's runtime, and the workers of
//! the thread share its pool, as the tasks of a program would.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use bucketload_core::error::OpResult;
use tokio::runtime::{Handle, Id};

/// Identifies an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EngineId(u64);

impl EngineId {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A thread's client, with the runtime and the engine for which it was created.
pub(crate) type Slot<T> = RefCell<Option<(Id, EngineId, T)>>;

/// The thread's client of `engine`, created by `make` unless there is one on this runtime.
///
/// # Errors
/// When the client cannot be created.
pub(crate) fn of_this_thread<T: Clone>(
    slot: &Slot<T>,
    engine: EngineId,
    make: impl FnOnce() -> OpResult<T>,
) -> OpResult<T> {
    let runtime = Handle::current().id();
    let mut slot = slot.borrow_mut();
    match &*slot {
        Some((id, of, client)) if (*id, *of) == (runtime, engine) => Ok(client.clone()),
        _ => {
            let client = make()?;
            *slot = Some((runtime, engine, client.clone()));
            Ok(client)
        }
    }
}
