//! A store that keeps nothing, as the baseline of measurements. It accepts and discards all writes and
//! serves constant content for every key, at no cost beyond the interface's.

use std::ops::Range;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::api::{ObjectUpload, PartUpload, Store, Write};
use crate::content::{Buffer, Chunk};
use crate::digest::{BodyCheck, EtagMode, Tagger};
use crate::error::{Result, StoreError};
use crate::etag::ETag;
use crate::memory::{MemoryOptions, MemoryStore};
use crate::multipart::{check_part_number, new_upload_id};
use crate::names::{check, check_bucket_name};
use crate::object::Object;
use crate::types::{
    BucketInfo, Checksum, Commit, Condition, ListRequest, Listing, ObjectInfo, PutOptions, Tags,
    Usage, Written,
};
use crate::upload_types::{
    CompletedPart, ListUploadsRequest, MultipartOptions, PartListing, UploadInfo, UploadListing,
};

/// Length of the buffer that large objects repeat.
const BLOCK_BYTES: usize = 1 << 20;
/// Memory limit of kept objects.
const MARKS_BYTES: u64 = 1 << 20;

/// True for keys whose objects the store keeps.
fn is_mark(key: &str) -> bool {
    key.rsplit('/')
        .next()
        .is_some_and(|name| name.starts_with('.'))
}

/// How a [`NullStore`] behaves.
#[derive(Debug, Clone, Default)]
pub struct NullOptions {
    /// Size in bytes of objects whose key does not give a size.
    pub object_bytes: u64,
    /// How the entity tags of writes are computed. MD5 costs the same as in the other stores.
    pub etag: EtagMode,
}

/// A store that keeps nothing. Every bucket with a valid name exists and lists as empty; every key can
/// be read. The content is zeros. The first component of the key that consists of decimal digits and a
/// final `B` gives the size (`data/4096B/x` has 4096 bytes); without one, the size is
/// [`NullOptions::object_bytes`].
///
/// Objects whose last component begins with a dot are the exception: the store keeps them, in at most
/// 1 MiB of memory, so that a benchmark can read back its ownership mark.
pub struct NullStore {
    marks: MemoryStore,
    object_bytes: u64,
    tagger: Tagger,
    block: Chunk,
    modified: SystemTime,
}

impl NullStore {
    /// A null store.
    #[must_use]
    pub fn new(options: &NullOptions) -> Self {
        Self {
            marks: MemoryStore::new(MemoryOptions {
                limit_bytes: MARKS_BYTES,
                ..MemoryOptions::default()
            }),
            object_bytes: options.object_bytes,
            tagger: Tagger::new(options.etag),
            block: Chunk::new(Arc::new(Buffer {
                bytes: vec![0; BLOCK_BYTES],
                _charge: None,
            })),
            modified: SystemTime::now(),
        }
    }

    fn size(&self, key: &str) -> u64 {
        key.split('/')
            .filter_map(|component| component.strip_suffix('B'))
            .filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
            .find_map(|digits| digits.parse().ok())
            .unwrap_or(self.object_bytes)
    }

    fn info(&self, key: &str) -> ObjectInfo {
        let size = self.size(key);
        let mut digest = [0; 16];
        digest[8..].copy_from_slice(&size.to_be_bytes());
        ObjectInfo::bare(size, ETag::opaque(digest), self.modified)
    }

    fn written(&self, size: u64, etag: ETag) -> Written {
        Written {
            etag,
            size,
            modified: self.modified,
            version: None,
        }
    }

    fn upload(&self, bucket: &str, key: &str, options: &PutOptions) -> Result<NullUpload> {
        check(bucket, key)?;
        Ok(NullUpload {
            check: self.tagger.body(options),
            modified: self.modified,
            before: 0,
        })
    }
}

struct NullUpload {
    check: BodyCheck,
    modified: SystemTime,
    /// Bytes of the object that an append claims to extend.
    before: u64,
}

impl NullUpload {
    fn finish(self) -> Result<Written> {
        let (size, etag) = self.check.finish()?;
        Ok(Written {
            etag,
            size: self.before + size,
            modified: self.modified,
            version: None,
        })
    }
}

impl Write for NullUpload {
    fn write(&mut self, data: &[u8]) -> Result<()> {
        self.check.update(data)
    }

    fn written(&self) -> u64 {
        self.check.written()
    }
}

impl ObjectUpload for NullUpload {
    fn commit(self: Box<Self>, _commit: Commit) -> Result<Written> {
        self.finish()
    }
}

impl PartUpload for NullUpload {
    fn commit(self: Box<Self>, _checksums: Vec<Checksum>) -> Result<Written> {
        self.finish()
    }
}

impl Store for NullStore {
    fn list_buckets(&self) -> Result<Vec<BucketInfo>> {
        Ok(Vec::new())
    }

    fn create_bucket(&self, bucket: &str) -> Result<()> {
        check_bucket_name(bucket)
    }

    fn head_bucket(&self, bucket: &str) -> Result<BucketInfo> {
        check_bucket_name(bucket)?;
        Ok(BucketInfo {
            name: bucket.to_owned(),
            created: self.modified,
        })
    }

    fn delete_bucket(&self, bucket: &str) -> Result<()> {
        check_bucket_name(bucket)
    }

    fn open(&self, bucket: &str, key: &str) -> Result<Object> {
        check(bucket, key)?;
        if is_mark(key) {
            return match self.marks.open(bucket, key) {
                Err(StoreError::NoSuchBucket) => Err(StoreError::NoSuchKey),
                outcome => outcome,
            };
        }
        Ok(Object::constant(self.info(key), self.block.clone()))
    }

    fn put(&self, bucket: &str, key: &str, options: &PutOptions) -> Result<Box<dyn ObjectUpload>> {
        if is_mark(key) {
            match self.marks.create_bucket(bucket) {
                Ok(()) | Err(StoreError::BucketAlreadyOwnedByYou) => {}
                Err(error) => return Err(error),
            }
            return self.marks.put(bucket, key, options);
        }
        Ok(Box::new(self.upload(bucket, key, options)?))
    }

    /// Every object has the size that the append claims.
    fn append(
        &self,
        bucket: &str,
        key: &str,
        offset: u64,
        options: &PutOptions,
    ) -> Result<(ObjectInfo, Box<dyn ObjectUpload>)> {
        if is_mark(key) {
            return self.marks.append(bucket, key, offset, options);
        }
        let mut upload = self.upload(bucket, key, options)?;
        upload.before = offset;
        let mut info = self.info(key);
        info.size = offset;
        Ok((info, Box::new(upload)))
    }

    fn accept_unseen(&self, bucket: &str, key: &str, size: u64) -> Option<Result<Written>> {
        if is_mark(key) {
            return None;
        }
        let etag = self.tagger.unseen()?;
        Some(check(bucket, key).map(|()| self.written(size, etag)))
    }

    fn delete(&self, bucket: &str, key: &str, condition: &Condition) -> Result<bool> {
        check(bucket, key)?;
        if is_mark(key) {
            return match self.marks.delete(bucket, key, condition) {
                Err(StoreError::NoSuchBucket) => Ok(false),
                outcome => outcome,
            };
        }
        Ok(true)
    }

    fn list(&self, bucket: &str, _request: &ListRequest<'_>) -> Result<Listing> {
        check_bucket_name(bucket)?;
        Ok(Listing::default())
    }

    fn copy(&self, source: &Object, bucket: &str, key: &str, _commit: Commit) -> Result<Written> {
        check(bucket, key)?;
        let info = source.info();
        Ok(self.written(info.size, info.etag))
    }

    fn tags(&self, bucket: &str, key: &str) -> Result<Tags> {
        check(bucket, key)?;
        Ok(Vec::new())
    }

    fn set_tags(&self, bucket: &str, key: &str, _tags: Tags) -> Result<()> {
        check(bucket, key)
    }

    fn create_multipart(&self, bucket: &str, key: &str, _: MultipartOptions) -> Result<String> {
        check(bucket, key)?;
        Ok(new_upload_id())
    }

    fn upload_part(
        &self,
        bucket: &str,
        key: &str,
        _upload_id: &str,
        number: u32,
        options: &PutOptions,
    ) -> Result<Box<dyn PartUpload>> {
        check_part_number(number)?;
        Ok(Box::new(self.upload(bucket, key, options)?))
    }

    fn copy_part(
        &self,
        source: &Object,
        range: Range<u64>,
        bucket: &str,
        key: &str,
        _upload_id: &str,
        number: u32,
    ) -> Result<Written> {
        check_part_number(number)?;
        crate::multipart::check_range(&range, source.info().size)?;
        check(bucket, key)?;
        Ok(self.written(range.end - range.start, source.info().etag))
    }

    fn complete_multipart(
        &self,
        bucket: &str,
        key: &str,
        _upload_id: &str,
        _parts: &[CompletedPart],
        _checksums: Vec<Checksum>,
        _condition: &Condition,
    ) -> Result<Written> {
        check(bucket, key)?;
        Ok(self.info(key).written())
    }

    fn abort_multipart(&self, bucket: &str, key: &str, _upload_id: &str) -> Result<()> {
        check(bucket, key)
    }

    fn list_parts(
        &self,
        bucket: &str,
        key: &str,
        upload_id: &str,
        _part_number_marker: u32,
        _max_parts: usize,
    ) -> Result<PartListing> {
        check(bucket, key)?;
        let upload = UploadInfo {
            key: key.to_owned(),
            upload_id: upload_id.to_owned(),
            initiated: UNIX_EPOCH,
            checksum: None,
            storage_class: None,
        };
        Ok(PartListing {
            upload,
            parts: Vec::new(),
            next: None,
        })
    }

    fn list_uploads(&self, bucket: &str, _: &ListUploadsRequest<'_>) -> Result<UploadListing> {
        check_bucket_name(bucket)?;
        Ok(UploadListing::default())
    }

    fn usage(&self) -> Option<Usage> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_may_give_the_size() {
        let store = NullStore::new(&NullOptions {
            object_bytes: 7,
            ..NullOptions::default()
        });
        for (key, size) in [
            ("x", 7),
            ("B", 7),
            ("12B", 12),
            ("a/0B/c", 0),
            ("a/-1B/+2B/3B", 3),
            ("a/99999999999999999999999B/c", 7),
        ] {
            assert_eq!(
                store.open("bucket", key).unwrap().info().size,
                size,
                "{key}"
            );
        }
    }

    #[test]
    fn ownership_marks_read_back() {
        let store = NullStore::new(&NullOptions::default());
        let (bucket, key) = ("bucket", "p/.mark");
        assert!(matches!(
            store.open(bucket, key),
            Err(StoreError::NoSuchKey)
        ));
        let mut upload = store.put(bucket, key, &PutOptions::default()).unwrap();
        upload.write(b"mine").unwrap();
        upload.commit(Commit::default()).unwrap();
        assert!(store.accept_unseen(bucket, key, 4).is_none());
        let mut read = [0; 4];
        store
            .open(bucket, key)
            .unwrap()
            .read_at(0, &mut read)
            .unwrap();
        assert_eq!(&read, b"mine");
        assert!(store.delete(bucket, key, &Condition::None).unwrap());
        assert!(matches!(
            store.open(bucket, key),
            Err(StoreError::NoSuchKey)
        ));
    }

    #[test]
    fn a_large_object_repeats_the_block() {
        let store = NullStore::new(&NullOptions::default());
        let size = 2 * BLOCK_BYTES as u64 + 5;
        let object = store.open("bucket", &format!("{size}B")).unwrap();
        let mut offset = 0;
        let mut lens = Vec::new();
        while let Some(chunk) = object.chunk(offset) {
            offset += chunk.len() as u64;
            lens.push(chunk.len());
        }
        assert_eq!(lens, [BLOCK_BYTES, BLOCK_BYTES, 5]);
        assert_eq!(object.read_at(size - 2, &mut [1; 9]).unwrap(), 2);
    }

    #[test]
    fn opaque_writes_are_accepted_unseen() {
        let store = NullStore::new(&NullOptions::default());
        assert!(store.accept_unseen("bucket", "k", 1).is_none());
        let opaque = NullOptions {
            etag: EtagMode::Opaque,
            ..NullOptions::default()
        };
        let store = NullStore::new(&opaque);
        let accept = |bucket| store.accept_unseen(bucket, "k", 7).unwrap();
        assert_eq!(accept("bucket").unwrap().size, 7);
        assert_ne!(
            accept("bucket").unwrap().etag,
            accept("bucket").unwrap().etag
        );
        assert_eq!(accept("X").unwrap_err().code(), "InvalidBucketName");
    }

    #[test]
    fn writes_are_counted_and_checked() {
        let store = NullStore::new(&NullOptions::default());
        let mut upload = store.put("bucket", "k", &PutOptions::sized(3)).unwrap();
        upload.write(b"abc").unwrap();
        let written = upload.commit(Commit::default()).unwrap();
        assert_eq!(written.etag.to_string(), "900150983cd24fb0d6963f7d28e17f72");
        let short = store.put("bucket", "k", &PutOptions::sized(3)).unwrap();
        assert_eq!(
            short.commit(Commit::default()).unwrap_err().code(),
            "IncompleteBody"
        );
    }
}
