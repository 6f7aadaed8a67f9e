//! CopyObject and UploadPartCopy.

use std::ops::Range;

use super::conditions::{self, SOURCE};
use super::{Ctx, metadata, multipart, range, sse, version_id};
use crate::checksum::{self, Sum};
use crate::error::{Code, S3Error, S3Result};
use crate::headers::{Headers, Name};
use crate::respond::Body;
use crate::uri;
use bucketload_store::{
    Checksum, ChecksumAlgorithm, ChecksumKind, Commit, Object, PutOptions, ReadDecision, Written,
};

/// Opens the source that the request names and evaluates the conditions on it.
fn open_source(ctx: &Ctx<'_>, headers: &Headers<'_, '_>) -> S3Result<(String, String, Object)> {
    let bad = || {
        S3Error::new(
            Code::InvalidArgument,
            "Copy Source must mention the source bucket and key: sourcebucket/sourcekey",
        )
    };
    let value = headers.text(Name::CopySource)?.ok_or_else(bad)?;
    let (path, version) = match value.split_once("?versionId=") {
        Some((path, version)) => (path, Some(version)),
        None => (value, None),
    };
    let path = uri::decode_text(path).ok_or_else(bad)?;
    let path = path.strip_prefix('/').unwrap_or(&path);
    let (bucket, key) = path
        .split_once('/')
        .filter(|(b, k)| !b.is_empty() && !k.is_empty())
        .ok_or_else(bad)?;
    let source = match version {
        None => ctx.store().open(bucket, key)?,
        Some(id) => ctx.store().open_version(bucket, key, version_id(id)?)?,
    };
    sse::check_read(headers, sse::SOURCE, source.info())?;
    match conditions::of_read(headers, SOURCE, source.info())? {
        ReadDecision::Proceed => Ok((bucket.to_owned(), key.to_owned(), source)),
        _ => Err(Code::PreconditionFailed.into()),
    }
}

/// Whether a copy of an object onto itself changes more than its metadata. A named version counts: the
/// copy makes it current again.
fn changes_itself(headers: &Headers<'_, '_>) -> bool {
    headers.has(Name::StorageClass)
        || headers.has(Name::ServerSideEncryption)
        || headers.has(Name::CopySseAlgorithm)
        || headers.has(Name::SseCustomerAlgorithm)
        || headers
            .bytes(Name::CopySource)
            .is_some_and(|source| source.windows(11).any(|part| part == b"?versionId="))
}

/// Whether the directive `name` is `REPLACE`.
fn replaces(headers: &Headers<'_, '_>, name: Name) -> S3Result<bool> {
    match headers.bytes(name) {
        None | Some(b"COPY") => Ok(false),
        Some(b"REPLACE") => Ok(true),
        Some(_) => Err(S3Error::new(
            Code::InvalidArgument,
            format!("The header {} must be COPY or REPLACE.", name.text()),
        )),
    }
}

/// CopyObject.
pub(crate) fn object(ctx: &mut Ctx<'_>, headers: &Headers<'_, '_>) -> S3Result<Body> {
    metadata::check_storage(headers)?;
    let (bucket, key) = (ctx.target.bucket(), ctx.target.key());
    let replace = replaces(headers, Name::MetadataDirective)?;
    let replace_tags = replaces(headers, Name::TaggingDirective)?;
    let (from_bucket, from_key, source) = open_source(ctx, headers)?;
    if !replace && from_bucket == bucket && from_key == key && !changes_itself(headers) {
        return Err(S3Error::new(
            Code::InvalidRequest,
            "This copy request is illegal because it is trying to copy an object to itself without changing the object's \
             metadata, storage class, website redirect location or encryption attributes.",
        ));
    }
    let info = source.info();
    let mut stored = metadata::of_new(ctx, headers)?;
    if !replace {
        // Storage class, encryption, lock and version of the source do not pass to the copy, as in S3.
        let amazon = |(name, _): &(String, String)| name.starts_with(metadata::AMAZON);
        stored.system.retain(amazon);
        let kept = info.headers.system.iter().filter(|header| !amazon(header));
        stored.system.extend(kept.cloned());
        stored.content_type.clone_from(&info.headers.content_type);
        stored.user.clone_from(&info.headers.user);
    }
    let from_version = info.headers.version();
    let encryption = sse::of(&stored);
    let commit = Commit {
        headers: stored,
        tags: if replace_tags {
            metadata::tags(headers)?
        } else {
            info.tags.clone()
        },
        checksums: checksums_of_copy(headers, &source)?,
        condition: conditions::of_write(headers)?,
    };
    let sums = commit.checksums.clone();
    ctx.keep_previous(key);
    let written = ctx.store().copy(&source, bucket, key, commit)?;
    let body = result(ctx, OF_OBJECT, &written, &sums);
    ctx.head.written(written.version);
    if let Some(id) = from_version {
        let id = id.to_string();
        ctx.head
            .header("x-amz-copy-source-version-id", id.as_bytes());
    }
    encryption.write(ctx.head);
    Ok(body)
}

/// The checksums of the copy: the requested one, or without a request all full-object checksums of
/// the source.
fn checksums_of_copy(headers: &Headers<'_, '_>, source: &Object) -> S3Result<Vec<Checksum>> {
    let covers_bytes = |sum: &&Checksum| sum.kind == ChecksumKind::FullObject;
    let known = source.info().checksums.iter().filter(covers_bytes);
    let Some(name) = headers.text(Name::ChecksumAlgorithm)? else {
        return Ok(known.cloned().collect());
    };
    let algorithm = checksum::from_name(name)?;
    if let Some(sum) = known.clone().find(|sum| sum.algorithm == algorithm) {
        return Ok(vec![sum.clone()]);
    }
    let mut sum = Sum::new(algorithm);
    source.for_each_piece(0..source.info().size, |piece| {
        sum.update(piece);
        S3Result::Ok(())
    })?;
    Ok(vec![sum.finish()])
}

/// UploadPartCopy.
pub(crate) fn part(ctx: &mut Ctx<'_>, headers: &Headers<'_, '_>) -> S3Result<Body> {
    let (id, number) = multipart::part_of(ctx.target)?;
    let (_, _, source) = open_source(ctx, headers)?;
    let size = source.info().size;
    let range = match headers.bytes(Name::CopySourceRange) {
        Some(value) => range::of_copy(value, size)?,
        None => 0..size,
    };
    let upload = ctx
        .store()
        .upload_info(ctx.target.bucket(), ctx.target.key(), id)?;
    let (written, sums) = match upload.checksum {
        Some((algorithm, _)) => copy_with_checksum(ctx, &source, range, id, number, algorithm)?,
        None => {
            let (bucket, key) = (ctx.target.bucket(), ctx.target.key());
            let written = ctx
                .store()
                .copy_part(&source, range, bucket, key, id, number)?;
            (written, Vec::new())
        }
    };
    Ok(result(ctx, "CopyPartResult", &written, &sums))
}

/// Copies a part of an upload that announced a checksum. The bytes pass through the server, which
/// computes the checksum.
fn copy_with_checksum(
    ctx: &Ctx<'_>,
    source: &Object,
    range: Range<u64>,
    id: &str,
    number: u32,
    algorithm: ChecksumAlgorithm,
) -> S3Result<(Written, Vec<Checksum>)> {
    let options = PutOptions::sized(range.end - range.start);
    let (bucket, key) = (ctx.target.bucket(), ctx.target.key());
    let mut upload = ctx.store().upload_part(bucket, key, id, number, &options)?;
    let mut sum = Sum::new(algorithm);
    source.for_each_piece(range, |piece| {
        sum.update(piece);
        upload.write(piece)
    })?;
    let sums = vec![sum.finish()];
    Ok((upload.commit(sums.clone())?, sums))
}

/// The document that answers CopyObject; one on a part does not tell the type of its checksum.
const OF_OBJECT: &str = "CopyObjectResult";

fn result(ctx: &mut Ctx<'_>, root: &'static str, written: &Written, sums: &[Checksum]) -> Body {
    let mut doc = ctx.xml(root);
    doc.time("LastModified", written.modified)
        .etag(written.etag.text().as_str());
    for sum in sums {
        doc.checksum(sum);
        if root == OF_OBJECT {
            doc.text("ChecksumType", checksum::kind_name(sum.kind));
        }
    }
    doc.finish()
}
