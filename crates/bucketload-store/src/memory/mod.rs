//! Objects in memory.
//!
//! A hash map in 256 shards finds an object by bucket and key under one short lock. Each bucket has an
//! ordered index, touched only when a key appears or disappears, that makes a listing a range scan. A
//! version is immutable and shared: reading clones an `Arc`, overwriting replaces it. Bytes are charged
//! when allocated and released when freed (`content`), so the limit holds for any order of writes,
//! copies, deletes and slow readers. The lock order is: bucket table, parts of an upload, shard, index.
//! `buckets` holds buckets and indexes, `multipart` holds uploads, and `upload` receives bytes.

mod buckets;
mod multipart;
mod shards;
mod upload;
mod versions;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::api::{Amend, Guard, ObjectUpload, PartUpload, Store};
use crate::content::{Budget, Charge};
use crate::digest::{EtagMode, Tagger};
use crate::error::{Result, StoreError};
use crate::extension;
use crate::names::{check_bucket_name, check_key};
use crate::object::{MemoryBody, MemoryVersion, Object};
use crate::types::{
    BucketInfo, Checksum, Commit, Condition, ListRequest, Listing, ObjectInfo, PutOptions,
    Retention, Tags, Usage, Written,
};
use crate::upload_types::{
    CompletedPart, ListUploadsRequest, MultipartOptions, PartListing, UploadListing,
};
use crate::versions::{ListVersionsRequest, Removed, VersionId, VersionListing, Versioning};
use buckets::Bucket;
use multipart::NewPart;
use shards::Shards;
use upload::{Extended, MemoryUpload, NewObject, Receiver};

/// Bytes charged per object, part or upload in addition to content and key: the sizes of the index
/// and map entries and of the version with its buffers, rounded up.
pub const OBJECT_OVERHEAD: u64 = 512;

/// How a [`MemoryStore`] behaves.
#[derive(Debug, Clone)]
pub struct MemoryOptions {
    /// Maximum bytes that may be charged ([`Usage::charged_bytes`]).
    pub limit_bytes: u64,
    /// How entity tags are computed.
    pub etag: EtagMode,
    /// Minimum size of every part but the last, in bytes (S3: 5 MiB).
    pub min_part_bytes: u64,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            limit_bytes: u64::MAX,
            etag: EtagMode::default(),
            min_part_bytes: crate::MIN_PART_BYTES,
        }
    }
}

/// A store in memory. Cheap to clone: clones share the objects.
#[derive(Clone)]
pub struct MemoryStore {
    inner: Arc<Inner>,
}

type Buckets = HashMap<Arc<str>, Arc<Bucket>>;

struct Inner {
    options: MemoryOptions,
    tagger: Tagger,
    budget: Arc<Budget>,
    objects: AtomicU64,
    shards: Shards,
    buckets: RwLock<Buckets>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new(options: MemoryOptions) -> Self {
        Self {
            inner: Arc::new(Inner {
                tagger: Tagger::new(options.etag),
                budget: Arc::new(Budget::new(options.limit_bytes)),
                objects: AtomicU64::new(0),
                shards: Shards::new(),
                buckets: RwLock::default(),
                options,
            }),
        }
    }
}

impl Inner {
    fn buckets(&self) -> RwLockReadGuard<'_, Buckets> {
        self.buckets.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn buckets_mut(&self) -> RwLockWriteGuard<'_, Buckets> {
        self.buckets.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Charges the overhead of an object or upload.
    fn charge_key(&self, key: &str) -> Result<Charge> {
        self.budget.charge(OBJECT_OVERHEAD + key.len() as u64)
    }

    fn bucket(&self, name: &str) -> Result<Arc<Bucket>> {
        let buckets = self.buckets();
        if let Some(bucket) = buckets.get(name) {
            return Ok(Arc::clone(bucket));
        }
        drop(buckets);
        check_bucket_name(name)?;
        Err(StoreError::NoSuchBucket)
    }

    /// The current version, or the error that explains why there is none.
    fn version(&self, bucket: &str, key: &str) -> Result<Arc<MemoryVersion>> {
        if let Some(version) = self.shards.get(bucket, key) {
            return Ok(version);
        }
        check_key(key)?;
        let bucket = self.bucket(bucket)?;
        Err(Self::absence(&bucket, key))
    }

    /// Makes a version the current one of its key.
    fn publish(
        &self,
        bucket: &Bucket,
        key: &str,
        body: MemoryBody,
        info: ObjectInfo,
        condition: &Condition,
    ) -> Result<Written> {
        if bucket.versioning() != Versioning::Off {
            return self.publish_version(bucket, key, body, info, condition);
        }
        let written = info.written();
        let charge = self.charge_key(key)?;
        let version = Arc::new(MemoryVersion {
            info,
            content: body.content,
            part_sums: body.part_sums,
            _charge: charge,
        });
        let replaced = self.shards.insert(bucket, key, version, condition)?;
        if replaced.is_none() {
            self.objects.fetch_add(1, Ordering::Relaxed);
        }
        Ok(written)
    }
}

impl Store for MemoryStore {
    fn list_buckets(&self) -> Result<Vec<BucketInfo>> {
        let buckets = self.inner.buckets();
        let mut all: Vec<_> = buckets.values().map(|bucket| bucket.info()).collect();
        drop(buckets);
        all.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    fn create_bucket(&self, bucket: &str) -> Result<()> {
        check_bucket_name(bucket)?;
        let mut buckets = self.inner.buckets_mut();
        if buckets.contains_key(bucket) {
            return Err(StoreError::BucketAlreadyOwnedByYou);
        }
        let name: Arc<str> = bucket.into();
        buckets.insert(Arc::clone(&name), Arc::new(Bucket::new(name)));
        Ok(())
    }

    fn head_bucket(&self, bucket: &str) -> Result<BucketInfo> {
        Ok(self.inner.bucket(bucket)?.info())
    }

    fn delete_bucket(&self, bucket: &str) -> Result<()> {
        check_bucket_name(bucket)?;
        let mut buckets = self.inner.buckets_mut();
        buckets
            .get(bucket)
            .ok_or(StoreError::NoSuchBucket)?
            .close()?;
        buckets.remove(bucket);
        Ok(())
    }

    fn open(&self, bucket: &str, key: &str) -> Result<Object> {
        self.inner.version(bucket, key).map(Object::memory)
    }

    fn head(&self, bucket: &str, key: &str) -> Result<ObjectInfo> {
        self.inner
            .version(bucket, key)
            .map(|version| version.info.clone())
    }

    fn put(&self, bucket: &str, key: &str, options: &PutOptions) -> Result<Box<dyn ObjectUpload>> {
        check_key(key)?;
        let bucket = self.inner.bucket(bucket)?;
        let receiver = Receiver::new(&self.inner, options)?;
        let key = key.to_owned();
        let to = NewObject { bucket, key };
        Ok(Box::new(MemoryUpload { receiver, to }))
    }

    fn append(
        &self,
        bucket: &str,
        key: &str,
        offset: u64,
        options: &PutOptions,
    ) -> Result<(ObjectInfo, Box<dyn ObjectUpload>)> {
        check_key(key)?;
        let bucket = self.inner.bucket(bucket)?;
        if bucket.versioning() != Versioning::Off {
            return Err(StoreError::NotImplemented(
                "appends in a bucket with versioning",
            ));
        }
        let base = self.inner.version(bucket.name(), key)?;
        extension::check(&base.info, offset)?;
        let receiver = Receiver::to_append(&self.inner, options)?;
        let (info, key) = (base.info.clone(), key.to_owned());
        let to = Extended { bucket, key, base };
        Ok((info, Box::new(MemoryUpload { receiver, to })))
    }

    fn delete(&self, bucket: &str, key: &str, condition: &Condition) -> Result<bool> {
        check_key(key)?;
        let bucket = self.inner.bucket(bucket)?;
        if bucket.versioning() != Versioning::Off {
            let existed = self.inner.shards.get(bucket.name(), key).is_some();
            let unguarded: Guard<'_> = &|_| Ok(());
            self.inner
                .remove_version(&bucket, key, None, condition, unguarded)?;
            return Ok(existed);
        }
        let removed = self.inner.shards.remove(&bucket, key, condition)?;
        if removed.is_some() {
            self.inner.objects.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(removed.is_some())
    }

    fn list(&self, bucket: &str, request: &ListRequest<'_>) -> Result<Listing> {
        let bucket = self.inner.bucket(bucket)?;
        Ok(bucket.list(&self.inner.shards, request))
    }

    fn copy(&self, source: &Object, bucket: &str, key: &str, commit: Commit) -> Result<Written> {
        check_key(key)?;
        let bucket = self.inner.bucket(bucket)?;
        let size = source.info().size;
        let (content, etag) = upload::duplicate(&self.inner, source, 0..size)?;
        let (info, condition) = ObjectInfo::now(size, etag, commit);
        self.inner
            .publish(&bucket, key, content.into(), info, &condition)
    }

    fn tags(&self, bucket: &str, key: &str) -> Result<Tags> {
        self.inner
            .version(bucket, key)
            .map(|version| version.info.tags.clone())
    }

    fn set_tags(&self, bucket: &str, key: &str, tags: Tags) -> Result<()> {
        let mut tags = Some(tags);
        self.amend(bucket, key, None, &mut |_, old| {
            *old = tags.take().unwrap_or_default();
            Ok(())
        })
    }

    fn versioning(&self, bucket: &str) -> Result<Versioning> {
        Ok(self.inner.bucket(bucket)?.versioning())
    }

    fn set_versioning(&self, bucket: &str, state: Versioning) -> Result<()> {
        let bucket = self.inner.bucket(bucket)?;
        if state == Versioning::Off {
            return Err(StoreError::InvalidArgument(
                "versioning can be suspended, not undone",
            ));
        }
        bucket.set_versioning(state);
        Ok(())
    }

    fn open_version(&self, bucket: &str, key: &str, version: VersionId) -> Result<Object> {
        check_key(key)?;
        let bucket = self.inner.bucket(bucket)?;
        self.inner
            .named_version(&bucket, key, version)
            .map(Object::memory)
    }

    fn remove(
        &self,
        bucket: &str,
        key: &str,
        version: Option<VersionId>,
        condition: &Condition,
        guard: Guard<'_>,
    ) -> Result<Removed> {
        let found = self.inner.bucket(bucket)?;
        if found.versioning() != Versioning::Off {
            check_key(key)?;
            return self
                .inner
                .remove_version(&found, key, version, condition, guard);
        }
        if version.is_some_and(|version| version != VersionId::NULL) {
            return Err(StoreError::NoSuchVersion);
        }
        self.delete(bucket, key, condition)?;
        Ok(Removed::default())
    }

    fn list_versions(
        &self,
        bucket: &str,
        request: &ListVersionsRequest<'_>,
    ) -> Result<VersionListing> {
        let bucket = self.inner.bucket(bucket)?;
        Ok(bucket.list_versions(&self.inner.shards, request))
    }

    fn amend(
        &self,
        bucket: &str,
        key: &str,
        version: Option<VersionId>,
        change: Amend<'_>,
    ) -> Result<()> {
        check_key(key)?;
        let found = self.inner.bucket(bucket)?;
        if found.versioning() != Versioning::Off {
            return self.inner.amend_version(&found, key, version, change);
        }
        if version.is_some_and(|version| version != VersionId::NULL) {
            return Err(StoreError::NoSuchVersion);
        }
        let charge = self.inner.charge_key(key)?;
        self.inner
            .shards
            .update(bucket, key, |version| version.amended(change, charge))
    }

    fn document(&self, bucket: &str, name: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.inner.bucket(bucket)?.document(name))
    }

    fn set_document(&self, bucket: &str, name: &str, content: Option<Vec<u8>>) -> Result<()> {
        let bucket = self.inner.bucket(bucket)?;
        let charged = |content: Vec<u8>| {
            let charge = self.inner.budget.charge(content.len() as u64)?;
            Ok((content, charge))
        };
        bucket.set_document(name, content.map(charged).transpose()?);
        Ok(())
    }

    fn set_retention(&self, bucket: &str, retention: Option<Retention>) -> Result<()> {
        self.inner.bucket(bucket)?.set_retention(retention);
        Ok(())
    }

    fn create_multipart(
        &self,
        bucket: &str,
        key: &str,
        options: MultipartOptions,
    ) -> Result<String> {
        check_key(key)?;
        let charge = self.inner.charge_key(key)?;
        self.inner
            .bucket(bucket)?
            .create_upload(key, options, charge)
    }

    fn upload_part(
        &self,
        bucket: &str,
        key: &str,
        upload_id: &str,
        number: u32,
        options: &PutOptions,
    ) -> Result<Box<dyn PartUpload>> {
        crate::multipart::check_part_number(number)?;
        let upload = self.inner.bucket(bucket)?.upload(key, upload_id)?;
        let receiver = Receiver::new(&self.inner, options)?;
        let to = NewPart { upload, number };
        Ok(Box::new(MemoryUpload { receiver, to }))
    }

    fn copy_part(
        &self,
        source: &Object,
        range: Range<u64>,
        bucket: &str,
        key: &str,
        upload_id: &str,
        number: u32,
    ) -> Result<Written> {
        crate::multipart::check_part_number(number)?;
        crate::multipart::check_range(&range, source.info().size)?;
        let upload = self.inner.bucket(bucket)?.upload(key, upload_id)?;
        let size = range.end - range.start;
        let (content, etag) = upload::duplicate(&self.inner, source, range)?;
        let charge = self.inner.budget.charge(OBJECT_OVERHEAD)?;
        upload.put_part(number, size, etag, Vec::new(), content, charge)
    }

    fn complete_multipart(
        &self,
        bucket: &str,
        key: &str,
        upload_id: &str,
        parts: &[CompletedPart],
        checksums: Vec<Checksum>,
        condition: &Condition,
    ) -> Result<Written> {
        let bucket = self.inner.bucket(bucket)?;
        let upload = bucket.upload(key, upload_id)?;
        let written = upload.complete(
            parts,
            self.inner.options.min_part_bytes,
            &self.inner.budget,
            |mut info, body| {
                info.checksums = checksums;
                self.inner.publish(&bucket, key, body, info, condition)
            },
        )?;
        bucket.forget_upload(key, upload_id);
        Ok(written)
    }

    fn abort_multipart(&self, bucket: &str, key: &str, upload_id: &str) -> Result<()> {
        let bucket = self.inner.bucket(bucket)?;
        bucket.upload(key, upload_id)?.abort()?;
        bucket.forget_upload(key, upload_id);
        Ok(())
    }

    fn list_parts(
        &self,
        bucket: &str,
        key: &str,
        upload_id: &str,
        part_number_marker: u32,
        max_parts: usize,
    ) -> Result<PartListing> {
        let upload = self.inner.bucket(bucket)?.upload(key, upload_id)?;
        upload.list_parts(part_number_marker, max_parts)
    }

    fn list_uploads(
        &self,
        bucket: &str,
        request: &ListUploadsRequest<'_>,
    ) -> Result<UploadListing> {
        let uploads = self.inner.bucket(bucket)?.all_uploads();
        Ok(crate::multipart::page_uploads(&uploads, request))
    }

    fn usage(&self) -> Option<Usage> {
        Some(Usage {
            objects: self.inner.objects.load(Ordering::Relaxed),
            charged_bytes: self.inner.budget.used(),
        })
    }
}
