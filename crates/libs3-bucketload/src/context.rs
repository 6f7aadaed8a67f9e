//! Request contexts, and how requests run.
//!
//! Without a context, a request runs within the call that makes it. With one, it is queued there, and the
//! thread that drives the context runs it, one request per `S3_runonce_request_context`. Behind a
//! gateway, the small requests at the head of the queue are sent as one batch before the first of them
//! completes (`calls::batch`). Each of them still completes in its turn, in the order of the requests.
//! There is nothing to wait for, so there are no file descriptors.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::abi::S3RequestContext;
use crate::calls::batch;
use crate::calls::object::ObjectRequest;
use crate::reply::{Callbacks, Failure};
use crate::status::Status;

/// A queued request.
pub(crate) enum Pending {
    /// Runs in its turn.
    Whole {
        callbacks: Callbacks,
        perform: Box<dyn FnOnce()>,
    },
    /// May be sent earlier, in a batch.
    Object(Box<ObjectRequest>),
}

impl Pending {
    /// A request that runs `work`.
    pub(crate) fn whole(
        callbacks: Callbacks,
        work: impl FnOnce() -> Result<(), Failure> + 'static,
    ) -> Self {
        Self::Whole {
            callbacks,
            perform: Box::new(move || perform(&callbacks, work, drop)),
        }
    }

    fn perform(self) {
        match self {
            Self::Whole { perform, .. } => perform(),
            Self::Object(request) => {
                let callbacks = request.callbacks;
                perform(&callbacks, move || request.run(), drop);
            }
        }
    }

    fn interrupt(self) {
        let callbacks = match self {
            Self::Whole { callbacks, .. } => callbacks,
            Self::Object(request) => request.callbacks,
        };
        callbacks.complete(&Err(Status::Interrupted.into()));
    }
}

/// The queued requests of a request context. One thread at a time uses it.
struct RequestQueue {
    queue: VecDeque<Pending>,
    /// Number of requests that are running; more than one if a callback drives the context.
    running: usize,
    /// A callback has destroyed the context; it is freed once the callback returns.
    destroyed: bool,
}

/// Runs a request: `work`, then the completion callback, then `after` with the result of `work` (`None`
/// if it failed).
fn perform<T>(
    callbacks: &Callbacks,
    work: impl FnOnce() -> Result<T, Failure>,
    after: impl FnOnce(Option<T>),
) {
    let (outcome, value) = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => (Ok(()), Some(value)),
        Ok(Err(failure)) => (Err(failure), None),
        Err(_) => (Err(Failure::panicked()), None),
    };
    callbacks.complete(&outcome);
    after(value);
}

/// Runs a request as [`perform`] does: now, or when `context` is driven.
///
/// # Safety
/// `context` is NULL, or was created by [`create`] and not destroyed.
pub(crate) unsafe fn submit<T: 'static>(
    context: *mut S3RequestContext,
    callbacks: Callbacks,
    work: impl FnOnce() -> Result<T, Failure> + 'static,
    after: impl FnOnce(Option<T>) + 'static,
) {
    // SAFETY: NULL or valid, by the contract of this function. Nothing else refers to the context
    // now: one thread uses it, and no reference is held while a request runs.
    match unsafe { context.cast::<RequestQueue>().as_mut() } {
        None => perform(&callbacks, work, after),
        Some(context) => context.queue.push_back(Pending::Whole {
            callbacks,
            perform: Box::new(move || perform(&callbacks, work, after)),
        }),
    }
}

/// Runs a request on one object: now, or when `context` is driven.
///
/// # Safety
/// As for [`submit`].
pub(crate) unsafe fn submit_object(context: *mut S3RequestContext, request: ObjectRequest) {
    // SAFETY: as in `submit`.
    match unsafe { context.cast::<RequestQueue>().as_mut() } {
        None => {
            let callbacks = request.callbacks;
            perform(&callbacks, || request.run(), drop);
        }
        Some(context) => context.queue.push_back(Pending::Object(Box::new(request))),
    }
}

/// Creates a context.
pub(crate) fn create() -> *mut S3RequestContext {
    let requests = Box::new(RequestQueue {
        queue: VecDeque::new(),
        running: 0,
        destroyed: false,
    });
    Box::into_raw(requests).cast()
}

/// Completes all queued requests as interrupted and destroys the context.
///
/// # Safety
/// As for [`submit`]; the pointer must not be used afterwards.
pub(crate) unsafe fn destroy(context: *mut S3RequestContext) {
    let context = context.cast::<RequestQueue>();
    if context.is_null() {
        return;
    }
    // SAFETY: valid by the contract of this function, here and below. The reference ends before a
    // callback can use the context.
    while let Some(pending) = unsafe { (*context).queue.pop_front() } {
        pending.interrupt();
    }
    // SAFETY: as above.
    if unsafe { (*context).running } > 0 {
        // SAFETY: as above.
        unsafe { (*context).destroyed = true };
    } else {
        // SAFETY: created by `create`, and no longer used.
        drop(unsafe { Box::from_raw(context) });
    }
}

/// Sends the requests at the head of the queue as one batch, if several can be. Replaces each of them
/// with a request that reports the result to its caller.
///
/// # Safety
/// As for [`submit`], and the context is marked as running a request.
unsafe fn send_batch(context: *mut RequestQueue) {
    let mut requests: Vec<ObjectRequest> = Vec::new();
    {
        // SAFETY: valid by the contract of this function. The reference ends before any callback.
        let queue = unsafe { &mut (*context).queue };
        if queue.len() < 2 {
            return;
        }
        while requests.len() < batch::MAX_REQUESTS
            && let Some(Pending::Object(request)) = queue.front()
            && request.may_join(requests.first())
        {
            if let Some(Pending::Object(request)) = queue.pop_front() {
                requests.push(*request);
            }
        }
        if requests.len() < 2 {
            if let Some(only) = requests.pop() {
                queue.push_front(Pending::Object(Box::new(only)));
            }
            return;
        }
    }
    // Calls the data callbacks of writes.
    let done = batch::exchange(requests);
    // SAFETY: as above; the context is not freed while one of its requests runs.
    if unsafe { (*context).destroyed } {
        done.into_iter().for_each(Pending::interrupt);
        return;
    }
    // SAFETY: as above.
    let queue = unsafe { &mut (*context).queue };
    let rest = done.into_iter().rev();
    rest.for_each(|pending| queue.push_front(pending));
}

/// Runs the first request in the queue. Returns how many are left, or `None` if a callback has destroyed
/// the context.
///
/// # Safety
/// As for [`submit`].
pub(crate) unsafe fn drive_one(context: *mut S3RequestContext) -> Option<usize> {
    let context = context.cast::<RequestQueue>();
    // SAFETY: valid by the contract of this function, here and below. No reference outlives its
    // statement, so callbacks may use the context.
    unsafe { (*context).running += 1 };
    // SAFETY: as above.
    unsafe { send_batch(context) };
    // SAFETY: as above.
    if let Some(pending) = unsafe { (*context).queue.pop_front() } {
        pending.perform();
    }
    // SAFETY: as above; a context is not freed while one of its requests runs.
    let last = unsafe {
        (*context).running -= 1;
        (*context).running == 0
    };
    // SAFETY: as above.
    if unsafe { (*context).destroyed } {
        if last {
            // SAFETY: created by `create`, and destroyed by its owner.
            drop(unsafe { Box::from_raw(context) });
        }
        return None;
    }
    // SAFETY: as above.
    Some(unsafe { (*context).queue.len() })
}

/// The number of queued requests.
///
/// # Safety
/// As for [`submit`].
pub(crate) unsafe fn waiting(context: *const S3RequestContext) -> usize {
    // SAFETY: valid by the contract of this function.
    unsafe { (*context.cast::<RequestQueue>()).queue.len() }
}
