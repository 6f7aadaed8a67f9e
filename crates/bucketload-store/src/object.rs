//! An object opened for reading: its information and a way to its bytes that suits the back end.
//!
//! An opened object is one version: it stays whole and readable when the key is overwritten or
//! deleted meanwhile. Memory gives [`Chunk`]s (shared slices, never copied); a file gives its
//! descriptor for `pread` and `sendfile`; a constant body repeats one buffer.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::content::{Charge, Chunk, Content};
use crate::error::{Result, StoreError};
use crate::types::ObjectInfo;

/// A version of an object in memory.
#[derive(Debug)]
pub(crate) struct MemoryVersion {
    pub(crate) info: ObjectInfo,
    pub(crate) content: Content,
    pub(crate) _charge: Charge,
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

    /// Everything but the content.
    #[must_use]
    pub fn info(&self) -> &ObjectInfo {
        match &self.0 {
            Body::Memory(version) => &version.info,
            Body::File { info, .. } | Body::Constant { info, .. } => info,
        }
    }

    /// The bytes from `offset` to the end of the buffer that holds them, without a copy. `None` at
    /// or after the end of the content, and always for a file. It may reach beyond the end of a
    /// range that the caller has in mind: see [`Chunk::truncate`].
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

    /// The file that holds exactly the content, from offset 0, if there is one. Its position is of
    /// no meaning: use `pread`, or `sendfile` with an explicit offset.
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

    /// Copies bytes from `offset` on into `out` until it is full or the content ends; returns their
    /// number.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the file cannot be read.
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
}
