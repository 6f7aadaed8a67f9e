//! Reading objects: content, metadata, attributes.

use std::ops::Range;

use super::conditions::{self, READ};
use super::{Ctx, metadata, multipart, range, sse};
use crate::checksum;
use crate::error::{Code, S3Error, S3Result};
use crate::headers::{Headers, Name};
use crate::quirks::{self, Quirk};
use crate::respond::{Body, Head, ObjectBytes, Source};
use crate::router::Operation;
use crate::uri::Target;
use bucketload_store::{Checksum, ObjectInfo, ReadDecision};

/// GetObject.
pub(crate) fn get(ctx: &mut Ctx<'_>, headers: &Headers<'_, '_>) -> S3Result<Body> {
    ctx.resurrect_due();
    let (bucket, key) = (ctx.target.bucket(), ctx.target.key());
    let source = match previous(ctx, bucket, key) {
        Some(previous) => previous,
        None => Source::Current(ctx.open()?),
    };
    let object_bytes = ctx.object_bytes.insert(ObjectBytes {
        source,
        range: 0..0,
    });
    let object = &*object_bytes.source;
    let part_sum = |number| object.part_checksum(number);
    match describe(ctx.head, ctx.target, headers, object.info(), &part_sum)? {
        Some(range) => {
            object_bytes.range = range;
            Ok(Body::Object)
        }
        None => Ok(Body::Empty),
    }
}

/// The version before the current one, if a rule or a quirk makes the read stale.
fn previous(ctx: &Ctx<'_>, bucket: &str, key: &str) -> Option<Source> {
    let server = ctx.server;
    let quirky = server.config.quirks.has(Quirk::ReadStale);
    let kept = !server.faults.is_empty() && server.faults.keeps_history(key);
    if ctx.target.has("versionId") || !(quirky || kept) {
        return None;
    }
    let (ago, previous) = server.history.previous(bucket, key)?;
    if quirky && ago < quirks::STALE && ctx.object_info().is_ok() {
        return Some(Source::Previous(previous));
    }
    server
        .faults
        .is_stale(Operation::Get, key, ago)
        .then_some(Source::Previous(previous))
}

/// HeadObject.
pub(crate) fn head(ctx: &mut Ctx<'_>, headers: &Headers<'_, '_>) -> S3Result<Body> {
    ctx.resurrect_due();
    let described = match ctx.target.has("partNumber") {
        false => {
            let info = ctx.object_info()?;
            describe(ctx.head, ctx.target, headers, &info, &|_| None)?
        }
        // Only the object itself knows the checksums of its parts.
        true => {
            let object = ctx.open()?;
            let part_sum = |number| object.part_checksum(number);
            describe(ctx.head, ctx.target, headers, object.info(), &part_sum)?
        }
    };
    match described {
        Some(range) => Ok(Body::LengthOnly(range.end - range.start)),
        None => Ok(Body::Empty),
    }
}

/// Evaluates conditions and range and writes the head. Returns the range of bytes to send, or `None`
/// for a 304. `part_sum` knows the checksums of parts.
fn describe(
    head: &mut Head,
    target: &Target,
    headers: &Headers<'_, '_>,
    info: &ObjectInfo,
    part_sum: &dyn Fn(u32) -> Option<Checksum>,
) -> S3Result<Option<Range<u64>>> {
    if headers.has(Name::ServerSideEncryption) {
        return Err(S3Error::new(
            Code::InvalidRequest,
            "Only a write can ask for encryption with a managed key.",
        ));
    }
    sse::check_read(headers, sse::REQUEST, info)?;
    match conditions::of_read(headers, READ, info)? {
        ReadDecision::Proceed => {}
        ReadDecision::NotModified => {
            head.start(304).etag(info.etag).modified(info.modified);
            return Ok(None);
        }
        ReadDecision::PreconditionFailed => return Err(Code::PreconditionFailed.into()),
    }
    let part = target.param("partNumber");
    let asked = match (headers.bytes(Name::Range), part) {
        (None, None) => None,
        (Some(_), Some(_)) => {
            return Err(S3Error::new(
                Code::InvalidRequest,
                "Cannot specify both Range header and partNumber query parameter.",
            ));
        }
        (Some(value), None) => range::of_header(value, info.size)?,
        (None, Some(number)) => Some(part_range(number, info)?),
    };
    let checksums = headers
        .bytes(Name::ChecksumMode)
        .is_some_and(|mode| mode.eq_ignore_ascii_case(b"ENABLED"));
    let Some(range) = asked else {
        head.start(200);
        metadata::write(head, target, info, checksums);
        return Ok(Some(0..info.size));
    };
    let whole = range == (0..info.size);
    head.start(206);
    // Clients would check a checksum of the whole object against the range.
    metadata::write(
        head,
        target,
        info,
        checksums && whole && info.parts.count() == 0,
    );
    head.content_range(&range, info.size);
    if let Some(number) = part
        && info.parts.count() > 0
    {
        if let (true, Some(sum)) = (checksums, info.checksums.first()) {
            if let Some(sum) = part_sum(multipart::part_number(number)?) {
                head.header(checksum::header(sum.algorithm), sum.value.as_bytes());
            }
            let kind = checksum::kind_name(sum.kind);
            head.header("x-amz-checksum-type", kind.as_bytes());
        }
        head.number("x-amz-mp-parts-count", u64::from(info.parts.count()));
    }
    Ok(Some(range))
}

/// The byte range of part `number`. An object stored in one request is its own first part.
fn part_range(number: &str, info: &ObjectInfo) -> S3Result<Range<u64>> {
    let number = multipart::part_number(number)?;
    if info.parts.count() == 0 && number == 1 {
        return Ok(0..info.size);
    }
    info.parts
        .range(number)
        .ok_or_else(|| Code::InvalidPartNumber.into())
}

/// GetObjectAttributes.
pub(crate) fn attributes(ctx: &mut Ctx<'_>, headers: &Headers<'_, '_>) -> S3Result<Body> {
    let object = ctx.open()?;
    let info = object.info();
    sse::check_read(headers, sse::REQUEST, info)?;
    if !headers.has(Name::ObjectAttributes) {
        return Err(S3Error::new(
            Code::InvalidArgument,
            "The header x-amz-object-attributes is missing.",
        ));
    }
    let marker = headers.number(Name::PartNumberMarker)?.unwrap_or(0);
    let max = headers.number(Name::MaxParts)?.unwrap_or(1000).min(1000);
    let wants = |name: &str| headers.lists(Name::ObjectAttributes, name);
    let mut doc = ctx.xml("GetObjectAttributesResponse");
    if wants("ETag") {
        doc.text("ETag", info.etag.text().as_str());
    }
    if wants("Checksum") && !info.checksums.is_empty() {
        doc.open("Checksum");
        for sum in &info.checksums {
            doc.checksum(sum)
                .text("ChecksumType", checksum::kind_name(sum.kind));
        }
        doc.close("Checksum");
    }
    let count = u64::from(info.parts.count());
    if wants("ObjectParts") && count > 0 {
        let last = count.min(marker.saturating_add(max));
        doc.open("ObjectParts")
            .number("PartsCount", count)
            .number("PartNumberMarker", marker);
        doc.number("NextPartNumberMarker", last)
            .number("MaxParts", max)
            .flag("IsTruncated", last < count);
        for number in marker.saturating_add(1)..=last {
            // The sizes of the parts give their ranges, so every number up to `last` has one.
            let range = info.parts.range(number as u32).unwrap_or_default();
            doc.open("Part")
                .number("PartNumber", number)
                .number("Size", range.end - range.start);
            if let Some(sum) = object.part_checksum(number as u32) {
                doc.checksum(&sum);
            }
            doc.close("Part");
        }
        doc.close("ObjectParts");
    }
    if wants("StorageClass") {
        let class = info.headers.storage_class();
        doc.text("StorageClass", class.unwrap_or(metadata::STANDARD));
    }
    if wants("ObjectSize") {
        doc.number("ObjectSize", info.size);
    }
    let body = doc.finish();
    ctx.head.modified(info.modified);
    if let Some(id) = info.headers.version() {
        ctx.head.version(id);
    }
    Ok(body)
}
