//! Multipart uploads: begin, write and copy parts, complete, abort.

use std::ffi::{CString, c_int};

use super::Supply;
use super::object::Copied;
use crate::arguments::{self, Target};
use crate::backend::{PartOf, Result, Span};
use crate::clock::Deadline;
use crate::reply::{Callbacks, Failure, Properties, c_string, quoted};
use crate::status::Status;
use crate::xml;

/// Longest document that names the parts of a completion, in bytes: 10,000 parts take about a
/// tenth of it.
const MAX_COMPLETION_BYTES: usize = 16 << 20;

/// The number of a part, as far as it can be one; the store refuses what is out of its range.
fn part_number(number: c_int) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

/// Begins an upload; returns its identity.
pub(crate) fn initiate(
    target: Target,
    given: arguments::Properties,
    callbacks: &Callbacks,
) -> Result<CString> {
    let headers = given.into_headers()?;
    let place = (&*target.bucket, &*target.key);
    let id = target.backend?.create_upload(place, headers)?;
    callbacks.properties(&Properties::default())?;
    Ok(c_string(id))
}

/// Writes a part of `size` bytes.
pub(crate) fn upload_part(
    target: Target,
    (upload_id, number): (&str, c_int),
    size: c_int,
    given: &arguments::Properties,
    supply: Supply,
    timeout_ms: c_int,
    callbacks: &Callbacks,
) -> Result<()> {
    let size = u64::try_from(size).map_err(|_| {
        Failure::new(
            Status::ErrorInvalidArgument,
            "the size of a part is negative",
        )
    })?;
    let mut source = supply.source(Deadline::after(timeout_ms));
    let written = target.backend?.put_part(
        (&target.bucket, &target.key),
        &PartOf {
            upload_id,
            number: part_number(number),
        },
        &given.options(size)?,
        &mut source,
    )?;
    callbacks.properties(&Properties {
        etag: Some(written.etag),
        ..Properties::default()
    })
}

/// Makes bytes of an object a part.
pub(crate) fn copy_part(
    from: Target,
    span: Span,
    to: (&str, &str),
    (upload_id, number): (&str, c_int),
) -> Result<Copied> {
    let part = PartOf {
        upload_id,
        number: part_number(number),
    };
    let place = (&*from.bucket, &*from.key);
    Ok(from.backend?.copy_part(place, span, to, &part)?.into())
}

/// What a completion made.
pub(crate) struct Completed {
    /// Path of the object.
    pub(crate) location: CString,
    /// Entity tag in quotes.
    pub(crate) etag: CString,
}

/// Completes an upload by the document of `size` bytes that the callback supplies.
pub(crate) fn complete(
    target: Target,
    upload_id: &str,
    size: c_int,
    supply: Supply,
    timeout_ms: c_int,
    callbacks: &Callbacks,
) -> Result<Completed> {
    let size = usize::try_from(size).unwrap_or(0);
    if size > MAX_COMPLETION_BYTES {
        return Err(Status::ErrorMaxMessageLengthExceeded.into());
    }
    let mut source = supply.source(Deadline::after(timeout_ms));
    let mut document = vec![0; size];
    let mut filled = 0;
    while filled < size {
        match source(&mut document[filled..])? {
            0 => break,
            got => filled += got,
        }
    }
    let parts = xml::completion(&document[..filled])?;
    let place = (&*target.bucket, &*target.key);
    let written = target.backend?.complete_upload(place, upload_id, &parts)?;
    callbacks.properties(&Properties {
        etag: Some(written.etag),
        ..Properties::default()
    })?;
    Ok(Completed {
        location: c_string(format!("/{}/{}", target.bucket, target.key)),
        etag: quoted(written.etag),
    })
}

/// Aborts an upload.
pub(crate) fn abort(target: Target, upload_id: &str, callbacks: &Callbacks) -> Result<()> {
    let place = (&*target.bucket, &*target.key);
    target.backend?.abort_upload(place, upload_id)?;
    callbacks.properties(&Properties::default())
}
