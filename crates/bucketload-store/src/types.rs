//! Plain data that the operations of a store take and return.

use std::ops::Range;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::etag::ETag;
use crate::versions::VersionId;

/// A bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketInfo {
    /// Its name.
    pub name: String,
    /// When it was created.
    pub created: SystemTime,
}

/// Algorithm of an additional checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum ChecksumAlgorithm {
    Crc32,
    Crc32c,
    Crc64Nvme,
    Sha1,
    Sha256,
}

/// What a checksum covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ChecksumKind {
    /// All bytes of the object.
    FullObject,
    /// The checksums of the parts.
    Composite,
}

/// An additional checksum. The caller computes and checks it, because the caller sees the bytes
/// anyway. The store keeps it and compares the checksums of parts with those named by a completion.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Checksum {
    /// How it was computed.
    pub algorithm: ChecksumAlgorithm,
    /// What it covers.
    pub kind: ChecksumKind,
    /// Base64 as in S3, followed by `-N` for a composite checksum.
    pub value: String,
}

/// The client's metadata about an object's content, which the store keeps verbatim.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Headers {
    /// `Content-Type`; `None` if the client sent none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Further standard headers (`cache-control`, `content-disposition`, `content-encoding`,
    /// `content-language`, `expires`, ...) and the storage class, if it is not the standard one:
    /// lower-case name and value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub system: Vec<(String, String)>,
    /// User metadata: name without `x-amz-meta-`, and value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub user: Vec<(String, String)>,
}

impl Headers {
    /// Name of the header among `system` that holds the storage class.
    pub const STORAGE_CLASS: &str = "x-amz-storage-class";
    /// Name of the header among `system` that holds the version id.
    pub const VERSION_ID: &str = "x-amz-version-id";
    /// Name of the header among `system` that holds the mode of the retention.
    pub const LOCK_MODE: &str = "x-amz-object-lock-mode";
    /// Name of the header among `system` that holds the end of the retention, in seconds since 1970.
    pub const LOCK_UNTIL: &str = "x-amz-object-lock-retain-until-date";

    /// The storage class; `None` is the standard one.
    #[must_use]
    pub fn storage_class(&self) -> Option<&str> {
        self.get(Self::STORAGE_CLASS)
    }

    /// Replaces the storage class.
    pub fn set_storage_class(&mut self, class: Option<String>) {
        self.set(Self::STORAGE_CLASS, class);
    }

    /// The version id; `None` for an object written while its bucket had no versioning.
    #[must_use]
    pub fn version(&self) -> Option<VersionId> {
        self.get(Self::VERSION_ID)?.parse().ok()
    }

    /// The header `name` among `system`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let header = self.system.iter().find(|(other, _)| other == name)?;
        Some(&header.1)
    }

    /// Replaces the header `name` among `system`.
    pub fn set(&mut self, name: &str, value: Option<String>) {
        self.system.retain(|(other, _)| other != name);
        if let Some(value) = value {
            self.system.push((name.to_owned(), value));
        }
    }
}

/// The tags of an object, keys and values, in the order given.
pub type Tags = Vec<(String, String)>;

/// Sizes of the parts that an object was assembled from, run-length encoded, because usually all but
/// the last are equal. Empty for an object written in one piece.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PartSizes(Vec<(u32, u64)>);

impl PartSizes {
    /// Appends a part of `size` bytes.
    pub fn push(&mut self, size: u64) {
        match self.0.last_mut() {
            Some((count, last)) if *last == size => *count += 1,
            _ => self.0.push((1, size)),
        }
    }

    /// Number of parts; 0 for an object written in one piece.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.iter().map(|(count, _)| count).sum()
    }

    /// The runs, each a number of consecutive parts and their size, for serialisation.
    #[must_use]
    pub fn runs(&self) -> &[(u32, u64)] {
        &self.0
    }

    /// The inverse of [`runs`](Self::runs).
    #[must_use]
    pub const fn from_runs(runs: Vec<(u32, u64)>) -> Self {
        Self(runs)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The range of the object's bytes that part `number` (from 1) covers.
    #[must_use]
    pub fn range(&self, number: u32) -> Option<Range<u64>> {
        let mut before = number.checked_sub(1)?;
        let mut start = 0;
        for &(count, size) in &self.0 {
            if before < count {
                start += u64::from(before) * size;
                return Some(start..start + size);
            }
            before -= count;
            start += u64::from(count) * size;
        }
        None
    }
}

impl FromIterator<u64> for PartSizes {
    fn from_iter<I: IntoIterator<Item = u64>>(sizes: I) -> Self {
        let mut all = Self::default();
        sizes.into_iter().for_each(|size| all.push(size));
        all
    }
}

/// Everything about an object except its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Length of the content in bytes.
    pub size: u64,
    /// Entity tag.
    pub etag: ETag,
    /// When this version was written. HTTP truncates it to seconds.
    pub modified: SystemTime,
    /// The client's metadata.
    pub headers: Headers,
    /// Additional checksums.
    pub checksums: Vec<Checksum>,
    /// Tags.
    pub tags: Tags,
    /// The parts that it was assembled from.
    pub parts: PartSizes,
}

impl ObjectInfo {
    /// An object without headers, checksums, tags and parts.
    pub(crate) fn bare(size: u64, etag: ETag, modified: SystemTime) -> Self {
        Self {
            size,
            etag,
            modified,
            headers: Headers::default(),
            checksums: Vec::new(),
            tags: Vec::new(),
            parts: PartSizes::default(),
        }
    }

    /// An object written now with the metadata of `commit`.
    pub(crate) fn now(size: u64, etag: ETag, commit: Commit) -> (Self, Condition) {
        let info = Self {
            headers: commit.headers,
            checksums: commit.checksums,
            tags: commit.tags,
            ..Self::bare(size, etag, SystemTime::now())
        };
        (info, commit.condition)
    }

    /// The result of writing this object.
    pub(crate) const fn written(&self) -> Written {
        Written {
            etag: self.etag,
            size: self.size,
            modified: self.modified,
            version: None,
        }
    }
}

/// The options known before the first byte of an object or part.
#[derive(Debug, Clone, Copy, Default)]
pub struct PutOptions {
    /// Number of bytes that will be written. If given, a commit after a different number fails with
    /// [`IncompleteBody`](crate::StoreError::IncompleteBody), and buffers get the exact size.
    pub size: Option<u64>,
    /// MD5 announced by the client. A commit of different content fails with
    /// [`BadDigest`](crate::StoreError::BadDigest), regardless of the store's entity tag mode.
    pub content_md5: Option<[u8; 16]>,
}

impl PutOptions {
    /// Options for `size` bytes.
    #[must_use]
    pub const fn sized(size: u64) -> Self {
        Self {
            size: Some(size),
            content_md5: None,
        }
    }
}

/// Condition under which a write or delete takes effect, tested atomically with it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Condition {
    /// Always.
    #[default]
    None,
    /// Only if the key has no object (`If-None-Match: *`).
    Absent,
    /// Only if the key has an object (`If-Match: *`).
    Present,
    /// Only if the object has one of these tags (`If-Match`). If the key has no object, the write or
    /// delete fails with [`NoSuchKey`](crate::StoreError::NoSuchKey), as in S3.
    Match(Vec<ETag>),
}

/// The metadata and condition of a write, known after its last byte.
#[derive(Debug, Clone, Default)]
pub struct Commit {
    /// The client's metadata.
    pub headers: Headers,
    /// Additional checksums, verified by the caller.
    pub checksums: Vec<Checksum>,
    /// Tags.
    pub tags: Tags,
    /// Condition on the version that the write replaces.
    pub condition: Condition,
}

/// Result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Entity tag of the new object or part.
    pub etag: ETag,
    /// Its size in bytes.
    pub size: u64,
    /// When it was written.
    pub modified: SystemTime,
    /// The version written; `None` for parts, and in a bucket without versioning.
    pub version: Option<VersionId>,
}

/// The retention that a bucket gives to new versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// `GOVERNANCE` or `COMPLIANCE`.
    pub mode: String,
    /// How long from the write, in seconds.
    pub seconds: u64,
}

/// Which keys to list.
#[derive(Debug, Clone, Copy, Default)]
pub struct ListRequest<'a> {
    /// Only keys that begin with this.
    pub prefix: &'a str,
    /// If not empty, keys that contain it after the prefix are rolled up into a common prefix that
    /// ends with its first occurrence.
    pub delimiter: &'a str,
    /// Only keys and common prefixes greater than this in byte order (marker, start-after, or
    /// [`Listing::next`] of the previous page).
    pub start_after: &'a str,
    /// Maximum number of keys and common prefixes together on this page; 0 gives an empty last page.
    pub max_keys: usize,
}

/// A key in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListEntry {
    /// The key.
    pub key: String,
    /// Size in bytes.
    pub size: u64,
    /// Entity tag.
    pub etag: ETag,
    /// When it was written.
    pub modified: SystemTime,
    /// Algorithms of the additional checksums.
    pub checksums: Vec<ChecksumAlgorithm>,
    /// The storage class; `None` is the standard one.
    pub storage_class: Option<String>,
}

impl ListEntry {
    /// The entry of the object `key`.
    #[must_use]
    pub fn of(key: String, info: &ObjectInfo) -> Self {
        Self {
            key,
            size: info.size,
            etag: info.etag,
            modified: info.modified,
            checksums: info.checksums.iter().map(|sum| sum.algorithm).collect(),
            storage_class: info.headers.storage_class().map(str::to_owned),
        }
    }
}

/// One page of a listing, in byte order of the UTF-8 keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// Objects.
    pub objects: Vec<ListEntry>,
    /// Common prefixes.
    pub common_prefixes: Vec<String>,
    /// Where the next page starts (`start_after`): the greatest key or common prefix of this page.
    /// `None` if this is the last page.
    pub next: Option<String>,
}

/// How much a store holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Objects, excluding unfinished uploads.
    pub objects: u64,
    /// Bytes charged against the limit: content in memory, keys, and a fixed amount per object, part
    /// and upload. Content shared by several objects counts once; that of a deleted object counts
    /// until its last reader finishes.
    pub charged_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_ranges_follow_each_other() {
        let parts: PartSizes = [5, 5, 5, 7, 0, 2].into_iter().collect();
        assert_eq!(parts.0.len(), 4);
        assert_eq!(parts.count(), 6);
        assert_eq!(parts.range(0), None);
        assert_eq!(parts.range(1), Some(0..5));
        assert_eq!(parts.range(3), Some(10..15));
        assert_eq!(parts.range(4), Some(15..22));
        assert_eq!(parts.range(5), Some(22..22));
        assert_eq!(parts.range(6), Some(22..24));
        assert_eq!(parts.range(7), None);
    }
}
