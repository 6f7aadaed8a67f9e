//! An object opened for reading: its information, and access to its bytes that suits the back end.
//!
//! An open object is one version: it stays readable if the key is overwritten or deleted meanwhile.
//! Memory provides [`Chunk`]s (shared slices, never copied); a file provides its descriptor for
//! `pread` and `sendfile`; a constant body repeats one buffer.

use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::api::Amend;
use crate::content::{Charge, Chunk, Content};
use crate::error::{Result, StoreError};
use crate::part_sums::PartSums;
use crate::types::{Checksum, ObjectInfo};

/// Buffer size for reading content piece by piece.
const PIECE_BYTES: usize = 256 << 10;

/// A version of an object in memory.
#[derive(Debug)]
pub(crate) struct MemoryVersion {
    pub(crate) info: ObjectInfo,
    pub(crate) content: Content,
    pub(crate) part_sums: Option<Arc<PartSums>>,
    pub(crate) _charge: Charge,
}

/// The bytes of a new version in memory, and the checksums of their parts.
pub(crate) struct MemoryBody {
    pub(crate) content: Content,
    pub(crate) part_sums: Option<Arc<PartSums>>,
}

impl From<Content> for MemoryBody {
    fn from(content: Content) -> Self {
        Self {
            content,
            part_sums: None,
        }
    }
}

impl MemoryVersion {
    /// This version with other metadata.
    pub(crate) fn amended(&self, change: Amend<'_>, charge: Charge) -> Result<Self> {
        let mut info = self.info.clone();
        change(&mut info.headers, &mut info.tags)?;
        Ok(Self {
            info,
            content: self.content.clone(),
            part_sums: self.part_sums.clone(),
            _charge: charge,
        })
    }
}

#[derive(Debug)]
enum Body {
    Memory(Arc<MemoryVersion>),
    File { info: ObjectInfo, file: File },
    Constant { info: ObjectInfo, block: Chunk },
}

/// An object opened for reading.
#[derive(Debug)]
pub struct Object(Body);

impl Object {
    pub(crate) const fn memory(version: Arc<MemoryVersion>) -> Self {
        Self(Body::Memory(version))
    }

    pub(crate) const fn file(info: ObjectInfo, file: File) -> Self {
        Self(Body::File { info, file })
    }

    pub(crate) const fn constant(info: ObjectInfo, block: Chunk) -> Self {
        Self(Body::Constant { info, block })
    }

    /// Everything except the content.
    #[must_use]
    pub fn info(&self) -> &ObjectInfo {
        match &self.0 {
            Body::Memory(version) => &version.info,
            Body::File { info, .. } | Body::Constant { info, .. } => info,
        }
    }

    /// The checksum of part `number` (from 1) of the object as it was assembled. Only the store in memory
    /// keeps them.
    #[must_use]
    pub fn part_checksum(&self, number: u32) -> Option<Checksum> {
        self.as_memory()?.part_sums.as_ref()?.get(number)
    }

    /// The bytes from `offset` to the end of the buffer that holds them, without a copy. `None` at or
    /// after the end of the content, and always for a file. The chunk may reach beyond the range that
    /// the caller wants: see [`Chunk::truncate`].
    #[must_use]
    pub fn chunk(&self, offset: u64) -> Option<Chunk> {
        match &self.0 {
            Body::Memory(version) => version.content.chunk(offset),
            Body::File { .. } => None,
            Body::Constant { info, block } => {
                let rest = info.size.checked_sub(offset).filter(|rest| *rest > 0)?;
                let mut chunk = block.clone();
                chunk.truncate(usize::try_from(rest).unwrap_or(usize::MAX));
                Some(chunk)
            }
        }
    }

    /// The file that holds exactly the content, if there is one. Ignore its position: use `pread`, or
    /// `sendfile` with an explicit offset.
    #[must_use]
    pub fn file_descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.0 {
            Body::File { file, .. } => Some(file.as_fd()),
            Body::Memory(_) | Body::Constant { .. } => None,
        }
    }

    pub(crate) const fn as_memory(&self) -> Option<&Arc<MemoryVersion>> {
        match &self.0 {
            Body::Memory(version) => Some(version),
            Body::File { .. } | Body::Constant { .. } => None,
        }
    }

    /// Copies the bytes from `offset` into `out` until it is full or the content ends. Returns their
    /// number.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the file cannot be read.
    pub fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        if let Body::File { file, .. } = &self.0 {
            while done < out.len() {
                match file.read_at(&mut out[done..], offset + done as u64) {
                    Ok(0) => break,
                    Ok(n) => done += n,
                    Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(source) => {
                        return Err(StoreError::Io {
                            context: "reading an object",
                            source,
                        });
                    }
                }
            }
            return Ok(done);
        }
        while done < out.len() {
            let Some(mut chunk) = self.chunk(offset + done as u64) else {
                break;
            };
            chunk.truncate(out.len() - done);
            out[done..done + chunk.len()].copy_from_slice(&chunk);
            done += chunk.len();
        }
        Ok(done)
    }

    /// Reads the bytes `range` and passes them to `take` in pieces of at most 256 KiB.
    ///
    /// # Errors
    /// Those of [`read_at`](Self::read_at) and of `take`; [`StoreError::Corrupt`] if the content is
    /// shorter than `range`.
    pub fn for_each_piece<E: From<StoreError>>(
        &self,
        mut range: Range<u64>,
        mut take: impl FnMut(&[u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let at_most =
            |bytes: u64| usize::try_from(bytes).map_or(PIECE_BYTES, |n| n.min(PIECE_BYTES));
        let mut buffer = vec![0; at_most(range.end - range.start)];
        while range.start < range.end {
            let want = at_most(range.end - range.start);
            let got = self.read_at(range.start, &mut buffer[..want])?;
            if got == 0 {
                return Err(StoreError::Corrupt("the source ended early".to_owned()).into());
            }
            take(&buffer[..got])?;
            range.start += got as u64;
        }
        Ok(())
    }
}
