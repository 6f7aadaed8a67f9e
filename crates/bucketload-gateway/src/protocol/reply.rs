//! The results of requests as bytes, both ways.

use bucketload_store::{
    BucketInfo, ListEntry, Listing, ObjectInfo, PartInfo, PartListing, PartSizes, UploadInfo,
    UploadListing, Written,
};

use super::codec::{Decoder, Malformed, put_list, put_number, put_option, put_text};
use super::values::{
    algorithm, checksum, etag, headers, kind, put_algorithm, put_checksum, put_etag, put_headers,
    put_kind, put_tags, put_time, tags, time,
};

type Decoded<T> = Result<T, Malformed>;

fn owned(decoder: &mut Decoder<'_>) -> Decoded<String> {
    decoder.text().map(str::to_owned)
}

pub(crate) fn put_bucket(out: &mut Vec<u8>, bucket: &BucketInfo) {
    put_text(out, &bucket.name);
    put_time(out, &bucket.created);
}

pub(crate) fn bucket(decoder: &mut Decoder<'_>) -> Decoded<BucketInfo> {
    Ok(BucketInfo {
        name: owned(decoder)?,
        created: time(decoder)?,
    })
}

pub(crate) fn put_buckets(out: &mut Vec<u8>, buckets: &[BucketInfo]) {
    put_list(out, buckets, put_bucket);
}

pub(crate) fn buckets(decoder: &mut Decoder<'_>) -> Decoded<Vec<BucketInfo>> {
    // Buckets are not paged; the limit of the head bounds them.
    decoder.long_list(u64::from(super::MAX_REPLY_HEAD_BYTES), bucket)
}

pub(crate) fn put_info(out: &mut Vec<u8>, info: &ObjectInfo) {
    put_number(out, info.size);
    put_etag(out, &info.etag);
    put_time(out, &info.modified);
    put_headers(out, &info.headers);
    put_list(out, &info.checksums, put_checksum);
    put_tags(out, &info.tags);
    put_list(out, info.parts.runs(), |out, (count, size)| {
        put_number(out, u64::from(*count));
        put_number(out, *size);
    });
}

/// Runs of parts whose sizes can be added up.
fn runs(decoder: &mut Decoder<'_>) -> Decoded<PartSizes> {
    let runs = decoder.list(|d| Ok((d.small()?, d.number()?)))?;
    let sum = runs
        .iter()
        .try_fold((0_u32, 0_u64), |(parts, bytes), (count, size)| {
            let run = u64::from(*count).checked_mul(*size)?;
            Some((parts.checked_add(*count)?, bytes.checked_add(run)?))
        });
    match sum {
        Some(_) => Ok(PartSizes::from_runs(runs)),
        None => Err(Malformed("parts of an object are too many or too large")),
    }
}

pub(crate) fn info(decoder: &mut Decoder<'_>) -> Decoded<ObjectInfo> {
    Ok(ObjectInfo {
        size: decoder.number()?,
        etag: etag(decoder)?,
        modified: time(decoder)?,
        headers: headers(decoder)?,
        checksums: decoder.list(checksum)?,
        tags: tags(decoder)?,
        parts: runs(decoder)?,
    })
}

pub(crate) fn put_written(out: &mut Vec<u8>, written: &Written) {
    put_etag(out, &written.etag);
    put_number(out, written.size);
    put_time(out, &written.modified);
}

pub(crate) fn written(decoder: &mut Decoder<'_>) -> Decoded<Written> {
    Ok(Written {
        etag: etag(decoder)?,
        size: decoder.number()?,
        modified: time(decoder)?,
    })
}

fn put_entry(out: &mut Vec<u8>, entry: &ListEntry) {
    put_text(out, &entry.key);
    put_number(out, entry.size);
    put_etag(out, &entry.etag);
    put_time(out, &entry.modified);
    put_list(out, &entry.checksums, put_algorithm);
}

fn entry(decoder: &mut Decoder<'_>) -> Decoded<ListEntry> {
    Ok(ListEntry {
        key: owned(decoder)?,
        size: decoder.number()?,
        etag: etag(decoder)?,
        modified: time(decoder)?,
        checksums: decoder.list(algorithm)?,
    })
}

pub(crate) fn put_listing(out: &mut Vec<u8>, listing: &Listing) {
    put_list(out, &listing.objects, put_entry);
    put_list(out, &listing.common_prefixes, |out, text| {
        put_text(out, text)
    });
    put_option(out, listing.next.as_ref(), |out, text| put_text(out, text));
}

pub(crate) fn listing(decoder: &mut Decoder<'_>) -> Decoded<Listing> {
    Ok(Listing {
        objects: decoder.list(entry)?,
        common_prefixes: decoder.list(owned)?,
        next: decoder.option(owned)?,
    })
}

fn put_upload(out: &mut Vec<u8>, upload: &UploadInfo) {
    put_text(out, &upload.key);
    put_text(out, &upload.upload_id);
    put_time(out, &upload.initiated);
    put_option(out, upload.checksum.as_ref(), |out, (algorithm, kind)| {
        put_algorithm(out, algorithm);
        put_kind(out, *kind);
    });
}

fn upload(decoder: &mut Decoder<'_>) -> Decoded<UploadInfo> {
    Ok(UploadInfo {
        key: owned(decoder)?,
        upload_id: owned(decoder)?,
        initiated: time(decoder)?,
        checksum: decoder.option(|d| Ok((algorithm(d)?, kind(d)?)))?,
    })
}

pub(crate) fn put_uploads(out: &mut Vec<u8>, listing: &UploadListing) {
    put_list(out, &listing.uploads, put_upload);
    put_list(out, &listing.common_prefixes, |out, text| {
        put_text(out, text)
    });
    put_option(out, listing.next.as_ref(), |out, (key, id)| {
        put_text(out, key);
        put_text(out, id);
    });
}

pub(crate) fn uploads(decoder: &mut Decoder<'_>) -> Decoded<UploadListing> {
    Ok(UploadListing {
        uploads: decoder.list(upload)?,
        common_prefixes: decoder.list(owned)?,
        next: decoder.option(|d| Ok((owned(d)?, owned(d)?)))?,
    })
}

fn put_part(out: &mut Vec<u8>, part: &PartInfo) {
    put_number(out, u64::from(part.number));
    put_number(out, part.size);
    put_etag(out, &part.etag);
    put_time(out, &part.modified);
    put_list(out, &part.checksums, put_checksum);
}

fn part(decoder: &mut Decoder<'_>) -> Decoded<PartInfo> {
    Ok(PartInfo {
        number: decoder.small()?,
        size: decoder.number()?,
        etag: etag(decoder)?,
        modified: time(decoder)?,
        checksums: decoder.list(checksum)?,
    })
}

pub(crate) fn put_parts(out: &mut Vec<u8>, listing: &PartListing) {
    put_upload(out, &listing.upload);
    put_list(out, &listing.parts, put_part);
    put_option(out, listing.next.as_ref(), |out, n| {
        put_number(out, u64::from(*n))
    });
}

pub(crate) fn parts(decoder: &mut Decoder<'_>) -> Decoded<PartListing> {
    Ok(PartListing {
        upload: upload(decoder)?,
        parts: decoder.list(part)?,
        next: decoder.option(|d| d.small())?,
    })
}

/// What a GET begins with: the object, and which of its bytes follow.
pub(crate) fn put_opening(out: &mut Vec<u8>, info: &ObjectInfo, start: u64) {
    put_info(out, info);
    put_number(out, start);
}

pub(crate) fn opening(decoder: &mut Decoder<'_>) -> Decoded<(ObjectInfo, u64)> {
    Ok((info(decoder)?, decoder.number()?))
}

/// The same for a GET that may be answered by a file: `length` bytes of it, or, if it is `None`, the body.
pub(crate) fn put_file_opening(
    out: &mut Vec<u8>,
    info: &ObjectInfo,
    start: u64,
    length: Option<u64>,
) {
    put_opening(out, info, start);
    put_option(out, length.as_ref(), |out, n| put_number(out, *n));
}

pub(crate) fn file_opening(decoder: &mut Decoder<'_>) -> Decoded<((ObjectInfo, u64), Option<u64>)> {
    Ok((opening(decoder)?, decoder.option(|d| d.number())?))
}

pub(crate) fn put_id(out: &mut Vec<u8>, id: &str) {
    put_text(out, id);
}

pub(crate) fn id(decoder: &mut Decoder<'_>) -> Decoded<String> {
    owned(decoder)
}

/// Reads a whole head.
pub(crate) fn whole<T>(
    head: &[u8],
    value: impl FnOnce(&mut Decoder<'_>) -> Decoded<T>,
) -> Decoded<T> {
    let mut decoder = Decoder::new(head);
    let result = value(&mut decoder)?;
    decoder.end()?;
    Ok(result)
}
