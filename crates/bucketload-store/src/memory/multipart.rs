//! A multipart upload in memory. Completion joins the parts' buffers without copying.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use crate::api::PartUpload;
use crate::content::{Budget, Charge, Content};
use crate::error::{Result, StoreError};
use crate::etag::ETag;
use crate::memory::upload::MemoryUpload;
use crate::multipart::check_completion;
use crate::object::MemoryBody;
use crate::part_sums::PartSums;
use crate::types::{Checksum, ObjectInfo, Written};
use crate::upload_types::{CompletedPart, MultipartOptions, PartInfo, PartListing, UploadInfo};

struct Part {
    info: PartInfo,
    content: Content,
    _charge: Charge,
}

pub(super) struct Upload {
    info: UploadInfo,
    options: MultipartOptions,
    /// `None` once the upload is completed or aborted.
    parts: Mutex<Option<BTreeMap<u32, Part>>>,
    _charge: Charge,
}

impl Upload {
    pub(super) fn new(key: &str, id: &str, options: MultipartOptions, charge: Charge) -> Self {
        Self {
            info: UploadInfo {
                key: key.to_owned(),
                upload_id: id.to_owned(),
                initiated: SystemTime::now(),
                checksum: options.checksum,
                storage_class: options.headers.storage_class().map(str::to_owned),
            },
            options,
            parts: Mutex::new(Some(BTreeMap::new())),
            _charge: charge,
        }
    }

    pub(super) const fn info(&self) -> &UploadInfo {
        &self.info
    }

    fn lock(&self) -> MutexGuard<'_, Option<BTreeMap<u32, Part>>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put_part(
        &self,
        number: u32,
        size: u64,
        etag: ETag,
        checksums: Vec<Checksum>,
        content: Content,
        charge: Charge,
    ) -> Result<Written> {
        let modified = SystemTime::now();
        let info = PartInfo {
            number,
            size,
            etag,
            modified,
            checksums,
        };
        let mut guard = self.lock();
        let parts = guard.as_mut().ok_or(StoreError::NoSuchUpload)?;
        let replaced = parts.insert(
            number,
            Part {
                info,
                content,
                _charge: charge,
            },
        );
        drop(guard);
        drop(replaced);
        Ok(Written {
            etag,
            size,
            modified,
            version: None,
        })
    }

    /// Assembles the object and passes it to `publish`. The upload ends if that succeeds.
    pub(super) fn complete(
        &self,
        named: &[CompletedPart],
        min_part_bytes: u64,
        budget: &Arc<Budget>,
        publish: impl FnOnce(ObjectInfo, MemoryBody) -> Result<Written>,
    ) -> Result<Written> {
        let mut guard = self.lock();
        let parts = guard.as_ref().ok_or(StoreError::NoSuchUpload)?;
        let assembly = check_completion(named, min_part_bytes, |number| {
            parts.get(&number).map(|part| part.info.clone())
        })?;
        let used = named.iter().filter_map(|part| parts.get(&part.number));
        let part_sums = match self.options.checksum {
            Some((algorithm, _)) => {
                let sums = used.clone().map(|part| part.info.checksums.as_slice());
                PartSums::of(algorithm, sums, budget)?.map(Arc::new)
            }
            None => None,
        };
        let chunks = used.flat_map(|part| part.content.chunks().cloned());
        let body = MemoryBody {
            content: Content::join(chunks),
            part_sums,
        };
        let info = ObjectInfo {
            headers: self.options.headers.clone(),
            tags: self.options.tags.clone(),
            parts: assembly.parts,
            ..ObjectInfo::bare(assembly.size, assembly.etag, SystemTime::now())
        };
        let written = publish(info, body)?;
        let finished = guard.take();
        drop(guard);
        drop(finished);
        Ok(written)
    }

    pub(super) fn abort(&self) -> Result<()> {
        let parts = self.lock().take();
        parts.map(drop).ok_or(StoreError::NoSuchUpload)
    }

    pub(super) fn list_parts(&self, marker: u32, max_parts: usize) -> Result<PartListing> {
        let guard = self.lock();
        let parts = guard.as_ref().ok_or(StoreError::NoSuchUpload)?;
        let after = parts
            .range(marker.saturating_add(1)..)
            .map(|(_, part)| &part.info);
        Ok(crate::multipart::page_parts(
            self.info.clone(),
            after,
            max_parts,
        ))
    }
}

/// The target of a part upload.
pub(super) struct NewPart {
    pub(super) upload: Arc<Upload>,
    pub(super) number: u32,
}

impl PartUpload for MemoryUpload<NewPart> {
    fn commit(self: Box<Self>, checksums: Vec<Checksum>) -> Result<Written> {
        let charge = self.receiver.inner.budget.charge(super::OBJECT_OVERHEAD)?;
        let (content, size, etag) = self.receiver.finish()?;
        let NewPart { upload, number } = self.to;
        upload.put_part(number, size, etag, checksums, content, charge)
    }
}
