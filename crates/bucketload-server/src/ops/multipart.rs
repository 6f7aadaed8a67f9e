//! Multipart uploads: creation, completion, abort, listings. `upload` receives the parts.

use std::collections::BTreeMap;

use super::{Ctx, list, metadata, sse};
use crate::checksum;
use crate::error::{Code, S3Error, S3Result};
use crate::headers::{Headers, parse_u64};
use crate::quirks::Quirk;
use crate::respond::Body;
use crate::uri::Target;
use crate::xml::Doc;
use crate::xml_in;
use bucketload_store::{
    Checksum, ChecksumAlgorithm, ChecksumKind, CompletedPart, Condition, ETag, ListUploadsRequest,
    MultipartOptions, ObjectInfo, PartInfo, UploadInfo, VersionId,
};

/// CreateMultipartUpload.
pub(crate) fn create(ctx: &mut Ctx<'_>, headers: &Headers<'_, '_>) -> S3Result<Body> {
    metadata::check_storage(headers)?;
    let checksum = checksum::of_upload(headers)?;
    let stored = metadata::of_new(ctx, headers)?;
    let encryption = sse::of(&stored);
    let options = MultipartOptions {
        headers: stored,
        tags: metadata::tags(headers)?,
        checksum,
    };
    let (bucket, key) = (ctx.target.bucket(), ctx.target.key());
    let id = ctx.store().create_multipart(bucket, key, options)?;
    let mut doc = ctx.xml("InitiateMultipartUploadResult");
    doc.text("Bucket", bucket)
        .text("Key", key)
        .text("UploadId", &id);
    let body = doc.finish();
    if let Some((algorithm, kind)) = checksum {
        ctx.head.header(
            "x-amz-checksum-algorithm",
            checksum::name(algorithm).as_bytes(),
        );
        ctx.head
            .header("x-amz-checksum-type", checksum::kind_name(kind).as_bytes());
    }
    encryption.write(ctx.head);
    Ok(body)
}

/// AbortMultipartUpload.
pub(crate) fn abort(ctx: &mut Ctx<'_>) -> S3Result<Body> {
    let target = ctx.target;
    ctx.store()
        .abort_multipart(target.bucket(), target.key(), target.upload_id())?;
    Ok(ctx.empty(204))
}

/// Upload id and part number of a request about a part.
///
/// # Errors
/// `InvalidArgument` for a part number out of bounds.
pub(crate) fn part_of(target: &Target) -> S3Result<(&str, u32)> {
    let number = part_number(target.param("partNumber").unwrap_or_default())?;
    Ok((target.upload_id(), number))
}

/// Reads a part number.
///
/// # Errors
/// `InvalidArgument` if it is not a number, or out of bounds.
pub(crate) fn part_number(text: &str) -> S3Result<u32> {
    parse_u64(text.as_bytes())
        .and_then(|n| u32::try_from(n).ok())
        .filter(|n| (1..=bucketload_store::MAX_PARTS).contains(n))
        .ok_or_else(|| {
            S3Error::new(
                Code::InvalidArgument,
                "Part number must be an integer between 1 and 10000, inclusive.",
            )
        })
}

/// CompleteMultipartUpload. `announced` is the checksum that the client expects of the whole object.
pub(crate) fn complete(
    ctx: &mut Ctx<'_>,
    input: &[u8],
    condition: &Condition,
    announced: Option<&Checksum>,
) -> S3Result<Body> {
    let mut parts = xml_in::completion(input)?;
    if ctx.server.config.quirks.has(Quirk::ChecksumsIgnored) {
        parts.iter_mut().for_each(|part| part.checksums.clear());
    }
    let (bucket, key) = (ctx.target.bucket(), ctx.target.key());
    let (etag, sums, version) = match assemble(ctx, &parts, condition, announced) {
        Err(error) if error.code == Code::NoSuchUpload => {
            let info = completed_before(ctx, &parts).ok_or(error)?;
            (info.etag, info.checksums, info.headers.version())
        }
        outcome => outcome?,
    };
    let location = ["/", bucket, "/", key].concat();
    let mut doc = ctx.xml("CompleteMultipartUploadResult");
    doc.text("Location", &location)
        .text("Bucket", bucket)
        .text("Key", key);
    doc.etag(etag.text().as_str());
    for sum in &sums {
        doc.checksum(sum)
            .text("ChecksumType", checksum::kind_name(sum.kind));
    }
    let body = doc.finish();
    ctx.head.written(version);
    Ok(body)
}

/// Makes the object of the parts `named`. Returns its entity tag, checksums and version.
fn assemble(
    ctx: &Ctx<'_>,
    named: &[CompletedPart],
    condition: &Condition,
    announced: Option<&Checksum>,
) -> S3Result<(ETag, Vec<Checksum>, Option<VersionId>)> {
    let (store, bucket, key) = (ctx.store(), ctx.target.bucket(), ctx.target.key());
    let id = ctx.target.upload_id();
    let upload = store.upload_info(bucket, key, id)?;
    let sum = match upload.checksum {
        Some((algorithm, kind)) => checksum_of(ctx, id, named, algorithm, kind)?,
        None => None,
    };
    if let (Some(announced), Some(sum)) = (announced, &sum)
        && (announced.algorithm != sum.algorithm
            || announced.value != checksum::without_count(&sum.value))
    {
        return Err(checksum::mismatch(announced.algorithm));
    }
    ctx.keep_previous(key);
    let sums: Vec<_> = sum.into_iter().collect();
    let written = store.complete_multipart(bucket, key, id, named, sums.clone(), condition)?;
    Ok((written.etag, sums, written.version))
}

/// The object that an earlier completion with the parts `named` made, if it still stands. A client
/// that lost the first response repeats the request and gets the same response.
///
/// No store remembers completed uploads. The object counts as the upload's if the entity tags of the
/// parts give its tag and it was written after the upload was created.
fn completed_before(ctx: &Ctx<'_>, named: &[CompletedPart]) -> Option<ObjectInfo> {
    let created = bucketload_store::upload_created(ctx.target.upload_id())?;
    let tags: Vec<_> = named.iter().map(|part| part.etag).collect::<Option<_>>()?;
    let info = ctx.object_info().ok()?;
    let same = info.parts.count() as usize == named.len() && info.etag == ETag::of_parts(&tags);
    (same && created <= info.modified).then_some(info)
}

/// The checksum of the object made of the parts `named`; `None` if a part lacks one.
fn checksum_of(
    ctx: &Ctx<'_>,
    id: &str,
    named: &[CompletedPart],
    algorithm: ChecksumAlgorithm,
    kind: ChecksumKind,
) -> S3Result<Option<Checksum>> {
    let mut uploaded: BTreeMap<u32, PartInfo> = BTreeMap::new();
    let mut marker = Some(0);
    while let Some(after) = marker {
        let page =
            ctx.store()
                .list_parts(ctx.target.bucket(), ctx.target.key(), id, after, 1000)?;
        uploaded.extend(page.parts.into_iter().map(|part| (part.number, part)));
        marker = page.next;
    }
    // The store refuses a missing part later.
    let known: Option<Vec<_>> = named
        .iter()
        .map(|part| uploaded.get(&part.number))
        .collect();
    let Some(known) = known else { return Ok(None) };
    let rows: Vec<_> = known
        .iter()
        .map(|part| {
            let sum = part.checksums.iter().find(|sum| sum.algorithm == algorithm);
            (part.size, sum)
        })
        .collect();
    Ok(checksum::of_parts(algorithm, kind, &rows))
}

fn storage_class(upload: &UploadInfo) -> &str {
    upload
        .storage_class
        .as_deref()
        .unwrap_or(metadata::STANDARD)
}

/// Writes the checksum that an upload announced.
fn announced_checksum(doc: &mut Doc<'_>, upload: &UploadInfo) {
    if let Some((algorithm, kind)) = upload.checksum {
        doc.text("ChecksumAlgorithm", checksum::name(algorithm))
            .text("ChecksumType", checksum::kind_name(kind));
    }
}

/// ListParts.
pub(crate) fn list_parts(ctx: &mut Ctx<'_>) -> S3Result<Body> {
    let target = ctx.target;
    let id = target.upload_id();
    let max = list::limit(target, "max-parts")?;
    let marker = match target.param("part-number-marker") {
        None | Some("") => 0,
        Some(text) => text.parse().map_err(|_| {
            S3Error::new(
                Code::InvalidArgument,
                "The parameter part-number-marker must be a number.",
            )
        })?,
    };
    let page = ctx
        .store()
        .list_parts(target.bucket(), target.key(), id, marker, max as usize)?;
    let url = list::wants_url(target)?;
    let mut doc = ctx.xml("ListPartsResult");
    doc.text("Bucket", target.bucket())
        .key("Key", target.key(), url)
        .text("UploadId", id);
    doc.owner("Initiator")
        .owner("Owner")
        .text("StorageClass", storage_class(&page.upload));
    doc.number("PartNumberMarker", u64::from(marker));
    if let Some(next) = page.next.or(page.parts.last().map(|part| part.number)) {
        doc.number("NextPartNumberMarker", u64::from(next));
    }
    doc.number("MaxParts", max)
        .flag("IsTruncated", page.next.is_some());
    announced_checksum(&mut doc, &page.upload);
    for part in &page.parts {
        doc.open("Part")
            .number("PartNumber", u64::from(part.number));
        doc.time("LastModified", part.modified)
            .etag(part.etag.text().as_str());
        doc.number("Size", part.size);
        for sum in &part.checksums {
            doc.checksum(sum);
        }
        doc.close("Part");
    }
    Ok(doc.finish())
}

/// ListMultipartUploads.
pub(crate) fn list_uploads(ctx: &mut Ctx<'_>) -> S3Result<Body> {
    let target = ctx.target;
    let text = |name: &str| target.param(name).unwrap_or_default();
    let request = ListUploadsRequest {
        prefix: text("prefix"),
        delimiter: text("delimiter"),
        key_marker: text("key-marker"),
        upload_id_marker: text("upload-id-marker"),
        max_uploads: list::limit(target, "max-uploads")? as usize,
    };
    let url = list::wants_url(target)?;
    let page = ctx.store().list_uploads(target.bucket(), &request)?;
    let mut doc = ctx.xml("ListMultipartUploadsResult");
    doc.text("Bucket", target.bucket())
        .key("KeyMarker", request.key_marker, url);
    doc.text("UploadIdMarker", request.upload_id_marker);
    if let Some((key, id)) = &page.next {
        doc.key("NextKeyMarker", key, url)
            .text("NextUploadIdMarker", id);
    }
    doc.key("Prefix", request.prefix, url);
    if !request.delimiter.is_empty() {
        doc.key("Delimiter", request.delimiter, url);
    }
    if url {
        doc.text("EncodingType", "url");
    }
    doc.number("MaxUploads", request.max_uploads as u64)
        .flag("IsTruncated", page.next.is_some());
    for upload in &page.uploads {
        doc.open("Upload")
            .key("Key", &upload.key, url)
            .text("UploadId", &upload.upload_id);
        doc.owner("Initiator")
            .owner("Owner")
            .text("StorageClass", storage_class(upload));
        doc.time("Initiated", upload.initiated);
        announced_checksum(&mut doc, upload);
        doc.close("Upload");
    }
    list::common_prefixes(&mut doc, &page.common_prefixes, url);
    Ok(doc.finish())
}
