//! The rules of multipart uploads that are independent of the medium.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::api::MAX_PARTS;
use crate::error::{Result, StoreError};
use crate::etag::ETag;
use crate::listing::common_prefix;
use crate::types::PartSizes;
use crate::upload_types::{
    CompletedPart, ListUploadsRequest, PartInfo, PartListing, UploadInfo, UploadListing,
};

/// Minimum size of every part but the last in S3, in bytes.
pub const MIN_PART_BYTES: u64 = 5 << 20;

/// A value for `now` that is larger than all previous ones, the last of which is `last`.
pub(crate) fn increasing(last: &AtomicU64, now: u64) -> u64 {
    let next = |last: u64| now.max(last + 1);
    last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
        Some(next(last))
    })
    .map_or(now, next)
}

/// A new upload id: 32 hexadecimal digits that sort by creation within a process and are unique
/// across processes.
pub(crate) fn new_upload_id() -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    let nanos = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
    let stamp = increasing(&LAST, nanos);
    format!("{stamp:016x}{:016x}", RandomState::new().hash_one(stamp))
}

/// When the upload `id` was created; `None` if no store can have issued this id.
#[must_use]
pub fn upload_created(id: &str) -> Option<SystemTime> {
    if !is_upload_id(id) {
        return None;
    }
    let nanos = u64::from_str_radix(&id[..16], 16).ok()?;
    UNIX_EPOCH.checked_add(Duration::from_nanos(nanos))
}

/// True if `id` has the form of an upload id.
pub(crate) fn is_upload_id(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit())
}

pub(crate) const fn check_part_number(number: u32) -> Result<()> {
    if number == 0 || number > MAX_PARTS {
        return Err(StoreError::InvalidArgument(
            "the part number must be from 1 to 10000",
        ));
    }
    Ok(())
}

pub(crate) const fn check_range(range: &Range<u64>, size: u64) -> Result<()> {
    if range.start >= range.end || range.end > size {
        return Err(StoreError::InvalidRange { size });
    }
    Ok(())
}

/// The object that a valid completion assembles.
pub(crate) struct Assembly {
    pub(crate) size: u64,
    pub(crate) etag: ETag,
    pub(crate) parts: PartSizes,
}

/// Checks the parts named by a completion against the uploaded ones.
pub(crate) fn check_completion(
    named: &[CompletedPart],
    min_part_bytes: u64,
    uploaded: impl Fn(u32) -> Option<PartInfo>,
) -> Result<Assembly> {
    if named.is_empty() {
        return Err(StoreError::InvalidArgument(
            "a completion must name at least one part",
        ));
    }
    if named
        .windows(2)
        .any(|pair| pair[0].number >= pair[1].number)
    {
        return Err(StoreError::InvalidPartOrder);
    }
    let mut tags = Vec::with_capacity(named.len());
    let mut assembly = Assembly {
        size: 0,
        etag: ETag::from_md5([0; 16]),
        parts: PartSizes::default(),
    };
    for (i, part) in named.iter().enumerate() {
        let found = uploaded(part.number).ok_or(StoreError::InvalidPart(part.number))?;
        let same = part.etag.is_none_or(|etag| etag == found.etag)
            && part
                .checksums
                .iter()
                .all(|sum| found.checksums.contains(sum));
        if !same {
            return Err(StoreError::InvalidPart(part.number));
        }
        if i + 1 < named.len() && found.size < min_part_bytes {
            return Err(StoreError::EntityTooSmall {
                part: part.number,
                size: found.size,
                minimum: min_part_bytes,
            });
        }
        tags.push(found.etag);
        assembly.size += found.size;
        assembly.parts.push(found.size);
    }
    assembly.etag = ETag::of_parts(&tags);
    Ok(assembly)
}

/// Builds a page from the parts after the marker.
pub(crate) fn page_parts<'p>(
    upload: UploadInfo,
    after_marker: impl Iterator<Item = &'p PartInfo>,
    max_parts: usize,
) -> PartListing {
    let mut page = PartListing {
        upload,
        parts: Vec::new(),
        next: None,
    };
    for part in after_marker {
        if page.parts.len() == max_parts {
            page.next = page.parts.last().map(|part| part.number);
            break;
        }
        page.parts.push(part.clone());
    }
    page
}

/// Builds a page from all uploads of a bucket, sorted by key and id.
pub(crate) fn page_uploads(
    uploads: &[UploadInfo],
    request: &ListUploadsRequest<'_>,
) -> UploadListing {
    let mut page = UploadListing::default();
    if request.max_uploads == 0 {
        return page;
    }
    let mut last = None;
    for upload in uploads
        .iter()
        .filter(|upload| upload.key.starts_with(request.prefix))
    {
        let common = common_prefix(&upload.key, request.prefix, request.delimiter);
        let name = common.unwrap_or(&upload.key);
        let same_key = name == request.key_marker
            && common.is_none()
            && !request.upload_id_marker.is_empty()
            && upload.upload_id.as_str() > request.upload_id_marker;
        if !request.key_marker.is_empty() && name <= request.key_marker && !same_key {
            continue;
        }
        if common.is_some_and(|common| page.common_prefixes.last().is_some_and(|p| p == common)) {
            continue;
        }
        if page.uploads.len() + page.common_prefixes.len() == request.max_uploads {
            page.next = last;
            break;
        }
        match common {
            Some(common) => {
                page.common_prefixes.push(common.to_owned());
                last = Some((common.to_owned(), String::new()));
            }
            None => {
                last = Some((upload.key.clone(), upload.upload_id.clone()));
                page.uploads.push(upload.clone());
            }
        }
    }
    page
}
