//! Control-plane code that several services share.

use bucketload_core::driver::Admin;
use bucketload_core::error::{ErrorKind, OpError, OpResult};

use super::answer::MAX_DOCUMENT;
use super::outgoing::Outgoing;
use super::session::HttpSession;

/// Calls `create` unless the bucket exists; returns whether this call created it.
///
/// # Errors
/// When the bucket can be neither created nor used.
pub(crate) async fn ensure_bucket<S: Admin>(
    session: &mut S,
    bucket: &str,
    create: impl AsyncFnOnce(&mut S) -> OpResult,
) -> OpResult<bool> {
    match session.head_bucket(bucket).await {
        Ok(()) => return Ok(false),
        Err(error) if error.kind == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    match create(session).await {
        Ok(_) => Ok(true),
        // Another client may have created it first: check whether the bucket is usable. If it is not there, it may be
        // in deletion, and the first refusal is the better explanation.
        Err(error) if error.kind == ErrorKind::Conflict => {
            match session.head_bucket(bucket).await {
                Err(other) if other.kind != ErrorKind::NotFound => Err(other),
                Err(_) => Err(error),
                Ok(()) => Ok(false),
            }
        }
        Err(error) => Err(error),
    }
}

/// Improves the error of a refused HEAD. Responses to HEAD have no body, so this sends the equivalent GET and returns its
/// error if it has the same status.
pub(crate) async fn explain<S: HttpSession>(
    session: &mut S,
    error: OpError,
    get: &mut impl Outgoing,
) -> OpError {
    if error.status == 0 || error.kind == ErrorKind::NotFound {
        return error;
    }
    match session.fetch(get, MAX_DOCUMENT).await {
        Err(better) if better.status == error.status => better,
        _ => error,
    }
}

/// Names the bucket in a not-found error; `what` is the service's word for a bucket.
pub(crate) fn name_missing(mut error: OpError, what: &str, bucket: &str) -> OpError {
    if error.kind == ErrorKind::NotFound {
        error.detail = format!("there is no {what} `{bucket}`").into();
    }
    error
}

/// The result of a deletion. An object that is already gone is not an error.
pub(crate) fn ignore_missing<T>(deleted: OpResult<T>) -> OpResult<()> {
    match deleted {
        Err(error) if error.kind != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
