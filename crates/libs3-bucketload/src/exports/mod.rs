//! The functions of libs3: 39 in version 4 and 27 in version 2.
//!
//! One definition serves both versions; parameters that version 2 lacks are compiled out. Each function
//! reads its arguments and passes the request to `context`. The arguments must be valid as documented by
//! libs3: texts end with NUL and stay unchanged until the call returns; handlers and output buffers stay
//! valid until the request has ended. A panic ends the request as `InternalError` and never reaches C.
#![allow(non_snake_case, reason = "the names are those of libs3")]
#![allow(missing_docs, reason = "libs3 documents its functions")]
#![allow(
    clippy::missing_safety_doc,
    reason = "the module documentation states the contract of all functions"
)]

mod buckets;
mod config;
mod general;
#[cfg(not(feature = "abi2"))]
mod multipart;
mod objects;

use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

pub use buckets::*;
pub use config::*;
pub use general::*;
#[cfg(not(feature = "abi2"))]
pub use multipart::*;
pub use objects::*;

use crate::abi::{S3BucketContext, S3RequestContext, S3ResponseHandler};
use crate::arguments::{Bucket, Target};
use crate::calls::object::{ObjectOperation, ObjectRequest};
use crate::context::{submit, submit_object};
use crate::reply::{Callbacks, Failure};
use crate::status::{Status, VERSION};

/// Version 2 has no time limits.
#[cfg(feature = "abi2")]
#[allow(
    non_upper_case_globals,
    reason = "stands for the parameter of version 4"
)]
const timeout_ms: c_int = 0;

/// The parameters common to all requests.
#[derive(Clone, Copy)]
struct Caller {
    callbacks: Callbacks,
    context: *mut S3RequestContext,
    /// Timeout of each call in milliseconds; none for 0 and below.
    limit_ms: c_int,
}

impl Caller {
    /// # Safety
    /// `handler` is NULL or points to a structure that begins with a response handler. Otherwise as for
    /// [`Callbacks::new`] and [`submit`].
    unsafe fn new<H>(
        handler: *const H,
        data: *mut c_void,
        context: *mut S3RequestContext,
        limit_ms: c_int,
    ) -> Self {
        // SAFETY: by the contract of this function.
        let callbacks = unsafe { Callbacks::new(handler.cast::<S3ResponseHandler>(), data) };
        Self {
            callbacks,
            context,
            limit_ms,
        }
    }

    /// Runs `body`, which reads the arguments and submits the request. If it fails, calls the completion
    /// callback without details.
    fn begin(self, body: impl FnOnce() -> Result<(), Failure>) {
        match catch_unwind(AssertUnwindSafe(body)) {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => self.callbacks.refuse(&failure),
            Err(_) => self.callbacks.refuse(&Status::InternalError.into()),
        }
    }

    /// Submits the request that `arguments` returns: its work, and the use of its result after
    /// completion.
    ///
    /// # Safety
    /// As for [`submit`].
    unsafe fn then<T: 'static, W, A>(self, arguments: impl FnOnce() -> Result<(W, A), Failure>)
    where
        W: FnOnce(&Callbacks) -> Result<T, Failure> + 'static,
        A: FnOnce(Option<T>) + 'static,
    {
        self.begin(|| {
            let (work, after) = arguments()?;
            let callbacks = self.callbacks;
            // SAFETY: by the contract of this function.
            unsafe { submit(self.context, callbacks, move || work(&callbacks), after) };
            Ok(())
        });
    }

    /// Submits the work that `arguments` returns.
    ///
    /// # Safety
    /// As for [`submit`].
    unsafe fn submit<W>(self, arguments: impl FnOnce() -> Result<W, Failure>)
    where
        W: FnOnce(&Callbacks) -> Result<(), Failure> + 'static,
    {
        // SAFETY: by the contract of this function.
        unsafe { self.then(|| Ok((arguments()?, drop))) };
    }

    /// Submits `work` on a bucket.
    ///
    /// # Safety
    /// As for [`submit`] and [`Bucket::of`].
    unsafe fn on_bucket(
        self,
        bucket: *const S3BucketContext,
        work: impl FnOnce(Bucket, &Callbacks) -> Result<(), Failure> + 'static,
    ) {
        // SAFETY: by the contract of this function.
        unsafe {
            self.submit(|| {
                let bucket = Bucket::of(bucket, self.limit_ms)?;
                Ok(move |callbacks: &Callbacks| work(bucket, callbacks))
            });
        }
    }

    /// Submits a request on an object, which may be part of a batch.
    ///
    /// # Safety
    /// As for [`submit`] and [`Target::of`].
    unsafe fn on_object(
        self,
        bucket: *const S3BucketContext,
        key: *const c_char,
        operation: impl FnOnce() -> Result<ObjectOperation, Failure>,
    ) {
        self.begin(|| {
            let call = ObjectRequest {
                // SAFETY: by the contract of this function.
                target: unsafe { Target::of(bucket, key, self.limit_ms) }?,
                operation: operation()?,
                timeout_ms: self.limit_ms,
                callbacks: self.callbacks,
            };
            // SAFETY: by the contract of this function.
            unsafe { submit_object(self.context, call) };
            Ok(())
        });
    }
}

/// The status code of a result; a panic is an internal error.
fn guarded(body: impl FnOnce() -> Result<(), Status>) -> c_int {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => Status::OK.code(VERSION),
        Ok(Err(status)) => status.code(VERSION),
        Err(_) => Status::InternalError.code(VERSION),
    }
}

#[cfg(all(test, not(feature = "abi2")))]
mod tests {
    use super::*;
    use crate::abi::*;

    #[test]
    fn functions_have_the_declared_types() {
        let _: Initialize = S3_initialize;
        let _: Deinitialize = S3_deinitialize;
        let _: GetStatusName = S3_get_status_name;
        let _: ListService = S3_list_service;
        let _: TestBucket = S3_test_bucket;
        let _: CreateBucket = S3_create_bucket;
        let _: DeleteBucket = S3_delete_bucket;
        let _: ListBucket = S3_list_bucket;
        let _: PutObject = S3_put_object;
        let _: GetObject = S3_get_object;
        let _: [OnObject; 2] = [S3_head_object, S3_delete_object];
        let _: CopyObject = S3_copy_object;
        let _: InitiateMultipart = S3_initiate_multipart;
        let _: UploadPart = S3_upload_part;
        let _: CompleteMultipart = S3_complete_multipart_upload;
        let _: AbortMultipart = S3_abort_multipart_upload;
        let _: ListUploads = S3_list_multipart_uploads;
    }
}
