//! Request contexts, and how a request is performed.
//!
//! Without a context a request is performed by the call that makes it. With one it waits there, and the thread
//! that drives the context performs it, one request per `S3_runonce_request_context`. Behind a gateway the requests
//! at the head of the queue that are small are sent together before the first of them ends (`calls::ahead`); each of
//! them still ends when it is its turn, in the order in which they were made. There is nothing to wait for, so there
//! are no file descriptors.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::abi::S3RequestContext;
use crate::calls::ahead;
use crate::calls::object::Call;
use crate::reply::{Callbacks, Failure};
use crate::status::Status;

/// A request that waits.
pub(crate) enum Pending {
    /// One that is performed when it is its turn.
    Whole {
        callbacks: Callbacks,
        perform: Box<dyn FnOnce()>,
    },
    /// One that may be sent before, together with others.
    Object(Box<Call>),
}

impl Pending {
    /// A request that `work` performs.
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
            Self::Object(call) => {
                let callbacks = call.callbacks;
                perform(&callbacks, move || call.work(), drop);
            }
        }
    }

    fn interrupt(self) {
        let callbacks = match self {
            Self::Whole { callbacks, .. } => callbacks,
            Self::Object(call) => call.callbacks,
        };
        callbacks.complete(&Err(Status::Interrupted.into()));
    }
}

/// Requests that wait to be driven: what a request context of C is. One thread at a time uses it.
struct Requests {
    queue: VecDeque<Pending>,
    /// Requests of it that are being performed; more than one when a callback drives it.
    running: usize,
    /// It was destroyed by a callback and goes when that has returned.
    destroyed: bool,
}

/// Performs a request: `work`, then the callback that completes, then `after` with what the work gave (`None` if it
/// failed).
fn perform<T>(
    callbacks: &Callbacks,
    work: impl FnOnce() -> Result<T, Failure>,
    after: impl FnOnce(Option<T>),
) {
    let (outcome, value) = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => (Ok(()), Some(value)),
        Ok(Err(failure)) => (Err(failure), None),
        Err(_) => (
            Err(Failure::new(
                Status::InternalError,
                "the library has panicked",
            )),
            None,
        ),
    };
    callbacks.complete(&outcome);
    after(value);
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
    // SAFETY: NULL or valid, by the contract of this function; nothing else refers to it now,
    // because one thread uses it and no reference is held while a request is performed.
    match unsafe { context.cast::<Requests>().as_mut() } {
        None => perform(&callbacks, work, after),
        Some(context) => context.queue.push_back(Pending::Whole {
            callbacks,
            perform: Box::new(move || perform(&callbacks, work, after)),
        }),
    }
}

/// Performs a request on one object now, or when `context` is driven.
///
/// # Safety
/// As for [`submit`].
pub(crate) unsafe fn submit_call(context: *mut S3RequestContext, call: Call) {
    // SAFETY: as in `submit`.
    match unsafe { context.cast::<Requests>().as_mut() } {
        None => {
            let callbacks = call.callbacks;
            perform(&callbacks, || call.work(), drop);
        }
        Some(context) => context.queue.push_back(Pending::Object(Box::new(call))),
    }
}

/// A new context.
pub(crate) fn create() -> *mut S3RequestContext {
    let requests = Box::new(Requests {
        queue: VecDeque::new(),
        running: 0,
        destroyed: false,
    });
    Box::into_raw(requests).cast()
}

/// Ends all waiting requests as interrupted, and the context.
///
/// # Safety
/// As for [`submit`]; the pointer is of no use afterwards.
pub(crate) unsafe fn destroy(context: *mut S3RequestContext) {
    let context = context.cast::<Requests>();
    if context.is_null() {
        return;
    }
    // SAFETY: valid by the contract of this function, here and below; the reference ends before a
    // callback can use the context.
    while let Some(pending) = unsafe { (*context).queue.pop_front() } {
        pending.interrupt();
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

/// Sends the requests at the head of the queue together, if there are several that can be, and puts what is left of
/// them, to tell their callers, in their place.
///
/// # Safety
/// As for [`submit`], and the context is marked as running a request.
unsafe fn send_ahead(context: *mut Requests) {
    let mut calls: Vec<Call> = Vec::new();
    {
        // SAFETY: valid by the contract of this function; the reference ends before a callback is made.
        let queue = unsafe { &mut (*context).queue };
        if queue.len() < 2 {
            return;
        }
        while calls.len() < ahead::MOST
            && let Some(Pending::Object(call)) = queue.front()
            && call.goes_with(calls.first())
        {
            if let Some(Pending::Object(call)) = queue.pop_front() {
                calls.push(*call);
            }
        }
        if calls.len() < 2 {
            let back = calls
                .into_iter()
                .map(|call| Pending::Object(Box::new(call)));
            back.for_each(|pending| queue.push_front(pending));
            return;
        }
    }
    // Writes are asked for their bytes now.
    let answered = ahead::exchange(calls);
    // SAFETY: as above; the context is not freed while a request of it runs.
    if unsafe { (*context).destroyed } {
        answered.into_iter().for_each(Pending::interrupt);
        return;
    }
    // SAFETY: as above.
    let queue = unsafe { &mut (*context).queue };
    let rest = answered.into_iter().rev();
    rest.for_each(|pending| queue.push_front(pending));
}

/// Performs the request that has waited longest. Returns how many are left, or `None` if a callback
/// has destroyed the context.
///
/// # Safety
/// As for [`submit`].
pub(crate) unsafe fn drive_one(context: *mut S3RequestContext) -> Option<usize> {
    let context = context.cast::<Requests>();
    // SAFETY: valid by the contract of this function, here and below; no reference outlives its
    // statement, so that callbacks may use the context.
    unsafe { (*context).running += 1 };
    // SAFETY: as above.
    unsafe { send_ahead(context) };
    // SAFETY: as above.
    if let Some(pending) = unsafe { (*context).queue.pop_front() } {
        pending.perform();
    }
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
    Some(unsafe { (*context).queue.len() })
}

/// How many requests wait.
///
/// # Safety
/// As for [`submit`].
pub(crate) unsafe fn waiting(context: *const S3RequestContext) -> usize {
    // SAFETY: valid by the contract of this function.
    unsafe { (*context.cast::<Requests>()).queue.len() }
}
