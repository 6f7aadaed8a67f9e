//! Objects as files in a directory.
//!
//! A bucket is a directory in the root, and an object is a file in it; `escape` maps keys to readable
//! paths. A write goes to a temporary file of the session (`session`), and one `rename` turns it into
//! the object (`tree`); metadata travel with the file (`metadata`, `record`). A crash leaves either the
//! old or the new object, and litter only where the next opening removes it. No path leads out of the
//! root, and no symbolic link is followed (`beneath`). `list` walks in key order, `index` keeps large
//! directories sorted, and `multipart` keeps uploads in the hidden area.
//!
//! Several processes may use one root at the same time. Conditions are atomic within a process. Across
//! processes only `Condition::Absent` is; the others hold when tested, just before the rename. A file
//! that another program puts into a bucket is an object.

mod anchors;
mod beneath;
mod buckets;
mod complete;
mod entries;
mod escape;
mod gather;
mod index;
mod list;
mod metadata;
mod multipart;
mod receive;
mod record;
mod room;
mod session;
mod stripes;
mod temporary;
mod tree;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crate::api::{ObjectUpload, PartUpload, Store};
use crate::digest::{EtagMode, Tagger};
use crate::error::{Result, StoreError};
use crate::extension;
use crate::multipart::{check_part_number, check_range};
use crate::names::{check, check_bucket_name};
use crate::object::Object;
use crate::types::{
    BucketInfo, Checksum, Commit, Condition, ListRequest, Listing, ObjectInfo, PartSizes,
    PutOptions, Tags, Usage, Written,
};
use crate::upload_types::{
    CompletedPart, ListUploadsRequest, MultipartOptions, PartListing, UploadListing,
};
use complete::NewPart;
use escape::ObjectPath;
use index::Indexes;
pub use metadata::MetadataStorage;
use metadata::{Metadata, Version};
use receive::{Extended, FileReceiver, NewObject, PosixUpload};
use session::Session;
use temporary::Temporary;
use tree::Tree;

/// What a write waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Nothing. A crash of the process loses nothing; a crash of the machine may.
    #[default]
    None,
    /// The file's content and metadata are on the medium (`fsync`).
    File,
    /// The directory entries are on the medium too, also after a delete.
    FileAndDirectory,
}

/// How a [`PosixStore`] behaves.
#[derive(Debug, Clone)]
pub struct PosixOptions {
    /// The root directory, created if missing. Symbolic links in this path are followed.
    pub root: PathBuf,
    /// What a write waits for.
    pub durability: Durability,
    /// How entity tags are computed. An opaque tag is derived from the modification time and the size,
    /// so an object without other metadata needs no record.
    pub etag: EtagMode,
    /// Where metadata records are kept.
    pub metadata: MetadataStorage,
    /// Minimum size of every part but the last, in bytes (S3: 5 MiB).
    pub min_part_bytes: u64,
    /// Maximum number of entries in the indexes of large directories; 0 for no indexes. Indexes make
    /// listings fast and cost about 100 bytes per entry. A directory with more entries has no index.
    pub index_entries: usize,
}

impl PosixOptions {
    /// The defaults for a root directory.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            durability: Durability::default(),
            etag: EtagMode::default(),
            metadata: MetadataStorage::default(),
            min_part_bytes: crate::MIN_PART_BYTES,
            index_entries: 2_000_000,
        }
    }
}

#[derive(Debug)]
struct Inner {
    options: PosixOptions,
    tagger: Tagger,
    tree: Tree,
    indexes: Indexes,
}

/// A store in a directory. Cheap to clone: clones share the session.
#[derive(Debug, Clone)]
pub struct PosixStore {
    inner: Arc<Inner>,
}

impl PosixStore {
    /// Opens a root directory, creates it if missing, and removes the leftovers of dead processes.
    ///
    /// # Errors
    /// [`StoreError::Io`] or [`StoreError::AccessDenied`] if the directory cannot be used,
    /// [`StoreError::InvalidArgument`] if the metadata storage is unsupported or differs from the one
    /// that the directory was created with, [`StoreError::Corrupt`].
    pub fn open(options: PosixOptions) -> Result<Self> {
        let opened = Session::open(&options.root, options.metadata)?;
        let session = Arc::new(opened.session);
        let metadata = Metadata::new(Arc::clone(&session), opened.metadata);
        let sync_directories = options.durability == Durability::FileAndDirectory;
        let tree = Tree::new(session, metadata, sync_directories);
        tree.metadata
            .sweep(opened.unclean, &opened.alive, |owner| {
                let found = tree.open(&ObjectPath::of(&owner.bucket, &owner.key))?;
                Ok(found.map(|(_, stat)| Version::of(&stat)))
            })?;
        buckets::sweep_uploads(&tree)?;
        let tagger = Tagger::new(options.etag);
        let indexes = Indexes::new(options.index_entries);
        Ok(Self {
            inner: Arc::new(Inner {
                options,
                tagger,
                tree,
                indexes,
            }),
        })
    }

    fn upload(&self, bucket: &str, key: &str, upload_id: &str) -> Result<multipart::Upload> {
        check(bucket, key)?;
        multipart::Upload::open(&self.inner, bucket, key, upload_id)
    }

    /// The error for a key that was not found.
    fn missing(&self, bucket: &str) -> StoreError {
        match buckets::check(&self.inner.tree, bucket) {
            Ok(()) => StoreError::NoSuchKey,
            Err(error) => error,
        }
    }
}

impl Store for PosixStore {
    fn list_buckets(&self) -> Result<Vec<BucketInfo>> {
        buckets::list(&self.inner.tree)
    }

    fn create_bucket(&self, bucket: &str) -> Result<()> {
        check_bucket_name(bucket)?;
        buckets::create(&self.inner.tree, bucket)
    }

    fn head_bucket(&self, bucket: &str) -> Result<BucketInfo> {
        check_bucket_name(bucket)?;
        buckets::info(&self.inner.tree, bucket)
    }

    fn delete_bucket(&self, bucket: &str) -> Result<()> {
        check_bucket_name(bucket)?;
        buckets::delete(&self.inner.tree, bucket)
    }

    fn open(&self, bucket: &str, key: &str) -> Result<Object> {
        check(bucket, key)?;
        match self
            .inner
            .tree
            .open_with_info(&ObjectPath::of(bucket, key))?
        {
            Some((fd, info)) => Ok(Object::file(info, fd.into())),
            None => Err(self.missing(bucket)),
        }
    }

    fn put(&self, bucket: &str, key: &str, options: &PutOptions) -> Result<Box<dyn ObjectUpload>> {
        check(bucket, key)?;
        let object = ObjectPath::of(bucket, key);
        let parent = self.inner.tree.parent(bucket, &object)?;
        let receiver = FileReceiver::new(&self.inner, options)?;
        let to = NewObject { object, parent };
        Ok(Box::new(PosixUpload { receiver, to }))
    }

    fn append(
        &self,
        bucket: &str,
        key: &str,
        offset: u64,
        options: &PutOptions,
    ) -> Result<(ObjectInfo, Box<dyn ObjectUpload>)> {
        let base = self.open(bucket, key)?;
        extension::check(base.info(), offset)?;
        let mut receiver = FileReceiver::new(&self.inner, options)?;
        receiver.follow(&base)?;
        let info = base.info().clone();
        let to = Extended {
            object: ObjectPath::of(bucket, key),
            base: info.clone(),
        };
        Ok((info, Box::new(PosixUpload { receiver, to })))
    }

    fn delete(&self, bucket: &str, key: &str, condition: &Condition) -> Result<bool> {
        check(bucket, key)?;
        match self
            .inner
            .tree
            .remove(&ObjectPath::of(bucket, key), condition)
        {
            Ok(true) => Ok(true),
            Ok(false) => buckets::check(&self.inner.tree, bucket).map(|()| false),
            Err(StoreError::NoSuchKey) => Err(self.missing(bucket)),
            Err(error) => Err(error),
        }
    }

    fn list(&self, bucket: &str, request: &ListRequest<'_>) -> Result<Listing> {
        check_bucket_name(bucket)?;
        list::list(&self.inner.tree, &self.inner.indexes, bucket, request)
    }

    fn copy(&self, source: &Object, bucket: &str, key: &str, commit: Commit) -> Result<Written> {
        check(bucket, key)?;
        buckets::check(&self.inner.tree, bucket)?;
        let range = 0..source.info().size;
        let (receiver, known) = FileReceiver::duplicate(&self.inner, source, range)?;
        let object = ObjectPath::of(bucket, key);
        let finished = receiver.finish(known)?;
        finished.publish(&object, None, commit, PartSizes::default())
    }

    fn tags(&self, bucket: &str, key: &str) -> Result<Tags> {
        self.head(bucket, key).map(|info| info.tags)
    }

    fn set_tags(&self, bucket: &str, key: &str, tags: Tags) -> Result<()> {
        check(bucket, key)?;
        let object = ObjectPath::of(bucket, key);
        let tree = &self.inner.tree;
        let _guard = tree.lock(object.path());
        let Some((fd, mut info)) = tree.open_with_info(&object)? else {
            return Err(self.missing(bucket));
        };
        info.tags = tags;
        tree.metadata.replace(&fd.into(), &info, &object)
    }

    fn create_multipart(
        &self,
        bucket: &str,
        key: &str,
        options: MultipartOptions,
    ) -> Result<String> {
        check(bucket, key)?;
        buckets::check(&self.inner.tree, bucket)?;
        multipart::create(&self.inner, bucket, key, options)
    }

    fn upload_part(
        &self,
        bucket: &str,
        key: &str,
        upload_id: &str,
        number: u32,
        options: &PutOptions,
    ) -> Result<Box<dyn PartUpload>> {
        check_part_number(number)?;
        let upload = self.upload(bucket, key, upload_id)?;
        let receiver = FileReceiver::new(&self.inner, options)?;
        let to = NewPart { upload, number };
        Ok(Box::new(PosixUpload { receiver, to }))
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
        check_part_number(number)?;
        check_range(&range, source.info().size)?;
        let upload = self.upload(bucket, key, upload_id)?;
        let (receiver, known) = FileReceiver::duplicate(&self.inner, source, range)?;
        upload.put_part(number, receiver.finish(known)?, Vec::new())
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
        self.upload(bucket, key, upload_id)?
            .complete(bucket, parts, checksums, condition)
    }

    fn abort_multipart(&self, bucket: &str, key: &str, upload_id: &str) -> Result<()> {
        self.upload(bucket, key, upload_id)?.remove()
    }

    fn list_parts(
        &self,
        bucket: &str,
        key: &str,
        upload_id: &str,
        part_number_marker: u32,
        max_parts: usize,
    ) -> Result<PartListing> {
        self.upload(bucket, key, upload_id)?
            .list(part_number_marker, max_parts)
    }

    fn list_uploads(
        &self,
        bucket: &str,
        request: &ListUploadsRequest<'_>,
    ) -> Result<UploadListing> {
        check_bucket_name(bucket)?;
        buckets::check(&self.inner.tree, bucket)?;
        let uploads = multipart::all(&self.inner, bucket)?;
        Ok(crate::multipart::page_uploads(&uploads, request))
    }

    fn usage(&self) -> Option<Usage> {
        None
    }

    fn prepare(&self) {
        Temporary::prepare(&self.inner.tree.session);
    }
}
