//! Storage for records that do not fit into memory: streams of compressed blocks in one temporary file, and an
//! external merge sort.
//!
//! The file has no name, so it disappears with the process, however the process ends.

mod merge;
mod sort;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) use merge::{Merge, reduce};
pub(crate) use sort::Sorter;

use crate::error::TraceError;
use crate::named_record::{NamedRecord, get, put};

/// Raw size of a block with few open streams, bytes. Smaller blocks compress worse, and each open stream holds one
/// block.
const MAX_BLOCK: usize = 96 << 10;
/// Minimum raw size of a block, however many streams are open, bytes.
const MIN_BLOCK: usize = 12 << 10;
/// Total size of the blocks of all streams that are written, or read, at the same time, bytes.
const OPEN_BLOCK_BYTES: usize = 12 << 20;
/// Compression level: fast, and good enough for repeating names.
const LEVEL: i32 = 1;

/// A temporary file that holds any number of streams.
pub(crate) struct Spill {
    file: Arc<File>,
    end: u64,
    block: usize,
    compressor: zstd::bulk::Compressor<'static>,
    decompressor: Arc<Mutex<Decompressor>>,
    packed: Vec<u8>,
    dir: std::path::PathBuf,
}

/// Shared by all readers, because a decompressor's state is larger than a block, and blocks are independent.
struct Decompressor {
    decompressor: zstd::bulk::Decompressor<'static>,
    packed: Vec<u8>,
}

/// Offset, packed length and raw length of a block. In the file, the location of the stream's next block precedes each
/// block, so the memory of a stream does not depend on its length.
#[derive(Clone, Copy, Debug)]
struct BlockLocation {
    offset: u64,
    packed: u32,
    raw: u32,
}

impl BlockLocation {
    const BYTES: usize = 16;

    fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.packed.to_le_bytes());
        bytes[12..].copy_from_slice(&self.raw.to_le_bytes());
        bytes
    }

    /// Decodes the location before a block; `None` if the block is the last one.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (offset, rest) = bytes.split_first_chunk()?;
        let (packed, rest) = rest.split_first_chunk()?;
        let (raw, _) = rest.split_first_chunk()?;
        let location = Self {
            offset: u64::from_le_bytes(*offset),
            packed: u32::from_le_bytes(*packed),
            raw: u32::from_le_bytes(*raw),
        };
        (location.packed > 0).then_some(location)
    }
}

/// A sequence of records in a spill file. The last block may still be in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    first: Option<BlockLocation>,
    /// Offset of the last block.
    last: u64,
    raw: Vec<u8>,
    pub(crate) records: u64,
}

impl Spill {
    /// Makes a temporary file in `dir` for streams that are written one after the other.
    pub(crate) fn new(dir: &Path) -> Result<Self, TraceError> {
        Self::for_streams(dir, 1)
    }

    /// Makes a temporary file in `dir` for `streams` streams that are written side by side.
    pub(crate) fn for_streams(dir: &Path, streams: usize) -> Result<Self, TraceError> {
        let file = tempfile::tempfile_in(dir).map_err(TraceError::io(dir))?;
        let compressor = zstd::bulk::Compressor::new(LEVEL).map_err(TraceError::io(dir))?;
        let decompressor = zstd::bulk::Decompressor::new().map_err(TraceError::io(dir))?;
        Ok(Self {
            file: Arc::new(file),
            end: 0,
            block: (OPEN_BLOCK_BYTES / streams.max(1)).clamp(MIN_BLOCK, MAX_BLOCK),
            compressor,
            decompressor: Arc::new(Mutex::new(Decompressor {
                decompressor,
                packed: Vec::new(),
            })),
            packed: Vec::new(),
            dir: dir.to_owned(),
        })
    }

    /// Appends a record.
    pub(crate) fn push(
        &mut self,
        stream: &mut Stream,
        rec: &NamedRecord,
    ) -> Result<(), TraceError> {
        let start = stream.raw.len();
        rec.encode(true, &mut stream.raw);
        let len = stream.raw.len() - start;
        self.add_length(stream, start, len)
    }

    /// Appends a record that is already encoded.
    pub(crate) fn push_encoded(
        &mut self,
        stream: &mut Stream,
        bytes: &[u8],
    ) -> Result<(), TraceError> {
        let start = stream.raw.len();
        stream.raw.extend_from_slice(bytes);
        self.add_length(stream, start, bytes.len())
    }

    fn add_length(
        &mut self,
        stream: &mut Stream,
        start: usize,
        len: usize,
    ) -> Result<(), TraceError> {
        // The length is appended after the record and rotated before it, which needs no second buffer.
        let end = stream.raw.len();
        put(len as u64, &mut stream.raw);
        let prefix = stream.raw.len() - end;
        stream.raw[start..].rotate_right(prefix);
        stream.records += 1;
        if stream.raw.len() >= self.block {
            self.flush(stream)?;
        }
        Ok(())
    }

    /// Writes the rest of the stream and frees its memory.
    pub(crate) fn finish(&mut self, stream: &mut Stream) -> Result<(), TraceError> {
        self.flush(stream)?;
        stream.raw = Vec::new();
        Ok(())
    }

    fn flush(&mut self, stream: &mut Stream) -> Result<(), TraceError> {
        if stream.raw.is_empty() {
            return Ok(());
        }
        let max = zstd::zstd_safe::compress_bound(stream.raw.len());
        self.packed.clear();
        self.packed.resize(BlockLocation::BYTES + max, 0);
        let packed = self
            .compressor
            .compress_to_buffer(&stream.raw, &mut self.packed[BlockLocation::BYTES..])
            .map_err(TraceError::io(&self.dir))?;
        // Blocks stay far below 4 GiB: a record is at most some 8 MiB.
        let location = BlockLocation {
            offset: self.end,
            packed: packed as u32,
            raw: stream.raw.len() as u32,
        };
        let block = &self.packed[..BlockLocation::BYTES + packed];
        let written = self.file.write_all_at(block, self.end);
        let linked = written.and_then(|()| match stream.first {
            Some(_) => self.file.write_all_at(&location.encode(), stream.last),
            None => Ok(()),
        });
        linked.map_err(TraceError::io(&self.dir))?;
        stream.first.get_or_insert(location);
        stream.last = location.offset;
        self.end += block.len() as u64;
        stream.raw.clear();
        Ok(())
    }

    /// Reads a finished stream from its start.
    pub(crate) fn read(&self, stream: &Stream) -> Reader {
        debug_assert!(stream.raw.is_empty(), "finish() comes first");
        Reader {
            file: Arc::clone(&self.file),
            next: stream.first,
            decompressor: Arc::clone(&self.decompressor),
            raw: Vec::new(),
            at: 0,
            dir: self.dir.clone(),
        }
    }

    /// Maximum number of streams that may be read at the same time: each holds a block.
    pub(crate) fn fan_in(&self) -> usize {
        OPEN_BLOCK_BYTES / self.block
    }

    /// Number of bytes written so far.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        self.end
    }
}

/// Reads the records of a stream in order.
pub(crate) struct Reader {
    file: Arc<File>,
    next: Option<BlockLocation>,
    decompressor: Arc<Mutex<Decompressor>>,
    raw: Vec<u8>,
    at: usize,
    dir: std::path::PathBuf,
}

impl Reader {
    /// Returns the next record in binary form; `None` at the end.
    pub(crate) fn next_encoded(&mut self) -> Result<Option<&[u8]>, TraceError> {
        if self.at == self.raw.len() {
            let Some(location) = self.next else {
                return Ok(None);
            };
            self.raw.clear();
            self.raw.reserve_exact(location.raw as usize);
            let mut shared = self
                .decompressor
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let Decompressor {
                decompressor,
                packed,
            } = &mut *shared;
            packed.resize(BlockLocation::BYTES + location.packed as usize, 0);
            self.file
                .read_exact_at(packed, location.offset)
                .and_then(|()| {
                    decompressor
                        .decompress_to_buffer(&packed[BlockLocation::BYTES..], &mut self.raw)
                })
                .map_err(TraceError::io(&self.dir))?;
            self.next = BlockLocation::decode(&packed[..BlockLocation::BYTES]);
            self.at = 0;
        }
        let mut rest = &self.raw[self.at..];
        let before = rest.len();
        let record = get(&mut rest).and_then(|len| rest.get(..usize::try_from(len).ok()?));
        let Some(record) = record else {
            return Err(self.damaged());
        };
        self.at += before - rest.len() + record.len();
        Ok(Some(record))
    }

    /// The next record; `false` at the end.
    pub(crate) fn next(&mut self, rec: &mut NamedRecord) -> Result<bool, TraceError> {
        let Some(mut bytes) = self.next_encoded()? else {
            return Ok(false);
        };
        match rec.decode(&mut bytes) {
            Some(()) => Ok(true),
            None => Err(self.damaged()),
        }
    }

    fn damaged(&self) -> TraceError {
        let error = io::Error::new(io::ErrorKind::InvalidData, "a temporary file is damaged");
        TraceError::io(&self.dir)(error)
    }
}
