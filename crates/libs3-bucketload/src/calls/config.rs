//! Access control, lifecycle and logging, which a store in a directory does not support.
//!
//! A store has one owner with full control, and the file system decides who can reach the files. Objects
//! do not expire, and accesses are not logged. Reading a configuration reports this. Writing one is
//! accepted if it changes nothing and refused otherwise, so that nobody relies on protection that does
//! not exist.

use std::ffi::c_char;

use crate::acl::{AccessControlList, AclBuffers};
use crate::arguments::{Bucket, Target};
use crate::backend::Result;
use crate::reply::{Callbacks, Failure, copy_out};
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
            Self::Bucket(bucket) => bucket.backend()?.test_bucket(&bucket.name),
            Self::Object(target) => target.backend()?.head(target.name()).map(drop),
        }
    }
}

/// Reports the access control list.
pub(crate) fn get_acl(resource: Resource, to: &AclBuffers, callbacks: &Callbacks) -> Result<()> {
    resource.check()?;
    callbacks.no_properties()?;
    // SAFETY: the buffers in `to` come from C, which keeps them until completion.
    unsafe { AccessControlList::of_owner().write(to) };
    Ok(())
}

/// Accepts an access control list if it equals the fixed one.
pub(crate) fn set_acl(resource: Resource, is_of_owner: bool, callbacks: &Callbacks) -> Result<()> {
    resource.check()?;
    if !is_of_owner {
        return Err(Failure::new(
            Status::ErrorNotImplemented,
            "access control lists are not stored; file permissions decide",
        ));
    }
    callbacks.no_properties()
}

/// Reports that objects do not expire.
pub(crate) fn get_lifecycle(bucket: Bucket) -> Result<()> {
    Resource::Bucket(bucket).check()?;
    Err(Failure::new(
        Status::ErrorNoSuchLifecycleConfiguration,
        "objects do not expire",
    ))
}

/// Refuses expiry rules.
pub(crate) fn set_lifecycle(bucket: Bucket) -> Result<()> {
    Resource::Bucket(bucket).check()?;
    Err(Failure::new(
        Status::ErrorNotImplemented,
        "objects do not expire",
    ))
}

/// The C buffers for the logging target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogBuffers {
    pub(crate) target_bucket: *mut c_char,
    pub(crate) target_prefix: *mut c_char,
    pub(crate) count: *mut std::ffi::c_int,
}

/// Reports an empty target: accesses are not logged.
pub(crate) fn get_logging(bucket: Bucket, to: LogBuffers, callbacks: &Callbacks) -> Result<()> {
    Resource::Bucket(bucket).check()?;
    callbacks.no_properties()?;
    // SAFETY: C keeps the buffers until completion; each has at least one byte.
    unsafe {
        copy_out(b"", to.target_bucket, 1);
        copy_out(b"", to.target_prefix, 1);
        if let Some(count) = to.count.as_mut() {
            *count = 0;
        }
    }
    Ok(())
}

/// Accepts only an empty target: accesses are not logged.
pub(crate) fn set_logging(bucket: Bucket, target: &str, callbacks: &Callbacks) -> Result<()> {
    Resource::Bucket(bucket).check()?;
    if !target.is_empty() {
        return Err(Failure::new(
            Status::ErrorNotImplemented,
            "accesses are not logged",
        ));
    }
    callbacks.no_properties()
}
