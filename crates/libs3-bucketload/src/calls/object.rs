//! Objects: put, get, head, delete, copy.

use std::ffi::{CString, c_int};

use bucketload_store::{ObjectInfo, Written};

use crate::abi::S3GetObjectDataCallback;
use crate::arguments::{self, Target};
use crate::backend::{Conditions, Result, Sink, Span};
use crate::calls::Supply;
use crate::clock::{self, Deadline};
use crate::reply::{Callbacks, Failure, Properties, quoted};

/// A request on one object whose answer may be small.
pub(crate) struct Call {
    pub(crate) target: Target,
    pub(crate) asked: Asked,
    pub(crate) timeout_ms: c_int,
    pub(crate) callbacks: Callbacks,
}

/// What is asked for.
pub(crate) enum Asked {
    Put {
        /// Bytes of the object.
        size: u64,
        given: arguments::Properties,
        supply: Supply,
    },
    Get {
        conditions: Conditions,
        span: Span,
        take: Option<S3GetObjectDataCallback>,
    },
    Head,
    Delete,
}

impl Call {
    /// Performs the request, with all callbacks but the one that completes.
    pub(crate) fn work(self) -> Result<()> {
        let Self {
            target,
            asked,
            timeout_ms,
            callbacks,
        } = self;
        match asked {
            Asked::Put {
                size,
                given,
                supply,
            } => put(target, size, given, supply, timeout_ms, &callbacks),
            Asked::Get {
                conditions,
                span,
                take,
            } => get(target, &conditions, span, take, timeout_ms, &callbacks),
            Asked::Head => head(target, &callbacks),
            Asked::Delete => delete(target, &callbacks),
        }
    }
}

/// Writes an object of `size` bytes.
fn put(
    target: Target,
    size: u64,
    given: arguments::Properties,
    supply: Supply,
    timeout_ms: c_int,
    callbacks: &Callbacks,
) -> Result<()> {
    let options = given.options(size)?;
    let mut source = supply.source(Deadline::after(timeout_ms));
    let place = (&*target.bucket, &*target.key);
    let commit = given.into_commit();
    let written = target.backend?.put(place, &options, commit, &mut source)?;
    tell_written(&written, callbacks)
}

pub(super) fn tell_written(written: &Written, callbacks: &Callbacks) -> Result<()> {
    callbacks.properties(&Properties {
        etag: Some(written.etag),
        ..Properties::default()
    })
}

/// Gives the bytes of an object to C.
struct Delivery<'a> {
    callbacks: &'a Callbacks,
    take: Option<S3GetObjectDataCallback>,
    deadline: Deadline,
}

fn describe(info: &ObjectInfo, content_length: u64) -> Properties<'_> {
    Properties {
        object: Some(&info.headers),
        content_length,
        etag: Some(info.etag),
        last_modified: Some(clock::seconds(info.modified)),
    }
}

impl Sink for Delivery<'_> {
    fn begin(&mut self, info: &ObjectInfo, length: u64) -> Result<()> {
        self.callbacks.properties(&describe(info, length))
    }

    fn data(&mut self, piece: &[u8]) -> Result<()> {
        self.deadline.check()?;
        let Some(take) = self.take else {
            return Ok(());
        };
        for piece in piece.chunks(c_int::MAX as usize) {
            let len = c_int::try_from(piece.len()).unwrap_or(c_int::MAX);
            // SAFETY: the function comes from the handler with which `callbacks` were made.
            let code = unsafe { take(len, piece.as_ptr().cast(), self.callbacks.data) };
            Failure::of_callback(code)?;
        }
        Ok(())
    }
}

/// Reads an object.
fn get(
    target: Target,
    conditions: &Conditions,
    span: Span,
    take: Option<S3GetObjectDataCallback>,
    timeout_ms: c_int,
    callbacks: &Callbacks,
) -> Result<()> {
    let mut delivery = Delivery {
        callbacks,
        take,
        deadline: Deadline::after(timeout_ms),
    };
    let place = (&*target.bucket, &*target.key);
    target.backend?.get(place, conditions, span, &mut delivery)
}

/// Gives bytes of an object that are here.
pub(super) fn tell_bytes(
    info: &ObjectInfo,
    bytes: &[u8],
    take: Option<S3GetObjectDataCallback>,
    callbacks: &Callbacks,
) -> Result<()> {
    let mut delivery = Delivery {
        callbacks,
        take,
        deadline: Deadline::after(0),
    };
    delivery.begin(info, bytes.len() as u64)?;
    match bytes.is_empty() {
        true => Ok(()),
        false => delivery.data(bytes),
    }
}

/// Tells what an object is.
fn head(target: Target, callbacks: &Callbacks) -> Result<()> {
    tell_info(
        target.backend?.head((&target.bucket, &target.key)),
        callbacks,
    )
}

/// An answer to HEAD has no body, so that only the HTTP status is known of a failure.
pub(super) fn tell_info(found: Result<ObjectInfo>, callbacks: &Callbacks) -> Result<()> {
    let info = found.map_err(Failure::without_body)?;
    callbacks.properties(&describe(&info, info.size))
}

/// Deletes an object.
fn delete(target: Target, callbacks: &Callbacks) -> Result<()> {
    target.backend?.delete((&target.bucket, &target.key))?;
    callbacks.properties(&Properties::default())
}

/// What a copy made.
pub(crate) struct Copied {
    /// Seconds since the epoch.
    pub(crate) last_modified: i64,
    /// Entity tag in quotes.
    pub(crate) etag: CString,
}

impl From<Written> for Copied {
    fn from(written: Written) -> Self {
        Self {
            last_modified: clock::seconds(written.modified),
            etag: quoted(written.etag),
        }
    }
}

/// Copies an object; without `given` properties it keeps those of the source.
pub(crate) fn copy(
    from: Target,
    to: (&str, &str),
    given: Option<arguments::Properties>,
) -> Result<Copied> {
    let headers = given.map(arguments::Properties::into_headers).transpose()?;
    let place = (&*from.bucket, &*from.key);
    Ok(from.backend?.copy(place, to, headers)?.into())
}
