//! Batches of requests of a context, which wait once for the gateway instead of once per request.
//!
//! Consecutive small requests in the queue form a batch. The data callbacks of its writes are called,
//! then the whole batch is sent. The gateway runs the requests in order, and their results are kept until
//! it is the turn of each to report to its caller. A request that fails, or whose callback aborts,
//! reports only its own failure.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::object::{ObjectOperation, ObjectRequest, report_bytes, report_info};
use crate::backend::{Backend, BatchRequest, BatchResult, Result};
use crate::clock::Deadline;
use crate::context::Pending;
use crate::reply::{Callbacks, Failure};
use crate::status::Status;

/// Maximum number of requests in a batch. Their results, of up to 64 KiB each, are kept in memory.
pub(crate) const MAX_REQUESTS: usize = 32;
/// Maximum size of a write in a batch, in bytes.
const MAX_PUT_BYTES: u64 = 16 << 10;

impl ObjectRequest {
    /// The store to send this request to in a batch, if it may be in one: it has no timeout and is
    /// small. For a read, the gateway checks the size.
    fn batch_backend(&self) -> Option<&Arc<Backend>> {
        let backend = self.target.open_backend()?;
        let fits = match &self.operation {
            ObjectOperation::Put { size, given, .. } => {
                *size <= MAX_PUT_BYTES && !given.has_digest()
            }
            ObjectOperation::Get { conditions, .. } => !conditions.never,
            ObjectOperation::Head | ObjectOperation::Delete => true,
        };
        (fits && self.timeout_ms <= 0 && backend.is_remote()).then_some(backend)
    }

    /// Whether this request may join the batch of `first`, or start one if there is none.
    pub(crate) fn may_join(&self, first: Option<&Self>) -> bool {
        match (self.batch_backend(), first) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(this), Some(first)) => first
                .batch_backend()
                .is_some_and(|backend| Arc::ptr_eq(this, backend)),
        }
    }

    /// The bytes of a write, from its data callback; empty for other requests.
    fn bytes(&self) -> Result<Vec<u8>> {
        let ObjectOperation::Put { size, given, body } = &self.operation else {
            return Ok(Vec::new());
        };
        given.options(*size)?;
        let size = usize::try_from(*size).unwrap_or(0);
        let bytes = body.collect(size, Deadline::after(0))?;
        if bytes.len() < size {
            return Err(Failure::new(
                Status::ErrorIncompleteBody,
                "the data callback has ended early",
            ));
        }
        Ok(bytes)
    }

    fn batch_request<'a>(&'a mut self, bytes: &'a [u8]) -> BatchRequest<'a> {
        let name = self.target.name();
        match &mut self.operation {
            ObjectOperation::Put { given, .. } => {
                BatchRequest::Put(name, bytes, std::mem::take(given).into_commit())
            }
            ObjectOperation::Get {
                conditions, span, ..
            } => BatchRequest::Get(name, conditions.read.clone(), *span),
            ObjectOperation::Head => BatchRequest::Head(name),
            ObjectOperation::Delete => BatchRequest::Delete(name),
        }
    }

    /// Makes all callbacks except completion.
    fn report(self, result: Result<BatchResult>) -> Result<()> {
        let callbacks = &self.callbacks;
        match (&self.operation, result) {
            (ObjectOperation::Head, Ok(BatchResult::Info(info))) => {
                report_info(Ok(info), callbacks)
            }
            (ObjectOperation::Head, Err(failure)) => report_info(Err(failure), callbacks),
            (ObjectOperation::Put { .. }, Ok(BatchResult::Written(written))) => {
                callbacks.etag(written.etag)
            }
            (ObjectOperation::Get { on_data, .. }, Ok(BatchResult::Bytes(info, bytes))) => {
                report_bytes(&info, &bytes, *on_data, callbacks)
            }
            (ObjectOperation::Get { .. }, Ok(BatchResult::TooLarge)) => self.run(),
            (ObjectOperation::Delete, Ok(BatchResult::Deleted)) => callbacks.no_properties(),
            (_, Err(failure)) => Err(failure),
            (_, Ok(_)) => Err(Failure::new(
                Status::InternalError,
                "the result belongs to another request",
            )),
        }
    }
}

/// Sends a batch. Returns the rest of each request, which reports its result.
pub(crate) fn exchange(requests: Vec<ObjectRequest>) -> Vec<Pending> {
    let all: Vec<Callbacks> = requests.iter().map(|request| request.callbacks).collect();
    let exchanged = catch_unwind(AssertUnwindSafe(|| results(requests)));
    let Ok(done) = exchanged else {
        let panicked = || Err(Failure::panicked());
        let pending = all.into_iter();
        return pending
            .map(|callbacks| Pending::whole(callbacks, panicked))
            .collect();
    };
    let pending = done
        .into_iter()
        .map(|(request, result)| Pending::whole(request.callbacks, move || request.report(result)));
    pending.collect()
}

fn results(mut requests: Vec<ObjectRequest>) -> Vec<(ObjectRequest, Result<BatchResult>)> {
    let bytes: Vec<Result<Vec<u8>>> = requests.iter().map(ObjectRequest::bytes).collect();
    let backend = requests
        .first()
        .and_then(ObjectRequest::batch_backend)
        .map(Arc::clone);
    let sent = requests.iter_mut().zip(&bytes);
    let sent =
        sent.filter_map(|(request, bytes)| Some(request.batch_request(bytes.as_ref().ok()?)));
    let sent: Vec<BatchRequest<'_>> = sent.collect();
    let mut results = backend
        .map(|backend| backend.send_batch(sent))
        .unwrap_or_default()
        .into_iter();
    let unanswered = || Failure::from(Status::InternalError);
    let done = requests.into_iter().zip(bytes).map(|(request, bytes)| {
        let result = bytes.and_then(|_| results.next().unwrap_or_else(|| Err(unanswered())));
        (request, result)
    });
    done.collect()
}
