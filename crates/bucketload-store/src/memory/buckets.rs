//! A bucket in memory: an ordered index of its keys, and its unfinished uploads.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::content::Charge;
use crate::error::{Result, StoreError};
use crate::listing::{after_prefix, common_prefix, lower_bound};
use crate::memory::multipart::Upload;
use crate::memory::shards::Shards;
use crate::memory::versions::Table;
use crate::multipart::new_upload_id;
use crate::types::{BucketInfo, Headers, ListEntry, ListRequest, Listing, Retention};
use crate::upload_types::{MultipartOptions, UploadInfo};
use crate::versions::{VersionId, Versioning};

/// A key, ordered and looked up by its bytes (the successor of a prefix need not be UTF-8).
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct IndexKey(pub(super) Arc<str>);

impl Borrow<[u8]> for IndexKey {
    fn borrow(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

#[derive(Default)]
struct Index {
    keys: BTreeSet<IndexKey>,
    closed: bool,
}

#[derive(Default)]
struct Uploads {
    by_key: BTreeMap<(String, String), Arc<Upload>>,
    closed: bool,
}

pub(super) struct Bucket {
    name: Arc<str>,
    created: SystemTime,
    index: RwLock<Index>,
    uploads: Mutex<Uploads>,
    /// A [`Versioning`].
    versioning: AtomicU8,
    versions: Mutex<Table>,
    retention: Mutex<Option<Retention>>,
    documents: Mutex<BTreeMap<String, (Vec<u8>, Charge)>>,
}

/// An entry of a page before its version is looked up.
enum Found {
    Key(Arc<str>),
    Common(String),
}

impl Bucket {
    pub(super) fn new(name: Arc<str>) -> Self {
        Self {
            name,
            created: SystemTime::now(),
            index: RwLock::default(),
            uploads: Mutex::default(),
            versioning: AtomicU8::new(Versioning::Off as u8),
            versions: Mutex::default(),
            retention: Mutex::default(),
            documents: Mutex::default(),
        }
    }

    pub(super) const fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(super) fn info(&self) -> BucketInfo {
        BucketInfo {
            name: self.name.to_string(),
            created: self.created,
        }
    }

    pub(super) fn versioning(&self) -> Versioning {
        match self.versioning.load(Ordering::Acquire) {
            0 => Versioning::Off,
            1 => Versioning::Enabled,
            _ => Versioning::Suspended,
        }
    }

    pub(super) fn set_versioning(&self, state: Versioning) {
        self.versioning.store(state as u8, Ordering::Release);
    }

    /// The id of the version that a write adds.
    pub(super) fn next_version(&self) -> VersionId {
        match self.versioning() {
            Versioning::Enabled => VersionId::next(),
            Versioning::Off | Versioning::Suspended => VersionId::NULL,
        }
    }

    pub(super) fn table(&self) -> MutexGuard<'_, Table> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_retention(&self, retention: Option<Retention>) {
        *self
            .retention
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = retention;
    }

    /// Adds the bucket's retention to the headers of a version that has none.
    pub(super) fn retain_by_default(&self, headers: &mut Headers) {
        let retention = self
            .retention
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let (Some(retention), None) = (&*retention, headers.get(Headers::LOCK_MODE)) {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let until = now.map_or(0, |now| now.as_secs()) + retention.seconds;
            headers.set(Headers::LOCK_MODE, Some(retention.mode.clone()));
            headers.set(Headers::LOCK_UNTIL, Some(until.to_string()));
        }
    }

    pub(super) fn document(&self, name: &str) -> Option<Vec<u8>> {
        let documents = self
            .documents
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        documents.get(name).map(|(content, _)| content.clone())
    }

    pub(super) fn set_document(&self, name: &str, content: Option<(Vec<u8>, Charge)>) {
        let mut documents = self
            .documents
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match content {
            Some(content) => documents.insert(name.to_owned(), content),
            None => documents.remove(name),
        };
    }

    /// The first key of the index at or after `from`.
    pub(super) fn first_key_from(&self, from: &[u8]) -> Option<Arc<str>> {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        let range = (Bound::Included(from), Bound::Unbounded);
        let IndexKey(key) = index.keys.range::<[u8], _>(range).next()?;
        Some(Arc::clone(key))
    }

    fn uploads(&self) -> MutexGuard<'_, Uploads> {
        self.uploads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses new keys and uploads from now on.
    pub(super) fn close(&self) -> Result<()> {
        let versions = self.table();
        if !versions.is_empty() {
            return Err(StoreError::BucketNotEmpty);
        }
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        if !index.keys.is_empty() {
            return Err(StoreError::BucketNotEmpty);
        }
        index.closed = true;
        drop(index);
        let mut uploads = self.uploads();
        uploads.closed = true;
        let orphans = std::mem::take(&mut uploads.by_key);
        drop(uploads);
        for upload in orphans.values() {
            // Fails if the upload was completed or aborted meanwhile.
            let _ = upload.abort();
        }
        Ok(())
    }

    /// The caller must hold the lock of the key's shard.
    pub(super) fn index_insert(&self, key: Arc<str>) -> Result<()> {
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        if index.closed {
            return Err(StoreError::NoSuchBucket);
        }
        index.keys.insert(IndexKey(key));
        Ok(())
    }

    /// The caller must hold the lock of the key's shard.
    pub(super) fn index_remove(&self, key: &str) {
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        index.keys.remove(key.as_bytes());
    }

    /// One page. Skips keys that vanish between the scan of the index and the lookup of the version,
    /// and continues the scan until the page is full.
    pub(super) fn list(&self, shards: &Shards, request: &ListRequest<'_>) -> Listing {
        let mut page = Listing::default();
        if request.max_keys == 0 {
            return page;
        }
        let mut from = lower_bound(request.prefix, request.delimiter, request.start_after);
        let mut last = None;
        loop {
            let missing = request.max_keys - page.objects.len() - page.common_prefixes.len();
            let (found, more) = self.scan(&mut from, request, missing);
            for entry in found {
                match entry {
                    Found::Key(key) => {
                        let Some(version) = shards.get(&self.name, &key) else {
                            continue;
                        };
                        let entry = ListEntry::of(key.to_string(), &version.info);
                        page.objects.push(entry);
                        last = Some(key.to_string());
                    }
                    Found::Common(prefix) => {
                        last = Some(prefix.clone());
                        page.common_prefixes.push(prefix);
                    }
                }
            }
            if !more {
                return page;
            }
            if page.objects.len() + page.common_prefixes.len() == request.max_keys {
                page.next = last;
                return page;
            }
        }
    }

    /// Returns at most `limit` keys and common prefixes starting at `from`, and whether there are
    /// more. Advances `from` past them. Each common prefix costs one seek, regardless of its size.
    fn scan(
        &self,
        from: &mut Vec<u8>,
        request: &ListRequest<'_>,
        limit: usize,
    ) -> (Vec<Found>, bool) {
        let mut found = Vec::with_capacity(limit.min(1000));
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        'seek: loop {
            let range = (Bound::Included(from.as_slice()), Bound::Unbounded);
            for IndexKey(key) in index.keys.range::<[u8], _>(range) {
                if !key.starts_with(request.prefix) {
                    return (found, false);
                }
                let common = common_prefix(key, request.prefix, request.delimiter);
                if found.len() == limit {
                    *from = key.as_bytes().to_vec();
                    return (found, true);
                }
                if let Some(common) = common {
                    *from = after_prefix(common);
                    found.push(Found::Common(common.to_owned()));
                    continue 'seek;
                }
                found.push(Found::Key(Arc::clone(key)));
            }
            return (found, false);
        }
    }

    pub(super) fn create_upload(
        &self,
        key: &str,
        options: MultipartOptions,
        charge: Charge,
    ) -> Result<String> {
        let upload_id = new_upload_id();
        let upload = Arc::new(Upload::new(key, &upload_id, options, charge));
        let mut uploads = self.uploads();
        if uploads.closed {
            return Err(StoreError::NoSuchBucket);
        }
        uploads
            .by_key
            .insert((key.to_owned(), upload_id.clone()), upload);
        Ok(upload_id)
    }

    pub(super) fn upload(&self, key: &str, upload_id: &str) -> Result<Arc<Upload>> {
        let name = (key.to_owned(), upload_id.to_owned());
        let uploads = self.uploads();
        let upload = uploads.by_key.get(&name).map(Arc::clone);
        upload.ok_or(StoreError::NoSuchUpload)
    }

    pub(super) fn forget_upload(&self, key: &str, upload_id: &str) {
        let name = (key.to_owned(), upload_id.to_owned());
        // Freed after the lock is released.
        let _removed = self.uploads().by_key.remove(&name);
    }

    /// All uploads, sorted by key and creation.
    pub(super) fn all_uploads(&self) -> Vec<UploadInfo> {
        let uploads = self.uploads();
        let infos = uploads.by_key.values().map(|upload| upload.info().clone());
        infos.collect()
    }
}
