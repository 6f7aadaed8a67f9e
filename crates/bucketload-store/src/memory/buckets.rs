//! A bucket in memory: the ordered index of its keys and its unfinished uploads.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

use crate::content::Charge;
use crate::error::{Result, StoreError};
use crate::listing::{after_prefix, common_prefix, lower_bound};
use crate::memory::multipart::Upload;
use crate::memory::shards::Shards;
use crate::multipart::new_upload_id;
use crate::types::{BucketInfo, ListEntry, ListRequest, Listing};
use crate::upload_types::{MultipartOptions, UploadInfo};

/// A key in byte order, looked up by bytes (the successor of a prefix need not be UTF-8).
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct IndexKey(Arc<str>);

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
}

/// What a page holds before the versions are looked up.
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

    /// Forbids further keys and uploads.
    pub(super) fn close(&self) -> Result<()> {
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        if !index.keys.is_empty() {
            return Err(StoreError::BucketNotEmpty);
        }
        index.closed = true;
        drop(index);
        let mut uploads = self.uploads.lock().unwrap_or_else(PoisonError::into_inner);
        uploads.closed = true;
        let orphans = std::mem::take(&mut uploads.by_key);
        drop(uploads);
        for upload in orphans.values() {
            // An upload that was finished meanwhile needs no abort.
            let _ = upload.abort();
        }
        Ok(())
    }

    /// Called with the shard of the key locked.
    pub(super) fn index_insert(&self, key: Arc<str>) -> Result<()> {
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        if index.closed {
            return Err(StoreError::NoSuchBucket);
        }
        index.keys.insert(IndexKey(key));
        Ok(())
    }

    /// Called with the shard of the key locked.
    pub(super) fn index_remove(&self, key: &str) {
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        index.keys.remove(key.as_bytes());
    }

    /// One page. Keys that vanish between the scan of the index and the look at the version are
    /// left out, and the scan goes on until the page is full.
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
                        let info = &version.info;
                        page.objects.push(ListEntry {
                            key: key.to_string(),
                            size: info.size,
                            etag: info.etag,
                            modified: info.modified,
                            checksums: info.checksums.iter().map(|c| c.algorithm).collect(),
                        });
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

    /// At most `limit` keys and common prefixes from `from` on, and whether there are more; moves
    /// `from` behind them. One seek per common prefix, whatever lies below it.
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
        let mut uploads = self.uploads.lock().unwrap_or_else(PoisonError::into_inner);
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
        let uploads = self.uploads.lock().unwrap_or_else(PoisonError::into_inner);
        uploads
            .by_key
            .get(&name)
            .map(Arc::clone)
            .ok_or(StoreError::NoSuchUpload)
    }

    pub(super) fn forget_upload(&self, key: &str, upload_id: &str) {
        let name = (key.to_owned(), upload_id.to_owned());
        let removed = {
            let mut uploads = self.uploads.lock().unwrap_or_else(PoisonError::into_inner);
            uploads.by_key.remove(&name)
        };
        drop(removed);
    }

    /// All uploads in order of key and creation.
    pub(super) fn all_uploads(&self) -> Vec<UploadInfo> {
        let uploads = self.uploads.lock().unwrap_or_else(PoisonError::into_inner);
        uploads
            .by_key
            .values()
            .map(|upload| upload.info().clone())
            .collect()
    }
}
