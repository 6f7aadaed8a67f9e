//! Recorded requests: the canonical trace record and how a replay reads it (docs/spec/traces.md section 1).
//!
//! ```text
//!  log file ─ importer ─▶ canonical file ─ TraceSource ─▶ RecordStream ─ Batch by Batch ─▶ replay
//!                                            │ records()   the requests, by time
//!                                            └ preload()   the objects that must exist beforehand
//! ```
//!
//! Importers produce records and the runner consumes them; they share only this module. A [`Batch`] holds the
//! bytes of all its keys in one buffer and is reused, so streaming a trace allocates nothing per record.

use strum::VariantArray;

use crate::generate::rng::mix64;
use crate::op::ByteRange;

/// What a recorded request did.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    serde::Serialize,
    serde::Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
#[repr(u8)]
pub enum TraceOp {
    /// Read an object, or a range of it.
    Get,
    /// Read an object's metadata.
    Head,
    /// Write an object.
    Put,
    /// Delete an object.
    Delete,
    /// List keys. The record's key is the prefix, its `len` the page size if known.
    List,
    /// Copy an object. The record's key is the destination, its first further key the source.
    Copy,
    /// Delete several objects: the record's key and its further keys.
    MultiDelete,
    /// Start a multipart upload. A replay performs nothing: see [`TraceOp::MpuComplete`].
    MpuInit,
    /// Write a part. A replay performs nothing: see [`TraceOp::MpuComplete`].
    MpuPart,
    /// Complete a multipart upload. A replay performs the whole upload here. `size` is that of the object,
    /// `len` that of a part (-1: 8 MiB, or larger if 10 000 parts would not suffice).
    MpuComplete,
    /// Abort a multipart upload. A replay starts one and aborts it.
    MpuAbort,
    /// Anything else; counted but not replayed.
    Other,
}

impl TraceOp {
    /// Every operation, in the order of their numbers.
    pub const ALL: [Self; Self::VARIANTS.len()] = *Self::VARIANTS.first_chunk().unwrap();

    /// The name in the native CSV form.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The operation called `name`, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.name() == name)
    }

    /// The operation with number `number`, if there is one.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Whether the request changes the content or existence of its key.
    #[must_use]
    pub const fn mutates(self) -> bool {
        matches!(
            self,
            Self::Put | Self::Delete | Self::Copy | Self::MultiDelete | Self::MpuComplete
        )
    }
}

/// One recorded request; its keys are stored in the [`Batch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    /// Start of the request, nanoseconds since the first record of the trace.
    pub ts_ns: i64,
    /// The operation.
    pub op: TraceOp,
    /// Dictionary id of the bucket.
    pub bucket: u32,
    /// [`key_hash`] of bucket and key.
    pub key_hash: u64,
    /// Size of the whole object, bytes; -1 unknown.
    pub size: i64,
    /// First byte requested; 0 for whole objects.
    pub off: i64,
    /// Bytes requested; -1 for all from `off` on.
    pub len: i64,
    /// Dictionary id of the client; 0 unknown.
    pub client: u32,
    /// Recorded HTTP status; 0 unknown.
    pub status: u16,
    /// Recorded server time, nanoseconds; -1 unknown. Used for pacing only in think mode.
    pub dur_ns: i64,
    /// Number of a multipart part.
    pub part: u16,
    /// Hash of a multipart upload's id.
    pub upload: u64,
    /// How often the request was made (key-value traces), at least 1.
    pub repeat: u32,
    /// Line or record number in the input.
    pub src: u64,
    /// Pass over a looped trace, from 0.
    pub lap: u32,
    /// Whether the liveness analysis found that the key does not exist at this instant.
    pub absent: bool,
}

impl Default for TraceRecord {
    fn default() -> Self {
        Self {
            ts_ns: 0,
            op: TraceOp::Other,
            bucket: 0,
            key_hash: 0,
            size: -1,
            off: 0,
            len: -1,
            client: 0,
            status: 0,
            dur_ns: -1,
            part: 0,
            upload: 0,
            repeat: 1,
            src: 0,
            lap: 0,
            absent: false,
        }
    }
}

impl TraceRecord {
    /// Size of the whole object in bytes, where it is known.
    #[must_use]
    pub fn known_size(&self) -> Option<u64> {
        u64::try_from(self.size).ok()
    }

    /// The byte range of a partial read; `None` for whole objects, and for open-ended ranges of an object of
    /// unknown size.
    #[must_use]
    pub fn range(&self) -> Option<ByteRange> {
        let offset = u64::try_from(self.off).unwrap_or(0);
        let size = self.known_size();
        let len = match u64::try_from(self.len) {
            Ok(len) => len,
            Err(_) => size?.saturating_sub(offset),
        };
        let whole = offset == 0 && size.map_or(self.len < 0, |size| len >= size);
        (!whole && len > 0).then_some(ByteRange { offset, len })
    }
}

/// The hash of a bucket and key by which records are sampled and distributed over load threads: FNV-1a over
/// the bucket's id (little endian) and the key, finished by [`mix64`]. The same on every machine.
#[must_use]
pub fn key_hash(bucket: u32, key: &[u8]) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
    let hash = bucket
        .to_le_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, step);
    mix64(key.iter().fold(hash, step))
}

/// A record and the position of its keys in the batch's text.
#[derive(Clone, Copy, Debug)]
struct StoredRecord {
    record: TraceRecord,
    start: usize,
    key_len: usize,
    /// End of the further keys, each preceded by its length as 4 bytes, little endian.
    end: usize,
}

/// Records with their keys, in order.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    records: Vec<StoredRecord>,
    text: Vec<u8>,
}

/// A record of a batch with its keys.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    /// The record.
    pub record: TraceRecord,
    /// The record's key, as exact bytes.
    pub key: &'a [u8],
    more: &'a [u8],
}

impl<'a> Recorded<'a> {
    /// The further keys: the source of a copy, the rest of a multi-delete.
    pub fn more(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut rest = self.more;
        std::iter::from_fn(move || {
            let (len, text) = rest.split_first_chunk::<4>()?;
            let (key, next) = text.split_at_checked(u32::from_le_bytes(*len) as usize)?;
            rest = next;
            Some(key)
        })
    }
}

impl Batch {
    /// Number of records that a batch should hold: large enough to make handing it over cheap, small enough
    /// to fit into a cache.
    pub const RECORDS: usize = 4096;

    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all records and keeps the memory.
    pub fn clear(&mut self) {
        self.records.clear();
        self.text.clear();
    }

    /// Number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether the batch holds no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Whether the batch has reached its intended size: [`Batch::RECORDS`] records or 1 MiB of keys.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.records.len() >= Self::RECORDS || self.text.len() >= 1 << 20
    }

    /// Appends a record with its key and further keys.
    pub fn push<'k>(
        &mut self,
        record: TraceRecord,
        key: &[u8],
        more: impl IntoIterator<Item = &'k [u8]>,
    ) {
        let start = self.text.len();
        self.text.extend_from_slice(key);
        for other in more {
            let len = u32::try_from(other.len()).unwrap_or(u32::MAX);
            self.text.extend_from_slice(&len.to_le_bytes());
            self.text.extend_from_slice(&other[..len as usize]);
        }
        self.records.push(StoredRecord {
            record,
            start,
            key_len: key.len(),
            end: self.text.len(),
        });
    }

    /// Appends `record` with the keys of a record in another batch.
    pub fn push_recorded(&mut self, recorded: &Recorded<'_>, record: TraceRecord) {
        let start = self.text.len();
        self.text.extend_from_slice(recorded.key);
        self.text.extend_from_slice(recorded.more);
        self.records.push(StoredRecord {
            record,
            start,
            key_len: recorded.key.len(),
            end: self.text.len(),
        });
    }

    /// Record number `i` with its keys.
    ///
    /// # Panics
    /// If `i` is out of range.
    #[must_use]
    pub fn get(&self, i: usize) -> Recorded<'_> {
        let stored = &self.records[i];
        let (key, more) = self.text[stored.start..stored.end].split_at(stored.key_len);
        Recorded {
            record: stored.record,
            key,
            more,
        }
    }

    /// The records in order.
    pub fn iter(&self) -> impl Iterator<Item = Recorded<'_>> {
        (0..self.len()).map(|i| self.get(i))
    }
}

/// Why a trace cannot be read any further.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TraceError(pub String);

/// Reads records in time order. Runs on a dedicated thread, never on a load thread, so it may block and read
/// files.
pub trait RecordStream: Send {
    /// Replaces the contents of `out` with the next records, about [`Batch::RECORDS`] of them. Returns
    /// `false` and leaves the batch empty at the end.
    ///
    /// # Errors
    /// If the input cannot be read any further; the replay is then aborted.
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool, TraceError>;
}

/// A trace that can be read from the beginning more than once (calibration reads it too).
pub trait TraceSource: Send + Sync {
    /// The requests: sorted by time, and sampled, scaled and looped as the user asked, with `ts_ns` starting
    /// at 0.
    ///
    /// # Errors
    /// If the trace cannot be opened.
    fn records(&self) -> Result<Box<dyn RecordStream>, TraceError>;

    /// The objects that must exist before the first request: one [`TraceOp::Put`] record per key, with its
    /// size.
    ///
    /// # Errors
    /// If the list cannot be opened.
    fn preload(&self) -> Result<Box<dyn RecordStream>, TraceError>;
}

#[cfg(test)]
mod tests {
    use super::{Batch, TraceOp, TraceRecord, key_hash};

    #[test]
    fn a_batch_returns_the_records_pushed() {
        let mut batch = Batch::new();
        let record = |src| TraceRecord {
            src,
            ..TraceRecord::default()
        };
        batch.push(record(1), b"a/b", []);
        batch.push(record(2), b"", [b"x".as_slice(), b"", b"yz"]);
        let mut copy = Batch::new();
        for recorded in batch.iter() {
            copy.push_recorded(&recorded, recorded.record);
        }
        for batch in [&batch, &copy] {
            assert_eq!(
                (batch.get(0).key, batch.get(0).record.src),
                (&b"a/b"[..], 1)
            );
            assert_eq!(batch.get(0).more().count(), 0);
            assert_eq!(batch.get(1).key, b"");
            let more: Vec<&[u8]> = batch.get(1).more().collect();
            assert_eq!(more, [b"x".as_slice(), b"", b"yz"]);
        }
        copy.clear();
        assert!(copy.is_empty());
    }

    #[test]
    fn ranges_are_parts_of_objects() {
        let range = |size, off, len| {
            let record = TraceRecord {
                size,
                off,
                len,
                ..TraceRecord::default()
            };
            record.range().map(|r| (r.offset, r.len))
        };
        assert_eq!(range(100, 0, -1), None);
        assert_eq!(range(100, 0, 100), None);
        assert_eq!(range(-1, 0, -1), None);
        assert_eq!(range(-1, 0, 100), Some((0, 100)));
        assert_eq!(range(100, 10, -1), Some((10, 90)));
        assert_eq!(range(100, 10, 20), Some((10, 20)));
        assert_eq!(range(0, 0, 0), None);
    }

    #[test]
    fn names_and_numbers_round_trip() {
        for (number, op) in TraceOp::ALL.into_iter().enumerate() {
            assert_eq!(op as usize, number);
            assert_eq!(TraceOp::from_number(number as u8), Some(op));
            assert_eq!(TraceOp::from_name(op.name()), Some(op));
            assert_eq!(serde_json::to_value(op).unwrap(), op.name());
        }
    }

    #[test]
    fn the_hash_is_stable_and_tells_buckets_apart() {
        assert_ne!(key_hash(0, b"k"), key_hash(1, b"k"));
        assert_ne!(key_hash(0, b"k"), key_hash(0, b"l"));
        assert_eq!(key_hash(7, b"logs/000001"), 0x77a7_3042_b9ec_6d0b);
    }
}
