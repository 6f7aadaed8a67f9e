//! Listings of multipart uploads and of their parts, reported in batches.

use std::ffi::{CStr, CString, c_char, c_int};

use bucketload_s3::encode::key_text;
use bucketload_store::ListUploadsRequest;

use super::{BATCH, OWNER, PAGE, PREFIX_BATCH, count};
use crate::abi::{
    S3ListMultipartUpload, S3ListMultipartUploadsResponseCallback, S3ListPart,
    S3ListPartsResponseCallback,
};
use crate::arguments::{Bucket, Target};
use crate::backend::Result;
use crate::clock;
use crate::reply::{Callbacks, Failure, array, c_string, quoted};

const STORAGE_CLASS: &CStr = c"STANDARD";

/// The page size for the number that a client asks for; 0 and below mean no particular number.
fn page_size(asked: c_int) -> usize {
    match usize::try_from(asked) {
        Ok(0) | Err(_) => PAGE,
        Ok(asked) => asked.min(PAGE),
    }
}

/// Reports the parts of an upload.
pub(crate) fn parts(
    target: Target,
    upload_id: &str,
    marker: &str,
    max_parts: c_int,
    report: Option<S3ListPartsResponseCallback>,
    callbacks: &Callbacks,
) -> Result<()> {
    // A marker that is not a number is ignored, as by a server.
    let marker = marker.parse().unwrap_or(0);
    let page = target
        .backend()?
        .parts(target.name(), upload_id, marker, page_size(max_parts))?;
    callbacks.no_properties()?;
    let Some(report) = report else {
        return Ok(());
    };
    let next = page
        .next
        .map_or_else(CString::default, |next| c_string(next.to_string()));
    let is_truncated = c_int::from(page.next.is_some());
    for (at, batch) in page.parts.chunks(BATCH).enumerate() {
        let tags: Vec<CString> = batch.iter().map(|part| quoted(part.etag)).collect();
        let entries: Vec<S3ListPart> = batch
            .iter()
            .zip(&tags)
            .map(|(part, tag)| S3ListPart {
                etag: tag.as_ptr(),
                last_modified: clock::seconds(part.modified),
                part_number: part.number.into(),
                size: part.size,
            })
            .collect();
        let owner = OWNER.as_ptr();
        // SAFETY: the function comes from the same handler as `callbacks`; texts and
        // arrays live until it returns.
        let code = unsafe {
            report(
                is_truncated,
                next.as_ptr(),
                owner,
                owner,
                owner,
                owner,
                STORAGE_CLASS.as_ptr(),
                count(entries.len()),
                count(at * BATCH),
                entries.as_ptr(),
                callbacks.data,
            )
        };
        Failure::of_callback(code)?;
    }
    Ok(())
}

/// The uploads to list.
pub(crate) struct Query {
    pub(crate) prefix: String,
    pub(crate) delimiter: String,
    pub(crate) key_marker: String,
    pub(crate) upload_id_marker: String,
    pub(crate) max_uploads: c_int,
    /// Whether to report keys percent-encoded.
    pub(crate) encode: bool,
}

impl Query {
    fn text(&self, key: &str) -> CString {
        if self.encode {
            c_string(key_text(key))
        } else {
            c_string(key)
        }
    }
}

/// Reports the uploads in progress.
pub(crate) fn uploads(
    bucket: Bucket,
    query: &Query,
    report: Option<S3ListMultipartUploadsResponseCallback>,
    callbacks: &Callbacks,
) -> Result<()> {
    let page = bucket.backend()?.uploads(
        &bucket.name,
        &ListUploadsRequest {
            prefix: &query.prefix,
            delimiter: &query.delimiter,
            key_marker: &query.key_marker,
            upload_id_marker: &query.upload_id_marker,
            max_uploads: page_size(query.max_uploads),
        },
    )?;
    callbacks.no_properties()?;
    let Some(report) = report else {
        return Ok(());
    };
    let is_truncated = c_int::from(page.next.is_some());
    let (key, id) = page.next.unwrap_or_default();
    let (next_key, next_id) = (query.text(&key), c_string(id));
    let texts: Vec<(CString, CString)> = page
        .uploads
        .iter()
        .map(|upload| (query.text(&upload.key), c_string(upload.upload_id.as_str())))
        .collect();
    let owner = OWNER.as_ptr();
    let uploads: Vec<S3ListMultipartUpload> = page
        .uploads
        .iter()
        .zip(&texts)
        .map(|(upload, (key, id))| S3ListMultipartUpload {
            key: key.as_ptr(),
            upload_id: id.as_ptr(),
            initiator_id: owner,
            initiator_display_name: owner,
            owner_id: owner,
            owner_display_name: owner,
            storage_class: STORAGE_CLASS.as_ptr(),
            initiated: clock::seconds(upload.initiated),
        })
        .collect();
    let prefix_texts: Vec<CString> = page.common_prefixes.iter().map(|p| query.text(p)).collect();
    let prefixes: Vec<*const c_char> = prefix_texts.iter().map(|p| p.as_ptr()).collect();
    let batches = uploads
        .chunks(BATCH)
        .map(|batch| (batch, &[][..]))
        .chain(prefixes.chunks(PREFIX_BATCH).map(|batch| (&[][..], batch)));
    for (uploads, prefixes) in batches {
        // SAFETY: the function comes from the same handler as `callbacks`; texts and
        // arrays live until it returns.
        let code = unsafe {
            report(
                is_truncated,
                next_key.as_ptr(),
                next_id.as_ptr(),
                count(uploads.len()),
                array(uploads),
                count(prefixes.len()),
                array(prefixes),
                callbacks.data,
            )
        };
        Failure::of_callback(code)?;
    }
    Ok(())
}
