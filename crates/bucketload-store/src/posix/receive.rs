//! Receives the bytes of an object or part into a temporary file, and attaches its metadata.

use std::fs::File;
use std::io::Write as _;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::SystemTime;

use rustix::fs::{self, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;

use super::anchors::Anchor;
use super::record::{derived_tag, from_nanos, to_nanos};
use super::temporary::Temporary;
use super::{Durability, Inner};
use crate::api::{ObjectUpload, Write};
use crate::digest::{BodyCheck, EtagMode};
use crate::error::{Result, StoreError};
use crate::etag::ETag;
use crate::extension;
use crate::multipart::increasing;
use crate::object::Object;
use crate::posix::escape::ObjectPath;
use crate::posix::metadata::Version;
use crate::types::{Commit, Condition, ObjectInfo, PartSizes, PutOptions, Written};

/// A modification time in nanoseconds that is unique within this process. It distinguishes versions of
/// a key, for which the kernel's clock (a few milliseconds) is too coarse.
fn unique_now() -> i64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    increasing(&LAST, to_nanos(SystemTime::now()).cast_unsigned()).cast_signed()
}

fn write_failed(error: impl Into<std::io::Error>) -> StoreError {
    StoreError::system("writing an object", error)
}

/// Bytes being received.
pub(super) struct FileReceiver {
    inner: Arc<Inner>,
    check: BodyCheck,
    temporary: Temporary,
}

impl FileReceiver {
    pub(super) fn new(inner: &Arc<Inner>, options: &PutOptions) -> Result<Self> {
        let temporary = Temporary::create(&inner.tree.session)?;
        Ok(Self {
            inner: Arc::clone(inner),
            check: inner.tagger.body(options),
            temporary,
        })
    }

    pub(super) fn write(&mut self, data: &[u8]) -> Result<()> {
        self.check.update(data)?;
        self.temporary.file.write_all(data).map_err(write_failed)
    }

    /// Appends the bytes `range` of `source`. `known` is their tag, if known.
    fn copy(&mut self, source: &Object, mut range: Range<u64>, known: Option<ETag>) -> Result<()> {
        let digest_needed = self.inner.options.etag == EtagMode::Md5 && known.is_none();
        if !digest_needed && let Some(fd) = source.file_descriptor() {
            let done = copy_in_kernel(fd, &range, &self.temporary.file)?;
            self.check.skip(done);
            range.start += done;
        }
        source.for_each_piece(range, |piece| self.write(piece))
    }

    /// Copies the bytes `range` of `source` to a new temporary file. Also returns their tag, if it is
    /// known beforehand.
    pub(super) fn duplicate(
        inner: &Arc<Inner>,
        source: &Object,
        range: Range<u64>,
    ) -> Result<(Self, Option<ETag>)> {
        let size = range.end - range.start;
        let known = match source.info().etag {
            etag if size == source.info().size && etag.md5().is_some() => Some(etag),
            _ => None,
        };
        let mut receiver = Self::new(inner, &PutOptions::sized(size))?;
        receiver.copy(source, range, known)?;
        Ok((receiver, known))
    }

    /// Begins with the bytes of `base`, which do not count as written.
    pub(super) fn follow(&mut self, base: &Object) -> Result<()> {
        let mut rest = 0..base.info().size;
        if let Some(fd) = base.file_descriptor() {
            rest.start = copy_in_kernel(fd, &rest, &self.temporary.file)?;
        }
        base.for_each_piece(rest, |piece| {
            self.temporary.file.write_all(piece).map_err(write_failed)
        })
    }

    /// Ends the content: checks it and sets the modification time.
    pub(super) fn finish(self, known: Option<ETag>) -> Result<FinishedFile> {
        let Self {
            inner,
            check,
            temporary,
        } = self;
        let nanos = unique_now();
        let written = check.written();
        let (size, mut etag) = check.finish()?;
        if etag.md5().is_none() {
            etag = derived_tag(nanos, written);
        }
        stamp(&temporary, nanos)?;
        Ok(FinishedFile {
            inner,
            temporary,
            size,
            etag: known.unwrap_or(etag),
            nanos,
        })
    }
}

fn stamp(temporary: &Temporary, nanos: i64) -> Result<()> {
    let times = Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: nanos.div_euclid(1_000_000_000),
            tv_nsec: nanos.rem_euclid(1_000_000_000),
        },
    };
    fs::futimens(&temporary.file, &times).map_err(write_failed)
}

/// A temporary file with complete content.
pub(super) struct FinishedFile {
    inner: Arc<Inner>,
    pub(super) temporary: Temporary,
    pub(super) size: u64,
    pub(super) etag: ETag,
    nanos: i64,
}

impl FinishedFile {
    /// A complete file assembled from parts.
    pub(super) fn assembled(
        inner: &Arc<Inner>,
        temporary: Temporary,
        size: u64,
        etag: ETag,
    ) -> Result<Self> {
        let nanos = unique_now();
        stamp(&temporary, nanos)?;
        Ok(Self {
            inner: Arc::clone(inner),
            temporary,
            size,
            etag,
            nanos,
        })
    }

    /// This file, whose first bytes are those of `base`. Also returns the sizes of its parts.
    fn extending(mut self, base: &ObjectInfo) -> Result<(Self, PartSizes)> {
        let info = extension::extended(base, self.size, self.etag)?;
        self.size = info.size;
        self.etag = info.etag;
        Ok((self, info.parts))
    }

    pub(super) fn written(&self) -> Written {
        Written {
            etag: self.etag,
            size: self.size,
            modified: from_nanos(self.nanos),
            version: None,
        }
    }

    /// Writes content and attributes to the medium, if configured.
    pub(super) fn sync(&self) -> Result<()> {
        if self.inner.options.durability == Durability::None {
            return Ok(());
        }
        fs::fsync(&self.temporary.file).map_err(write_failed)?;
        self.inner.tree.metadata.sync(&self.temporary.file)
    }

    /// Makes the file the object at `object`; `parent` is as in
    /// [`Tree::publish`](super::tree::Tree::publish).
    pub(super) fn publish(
        self,
        object: &ObjectPath,
        parent: Option<Anchor>,
        commit: Commit,
        parts: PartSizes,
    ) -> Result<Written> {
        let info = ObjectInfo {
            headers: commit.headers,
            checksums: commit.checksums,
            tags: commit.tags,
            parts,
            ..ObjectInfo::bare(self.size, self.etag, from_nanos(self.nanos))
        };
        let written = self.written();
        let inner = Arc::clone(&self.inner);
        let metadata = &inner.tree.metadata;
        let attached = metadata.attach(&self.temporary.file, &info, object);
        // If publishing fails, the sidecar must be removed.
        let version = if metadata.has_sidecars() {
            Some(Version::of(
                &fs::fstat(&self.temporary.file).map_err(write_failed)?,
            ))
        } else {
            None
        };
        let result = attached
            .and_then(|()| self.sync())
            .and_then(|()| self.temporary.close())
            .and_then(|file| inner.tree.publish(object, file, parent, &commit.condition));
        if let (Err(_), Some(version)) = (&result, version) {
            metadata.discard(version);
        }
        result.map(|()| written)
    }
}

/// Bytes being written to an object or a part.
pub(super) struct PosixUpload<T> {
    pub(super) receiver: FileReceiver,
    /// The target of the content on commit.
    pub(super) to: T,
}

/// The target of an object upload.
pub(super) struct NewObject {
    pub(super) object: ObjectPath,
    /// The directory of the key, if it already exists.
    pub(super) parent: Option<Anchor>,
}

impl<T: Send> Write for PosixUpload<T> {
    fn write(&mut self, data: &[u8]) -> Result<()> {
        self.receiver.write(data)
    }

    fn written(&self) -> u64 {
        self.receiver.check.written()
    }

    fn file(&mut self) -> Option<BorrowedFd<'_>> {
        let receiver = &self.receiver;
        (!receiver.check.needs_bytes()).then(|| receiver.temporary.file.as_fd())
    }

    fn appended(&mut self, count: u64) -> Result<()> {
        // Too many bytes are refused when the body ends.
        self.receiver.check.skip(count);
        Ok(())
    }
}

impl ObjectUpload for PosixUpload<NewObject> {
    fn commit(self: Box<Self>, commit: Commit) -> Result<Written> {
        let NewObject { object, parent } = self.to;
        let finished = self.receiver.finish(None)?;
        finished.publish(&object, parent, commit, PartSizes::default())
    }
}

/// The object that an append extends. The temporary file begins with its bytes: readers of the object see
/// it as it was until the longer one replaces it.
pub(super) struct Extended {
    pub(super) object: ObjectPath,
    pub(super) base: ObjectInfo,
}

impl ObjectUpload for PosixUpload<Extended> {
    fn commit(self: Box<Self>, commit: Commit) -> Result<Written> {
        let Extended { object, base } = self.to;
        let (finished, parts) = self.receiver.finish(None)?.extending(&base)?;
        // Headers and tags may have changed since.
        let current = finished.inner.tree.open_with_info(&object)?;
        let (_, current) = current.ok_or(StoreError::InvalidWriteOffset)?;
        let commit = Commit {
            headers: current.headers,
            tags: current.tags,
            checksums: commit.checksums,
            condition: Condition::Match(vec![base.etag]),
        };
        let written = finished.publish(&object, None, commit, parts);
        written.map_err(extension::changed)
    }
}

/// Copies the bytes `range` of `from` to the end of `to` within the kernel, sharing blocks if the file
/// system can. Returns how many bytes were copied; the kernel may not be able to copy all.
pub(super) fn copy_in_kernel(from: impl AsFd, range: &Range<u64>, to: &File) -> Result<u64> {
    let from = from.as_fd();
    let mut offset = range.start;
    while offset < range.end {
        let want = usize::try_from(range.end - offset)
            .unwrap_or(usize::MAX)
            .min(1 << 30);
        match fs::copy_file_range(from, Some(&mut offset), to, None, want) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(
                Errno::XDEV
                | Errno::INVAL
                | Errno::NOSYS
                | Errno::OPNOTSUPP
                | Errno::PERM
                | Errno::TXTBSY,
            ) => break,
            Err(error) => return Err(write_failed(error)),
        }
    }
    Ok(offset - range.start)
}
