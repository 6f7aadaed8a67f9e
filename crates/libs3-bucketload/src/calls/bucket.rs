//! Buckets: list, test, create, delete.

use crate::abi::S3ListServiceCallback;
use crate::arguments::{Bucket, Where};
use crate::backend::Result;
use crate::calls::OWNER;
use crate::clock;
use crate::reply::{Callbacks, Failure, Properties, c_string};

/// Tells all buckets.
pub(crate) fn list(
    backend: Where,
    callbacks: &Callbacks,
    tell: Option<S3ListServiceCallback>,
) -> Result<()> {
    let buckets = backend?.buckets()?;
    callbacks.properties(&Properties::default())?;
    let Some(tell) = tell else {
        return Ok(());
    };
    for bucket in buckets {
        let name = c_string(bucket.name);
        let created = clock::seconds(bucket.created);
        let (owner, data) = (OWNER.as_ptr(), callbacks.data);
        // SAFETY: the function comes from the handler with which `callbacks` were made; the texts
        // live until it returns.
        Failure::of_callback(unsafe { tell(owner, owner, name.as_ptr(), created, data) })?;
    }
    Ok(())
}

/// Fails unless the bucket exists.
pub(crate) fn test(bucket: Bucket, callbacks: &Callbacks) -> Result<()> {
    bucket.backend?.test_bucket(&bucket.name)?;
    callbacks.properties(&Properties::default())
}

/// Creates a bucket.
pub(crate) fn create(bucket: Bucket, callbacks: &Callbacks) -> Result<()> {
    bucket.backend?.create_bucket(&bucket.name)?;
    callbacks.properties(&Properties::default())
}

/// Deletes an empty bucket.
pub(crate) fn delete(bucket: Bucket, callbacks: &Callbacks) -> Result<()> {
    bucket.backend?.delete_bucket(&bucket.name)?;
    callbacks.properties(&Properties::default())
}
