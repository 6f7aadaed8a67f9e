//! Receives the bytes of an object or part into charged buffers, and copies content.

use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use crate::api::{ObjectUpload, Write};
use crate::content::{Buffer, Charge, Chunk, Content};
use crate::digest::BodyCheck;
use crate::error::{Result, StoreError};
use crate::etag::ETag;
use crate::extension;
use crate::memory::buckets::Bucket;
use crate::memory::{Inner, OBJECT_OVERHEAD};
use crate::object::{MemoryVersion, Object};
use crate::types::{Commit, ObjectInfo, PutOptions, Written};

/// Maximum buffer size. Content of larger or unknown size is split into buffers of this size.
const BUFFER_BYTES: usize = 1 << 20;

/// Bytes being received.
pub(super) struct Receiver {
    pub(super) inner: Arc<Inner>,
    check: BodyCheck,
    announced: Option<u64>,
    charge: Charge,
    /// Bytes to charge with the first buffer in addition to its content.
    overhead: u64,
    chunks: Vec<Chunk>,
    current: Vec<u8>,
}

impl Receiver {
    /// Charges the announced size up front, so that a body that cannot fit is refused before it is
    /// sent.
    pub(super) fn new(inner: &Arc<Inner>, options: &PutOptions) -> Result<Self> {
        Ok(Self {
            charge: inner.budget.charge(options.size.unwrap_or(0))?,
            check: inner.tagger.body(options),
            announced: options.size,
            inner: Arc::clone(inner),
            overhead: 0,
            chunks: Vec::new(),
            current: Vec::new(),
        })
    }

    /// As [`new`](Self::new), for bytes that join those of an object. Many small appends need more memory
    /// for their buffers than for their bytes, so the buffers are charged too.
    pub(super) fn to_append(inner: &Arc<Inner>, options: &PutOptions) -> Result<Self> {
        let mut receiver = Self::new(inner, options)?;
        receiver.charge.grow(OBJECT_OVERHEAD)?;
        receiver.overhead = OBJECT_OVERHEAD;
        Ok(receiver)
    }

    pub(super) fn write(&mut self, mut data: &[u8]) -> Result<()> {
        let before = self.check.written();
        self.check.update(data)?;
        if self.announced.is_none() {
            self.charge.grow(data.len() as u64)?;
        }
        let mut done = before;
        while !data.is_empty() {
            if self.current.capacity() == 0
                && let Some(size) = self.announced
            {
                let rest = usize::try_from(size - done).unwrap_or(usize::MAX);
                self.current.reserve_exact(rest.min(BUFFER_BYTES));
            }
            let (now, later) = data.split_at(data.len().min(BUFFER_BYTES - self.current.len()));
            self.current.extend_from_slice(now);
            done += now.len() as u64;
            data = later;
            if self.current.len() == BUFFER_BYTES {
                self.seal();
            }
        }
        Ok(())
    }

    fn seal(&mut self) {
        let mut bytes = std::mem::take(&mut self.current);
        bytes.shrink_to_fit();
        let charged = bytes.len() as u64 + std::mem::take(&mut self.overhead);
        let charge = self.charge.split(charged);
        self.chunks.push(Chunk::new(Arc::new(Buffer {
            bytes,
            _charge: Some(charge),
        })));
    }

    /// The content with its size and tag.
    pub(super) fn finish(mut self) -> Result<(Content, u64, ETag)> {
        if !self.current.is_empty() {
            self.seal();
        }
        let (size, etag) = self.check.finish()?;
        Ok((Content::join(self.chunks), size, etag))
    }
}

/// Bytes being received for an object or a part.
pub(super) struct MemoryUpload<T> {
    pub(super) receiver: Receiver,
    /// The target of the content on commit.
    pub(super) to: T,
}

/// The target of an object upload.
pub(super) struct NewObject {
    pub(super) bucket: Arc<Bucket>,
    pub(super) key: String,
}

impl<T: Send> Write for MemoryUpload<T> {
    fn write(&mut self, data: &[u8]) -> Result<()> {
        self.receiver.write(data)
    }

    fn written(&self) -> u64 {
        self.receiver.check.written()
    }
}

impl ObjectUpload for MemoryUpload<NewObject> {
    fn commit(self: Box<Self>, commit: Commit) -> Result<Written> {
        let inner = Arc::clone(&self.receiver.inner);
        let (content, size, etag) = self.receiver.finish()?;
        let NewObject { bucket, key } = self.to;
        let (info, condition) = ObjectInfo::now(size, etag, commit);
        inner.publish(&bucket, &key, content.into(), info, &condition)
    }
}

/// The object that an append extends.
pub(super) struct Extended {
    pub(super) bucket: Arc<Bucket>,
    pub(super) key: String,
    pub(super) base: Arc<MemoryVersion>,
}

impl ObjectUpload for MemoryUpload<Extended> {
    fn commit(self: Box<Self>, commit: Commit) -> Result<Written> {
        let inner = Arc::clone(&self.receiver.inner);
        let (content, size, etag) = self.receiver.finish()?;
        let Extended { bucket, key, base } = self.to;
        let mut info = extension::extended(&base.info, size, etag)?;
        info.modified = SystemTime::now();
        info.checksums = commit.checksums;
        let written = info.written();
        let charge = inner.charge_key(&key)?;
        let chunks = base.content.chunks().chain(content.chunks());
        let content = Content::join(chunks.cloned());
        let extend = |current: &MemoryVersion| {
            if current.info.etag != base.info.etag {
                return Err(StoreError::InvalidWriteOffset);
            }
            // They may have changed since.
            info.headers.clone_from(&current.info.headers);
            info.tags.clone_from(&current.info.tags);
            Ok(MemoryVersion {
                info,
                content,
                // Those of some parts are of no use.
                part_sums: None,
                _charge: charge,
            })
        };
        inner
            .shards
            .update(bucket.name(), &key, extend)
            .map_err(extension::changed)?;
        Ok(written)
    }
}

/// Copies the bytes `range` of `source`, sharing its buffers if they are in memory. Also returns the
/// tag that a PUT of these bytes would get.
pub(super) fn duplicate(
    inner: &Arc<Inner>,
    source: &Object,
    range: Range<u64>,
) -> Result<(Content, ETag)> {
    let size = range.end - range.start;
    let Some(version) = source.as_memory() else {
        let mut receiver = Receiver::new(inner, &PutOptions::sized(size))?;
        source.for_each_piece(range, |piece| receiver.write(piece))?;
        let (content, _, etag) = receiver.finish()?;
        return Ok((content, etag));
    };
    let mut chunks = Vec::new();
    let mut offset = range.start;
    while offset < range.end
        && let Some(mut chunk) = version.content.chunk(offset)
    {
        chunk.truncate(usize::try_from(range.end - offset).unwrap_or(usize::MAX));
        offset += chunk.len() as u64;
        chunks.push(chunk);
    }
    let whole = size == version.info.size;
    let etag = match version.info.etag.md5() {
        Some(digest) if whole => ETag::from_md5(digest),
        _ => {
            let mut check = inner.tagger.body(&PutOptions::sized(size));
            for chunk in &chunks {
                check.update(chunk)?;
            }
            check.finish()?.1
        }
    };
    Ok((Content::join(chunks), etag))
}
