//! The functions of libs3, 39 in version 4 and 27 in version 2.
//!
//! One definition serves both versions: parameters that version 2 lacks are compiled out. Each
//! function reads its arguments, which must be valid as libs3 documents (texts end with NUL and
//! stay unchanged until the call returns, handlers and output buffers until the request has
//! ended), and hands the request to `context`. A panic on the way ends the request as
//! `InternalError`; none reaches C.
#![allow(non_snake_case, reason = "the names are those of libs3")]
#![allow(missing_docs, reason = "libs3 documents its functions")]
#![allow(
    clippy::missing_safety_doc,
    reason = "the contract of all functions stands above"
)]

mod buckets;
mod config;
mod general;
#[cfg(not(feature = "abi2"))]
mod multipart;
mod objects;

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

pub use buckets::*;
pub use config::*;
pub use general::*;
#[cfg(not(feature = "abi2"))]
pub use multipart::*;
pub use objects::*;

use crate::abi::S3ResponseHandler;
use crate::reply::{Callbacks, Failure};
use crate::status::Status;

/// Sets a request up: `body` reads the arguments and submits it. If that fails, the callback that
/// completes is made here, without details.
///
/// # Safety
/// As for [`Callbacks::new`].
unsafe fn begin(
    handler: *const S3ResponseHandler,
    data: *mut c_void,
    body: impl FnOnce(Callbacks) -> Result<(), Failure>,
) {
    // SAFETY: by the contract of this function.
    let callbacks = unsafe { Callbacks::new(handler, data) };
    match catch_unwind(AssertUnwindSafe(|| body(callbacks))) {
        Ok(Ok(())) => {}
        Ok(Err(failure)) => callbacks.refuse(&failure),
        Err(_) => callbacks.refuse(&Status::InternalError.into()),
    }
}

/// The number of a result; a panic is an internal error.
fn guarded(body: impl FnOnce() -> Result<(), Status>) -> c_int {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => Status::OK.code(),
        Ok(Err(status)) => status.code(),
        Err(_) => Status::InternalError.code(),
    }
}
