//! What each request does once its arguments are checked: calls the backend, and makes all
//! callbacks but the one that completes.

pub(crate) mod ahead;
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

/// Identity of the owner of everything: a store has one.
pub(crate) const OWNER: &CStr = c"bucketload";

/// Entries of one batch of a listing.
const BATCH: usize = 32;
/// Common prefixes of one batch of a listing.
const PREFIX_BATCH: usize = 8;
/// Entries of one page of a listing, as of a server.
const PAGE: usize = 1000;

/// Where the bytes of a write come from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Supply {
    /// Absent: there are no bytes.
    pub(crate) callback: Option<S3PutObjectDataCallback>,
    pub(crate) data: *mut c_void,
}

impl Supply {
    /// The source that asks the callback until the deadline.
    fn source(self, deadline: Deadline) -> impl FnMut(&mut [u8]) -> Result<usize, Failure> {
        move |buffer| {
            deadline.check()?;
            let Some(callback) = self.callback else {
                return Ok(0);
            };
            let offered = c_int::try_from(buffer.len()).unwrap_or(c_int::MAX);
            // SAFETY: whoever made `Supply` took the function from a handler of C together with
            // `data`; the buffer has at least as many bytes as it is said to have.
            let given = unsafe { callback(offered, buffer.as_mut_ptr().cast(), self.data) };
            match usize::try_from(given) {
                Ok(given) if given <= buffer.len() => Ok(given),
                Ok(_) => Err(Failure::new(
                    Status::AbortedByCallback,
                    "the data callback has given more than it was offered",
                )),
                Err(_) => Err(Status::AbortedByCallback.into()),
            }
        }
    }
}

/// A count for C.
fn count(len: usize) -> c_int {
    c_int::try_from(len).unwrap_or(c_int::MAX)
}
