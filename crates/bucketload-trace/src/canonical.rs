//! The canonical file: binary records sorted by time, with a summary.
//!
//! ```text
//! "BLTRACE1" │ records: zstd frames of 2^20 records │ preload list: zstd frames │ header │ trailer
//!                each record after its length                                     JSON     offset of
//!                                                                                          the header,
//!                                                                                          "BLTRACE1"
//! ```
//!
//! The header comes last, because it holds totals and the index: for each frame the offset, the number of its first
//! record and its first instant. Reading can start at any frame.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bucketload_core::trace::{Batch, RecordStream};
use serde::{Deserialize, Serialize};

use crate::error::TraceError;
use crate::named_record::{NamedRecord, put};
use crate::prepare::Summary;

/// First and last bytes of a canonical file.
pub(crate) const MAGIC: &[u8; 8] = b"BLTRACE1";
/// Records per frame.
const FRAME_RECORDS: u64 = 1 << 20;
/// Raw bytes at which a frame ends early.
const FRAME_BYTES: u64 = 64 << 20;
const LEVEL: i32 = 3;
/// Window of the compressor, log2 of bytes; it determines a reader's memory.
const WINDOW_LOG: u32 = 20;
/// Maximum length of a record, bytes: keys of services are below 2 KiB, and a request deletes up to 1000.
const MAX_RECORD_BYTES: u64 = 16 << 20;

/// Index entry of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FrameIndex {
    offset: u64,
    first: u64,
    first_ts_ns: i64,
}

/// The header of a canonical file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Header {
    format: String,
    summary: Summary,
    index: Vec<FrameIndex>,
    preload_offset: u64,
}

/// Writes a canonical file: first the records, then the preload list, then [`Writer::finish`].
pub(crate) struct Writer {
    path: PathBuf,
    encoder: Option<zstd::stream::write::Encoder<'static, CountingWriter>>,
    index: Vec<FrameIndex>,
    preload_offset: Option<u64>,
    records: u64,
    frame_bytes: u64,
    buffer: Vec<u8>,
}

/// Counts the written bytes.
struct CountingWriter {
    inner: BufWriter<File>,
    offset: u64,
}

impl Write for CountingWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let n = self.inner.write(bytes)?;
        self.offset += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

fn encoder(
    out: CountingWriter,
) -> std::io::Result<zstd::stream::write::Encoder<'static, CountingWriter>> {
    let mut encoder = zstd::stream::write::Encoder::new(out, LEVEL)?;
    encoder.window_log(WINDOW_LOG)?;
    Ok(encoder)
}

impl Writer {
    pub(crate) fn create(path: &Path) -> Result<Self, TraceError> {
        let start = || {
            let mut out = CountingWriter {
                inner: BufWriter::with_capacity(128 << 10, File::create(path)?),
                offset: 0,
            };
            out.write_all(MAGIC)?;
            encoder(out)
        };
        Ok(Self {
            path: path.to_owned(),
            encoder: Some(start().map_err(TraceError::io(path))?),
            index: Vec::new(),
            preload_offset: None,
            records: 0,
            frame_bytes: 0,
            buffer: Vec::new(),
        })
    }

    /// Appends a record, or after [`Writer::begin_preload`] an object of the preload list.
    pub(crate) fn push(&mut self, rec: &NamedRecord) -> Result<(), TraceError> {
        if self.preload_offset.is_none() {
            if self.records == 0 {
                self.begin_frame(MAGIC.len() as u64, rec.base.ts_ns);
            } else if self.records.is_multiple_of(FRAME_RECORDS) || self.frame_bytes >= FRAME_BYTES
            {
                let offset = self.next_frame()?;
                self.begin_frame(offset, rec.base.ts_ns);
            }
            self.records += 1;
        }
        self.buffer.clear();
        rec.encode(false, &mut self.buffer);
        let len = self.buffer.len();
        put(len as u64, &mut self.buffer);
        let (record, prefix) = self.buffer.split_at(len);
        self.frame_bytes += self.buffer.len() as u64;
        let path = &self.path;
        let Some(encoder) = &mut self.encoder else {
            return Ok(());
        };
        encoder
            .write_all(prefix)
            .and_then(|()| encoder.write_all(record))
            .map_err(TraceError::io(path))
    }

    fn begin_frame(&mut self, offset: u64, first_ts_ns: i64) {
        let first = self.records;
        self.index.push(FrameIndex {
            offset,
            first,
            first_ts_ns,
        });
        self.frame_bytes = 0;
    }

    /// Ends the current frame and begins the next; returns its offset.
    fn next_frame(&mut self) -> Result<u64, TraceError> {
        let path = &self.path;
        let Some(old) = self.encoder.take() else {
            return Ok(0);
        };
        let out = old.finish().map_err(TraceError::io(path))?;
        let offset = out.offset;
        self.encoder = Some(encoder(out).map_err(TraceError::io(path))?);
        Ok(offset)
    }

    /// Begins the preload list.
    pub(crate) fn begin_preload(&mut self) -> Result<(), TraceError> {
        self.preload_offset = Some(self.next_frame()?);
        Ok(())
    }

    /// Writes the header and completes the file.
    pub(crate) fn finish(mut self, summary: &Summary) -> Result<(), TraceError> {
        let preload_offset = self.preload_offset.unwrap_or(MAGIC.len() as u64);
        let header = Header {
            format: "bucketload-trace-1".to_owned(),
            summary: summary.clone(),
            index: self.index,
            preload_offset,
        };
        let end = || -> std::io::Result<()> {
            let Some(encoder) = self.encoder.take() else {
                return Ok(());
            };
            let mut out = encoder.finish()?;
            let offset = out.offset;
            serde_json::to_writer(&mut out, &header)?;
            out.write_all(&offset.to_le_bytes())?;
            out.write_all(MAGIC)?;
            out.flush()
        };
        let mut end = end;
        end().map_err(TraceError::io(&self.path))
    }
}

/// A canonical file.
#[derive(Clone, Debug)]
pub struct CanonicalTrace {
    path: PathBuf,
    header: Header,
    header_offset: u64,
}

impl CanonicalTrace {
    /// Whether a file begins like a canonical file; `false` if it cannot be read.
    #[must_use]
    pub fn is_canonical(path: &Path) -> bool {
        let mut start = [0; 8];
        File::open(path)
            .and_then(|mut file| file.read_exact(&mut start))
            .is_ok()
            && &start == MAGIC
    }

    /// Opens a canonical file and reads its header.
    ///
    /// # Errors
    /// When it cannot be read or is incomplete.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let damaged = |reason: &str| TraceError::Canonical {
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        let mut file = File::open(path).map_err(TraceError::io(path))?;
        let len = file.metadata().map_err(TraceError::io(path))?.len();
        if len < 24 {
            return Err(damaged("it is too short"));
        }
        let mut trailer = [0; 16];
        file.seek(SeekFrom::Start(len - 16))
            .and_then(|_| file.read_exact(&mut trailer))
            .map_err(TraceError::io(path))?;
        let (offset, magic) = trailer.split_at(8);
        if magic != MAGIC {
            return Err(damaged("its end is missing: was the import interrupted?"));
        }
        let mut bytes = [0; 8];
        bytes.copy_from_slice(offset);
        let offset = u64::from_le_bytes(bytes);
        if offset > len - 16 {
            return Err(damaged("the header offset lies beyond the end"));
        }
        let mut text = Vec::new();
        file.seek(SeekFrom::Start(offset))
            .and_then(|_| file.take(len - 16 - offset).read_to_end(&mut text))
            .map_err(TraceError::io(path))?;
        let header: Header =
            serde_json::from_slice(&text).map_err(|e| damaged(&format!("header: {e}")))?;
        if header.format != "bucketload-trace-1" {
            return Err(damaged(&format!("unknown version {}", header.format)));
        }
        Ok(Self {
            path: path.to_owned(),
            header,
            header_offset: offset,
        })
    }

    /// The summary of the trace.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.header.summary
    }

    /// Reads the records from the first one.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn records(&self) -> Result<CanonicalStream, TraceError> {
        let start = self
            .header
            .index
            .first()
            .map_or(self.header.preload_offset, |f| f.offset);
        self.stream(start, self.header.preload_offset)
    }

    /// Reads the records from the frame that holds record number `record`; returns the number of the frame's first
    /// record too.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn records_from(&self, record: u64) -> Result<(u64, CanonicalStream), TraceError> {
        let after = self
            .header
            .index
            .partition_point(|frame| frame.first <= record);
        let Some(frame) = after.checked_sub(1).map(|i| self.header.index[i]) else {
            return Ok((0, self.records()?));
        };
        Ok((
            frame.first,
            self.stream(frame.offset, self.header.preload_offset)?,
        ))
    }

    /// Reads the objects that must exist before the first record.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn preload(&self) -> Result<CanonicalStream, TraceError> {
        self.stream(self.header.preload_offset, self.header_offset)
    }

    fn stream(&self, from: u64, to: u64) -> Result<CanonicalStream, TraceError> {
        let open = || {
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(from))?;
            let part = BufReader::with_capacity(128 << 10, file.take(to.saturating_sub(from)));
            let mut decoder = zstd::stream::read::Decoder::with_buffer(part)?;
            decoder.window_log_max(WINDOW_LOG.max(25))?;
            Ok(BufReader::with_capacity(128 << 10, decoder))
        };
        Ok(CanonicalStream {
            path: self.path.clone(),
            input: open().map_err(TraceError::io(&self.path))?,
            buffer: Vec::new(),
            rec: NamedRecord::default(),
        })
    }
}

type Decoder = zstd::stream::read::Decoder<'static, BufReader<std::io::Take<File>>>;

/// Reads records in order.
pub struct CanonicalStream {
    path: PathBuf,
    input: BufReader<Decoder>,
    buffer: Vec<u8>,
    rec: NamedRecord,
}

impl CanonicalStream {
    /// The next record; `false` at the end.
    pub(crate) fn next(&mut self, rec: &mut NamedRecord) -> Result<bool, TraceError> {
        let Some(len) = self.length()? else {
            return Ok(false);
        };
        self.buffer.resize(len, 0);
        self.input
            .read_exact(&mut self.buffer)
            .map_err(TraceError::io(&self.path))?;
        match rec.decode(&mut &self.buffer[..]) {
            Some(()) => Ok(true),
            None => Err(self.damaged("a record cannot be read")),
        }
    }

    /// Length of the next record; `None` at the end.
    fn length(&mut self) -> Result<Option<usize>, TraceError> {
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let mut byte = [0];
            let n = self
                .input
                .read(&mut byte)
                .map_err(TraceError::io(&self.path))?;
            if n == 0 {
                return if shift == 0 {
                    Ok(None)
                } else {
                    Err(self.damaged("the file ends inside a record"))
                };
            }
            value |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] < 0x80 {
                break;
            }
            shift += 7;
            if shift > 28 {
                return Err(self.damaged("a record has an invalid length"));
            }
        }
        if value > MAX_RECORD_BYTES {
            return Err(self.damaged("a record has an invalid length"));
        }
        Ok(Some(value as usize))
    }

    fn damaged(&self, reason: &str) -> TraceError {
        TraceError::Canonical {
            path: self.path.clone(),
            reason: reason.to_owned(),
        }
    }
}

impl RecordStream for CanonicalStream {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool, bucketload_core::trace::TraceError> {
        out.clear();
        let mut rec = std::mem::take(&mut self.rec);
        let problem = |e: TraceError| bucketload_core::trace::TraceError(e.to_string());
        while !out.is_full() && self.next(&mut rec).map_err(problem)? {
            out.push(rec.base, &rec.key, rec.more.iter().map(Vec::as_slice));
        }
        self.rec = rec;
        Ok(!out.is_empty())
    }
}
