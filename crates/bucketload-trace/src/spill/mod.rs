//! Records that do not fit into memory: streams of compressed blocks in one temporary file, and an
//! external merge sort on top.
//!
//! The file has no name, so that it is gone with the process however that ends.

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
use crate::rec::{Rec, get, put};

/// Raw bytes of a block where few streams are open. Smaller blocks compress worse; each open stream
/// holds one.
const BLOCK: usize = 96 << 10;
/// Raw bytes of a block however many streams are open.
const SMALLEST_BLOCK: usize = 12 << 10;
/// Blocks of all streams that are written, or read, at a time, bytes.
const OPEN: usize = 12 << 20;
/// Fast, and good enough for names that repeat.
const LEVEL: i32 = 1;

/// A temporary file with any number of streams.
pub(crate) struct Spill {
    file: Arc<File>,
    end: u64,
    block: usize,
    compressor: zstd::bulk::Compressor<'static>,
    unpacker: Arc<Mutex<Unpacker>>,
    packed: Vec<u8>,
    dir: std::path::PathBuf,
}

/// One for all readers: a decompressor's state is larger than a block, and no block needs the one before.
struct Unpacker {
    decompressor: zstd::bulk::Decompressor<'static>,
    packed: Vec<u8>,
}

/// Where a block lies: its offset, packed length and raw length. In the file, each block has the place of
/// the next one of its stream in front of it, so that a stream takes no memory however long it is.
#[derive(Clone, Copy, Debug)]
struct Place {
    offset: u64,
    packed: u32,
    raw: u32,
}

impl Place {
    const BYTES: usize = 16;

    fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.packed.to_le_bytes());
        bytes[12..].copy_from_slice(&self.raw.to_le_bytes());
        bytes
    }

    /// The place in front of a block; `None` when it was the last one.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (offset, rest) = bytes.split_first_chunk()?;
        let (packed, rest) = rest.split_first_chunk()?;
        let (raw, _) = rest.split_first_chunk()?;
        let place = Self {
            offset: u64::from_le_bytes(*offset),
            packed: u32::from_le_bytes(*packed),
            raw: u32::from_le_bytes(*raw),
        };
        (place.packed > 0).then_some(place)
    }
}

/// A sequence of records in a spill file; the last block may still be in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    first: Option<Place>,
    /// Offset of the last block.
    last: u64,
    raw: Vec<u8>,
    pub(crate) records: u64,
}

impl Spill {
    /// A new temporary file in `dir` for one stream after the other.
    pub(crate) fn new(dir: &Path) -> Result<Self, TraceError> {
        Self::for_streams(dir, 1)
    }

    /// A new temporary file in `dir` for so many streams that grow side by side.
    pub(crate) fn for_streams(dir: &Path, streams: usize) -> Result<Self, TraceError> {
        let file = tempfile::tempfile_in(dir).map_err(TraceError::io(dir))?;
        let compressor = zstd::bulk::Compressor::new(LEVEL).map_err(TraceError::io(dir))?;
        let decompressor = zstd::bulk::Decompressor::new().map_err(TraceError::io(dir))?;
        Ok(Self {
            file: Arc::new(file),
            end: 0,
            block: (OPEN / streams.max(1)).clamp(SMALLEST_BLOCK, BLOCK),
            compressor,
            unpacker: Arc::new(Mutex::new(Unpacker {
                decompressor,
                packed: Vec::new(),
            })),
            packed: Vec::new(),
            dir: dir.to_owned(),
        })
    }

    /// Appends a record.
    pub(crate) fn push(&mut self, stream: &mut Stream, rec: &Rec) -> Result<(), TraceError> {
        let start = stream.raw.len();
        rec.encode(true, &mut stream.raw);
        let len = stream.raw.len() - start;
        self.framed(stream, start, len)
    }

    /// Appends a record in its binary form.
    pub(crate) fn push_encoded(
        &mut self,
        stream: &mut Stream,
        bytes: &[u8],
    ) -> Result<(), TraceError> {
        let start = stream.raw.len();
        stream.raw.extend_from_slice(bytes);
        self.framed(stream, start, bytes.len())
    }

    fn framed(&mut self, stream: &mut Stream, start: usize, len: usize) -> Result<(), TraceError> {
        // The length goes behind the record and is moved before it: no second buffer is needed.
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

    /// Writes what the stream still holds in memory and gives that memory back.
    pub(crate) fn finish(&mut self, stream: &mut Stream) -> Result<(), TraceError> {
        self.flush(stream)?;
        stream.raw = Vec::new();
        Ok(())
    }

    fn flush(&mut self, stream: &mut Stream) -> Result<(), TraceError> {
        if stream.raw.is_empty() {
            return Ok(());
        }
        let most = zstd::zstd_safe::compress_bound(stream.raw.len());
        self.packed.clear();
        self.packed.resize(Place::BYTES + most, 0);
        let packed = self
            .compressor
            .compress_to_buffer(&stream.raw, &mut self.packed[Place::BYTES..])
            .map_err(TraceError::io(&self.dir))?;
        // Blocks stay far below 4 GiB: a record is at most some 8 MiB.
        let place = Place {
            offset: self.end,
            packed: packed as u32,
            raw: stream.raw.len() as u32,
        };
        let block = &self.packed[..Place::BYTES + packed];
        let written = self.file.write_all_at(block, self.end);
        let linked = written.and_then(|()| match stream.first {
            Some(_) => self.file.write_all_at(&place.encode(), stream.last),
            None => Ok(()),
        });
        linked.map_err(TraceError::io(&self.dir))?;
        stream.first.get_or_insert(place);
        stream.last = place.offset;
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
            unpacker: Arc::clone(&self.unpacker),
            raw: Vec::new(),
            at: 0,
            dir: self.dir.clone(),
        }
    }

    /// Streams that may be read at a time: each holds a block.
    pub(crate) fn fan_in(&self) -> usize {
        OPEN / self.block
    }

    /// Bytes written so far.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        self.end
    }
}

/// Reads the records of a stream in order.
pub(crate) struct Reader {
    file: Arc<File>,
    next: Option<Place>,
    unpacker: Arc<Mutex<Unpacker>>,
    raw: Vec<u8>,
    at: usize,
    dir: std::path::PathBuf,
}

impl Reader {
    /// The binary form of the next record; `None` at the end.
    pub(crate) fn next_encoded(&mut self) -> Result<Option<&[u8]>, TraceError> {
        if self.at == self.raw.len() {
            let Some(place) = self.next else {
                return Ok(None);
            };
            self.raw.clear();
            self.raw.reserve_exact(place.raw as usize);
            let mut unpacker = self.unpacker.lock().unwrap_or_else(PoisonError::into_inner);
            let Unpacker {
                decompressor,
                packed,
            } = &mut *unpacker;
            packed.resize(Place::BYTES + place.packed as usize, 0);
            self.file
                .read_exact_at(packed, place.offset)
                .and_then(|()| {
                    decompressor.decompress_to_buffer(&packed[Place::BYTES..], &mut self.raw)
                })
                .map_err(TraceError::io(&self.dir))?;
            self.next = Place::decode(&packed[..Place::BYTES]);
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
    pub(crate) fn next(&mut self, rec: &mut Rec) -> Result<bool, TraceError> {
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
