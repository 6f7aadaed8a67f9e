//! The metadata record of an object: the information that the file itself does not carry.
//!
//! Layout: a version byte; the modification time of the file that the record belongs to (i64
//! nanoseconds since the epoch); the digest (16 bytes) and part count (u32) of the entity tag, all
//! little endian; then, if needed, a JSON object with short names. The fixed part and a content type fit
//! into the free space of an ext4 inode.
//!
//! The time ties the record to the content. If another program has changed the file, the tag and the
//! checksums are ignored, and the tag is derived from the file instead.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

use crate::error::{Result, StoreError};
use crate::etag::ETag;
use crate::types::{Checksum, Headers, ObjectInfo, PartSizes, Tags};

const VERSION: u8 = 1;
const FIXED_BYTES: usize = 1 + 8 + 16 + 4;

/// The part that is JSON.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct More {
    #[serde(rename = "ct", default, skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    #[serde(rename = "h", default, skip_serializing_if = "Vec::is_empty")]
    system: Vec<(String, String)>,
    #[serde(rename = "u", default, skip_serializing_if = "Vec::is_empty")]
    user: Vec<(String, String)>,
    #[serde(rename = "c", default, skip_serializing_if = "Vec::is_empty")]
    checksums: Vec<Checksum>,
    #[serde(rename = "t", default, skip_serializing_if = "Vec::is_empty")]
    tags: Tags,
    #[serde(rename = "p", default, skip_serializing_if = "PartSizes::is_empty")]
    parts: PartSizes,
}

/// Nanoseconds since the epoch.
pub(super) fn to_nanos(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// Modification time of a file in nanoseconds since the epoch.
pub(super) fn modified_nanos(stat: &Stat) -> i64 {
    stat.st_mtime
        .saturating_mul(1_000_000_000)
        .saturating_add(i64::try_from(stat.st_mtime_nsec).unwrap_or(0))
}

pub(super) fn from_nanos(nanos: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
}

/// The tag of a file without a valid record, derived from the time and size that identify a version.
pub(super) fn derived_tag(modified_nanos: i64, size: u64) -> ETag {
    let mut digest = [0; 16];
    digest[..8].copy_from_slice(&modified_nanos.to_be_bytes());
    digest[8..].copy_from_slice(&size.to_be_bytes());
    ETag::opaque(digest)
}

/// Information about a file without a record.
pub(super) fn plain(stat: &Stat) -> ObjectInfo {
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    let nanos = modified_nanos(stat);
    ObjectInfo::bare(size, derived_tag(nanos, size), from_nanos(nanos))
}

/// The record of an object; `None` if the file without a record reads the same.
pub(super) fn encode(info: &ObjectInfo) -> Option<Vec<u8>> {
    let nanos = to_nanos(info.modified);
    let bare = info.headers == Headers::default()
        && info.checksums.is_empty()
        && info.tags.is_empty()
        && info.parts.is_empty();
    if bare && info.etag == derived_tag(nanos, info.size) {
        return None;
    }
    let more = More {
        content_type: info.headers.content_type.clone(),
        system: info.headers.system.clone(),
        user: info.headers.user.clone(),
        checksums: info.checksums.clone(),
        tags: info.tags.clone(),
        parts: info.parts.clone(),
    };
    let nothing = more == More::default();
    let (digest, parts) = info.etag.to_raw();
    let mut record = Vec::with_capacity(256);
    record.push(VERSION);
    record.extend_from_slice(&nanos.to_le_bytes());
    record.extend_from_slice(&digest);
    record.extend_from_slice(&parts.to_le_bytes());
    if !nothing {
        let json = serde_json::to_vec(&more).expect("strings and numbers always serialise");
        record.extend_from_slice(&json);
    }
    Some(record)
}

/// Information about a file with the record `record`.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(super) fn decode(record: &[u8], stat: &Stat) -> Result<ObjectInfo> {
    let mut info = plain(stat);
    let damaged = |what: &str| StoreError::Corrupt(format!("metadata record: {what}"));
    let (fixed, json) = record
        .split_first_chunk::<FIXED_BYTES>()
        .ok_or_else(|| damaged("it is too short"))?;
    if fixed[0] != VERSION {
        return Err(damaged("unknown version"));
    }
    let field = |from: usize, to: usize| &fixed[from..to];
    let nanos = i64::from_le_bytes(field(1, 9).try_into().expect("8 bytes"));
    let digest = field(9, 25).try_into().expect("16 bytes");
    let parts = u32::from_le_bytes(field(25, 29).try_into().expect("4 bytes"));
    let more: More = if json.is_empty() {
        More::default()
    } else {
        serde_json::from_slice(json).map_err(|e| damaged(&e.to_string()))?
    };
    info.headers = Headers {
        content_type: more.content_type,
        system: more.system,
        user: more.user,
    };
    info.tags = more.tags;
    if nanos == modified_nanos(stat) {
        info.etag = ETag::from_raw(digest, parts);
        info.checksums = more.checksums;
        info.parts = more.parts;
    }
    Ok(info)
}
