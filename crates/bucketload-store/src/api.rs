//! The interface of a store: [`Store`] for whole operations, [`ObjectUpload`] and [`PartUpload`]
//! for writes whose bytes arrive piece by piece.
//!
//! All calls are synchronous and may be made from any thread. Stores in memory never block for
//! long; stores on a file system make system calls. A write becomes visible as a whole by its
//! commit; an upload that is dropped without commit leaves nothing.

use std::ops::Range;
use std::os::fd::BorrowedFd;

use crate::error::{Result, StoreError};
use crate::object::Object;
use crate::types::{
    BucketInfo, Checksum, Commit, Condition, ListRequest, Listing, ObjectInfo, PutOptions, Tags,
    Usage, Written,
};
use crate::upload_types::{
    CompletedPart, ListUploadsRequest, MultipartOptions, PartListing, UploadInfo, UploadListing,
};

/// Largest part number.
pub const MAX_PARTS: u32 = 10_000;

/// Bytes on their way into a store.
pub trait Write: Send {
    /// Appends `data`.
    ///
    /// # Errors
    /// [`InsufficientStorage`](crate::StoreError::InsufficientStorage),
    /// [`IncompleteBody`](crate::StoreError::IncompleteBody) when more than the announced size is
    /// written, [`Io`](crate::StoreError::Io). The upload can only be dropped after an error.
    fn write(&mut self, data: &[u8]) -> Result<()>;

    /// Bytes written so far.
    fn written(&self) -> u64;

    /// The file to whose position bytes may be moved within the kernel instead of being written, where the store
    /// need not see them. [`appended`](Self::appended) must then be told how many there were.
    fn file(&mut self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Takes note of `count` bytes that were moved to [`file`](Self::file).
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn appended(&mut self, count: u64) -> Result<()> {
        let _ = count;
        Err(StoreError::NotImplemented("writes without their bytes"))
    }
}

/// An object being written. Dropping it aborts.
pub trait ObjectUpload: Write {
    /// Makes the object visible under its key, replacing what was there, atomically.
    ///
    /// # Errors
    /// Those of [`Write::write`], and
    /// [`PreconditionFailed`](crate::StoreError::PreconditionFailed),
    /// [`NoSuchKey`](crate::StoreError::NoSuchKey) (condition on a missing object),
    /// [`BadDigest`](crate::StoreError::BadDigest),
    /// [`NoSuchBucket`](crate::StoreError::NoSuchBucket) (deleted meanwhile).
    fn commit(self: Box<Self>, commit: Commit) -> Result<Written>;
}

/// A part being written. Dropping it aborts.
pub trait PartUpload: Write {
    /// Makes the part visible, replacing an earlier one of the same number. `checksums` are kept
    /// with the part.
    ///
    /// # Errors
    /// Those of [`Write::write`], and [`BadDigest`](crate::StoreError::BadDigest),
    /// [`NoSuchUpload`](crate::StoreError::NoSuchUpload) (completed or aborted meanwhile).
    fn commit(self: Box<Self>, checksums: Vec<Checksum>) -> Result<Written>;
}

/// S3 semantics over some medium.
///
/// Every operation checks bucket names and keys ([`crate::names`]) and fails with
/// [`NoSuchBucket`](crate::StoreError::NoSuchBucket) when the bucket does not exist; this is not
/// repeated below.
pub trait Store: Send + Sync {
    /// All buckets in order of their names.
    ///
    /// # Errors
    /// [`Io`](crate::StoreError::Io).
    fn list_buckets(&self) -> Result<Vec<BucketInfo>>;

    /// Creates a bucket.
    ///
    /// # Errors
    /// [`BucketAlreadyOwnedByYou`](crate::StoreError::BucketAlreadyOwnedByYou).
    fn create_bucket(&self, bucket: &str) -> Result<()>;

    /// Information about one bucket.
    ///
    /// # Errors
    /// [`NoSuchBucket`](crate::StoreError::NoSuchBucket).
    fn head_bucket(&self, bucket: &str) -> Result<BucketInfo>;

    /// Deletes an empty bucket, and with it its unfinished multipart uploads.
    ///
    /// # Errors
    /// [`BucketNotEmpty`](crate::StoreError::BucketNotEmpty).
    fn delete_bucket(&self, bucket: &str) -> Result<()>;

    /// Opens the current version of an object.
    ///
    /// # Errors
    /// [`NoSuchKey`](crate::StoreError::NoSuchKey).
    fn open(&self, bucket: &str, key: &str) -> Result<Object>;

    /// Information about an object without opening its content.
    ///
    /// # Errors
    /// [`NoSuchKey`](crate::StoreError::NoSuchKey).
    fn head(&self, bucket: &str, key: &str) -> Result<ObjectInfo> {
        Ok(self.open(bucket, key)?.info().clone())
    }

    /// Begins to write an object.
    ///
    /// # Errors
    /// [`InsufficientStorage`](crate::StoreError::InsufficientStorage) when the announced size
    /// cannot fit, [`EntityTooLarge`](crate::StoreError::EntityTooLarge).
    fn put(&self, bucket: &str, key: &str, options: &PutOptions) -> Result<Box<dyn ObjectUpload>>;

    /// For stores that keep nothing: takes note of `size` bytes being written as an object or part,
    /// without seeing them. `None`: write them. Lets a server drop a body in the kernel, and
    /// answer small writes without an allocation.
    ///
    /// # Errors
    /// Those of [`put`](Self::put).
    fn accept_unseen(&self, bucket: &str, key: &str, size: u64) -> Option<Result<Written>> {
        let _ = (bucket, key, size);
        None
    }

    /// Deletes an object. Returns whether there was one: S3 reports success in both cases.
    ///
    /// # Errors
    /// [`PreconditionFailed`](crate::StoreError::PreconditionFailed), and
    /// [`NoSuchKey`](crate::StoreError::NoSuchKey) only under a condition.
    fn delete(&self, bucket: &str, key: &str, condition: &Condition) -> Result<bool>;

    /// One page of the keys of a bucket.
    ///
    /// # Errors
    /// [`Io`](crate::StoreError::Io).
    fn list(&self, bucket: &str, request: &ListRequest<'_>) -> Result<Listing>;

    /// Writes a copy of `source` (of this or another store) under a key; the object copied onto
    /// itself is allowed. Shares or clones the data where the medium can. The entity tag is that of
    /// a PUT of the same bytes; headers, tags and checksums are those of `commit`.
    ///
    /// # Errors
    /// Those of [`put`](Self::put) and [`ObjectUpload::commit`].
    fn copy(&self, source: &Object, bucket: &str, key: &str, commit: Commit) -> Result<Written>;

    /// Tags of an object.
    ///
    /// # Errors
    /// [`NoSuchKey`](crate::StoreError::NoSuchKey).
    fn tags(&self, bucket: &str, key: &str) -> Result<Tags>;

    /// Replaces the tags of an object (an empty list deletes them); nothing else changes.
    ///
    /// # Errors
    /// [`NoSuchKey`](crate::StoreError::NoSuchKey).
    fn set_tags(&self, bucket: &str, key: &str, tags: Tags) -> Result<()>;

    /// Begins a multipart upload and returns its identity.
    ///
    /// # Errors
    /// [`InsufficientStorage`](crate::StoreError::InsufficientStorage).
    fn create_multipart(
        &self,
        bucket: &str,
        key: &str,
        options: MultipartOptions,
    ) -> Result<String>;

    /// Begins to write part `number` (1 to [`MAX_PARTS`]).
    ///
    /// # Errors
    /// [`NoSuchUpload`](crate::StoreError::NoSuchUpload),
    /// [`InvalidArgument`](crate::StoreError::InvalidArgument) for a bad number,
    /// and those of [`put`](Self::put).
    fn upload_part(
        &self,
        bucket: &str,
        key: &str,
        upload_id: &str,
        number: u32,
        options: &PutOptions,
    ) -> Result<Box<dyn PartUpload>>;

    /// Writes bytes `range` of `source` as part `number`.
    ///
    /// # Errors
    /// Those of [`upload_part`](Self::upload_part), and
    /// [`InvalidRange`](crate::StoreError::InvalidRange).
    fn copy_part(
        &self,
        source: &Object,
        range: Range<u64>,
        bucket: &str,
        key: &str,
        upload_id: &str,
        number: u32,
    ) -> Result<Written>;

    /// Assembles the object of the parts named. Parts not named are discarded.
    ///
    /// # Errors
    /// [`NoSuchUpload`](crate::StoreError::NoSuchUpload),
    /// [`InvalidPart`](crate::StoreError::InvalidPart),
    /// [`InvalidPartOrder`](crate::StoreError::InvalidPartOrder),
    /// [`EntityTooSmall`](crate::StoreError::EntityTooSmall),
    /// [`InvalidArgument`](crate::StoreError::InvalidArgument) for an empty list,
    /// [`PreconditionFailed`](crate::StoreError::PreconditionFailed). The upload survives an error.
    fn complete_multipart(
        &self,
        bucket: &str,
        key: &str,
        upload_id: &str,
        parts: &[CompletedPart],
        checksums: Vec<Checksum>,
        condition: &Condition,
    ) -> Result<Written>;

    /// Discards an upload and its parts.
    ///
    /// # Errors
    /// [`NoSuchUpload`](crate::StoreError::NoSuchUpload).
    fn abort_multipart(&self, bucket: &str, key: &str, upload_id: &str) -> Result<()>;

    /// Parts with numbers greater than `part_number_marker`, at most `max_parts`.
    ///
    /// # Errors
    /// [`NoSuchUpload`](crate::StoreError::NoSuchUpload).
    fn list_parts(
        &self,
        bucket: &str,
        key: &str,
        upload_id: &str,
        part_number_marker: u32,
        max_parts: usize,
    ) -> Result<PartListing>;

    /// Information about one upload.
    ///
    /// # Errors
    /// [`NoSuchUpload`](crate::StoreError::NoSuchUpload).
    fn upload_info(&self, bucket: &str, key: &str, upload_id: &str) -> Result<UploadInfo> {
        Ok(self.list_parts(bucket, key, upload_id, 0, 0)?.upload)
    }

    /// One page of the multipart uploads in progress.
    ///
    /// # Errors
    /// [`Io`](crate::StoreError::Io).
    fn list_uploads(&self, bucket: &str, request: &ListUploadsRequest<'_>)
    -> Result<UploadListing>;

    /// How much the store holds, for stores that count; `None` for the others (a file system knows
    /// better).
    fn usage(&self) -> Option<Usage>;

    /// Makes ready what the next write will need, as far as that can be done before it comes: for a server that has
    /// answered a write and would wait for the next request otherwise. A hint: nothing is different afterwards but
    /// that the next write may be quicker.
    fn prepare(&self) {}
}
