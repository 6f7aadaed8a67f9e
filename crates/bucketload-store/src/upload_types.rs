//! Plain data of multipart uploads.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::etag::ETag;
use crate::types::{Checksum, ChecksumAlgorithm, ChecksumKind, Headers, Tags};

/// What a multipart upload is told at its creation.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct MultipartOptions {
    /// What the client says about the content.
    pub headers: Headers,
    /// Tags of the object.
    pub tags: Tags,
    /// Algorithm and kind of the additional checksum announced, for the caller's own use.
    pub checksum: Option<(ChecksumAlgorithm, ChecksumKind)>,
}

/// A multipart upload in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadInfo {
    /// Key of the object to be.
    pub key: String,
    /// Identity of the upload.
    pub upload_id: String,
    /// When it was created.
    pub initiated: SystemTime,
    /// Checksum announced at its creation.
    pub checksum: Option<(ChecksumAlgorithm, ChecksumKind)>,
}

/// Which multipart uploads to list: in order of key, then of creation.
#[derive(Debug, Clone, Copy, Default)]
pub struct ListUploadsRequest<'a> {
    /// Only keys that begin with this.
    pub prefix: &'a str,
    /// As in [`ListRequest`](crate::ListRequest).
    pub delimiter: &'a str,
    /// Only uploads of keys (and common prefixes) greater than this, and with
    /// `upload_id_marker` also later uploads of this very key.
    pub key_marker: &'a str,
    /// Identity of the last upload of the page before; empty for none.
    pub upload_id_marker: &'a str,
    /// Most uploads and common prefixes together on this page.
    pub max_uploads: usize,
}

/// One page of multipart uploads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UploadListing {
    /// Uploads.
    pub uploads: Vec<UploadInfo>,
    /// Common prefixes.
    pub common_prefixes: Vec<String>,
    /// Key marker and upload identity marker (empty after a common prefix) of the next page; `None`
    /// when this page is the last.
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

/// One page of parts, in order of their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartListing {
    /// The upload to which they belong.
    pub upload: UploadInfo,
    /// Parts.
    pub parts: Vec<PartInfo>,
    /// Part number marker of the next page; `None` when this page is the last.
    pub next: Option<u32>,
}

/// A part as the completion of an upload names it.
#[derive(Debug, Clone, Default)]
pub struct CompletedPart {
    /// Its number.
    pub number: u32,
    /// Entity tag that it must have; `None` accepts any.
    pub etag: Option<ETag>,
    /// Checksums that it must have.
    pub checksums: Vec<Checksum>,
}
