//! Times as in libs3 (seconds since the epoch), and the timeout of a request.

use std::ffi::c_int;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bucketload_s3::date::since_epoch;

use crate::reply::Failure;
use crate::status::Status;

/// Whole seconds since the epoch; 0 for earlier times.
pub(crate) fn seconds(time: SystemTime) -> i64 {
    i64::try_from(since_epoch(time).as_secs()).unwrap_or(0)
}

/// The time `seconds` after the epoch; `None` for a negative number, which means "unset" in libs3.
pub(crate) fn instant(seconds: i64) -> Option<SystemTime> {
    let since = Duration::from_secs(u64::try_from(seconds).ok()?);
    UNIX_EPOCH.checked_add(since)
}

/// The time by which a request must end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// `timeout_ms` from now; no deadline for 0 and below.
    pub(crate) fn after(timeout_ms: c_int) -> Self {
        let limit = u64::try_from(timeout_ms).ok().filter(|ms| *ms > 0);
        Self(limit.map(|ms| Instant::now() + Duration::from_millis(ms)))
    }

    /// Fails if the deadline has passed.
    pub(crate) fn check(self) -> Result<(), Failure> {
        match self.0 {
            Some(end) if Instant::now() >= end => Err(Failure::new(
                Status::ErrorRequestTimeout,
                "the request took longer than its timeout",
            )),
            _ => Ok(()),
        }
    }
}
