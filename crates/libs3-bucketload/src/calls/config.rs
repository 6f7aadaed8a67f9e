//! Access control, lifecycle and logging: what a store in a directory has of them.
//!
//! A store has one owner, who may do everything; who may reach the files is the file system's
//! business. Objects do not expire and accesses are not logged. Reading tells just that; writing
//! is accepted if it changes nothing and refused otherwise, so that nobody believes to be protected.

use std::ffi::c_char;

use crate::acl::{Buffers, List};
use crate::arguments::{Bucket, Target};
use crate::backend::Result;
use crate::reply::{Callbacks, Failure, Properties, copy_out};
use crate::status::Status;

/// A bucket or an object.
pub(crate) enum Resource {
    Bucket(Bucket),
    Object(Target),
}

impl Resource {
    /// Fails unless it exists.
    fn check(self) -> Result<()> {
        match self {
            Self::Bucket(bucket) => bucket.backend?.test_bucket(&bucket.name),
            Self::Object(target) => {
                target.backend?.head((&target.bucket, &target.key))?;
                Ok(())
            }
        }
    }
}

/// Tells the access control list.
pub(crate) fn get_acl(resource: Resource, to: &Buffers, callbacks: &Callbacks) -> Result<()> {
    resource.check()?;
    callbacks.properties(&Properties::default())?;
    // SAFETY: whoever made `to` took the buffers from C, which keeps them until completion.
    unsafe { List::of_owner().write(to) };
    Ok(())
}

/// Accepts an access control list if it is the one that everything has.
pub(crate) fn set_acl(resource: Resource, is_of_owner: bool, callbacks: &Callbacks) -> Result<()> {
    resource.check()?;
    if !is_of_owner {
        return Err(Failure::new(
            Status::ErrorNotImplemented,
            "access control lists are not stored; file permissions decide",
        ));
    }
    callbacks.properties(&Properties::default())
}

/// Says that objects do not expire.
pub(crate) fn get_lifecycle(bucket: Bucket) -> Result<()> {
    Resource::Bucket(bucket).check()?;
    Err(Failure::new(
        Status::ErrorNoSuchLifecycleConfiguration,
        "objects do not expire",
    ))
}

/// Refuses rules by which objects would expire.
pub(crate) fn set_lifecycle(bucket: Bucket) -> Result<()> {
    Resource::Bucket(bucket).check()?;
    Err(Failure::new(
        Status::ErrorNotImplemented,
        "objects do not expire",
    ))
}

/// Buffers of C for where accesses are logged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogBuffers {
    pub(crate) target_bucket: *mut c_char,
    pub(crate) target_prefix: *mut c_char,
    pub(crate) count: *mut std::ffi::c_int,
}

/// Says that accesses are not logged: an empty target.
pub(crate) fn get_logging(bucket: Bucket, to: LogBuffers, callbacks: &Callbacks) -> Result<()> {
    Resource::Bucket(bucket).check()?;
    callbacks.properties(&Properties::default())?;
    // SAFETY: C keeps the buffers until completion; each has more than one byte.
    unsafe {
        copy_out(b"", to.target_bucket, 1);
        copy_out(b"", to.target_prefix, 1);
        if let Some(count) = to.count.as_mut() {
            *count = 0;
        }
    }
    Ok(())
}

/// Accepts that accesses are not to be logged.
pub(crate) fn set_logging(bucket: Bucket, target: &str, callbacks: &Callbacks) -> Result<()> {
    Resource::Bucket(bucket).check()?;
    if !target.is_empty() {
        return Err(Failure::new(
            Status::ErrorNotImplemented,
            "accesses are not logged",
        ));
    }
    callbacks.properties(&Properties::default())
}
