//! Request contexts, and how a request is performed.
//!
//! Without a context a request is performed by the call that makes it. With one it waits there as a
//! closure, and the thread that drives the context performs it, one request per
//! `S3_runonce_request_context`. There is nothing to wait for, so there are no file descriptors.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::reply::{Callbacks, Failure};
use crate::status::Status;

struct Pending {
    callbacks: Callbacks,
    perform: Box<dyn FnOnce()>,
}

/// Requests that wait to be driven. One thread at a time uses it.
pub struct S3RequestContext {
    queue: VecDeque<Pending>,
    /// Requests of it that are being performed; more than one when a callback drives it.
    running: usize,
    /// It was destroyed by a callback and goes when that has returned.
    destroyed: bool,
}

impl std::fmt::Debug for S3RequestContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("S3RequestContext")
            .field("waiting", &self.queue.len())
            .field("running", &self.running)
            .finish()
    }
}

/// Performs a request now, or when `context` is driven: `work`, then the callback that completes,
/// then `after` with what the work gave (`None` if it failed).
///
/// # Safety
/// `context` is NULL or was made by [`create`] and not destroyed.
pub(crate) unsafe fn submit<T: 'static>(
    context: *mut S3RequestContext,
    callbacks: Callbacks,
    work: impl FnOnce() -> Result<T, Failure> + 'static,
    after: impl FnOnce(Option<T>) + 'static,
) {
    let perform = move || {
        let (outcome, value) = match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(value)) => (Ok(()), Some(value)),
            Ok(Err(failure)) => (Err(failure), None),
            Err(_) => (
                Err(Status::InternalError.because("the library has panicked")),
                None,
            ),
        };
        callbacks.complete(&outcome);
        after(value);
    };
    // SAFETY: NULL or valid, by the contract of this function; nothing else refers to it now,
    // because one thread uses it and no reference is held while a request is performed.
    match unsafe { context.as_mut() } {
        None => perform(),
        Some(context) => context.queue.push_back(Pending {
            callbacks,
            perform: Box::new(perform),
        }),
    }
}

/// A new context.
pub(crate) fn create() -> *mut S3RequestContext {
    Box::into_raw(Box::new(S3RequestContext {
        queue: VecDeque::new(),
        running: 0,
        destroyed: false,
    }))
}

/// Ends all waiting requests as interrupted, and the context.
///
/// # Safety
/// As for [`submit`]; the pointer is of no use afterwards.
pub(crate) unsafe fn destroy(context: *mut S3RequestContext) {
    if context.is_null() {
        return;
    }
    // SAFETY: valid by the contract of this function, here and below; the reference ends before a
    // callback can use the context.
    while let Some(pending) = unsafe { (*context).queue.pop_front() } {
        drop(pending.perform);
        pending.callbacks.complete(&Err(Status::Interrupted.into()));
    }
    // SAFETY: as above.
    if unsafe { (*context).running } > 0 {
        // SAFETY: as above.
        unsafe { (*context).destroyed = true };
    } else {
        // SAFETY: made by `create`, and nobody uses it any more.
        drop(unsafe { Box::from_raw(context) });
    }
}

/// Performs the request that has waited longest. Returns how many are left, or `None` if a callback
/// has destroyed the context.
///
/// # Safety
/// As for [`submit`].
pub(crate) unsafe fn drive_one(context: *mut S3RequestContext) -> Option<usize> {
    // SAFETY: valid by the contract of this function, here and below; no reference outlives its
    // statement, so that callbacks may use the context.
    let Some(pending) = (unsafe { (*context).queue.pop_front() }) else {
        return Some(0);
    };
    // SAFETY: as above.
    unsafe { (*context).running += 1 };
    (pending.perform)();
    // SAFETY: as above; a context is not freed while a request of it runs.
    let last = unsafe {
        (*context).running -= 1;
        (*context).running == 0
    };
    // SAFETY: as above.
    if unsafe { (*context).destroyed } {
        if last {
            // SAFETY: made by `create`, and destroyed by its owner.
            drop(unsafe { Box::from_raw(context) });
        }
        return None;
    }
    // SAFETY: as above.
    Some(unsafe { waiting(context) })
}

/// How many requests wait.
///
/// # Safety
/// As for [`submit`].
pub(crate) unsafe fn waiting(context: *const S3RequestContext) -> usize {
    // SAFETY: valid by the contract of this function.
    unsafe { (*context).queue.len() }
}
