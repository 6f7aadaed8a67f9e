//! Multipart uploads: start, write and copy parts, complete, abort.

use std::ffi::{CString, c_int};

use super::PutCallback;
use super::object::Copied;
use crate::arguments::{self, Target};
use crate::backend::{PartId, Result, Span};
use crate::clock::Deadline;
use crate::reply::{Callbacks, Failure, c_string, quoted};
use crate::status::Status;
use crate::xml;

/// Maximum size of a completion document, in bytes; 10,000 parts take about a tenth of it.
const MAX_COMPLETION_BYTES: usize = 16 << 20;

/// A part number; the store refuses 0.
fn part_number(number: c_int) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

/// Starts an upload and returns its id.
pub(crate) fn initiate(
    target: Target,
    given: arguments::PutProperties,
    callbacks: &Callbacks,
) -> Result<CString> {
    let headers = given.into_headers()?;
    let id = target.backend()?.create_upload(target.name(), headers)?;
    callbacks.no_properties()?;
    Ok(c_string(id))
}

/// Writes a part of `size` bytes.
pub(crate) fn upload_part(
    target: Target,
    (upload_id, number): (&str, c_int),
    size: c_int,
    given: &arguments::PutProperties,
    body: PutCallback,
    timeout_ms: c_int,
    callbacks: &Callbacks,
) -> Result<()> {
    let size = u64::try_from(size).map_err(|_| {
        Failure::new(
            Status::ErrorInvalidArgument,
            "the size of a part is negative",
        )
    })?;
    let mut source = body.source(Deadline::after(timeout_ms));
    let written = target.backend()?.put_part(
        target.name(),
        &PartId {
            upload_id,
            number: part_number(number),
        },
        &given.options(size)?,
        &mut source,
    )?;
    callbacks.etag(written.etag)
}

/// Copies a range of an object to a part.
pub(crate) fn copy_part(
    from: Target,
    span: Span,
    to: (&str, &str),
    (upload_id, number): (&str, c_int),
) -> Result<Copied> {
    let part = PartId {
        upload_id,
        number: part_number(number),
    };
    let copied = from.backend()?.copy_part(from.name(), span, to, &part)?;
    Ok(copied.into())
}

/// The result of a completion.
pub(crate) struct Completed {
    /// Path of the object.
    pub(crate) location: CString,
    /// Entity tag in quotes.
    pub(crate) etag: CString,
}

/// Completes an upload with the document of `size` bytes from the data callback.
pub(crate) fn complete(
    target: Target,
    upload_id: &str,
    size: c_int,
    body: PutCallback,
    timeout_ms: c_int,
    callbacks: &Callbacks,
) -> Result<Completed> {
    let size = usize::try_from(size).unwrap_or(0);
    if size > MAX_COMPLETION_BYTES {
        return Err(Status::ErrorMaxMessageLengthExceeded.into());
    }
    let document = body.collect(size, Deadline::after(timeout_ms))?;
    let parts = xml::completion(&document)?;
    let written = target
        .backend()?
        .complete_upload(target.name(), upload_id, &parts)?;
    callbacks.etag(written.etag)?;
    Ok(Completed {
        location: c_string(format!("/{}/{}", target.bucket, target.key)),
        etag: quoted(written.etag),
    })
}

/// Aborts an upload.
pub(crate) fn abort(target: Target, upload_id: &str, callbacks: &Callbacks) -> Result<()> {
    target.backend()?.abort_upload(target.name(), upload_id)?;
    callbacks.no_properties()
}
