//! Appends: a PUT with `x-amz-write-offset-bytes`, as in directory buckets of Amazon S3. Here every bucket
//! without versioning has them.

use super::{Ctx, sse};
use crate::checks::Checks;
use crate::checksum;
use crate::error::{Code, S3Error, S3Result};
use crate::headers::{Headers, Name};
use crate::pending::Sink;
use crate::quirks::Quirk;
use crate::respond::Head;
use bucketload_store::{
    Checksum, ChecksumAlgorithm, ChecksumKind, Commit, Condition, ObjectInfo, ObjectUpload,
    PutOptions, StoreError,
};

/// The offset at which a PUT appends; `None` if it replaces the object.
///
/// # Errors
/// `InvalidArgument` if it is not a number, `InvalidRequest` if there is nothing to append.
pub(crate) fn offset(headers: &Headers<'_, '_>, size: Option<u64>) -> S3Result<Option<u64>> {
    let offset = headers.number(Name::WriteOffset)?;
    if offset.is_some() && size == Some(0) {
        return Err(invalid(
            "Request body cannot be empty when 'write offset' is specified.",
        ));
    }
    Ok(offset)
}

/// Where the body of an append at `offset` goes. Without an object, an append at 0 creates one: `None`.
///
/// # Errors
/// `InvalidWriteOffset`, `TooManyParts`, `InvalidRequest` for metadata of an existing object or a
/// checksum other than the object's, `EncryptionTypeMismatch`, and the store's.
pub(crate) fn start(
    ctx: &Ctx<'_>,
    headers: &Headers<'_, '_>,
    options: &PutOptions,
    condition: &Condition,
    offset: u64,
    checks: &mut Checks,
) -> S3Result<Option<Sink>> {
    let (store, bucket, key) = (ctx.store(), ctx.target.bucket(), ctx.target.key());
    let offset = match ctx.server.config.quirks.has(Quirk::AppendOffsetIgnored) {
        true => store.head(bucket, key).map_or(0, |info| info.size),
        false => offset,
    };
    let (base, upload) = match store.append(bucket, key, offset, options) {
        Err(StoreError::NoSuchKey) if offset == 0 => return Ok(None),
        Err(StoreError::NoSuchKey) => return Err(Code::InvalidWriteOffset.into()),
        outcome => outcome?,
    };
    match condition {
        Condition::Absent => return Err(Code::PreconditionFailed.into()),
        Condition::Match(tags) if !tags.contains(&base.etag) => {
            return Err(Code::PreconditionFailed.into());
        }
        _ => {}
    }
    if headers.has_user_metadata {
        return Err(invalid(
            "Cannot specify both a write offset value and user-defined object metadata for existing objects.",
        ));
    }
    check_encryption(headers, &base)?;
    let known = whole_sum(&base).map(|sum| sum.algorithm);
    match (known, checks.algorithm()) {
        (Some(expected), Some(actual)) if expected != actual => {
            return Err(invalid(format!(
                "Checksum Type mismatch occurred, expected checksum Type: {}, actual checksum Type: {}",
                checksum::name(expected).to_lowercase(),
                checksum::name(actual).to_lowercase()
            )));
        }
        // The checksum of the whole object needs that of the appended bytes.
        (Some(expected), None) => checks.add_sum(Some(expected)),
        _ => {}
    }
    let base = Box::new(base);
    Ok(Some(Sink::Appended { upload, base }))
}

fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> S3Error {
    S3Error::new(Code::InvalidRequest, message)
}

/// Requires the customer's key of an object that has one, and no other encryption than the object's.
fn check_encryption(headers: &Headers<'_, '_>, base: &ObjectInfo) -> S3Result<()> {
    sse::check_read(headers, sse::REQUEST, base)?;
    let managed = Name::ServerSideEncryption;
    let asked = headers.text(managed)?;
    if asked.is_some() && asked != base.headers.get(managed.text()) {
        return Err(Code::EncryptionTypeMismatch.into());
    }
    Ok(())
}

/// The checksum of the object that can be continued with that of further bytes.
fn whole_sum(base: &ObjectInfo) -> Option<&Checksum> {
    use ChecksumAlgorithm::{Crc32, Crc32c, Crc64Nvme};
    base.checksums.iter().find(|sum| {
        sum.kind == ChecksumKind::FullObject && matches!(sum.algorithm, Crc32 | Crc32c | Crc64Nvme)
    })
}

/// Appends what `upload` received, with the checksum `sum`, to `base`, and writes the response.
///
/// # Errors
/// The store's.
pub(crate) fn finish(
    ctx: &mut Ctx<'_>,
    upload: Box<dyn ObjectUpload>,
    base: &ObjectInfo,
    sum: Option<&Checksum>,
) -> S3Result<()> {
    let (bucket, key) = (ctx.target.bucket(), ctx.target.key());
    let added = upload.written();
    let whole = whole_sum(base).and_then(|before| {
        let parts = [(base.size, Some(before)), (added, sum)];
        checksum::of_parts(before.algorithm, before.kind, &parts)
    });
    ctx.keep_previous(key);
    ctx.server.history.resurrections.forget(bucket, key);
    let written = upload.commit(Commit {
        checksums: whole.into_iter().collect(),
        ..Commit::default()
    })?;
    let head: &mut Head = ctx.head;
    head.start(200)
        .etag(written.etag)
        .checksums(sum.map_or(&[], std::slice::from_ref))
        .number("x-amz-object-size", written.size);
    sse::of(&base.headers).write(head);
    Ok(())
}

/// The error of a write at offset 0 whose object came into being before its end.
pub(crate) fn overtaken(error: S3Error) -> S3Error {
    match error.code {
        Code::PreconditionFailed => Code::InvalidWriteOffset.into(),
        _ => error,
    }
}
