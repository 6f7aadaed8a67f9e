//! The interface of a store: [`Store`] for whole operations, and [`ObjectUpload`] and [`PartUpload`]
//! for writes whose bytes arrive in pieces.
//!
//! All calls are synchronous and may be made from any thread. Stores in memory never block for long;
//! stores on a file system make system calls. A commit makes a write visible as a whole; an upload
//! dropped without a commit leaves nothing behind.

use std::ops::Range;
use std::os::fd::BorrowedFd;

use crate::error::{Result, StoreError};
use crate::object::Object;
use crate::types::{
    BucketInfo, Checksum, Commit, Condition, Headers, ListRequest, Listing, ObjectInfo, PutOptions,
    Retention, Tags, Usage, Written,
};
use crate::upload_types::{
    CompletedPart, ListUploadsRequest, MultipartOptions, PartListing, UploadInfo, UploadListing,
};
use crate::versions::{ListVersionsRequest, Removed, VersionId, VersionListing, Versioning};

/// Refuses to remove a version for good; called with the store's locks held.
pub type Guard<'a> = &'a dyn Fn(&ObjectInfo) -> Result<()>;

/// Changes the metadata of a version; called with the store's locks held.
pub type Amend<'a> = &'a mut dyn FnMut(&mut Headers, &mut Tags) -> Result<()>;

/// Largest part number.
pub const MAX_PARTS: u32 = 10_000;

/// A write in progress.
pub trait Write: Send {
    /// Appends `data`.
    ///
    /// # Errors
    /// [`InsufficientStorage`](crate::StoreError::InsufficientStorage),
    /// [`IncompleteBody`](crate::StoreError::IncompleteBody) if more than the announced size is
    /// written, [`Io`](crate::StoreError::Io). After an error, the upload can only be dropped.
    fn write(&mut self, data: &[u8]) -> Result<()>;

    /// Bytes written so far.
    fn written(&self) -> u64;

    /// The file that bytes may be moved into within the kernel, at its position, instead of calling
    /// [`write`](Self::write). `None` if the store must see the bytes. The caller reports the number
    /// of bytes to [`appended`](Self::appended).
    fn file(&mut self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Records that `count` bytes were moved into [`file`](Self::file).
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn appended(&mut self, count: u64) -> Result<()> {
        let _ = count;
        Err(StoreError::NotImplemented("writes without their bytes"))
    }
}

/// An object being written. Dropping it aborts the write.
pub trait ObjectUpload: Write {
    /// Atomically makes the object visible under its key, replacing the current version.
    ///
    /// # Errors
    /// Those of [`Write::write`], and
    /// [`PreconditionFailed`](crate::StoreError::PreconditionFailed),
    /// [`NoSuchKey`](crate::StoreError::NoSuchKey) (condition on a missing object),
    /// [`BadDigest`](crate::StoreError::BadDigest),
    /// [`NoSuchBucket`](crate::StoreError::NoSuchBucket) (deleted meanwhile).
    fn commit(self: Box<Self>, commit: Commit) -> Result<Written>;
}

/// A part being written. Dropping it aborts the write.
pub trait PartUpload: Write {
    /// Makes the part visible, replacing an earlier one with the same number, and stores `checksums`
    /// with it.
    ///
    /// # Errors
    /// Those of [`Write::write`], and [`BadDigest`](crate::StoreError::BadDigest),
    /// [`NoSuchUpload`](crate::StoreError::NoSuchUpload) (completed or aborted meanwhile).
    fn commit(self: Box<Self>, checksums: Vec<Checksum>) -> Result<Written>;
}

/// S3 semantics over a medium.
///
/// Every operation checks bucket names and keys ([`crate::names`]) and fails with
/// [`NoSuchBucket`](crate::StoreError::NoSuchBucket) if the bucket does not exist. The errors below
/// do not repeat this.
pub trait Store: Send + Sync {
    /// All buckets, sorted by name.
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

    /// Deletes an empty bucket together with its unfinished multipart uploads.
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

    /// Starts writing an object.
    ///
    /// # Errors
    /// [`InsufficientStorage`](crate::StoreError::InsufficientStorage) if the announced size cannot
    /// fit, [`EntityTooLarge`](crate::StoreError::EntityTooLarge).
    fn put(&self, bucket: &str, key: &str, options: &PutOptions) -> Result<Box<dyn ObjectUpload>>;

    /// Starts extending the current version of an object, whose size must be `offset`. Also returns that
    /// version as it is now. The commit makes the longer object visible as a whole; it keeps the object's
    /// headers and tags, takes the checksums of the whole object from its argument, and ignores the rest
    /// of that. An object that was replaced or deleted meanwhile is not extended.
    ///
    /// # Errors
    /// Those of [`put`](Self::put), and [`NoSuchKey`](crate::StoreError::NoSuchKey),
    /// [`InvalidWriteOffset`](crate::StoreError::InvalidWriteOffset) (also from the commit),
    /// [`TooManyParts`](crate::StoreError::TooManyParts) if there are [`MAX_PARTS`] already,
    /// [`NotImplemented`](crate::StoreError::NotImplemented).
    fn append(
        &self,
        bucket: &str,
        key: &str,
        offset: u64,
        options: &PutOptions,
    ) -> Result<(ObjectInfo, Box<dyn ObjectUpload>)> {
        let _ = (bucket, key, offset, options);
        Err(StoreError::NotImplemented("appends"))
    }

    /// For stores that keep nothing: accepts an object or part of `size` bytes without seeing its
    /// bytes. `None` means that the caller must write them. This lets a server drop a body in the
    /// kernel and answer small writes without allocating.
    ///
    /// # Errors
    /// Those of [`put`](Self::put).
    fn accept_unseen(&self, bucket: &str, key: &str, size: u64) -> Option<Result<Written>> {
        let _ = (bucket, key, size);
        None
    }

    /// Deletes an object. Returns whether it existed; S3 reports success in both cases.
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

    /// Copies `source`, which may belong to another store, to a key; copying an object onto itself is
    /// allowed. Shares or clones the data if the medium can. The entity tag is that of a PUT of the
    /// same bytes; headers, tags and checksums come from `commit`.
    ///
    /// # Errors
    /// Those of [`put`](Self::put) and [`ObjectUpload::commit`].
    fn copy(&self, source: &Object, bucket: &str, key: &str, commit: Commit) -> Result<Written>;

    /// The tags of an object.
    ///
    /// # Errors
    /// [`NoSuchKey`](crate::StoreError::NoSuchKey).
    fn tags(&self, bucket: &str, key: &str) -> Result<Tags>;

    /// Replaces the tags of an object and nothing else. An empty list deletes them.
    ///
    /// # Errors
    /// [`NoSuchKey`](crate::StoreError::NoSuchKey).
    fn set_tags(&self, bucket: &str, key: &str, tags: Tags) -> Result<()>;

    /// Starts a multipart upload and returns its id.
    ///
    /// # Errors
    /// [`InsufficientStorage`](crate::StoreError::InsufficientStorage).
    fn create_multipart(
        &self,
        bucket: &str,
        key: &str,
        options: MultipartOptions,
    ) -> Result<String>;

    /// Starts writing part `number` (1 to [`MAX_PARTS`]).
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

    /// Copies the bytes `range` of `source` to part `number`.
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

    /// Assembles the object from the parts named. Discards the others.
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

    /// Whether the bucket keeps versions.
    ///
    /// # Errors
    /// [`NoSuchBucket`](crate::StoreError::NoSuchBucket).
    fn versioning(&self, bucket: &str) -> Result<Versioning> {
        self.head_bucket(bucket).map(|_| Versioning::Off)
    }

    /// Enables or suspends versioning. A write in flight meanwhile may count as one before.
    ///
    /// # Errors
    /// [`NotImplemented`](crate::StoreError::NotImplemented) if the store keeps no versions;
    /// [`InvalidArgument`](crate::StoreError::InvalidArgument) for [`Versioning::Off`], because
    /// versioning cannot be undone.
    fn set_versioning(&self, bucket: &str, state: Versioning) -> Result<()> {
        let _ = (bucket, state);
        Err(StoreError::NotImplemented("versioning"))
    }

    /// Opens the version `version` of an object.
    ///
    /// # Errors
    /// [`NoSuchVersion`](crate::StoreError::NoSuchVersion),
    /// [`DeleteMarker`](crate::StoreError::DeleteMarker).
    fn open_version(&self, bucket: &str, key: &str, version: VersionId) -> Result<Object> {
        if version == VersionId::NULL {
            self.open(bucket, key)
        } else {
            Err(StoreError::NoSuchVersion)
        }
    }

    /// Removes a version for good, or without `version` deletes the object: in a bucket with
    /// versioning, that adds a delete marker. Asks `guard` before a version is removed from a bucket
    /// with versioning. A version that does not exist counts as removed.
    ///
    /// # Errors
    /// Those of [`delete`](Self::delete) and of `guard`;
    /// [`NoSuchVersion`](crate::StoreError::NoSuchVersion) in a bucket without versioning.
    fn remove(
        &self,
        bucket: &str,
        key: &str,
        version: Option<VersionId>,
        condition: &Condition,
        guard: Guard<'_>,
    ) -> Result<Removed> {
        let _ = guard;
        if version.is_some_and(|version| version != VersionId::NULL) {
            return Err(StoreError::NoSuchVersion);
        }
        self.delete(bucket, key, condition)?;
        Ok(Removed::default())
    }

    /// One page of the versions in a bucket.
    ///
    /// # Errors
    /// [`Io`](crate::StoreError::Io).
    fn list_versions(
        &self,
        bucket: &str,
        request: &ListVersionsRequest<'_>,
    ) -> Result<VersionListing> {
        Ok(self.list(bucket, &request.keys)?.into())
    }

    /// Changes the metadata of the version `version`, or of the current one, and nothing else.
    ///
    /// # Errors
    /// Those of [`open_version`](Self::open_version) and of `change`;
    /// [`NotImplemented`](crate::StoreError::NotImplemented).
    fn amend(
        &self,
        bucket: &str,
        key: &str,
        version: Option<VersionId>,
        change: Amend<'_>,
    ) -> Result<()> {
        let _ = (bucket, key, version, change);
        Err(StoreError::NotImplemented(
            "changes of an object's metadata",
        ))
    }

    /// A configuration of the bucket, as the caller stored it.
    ///
    /// # Errors
    /// [`NoSuchBucket`](crate::StoreError::NoSuchBucket).
    fn document(&self, bucket: &str, name: &str) -> Result<Option<Vec<u8>>> {
        let _ = name;
        self.head_bucket(bucket).map(|_| None)
    }

    /// Stores or deletes a configuration of the bucket; `name` is known to the caller alone.
    ///
    /// # Errors
    /// [`NotImplemented`](crate::StoreError::NotImplemented), but not for the deletion of what is
    /// absent.
    fn set_document(&self, bucket: &str, name: &str, content: Option<Vec<u8>>) -> Result<()> {
        let _ = name;
        self.head_bucket(bucket)?;
        match content {
            None => Ok(()),
            Some(_) => Err(StoreError::NotImplemented("configurations of buckets")),
        }
    }

    /// Sets the retention that new versions get unless their headers name one.
    ///
    /// # Errors
    /// [`NotImplemented`](crate::StoreError::NotImplemented).
    fn set_retention(&self, bucket: &str, retention: Option<Retention>) -> Result<()> {
        let _ = (bucket, retention);
        Err(StoreError::NotImplemented("object lock"))
    }

    /// How much the store holds; `None` if the store does not count (a file system does).
    fn usage(&self) -> Option<Usage>;

    /// Prepares for the next write. A server calls this after responding to a write, when it would
    /// otherwise wait for the next request. It is only a hint that may make the next write faster.
    fn prepare(&self) {}
}
