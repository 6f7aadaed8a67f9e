//! Buckets: list, test, create, delete.

use crate::abi::S3ListServiceCallback;
use crate::arguments::Bucket;
use crate::backend::{OpenBackend, Result};
use crate::calls::OWNER;
use crate::clock;
use crate::reply::{Callbacks, Failure, c_string};
use crate::status::Status;

/// Reports all buckets.
pub(crate) fn list(
    backend: OpenBackend,
    callbacks: &Callbacks,
    report: Option<S3ListServiceCallback>,
) -> Result<()> {
    let buckets = backend?.buckets()?;
    callbacks.no_properties()?;
    let Some(report) = report else {
        return Ok(());
    };
    for bucket in buckets {
        let name = c_string(bucket.name);
        let created = clock::seconds(bucket.created);
        let (owner, data) = (OWNER.as_ptr(), callbacks.data);
        // SAFETY: the function comes from the same handler as `callbacks`; the texts live until it
        // returns.
        Failure::of_callback(unsafe { report(owner, owner, name.as_ptr(), created, data) })?;
    }
    Ok(())
}

/// Fails unless the bucket exists.
pub(crate) fn test(bucket: Bucket, callbacks: &Callbacks) -> Result<()> {
    bucket.backend()?.test_bucket(&bucket.name)?;
    callbacks.no_properties()
}

/// Creates a bucket, unless it exists: then it is the caller's own, and S3's first region agrees too.
pub(crate) fn create(bucket: Bucket, callbacks: &Callbacks) -> Result<()> {
    match bucket.backend()?.create_bucket(&bucket.name) {
        Err(failure) if failure.is(Status::ErrorBucketAlreadyOwnedByYou) => {}
        created => created?,
    }
    callbacks.no_properties()
}

/// Deletes an empty bucket.
pub(crate) fn delete(bucket: Bucket, callbacks: &Callbacks) -> Result<()> {
    bucket.backend()?.delete_bucket(&bucket.name)?;
    callbacks.no_properties()
}
