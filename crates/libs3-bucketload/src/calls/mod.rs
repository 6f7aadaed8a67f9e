//! The work of each request after its arguments are checked: calls the backend, and makes all callbacks
//! except completion.

pub(crate) mod batch;
pub(crate) mod bucket;
pub(crate) mod config;
pub(crate) mod list;
pub(crate) mod multipart;
pub(crate) mod object;
pub(crate) mod uploads;

use std::ffi::{CStr, c_int, c_void};

use crate::abi::S3PutObjectDataCallback;
use crate::clock::Deadline;
use crate::reply::Failure;
use crate::status::Status;

/// Id and name of the store's only owner.
pub(crate) const OWNER: &CStr = c"bucketload";

/// Entries per batch of a listing.
const BATCH: usize = 32;
/// Common prefixes per batch of a listing.
const PREFIX_BATCH: usize = 8;
/// Entries per page of a listing, as in S3.
const PAGE: usize = 1000;

/// The data callback of a write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PutCallback {
    /// If absent, there are no bytes.
    pub(crate) callback: Option<S3PutObjectDataCallback>,
    pub(crate) data: *mut c_void,
}

impl PutCallback {
    /// A source that calls the callback until the deadline.
    fn source(self, deadline: Deadline) -> impl FnMut(&mut [u8]) -> Result<usize, Failure> {
        move |buffer| {
            deadline.check()?;
            let Some(callback) = self.callback else {
                return Ok(0);
            };
            let offered = c_int::try_from(buffer.len()).unwrap_or(c_int::MAX);
            // SAFETY: the function and `data` come from the same handler of C; the buffer has at
            // least `offered` bytes.
            let given = unsafe { callback(offered, buffer.as_mut_ptr().cast(), self.data) };
            match usize::try_from(given) {
                Ok(given) if given <= buffer.len() => Ok(given),
                Ok(_) => Err(Failure::new(
                    Status::AbortedByCallback,
                    "the data callback returned more bytes than the buffer holds",
                )),
                Err(_) => Err(Status::AbortedByCallback.into()),
            }
        }
    }

    /// Collects at most `size` bytes, fewer if the callback ends early.
    fn collect(self, size: usize, deadline: Deadline) -> Result<Vec<u8>, Failure> {
        let mut source = self.source(deadline);
        let mut bytes = vec![0; size];
        let mut filled = 0;
        while filled < size {
            match source(&mut bytes[filled..])? {
                0 => break,
                got => filled += got,
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }
}

fn count(len: usize) -> c_int {
    c_int::try_from(len).unwrap_or(c_int::MAX)
}
