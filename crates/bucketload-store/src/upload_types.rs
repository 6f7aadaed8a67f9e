//! Plain data of multipart uploads.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::etag::ETag;
use crate::types::{Checksum, ChecksumAlgorithm, ChecksumKind, Headers, Tags};

/// The options of a multipart upload, given at its creation.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct MultipartOptions {
    /// The client's metadata about the content.
    pub headers: Headers,
    /// Tags of the object.
    pub tags: Tags,
    /// Algorithm and kind of the announced checksum. The store keeps them for the caller.
    pub checksum: Option<(ChecksumAlgorithm, ChecksumKind)>,
}

/// A multipart upload in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadInfo {
    /// Key of the object being uploaded.
    pub key: String,
    /// Id of the upload.
    pub upload_id: String,
    /// When it was created.
    pub initiated: SystemTime,
    /// Checksum announced at its creation.
    pub checksum: Option<(ChecksumAlgorithm, ChecksumKind)>,
    /// The storage class of the object; `None` is the standard one.
    pub storage_class: Option<String>,
}

/// Which multipart uploads to list. They are sorted by key, then by creation.
#[derive(Debug, Clone, Copy, Default)]
pub struct ListUploadsRequest<'a> {
    /// Only keys that begin with this.
    pub prefix: &'a str,
    /// As in [`ListRequest`](crate::ListRequest).
    pub delimiter: &'a str,
    /// Only uploads of keys (and common prefixes) greater than this; with `upload_id_marker` also
    /// later uploads of this key.
    pub key_marker: &'a str,
    /// Id of the last upload of the previous page; empty for none.
    pub upload_id_marker: &'a str,
    /// Maximum number of uploads and common prefixes together on this page.
    pub max_uploads: usize,
}

/// One page of multipart uploads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UploadListing {
    /// Uploads.
    pub uploads: Vec<UploadInfo>,
    /// Common prefixes.
    pub common_prefixes: Vec<String>,
    /// Key marker and upload id marker (empty after a common prefix) of the next page; `None` if this
    /// is the last page.
    pub next: Option<(String, String)>,
}

/// An uploaded part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartInfo {
    /// Its number, 1 to 10,000.
    pub number: u32,
    /// Size in bytes.
    pub size: u64,
    /// Entity tag.
    pub etag: ETag,
    /// When it was written.
    pub modified: SystemTime,
    /// Additional checksums.
    pub checksums: Vec<Checksum>,
}

/// One page of parts, sorted by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartListing {
    /// The upload that they belong to.
    pub upload: UploadInfo,
    /// Parts.
    pub parts: Vec<PartInfo>,
    /// Part number marker of the next page; `None` if this is the last page.
    pub next: Option<u32>,
}

/// A part named by the completion of an upload.
#[derive(Debug, Clone, Default)]
pub struct CompletedPart {
    /// Its number.
    pub number: u32,
    /// Entity tag that the part must have; `None` accepts any.
    pub etag: Option<ETag>,
    /// Checksums that the part must have.
    pub checksums: Vec<Checksum>,
}
