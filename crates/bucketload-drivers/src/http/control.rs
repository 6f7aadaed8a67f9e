//! What control planes of several services have in common.

use bucketload_core::driver::{Admin, Completion};
use bucketload_core::error::{ErrorKind, OpError};

/// Creates the bucket by `create` unless it exists; returns whether this call created it.
///
/// # Errors
/// When the bucket can be neither created nor used.
pub(crate) async fn ensure_bucket<S: Admin>(
    session: &mut S,
    bucket: &str,
    create: impl AsyncFnOnce(&mut S) -> Result<Completion, OpError>,
) -> Result<bool, OpError> {
    match session.head_bucket(bucket).await {
        Ok(()) => return Ok(false),
        Err(error) if error.kind == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    match create(session).await {
        Ok(_) => Ok(true),
        // Another client created it first. Whether it may be used, the next request tells; if not, the first refusal
        // says why: a bucket that is being deleted is not there.
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

/// The error of a look for a bucket, which is named where it is not there; `what` is the service's word for it.
pub(crate) fn named(mut error: OpError, what: &str, bucket: &str) -> OpError {
    if error.kind == ErrorKind::NotFound {
        error.detail = format!("there is no {what} `{bucket}`").into();
    }
    error
}

/// The end of a deletion; an object that is already gone is no error.
pub(crate) fn unless_gone<T>(deleted: Result<T, OpError>) -> Result<(), OpError> {
    match deleted {
        Err(error) if error.kind != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
