//! Plain data that the operations of a store take and return.

use std::ops::Range;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::etag::ETag;

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

/// An additional checksum. The store keeps it and compares it between part and completion; it is
/// computed and checked by the caller, who sees the bytes anyway.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Checksum {
    /// How it was computed.
    pub algorithm: ChecksumAlgorithm,
    /// What it covers.
    pub kind: ChecksumKind,
    /// Base64 as S3 prints it, with `-N` for a composite checksum.
    pub value: String,
}

/// What the client says about the content of an object; the store keeps it as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Headers {
    /// `Content-Type`; `None` means that the client gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Further standard headers (`cache-control`, `content-disposition`, `content-encoding`,
    /// `content-language`, `expires`, ...): lower-case name and value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub system: Vec<(String, String)>,
    /// User metadata: name without `x-amz-meta-`, and value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub user: Vec<(String, String)>,
}

/// Tags of an object: key and value, in the order given.
pub type Tags = Vec<(String, String)>;

/// Sizes of the parts of which an object was assembled, run-length coded, because they are equal
/// but for the last. Empty for an object that was put whole.
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

    /// Number of parts; 0 for an object that was put whole.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.iter().map(|(count, _)| count).sum()
    }

    /// How many parts of which size follow each other, for transport.
    #[must_use]
    pub fn runs(&self) -> &[(u32, u64)] {
        &self.0
    }

    /// The parts that [`runs`](Self::runs) was called on.
    #[must_use]
    pub const fn from_runs(runs: Vec<(u32, u64)>) -> Self {
        Self(runs)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes of the object that part `number` (from 1) covers.
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

/// Everything about an object but its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Length of the content in bytes.
    pub size: u64,
    /// Entity tag.
    pub etag: ETag,
    /// When this version was written. HTTP cuts it to the second.
    pub modified: SystemTime,
    /// What the client said about the content.
    pub headers: Headers,
    /// Additional checksums.
    pub checksums: Vec<Checksum>,
    /// Tags.
    pub tags: Tags,
    /// Parts of which it was assembled.
    pub parts: PartSizes,
}

impl ObjectInfo {
    /// An object that is written now, with what its `commit` says, and the condition on it.
    pub(crate) fn now(size: u64, etag: ETag, commit: Commit) -> (Self, Condition) {
        let info = Self {
            size,
            etag,
            modified: SystemTime::now(),
            headers: commit.headers,
            checksums: commit.checksums,
            tags: commit.tags,
            parts: PartSizes::default(),
        };
        (info, commit.condition)
    }
}

/// What is known before the first byte of an object or part.
#[derive(Debug, Clone, Copy, Default)]
pub struct PutOptions {
    /// Number of bytes that will be written. When given, a commit with another number fails with
    /// [`IncompleteBody`](crate::StoreError::IncompleteBody), and buffers have the exact size.
    pub size: Option<u64>,
    /// MD5 that the client announced. A commit with other content fails with
    /// [`BadDigest`](crate::StoreError::BadDigest), whatever the entity tag mode of the store.
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

/// Condition under which a write or delete takes effect, tested atomically with the effect.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Condition {
    /// Always.
    #[default]
    None,
    /// Only if the key has no object (`If-None-Match: *`).
    Absent,
    /// Only if the key has an object (`If-Match: *`).
    Present,
    /// Only if the object has one of these tags (`If-Match`). On a write or delete of a key without
    /// object the error is [`NoSuchKey`](crate::StoreError::NoSuchKey), as in S3.
    Match(Vec<ETag>),
}

/// What is known after the last byte of an object.
#[derive(Debug, Clone, Default)]
pub struct Commit {
    /// What the client says about the content.
    pub headers: Headers,
    /// Additional checksums, verified by the caller.
    pub checksums: Vec<Checksum>,
    /// Tags.
    pub tags: Tags,
    /// Condition on the object that is replaced.
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
}

/// Which keys to list.
#[derive(Debug, Clone, Copy, Default)]
pub struct ListRequest<'a> {
    /// Only keys that begin with this.
    pub prefix: &'a str,
    /// When not empty, keys that contain it after the prefix are rolled up into one common prefix,
    /// which ends with the first occurrence.
    pub delimiter: &'a str,
    /// Only keys and common prefixes greater than this in byte order (marker, start-after or
    /// [`Listing::next`] of the page before).
    pub start_after: &'a str,
    /// Most keys and common prefixes together on this page; 0 gives an empty last page.
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
}

/// One page of a listing, in byte order of the UTF-8 keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// Objects.
    pub objects: Vec<ListEntry>,
    /// Common prefixes.
    pub common_prefixes: Vec<String>,
    /// Where the next page starts (`start_after`): the greatest key or common prefix of this page.
    /// `None` when this page is the last.
    pub next: Option<String>,
}

/// How much a store holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Objects, without unfinished uploads.
    pub objects: u64,
    /// Bytes charged against the limit: content in memory (bytes shared by several objects count
    /// once; those of a deleted object count until its last reader is done), keys, and a fixed
    /// amount per object, part and upload.
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
