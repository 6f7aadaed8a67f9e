//! Objects: put, get, head, delete, copy.

use std::ffi::{CString, c_int};

use bucketload_store::{ObjectInfo, Written};

use crate::abi::S3GetObjectDataCallback;
use crate::arguments::{self, Target};
use crate::backend::{Conditions, Result, Sink, Span};
use crate::calls::Supply;
use crate::clock::{self, Deadline};
use crate::reply::{Callbacks, Failure, Properties, quoted};

/// Writes an object of `size` bytes.
pub(crate) fn put(
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
pub(crate) fn get(
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

/// Tells what an object is. An answer to HEAD has no body, so that only the HTTP status is known
/// of a failure.
pub(crate) fn head(target: Target, callbacks: &Callbacks) -> Result<()> {
    let info = target
        .backend?
        .head((&target.bucket, &target.key))
        .map_err(Failure::without_body)?;
    callbacks.properties(&describe(&info, info.size))
}

/// Deletes an object.
pub(crate) fn delete(target: Target, callbacks: &Callbacks) -> Result<()> {
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
