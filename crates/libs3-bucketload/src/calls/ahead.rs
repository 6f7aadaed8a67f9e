//! Requests of a context that are sent together, so that they wait once for the gateway and not once each.
//!
//! Those that follow each other in the queue and move little go in one batch: writes are asked for their bytes, all
//! are sent, performed by the gateway in their order, and their answers kept, until it is the turn of each to tell its
//! caller. A request that fails, or whose callback gives up, is told so by itself.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::object::{Asked, Call, tell_bytes, tell_info, tell_written};
use crate::backend::{Answer, Backend, Result, Small};
use crate::clock::Deadline;
use crate::context::Pending;
use crate::reply::{Callbacks, Failure, Properties};
use crate::status::Status;

/// Most requests that are sent together: their answers have to be kept, of up to 64 KiB each.
pub(crate) const MOST: usize = 32;
/// Most bytes of a write that goes with others.
const SMALL: u64 = 16 << 10;

impl Call {
    /// The store to which it may be sent with others: it has no time limit of its own, and moves little. How much a
    /// read moves is found out by the gateway.
    fn far(&self) -> Option<&Arc<Backend>> {
        let backend = self.target.backend.as_ref().ok()?;
        let fits = match &self.asked {
            Asked::Put { size, given, .. } => *size <= SMALL && !given.has_digest(),
            Asked::Get { conditions, .. } => !conditions.never,
            Asked::Head | Asked::Delete => true,
        };
        (fits && self.timeout_ms <= 0 && backend.is_far()).then_some(backend)
    }

    /// Whether it may be sent together with `first`, or at all where there is none.
    pub(crate) fn goes_with(&self, first: Option<&Self>) -> bool {
        match (self.far(), first) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(own), Some(first)) => first.far().is_some_and(|far| Arc::ptr_eq(own, far)),
        }
    }

    /// What it sends: of a write the bytes, for which its callback is asked.
    fn bytes(&self) -> Result<Vec<u8>> {
        let Asked::Put {
            size,
            given,
            supply,
        } = &self.asked
        else {
            return Ok(Vec::new());
        };
        given.options(*size)?;
        let mut source = supply.source(Deadline::after(0));
        let mut bytes = vec![0; usize::try_from(*size).unwrap_or(0)];
        let mut filled = 0;
        while filled < bytes.len() {
            match source(&mut bytes[filled..])? {
                0 => {
                    return Err(Failure::new(
                        Status::ErrorIncompleteBody,
                        "the data callback has ended early",
                    ));
                }
                got => filled += got,
            }
        }
        Ok(bytes)
    }

    fn small<'a>(&'a mut self, bytes: &'a [u8]) -> Small<'a> {
        let place = (&*self.target.bucket, &*self.target.key);
        match &mut self.asked {
            Asked::Put { given, .. } => {
                Small::Put(place, bytes, std::mem::take(given).into_commit())
            }
            Asked::Get {
                conditions, span, ..
            } => Small::Get(place, conditions.read.clone(), *span),
            Asked::Head => Small::Head(place),
            Asked::Delete => Small::Delete(place),
        }
    }

    /// Makes all callbacks but the one that completes.
    fn tell(self, answer: Result<Answer>) -> Result<()> {
        let callbacks = &self.callbacks;
        match (&self.asked, answer) {
            (Asked::Head, Ok(Answer::Info(info))) => tell_info(Ok(info), callbacks),
            (Asked::Head, Err(failure)) => tell_info(Err(failure), callbacks),
            (Asked::Put { .. }, Ok(Answer::Written(written))) => tell_written(&written, callbacks),
            (Asked::Get { take, .. }, Ok(Answer::Bytes(info, bytes))) => {
                tell_bytes(&info, &bytes, *take, callbacks)
            }
            (Asked::Get { .. }, Ok(Answer::TooLarge)) => self.work(),
            (Asked::Delete, Ok(Answer::Deleted)) => callbacks.properties(&Properties::default()),
            (_, Err(failure)) => Err(failure),
            (_, Ok(_)) => Err(Failure::new(
                Status::InternalError,
                "the answer is to another request",
            )),
        }
    }
}

/// Sends requests together; returns what is left of each.
pub(crate) fn exchange(calls: Vec<Call>) -> Vec<Pending> {
    let all: Vec<Callbacks> = calls.iter().map(|call| call.callbacks).collect();
    let exchanged = catch_unwind(AssertUnwindSafe(|| answers(calls)));
    let Ok(answered) = exchanged else {
        let failed = || {
            Err(Failure::new(
                Status::InternalError,
                "the library has panicked",
            ))
        };
        let pending = all.into_iter();
        return pending
            .map(|callbacks| Pending::whole(callbacks, failed))
            .collect();
    };
    let pending = answered
        .into_iter()
        .map(|(call, answer)| Pending::whole(call.callbacks, move || call.tell(answer)));
    pending.collect()
}

fn answers(mut calls: Vec<Call>) -> Vec<(Call, Result<Answer>)> {
    let bytes: Vec<Result<Vec<u8>>> = calls.iter().map(Call::bytes).collect();
    let backend = calls.first().and_then(Call::far).map(Arc::clone);
    let sent = calls.iter_mut().zip(&bytes);
    let sent = sent.filter_map(|(call, bytes)| Some(call.small(bytes.as_ref().ok()?)));
    let sent: Vec<Small<'_>> = sent.collect();
    let mut answers = backend
        .map(|backend| backend.together(sent))
        .unwrap_or_default()
        .into_iter();
    let unanswered = || Failure::from(Status::InternalError);
    let answered = calls.into_iter().zip(bytes).map(|(call, bytes)| {
        let answer = bytes.and_then(|_| answers.next().unwrap_or_else(|| Err(unanswered())));
        (call, answer)
    });
    answered.collect()
}
