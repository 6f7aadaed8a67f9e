//! Receives the bytes of an object or part into a temporary file, and gives it its metadata.

use std::fs::File;
use std::io::Write as _;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
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
use crate::object::Object;
use crate::posix::escape::Place;
use crate::posix::metadata::Version;
use crate::types::{Commit, ObjectInfo, PartSizes, PutOptions, Written};

/// Buffer for copies that the kernel cannot make.
const COPY_BYTES: usize = 1 << 20;

/// A modification time in nanoseconds that no other write of this process has: it tells versions of
/// a key apart, which the kernel's coarse clock (a few milliseconds) does not.
fn unique_now() -> i64 {
    static LAST: AtomicI64 = AtomicI64::new(0);
    let now = to_nanos(SystemTime::now());
    LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
        Some(now.max(last + 1))
    })
    .map_or(now, |last| now.max(last + 1))
}

fn write_failed(error: impl Into<std::io::Error>) -> StoreError {
    StoreError::system("writing an object", error)
}

/// Bytes being received.
pub(super) struct Intake {
    inner: Arc<Inner>,
    check: BodyCheck,
    temporary: Temporary,
}

impl Intake {
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

    pub(super) const fn written(&self) -> u64 {
        self.check.written()
    }

    /// The file, where nobody has to see its bytes.
    pub(super) fn file(&self) -> Option<BorrowedFd<'_>> {
        (!self.check.looks()).then(|| self.temporary.file.as_fd())
    }

    /// Counts bytes that were moved into the file. Too many of them fail at its end.
    pub(super) fn appended(&mut self, count: u64) -> Result<()> {
        self.check.skip(count);
        Ok(())
    }

    /// Appends bytes `range` of `source`. `known` is their tag, if it is known.
    fn copy(&mut self, source: &Object, range: Range<u64>, known: Option<ETag>) -> Result<()> {
        let digest_needed = self.inner.options.etag == EtagMode::Md5 && known.is_none();
        if !digest_needed && let Some(fd) = source.file_descriptor() {
            let done = copy_in_kernel(fd, &range, &self.temporary.file)?;
            self.check.skip(done);
            return self.copy_by_hand(source, range.start + done..range.end);
        }
        self.copy_by_hand(source, range)
    }

    fn copy_by_hand(&mut self, source: &Object, range: Range<u64>) -> Result<()> {
        let mut offset = range.start;
        let length = usize::try_from(range.end - range.start).unwrap_or(COPY_BYTES);
        let mut buffer = vec![0; length.min(COPY_BYTES)];
        while offset < range.end {
            let want = usize::try_from(range.end - offset)
                .unwrap_or(COPY_BYTES)
                .min(COPY_BYTES);
            let got = source.read_at(offset, &mut buffer[..want])?;
            if got == 0 {
                return Err(StoreError::IncompleteBody {
                    announced: range.end - range.start,
                    written: offset - range.start,
                });
            }
            self.write(&buffer[..got])?;
            offset += got as u64;
        }
        Ok(())
    }

    /// A new temporary file with bytes `range` of `source`. Returns their tag if it is known
    /// beforehand.
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
        let mut intake = Self::new(inner, &PutOptions::sized(size))?;
        intake.copy(source, range, known)?;
        Ok((intake, known))
    }

    /// Ends the content: checks it, sets the modification time, writes it to the medium if wanted.
    pub(super) fn finish(self, known: Option<ETag>) -> Result<Finished> {
        let Self {
            inner,
            check,
            temporary,
        } = self;
        let nanos = unique_now();
        let written = check.written();
        let (size, mut etag) = check.finish()?;
        if inner.options.etag == EtagMode::Opaque {
            etag = derived_tag(nanos, written);
        }
        stamp(&temporary, nanos)?;
        Ok(Finished {
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

/// A temporary file whose content is complete.
pub(super) struct Finished {
    inner: Arc<Inner>,
    pub(super) temporary: Temporary,
    pub(super) size: u64,
    pub(super) etag: ETag,
    nanos: i64,
}

impl Finished {
    /// A complete file that was assembled of parts.
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

    pub(super) fn written(&self) -> Written {
        Written {
            etag: self.etag,
            size: self.size,
            modified: from_nanos(self.nanos),
        }
    }

    /// Writes content and attributes to the medium if that is wanted.
    pub(super) fn sync(&self) -> Result<()> {
        if self.inner.options.durability == Durability::None {
            return Ok(());
        }
        fs::fsync(&self.temporary.file).map_err(write_failed)?;
        self.inner.tree.metadata.sync(&self.temporary.file)
    }

    /// Makes it the object of a key, whose place is `place`; `parent` as in [`Tree::publish`](super::tree::Tree::publish).
    pub(super) fn publish(
        self,
        place: &Place,
        parent: Option<Anchor>,
        commit: Commit,
        parts: PartSizes,
    ) -> Result<Written> {
        let info = ObjectInfo {
            size: self.size,
            etag: self.etag,
            modified: from_nanos(self.nanos),
            headers: commit.headers,
            checksums: commit.checksums,
            tags: commit.tags,
            parts,
        };
        let written = self.written();
        let inner = Arc::clone(&self.inner);
        let metadata = &inner.tree.metadata;
        let attached = metadata.attach(&self.temporary.file, &info, place);
        // A sidecar without object must not remain.
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
            .and_then(|file| inner.tree.publish(place, file, parent, &commit.condition));
        if let (Err(_), Some(version)) = (&result, version) {
            metadata.discard(version);
        }
        result.map(|()| written)
    }
}

/// Bytes being written to an object or a part.
pub(super) struct PosixUpload<T> {
    pub(super) intake: Intake,
    /// Where the content goes when it is committed.
    pub(super) to: T,
}

/// An object to be.
pub(super) struct NewObject {
    pub(super) place: Place,
    /// The directory of the key, if it is there already.
    pub(super) parent: Option<Anchor>,
}

impl<T: Send> Write for PosixUpload<T> {
    fn write(&mut self, data: &[u8]) -> Result<()> {
        self.intake.write(data)
    }

    fn written(&self) -> u64 {
        self.intake.written()
    }

    fn file(&mut self) -> Option<BorrowedFd<'_>> {
        self.intake.file()
    }

    fn appended(&mut self, count: u64) -> Result<()> {
        self.intake.appended(count)
    }
}

impl ObjectUpload for PosixUpload<NewObject> {
    fn commit(self: Box<Self>, commit: Commit) -> Result<Written> {
        let NewObject { place, parent } = self.to;
        let finished = self.intake.finish(None)?;
        finished.publish(&place, parent, commit, PartSizes::default())
    }
}

/// Copies bytes `range` of `from` to the end of `to` as far as the kernel can: by sharing blocks
/// where the file system does that, else inside the kernel. Returns how many were copied.
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
