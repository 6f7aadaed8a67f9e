//! What an importer makes of a line: one request with names still in full, before names become
//! dictionary numbers and instants become relative.

use bucketload_core::trace::TraceOp;

use crate::formats::Emit;
use crate::hash::hash64;
use crate::text::fields::{byte_range, optional, query};

/// One recorded request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// Start, nanoseconds: since 1970 or since the origin of the trace, or [`NO_TIME`].
    pub ts_ns: i64,
    /// What was done.
    pub op: TraceOp,
    /// Bucket or container; empty when the format has none.
    pub bucket: Vec<u8>,
    /// Decoded key; for a listing the prefix, which may be empty.
    pub key: Vec<u8>,
    /// Source of a copy as `bucket/key`; empty when unknown.
    pub source: Vec<u8>,
    /// Client, requester or host; empty when unknown.
    pub client: Vec<u8>,
    /// Full size of the object, bytes; -1 unknown.
    pub size: i64,
    /// Start of the range; -1 when a range was read but the log does not say where.
    pub off: i64,
    /// Length of the range; -1 for the whole object.
    pub len: i64,
    /// Body bytes that were answered, -1 unknown: the size of an object read whole, if nothing
    /// better is known.
    pub sent: i64,
    /// HTTP status, 0 unknown.
    pub status: u16,
    /// Recorded time in the server, nanoseconds; -1 unknown.
    pub dur_ns: i64,
    /// Number of a part.
    pub part: u16,
    /// Hash of the upload id, or of the request of a multi-object delete.
    pub upload: u64,
    /// How many times the request was made.
    pub repeat: u32,
    /// Hash of the log's own id of the request, 0 when it has none; equal ids within one tick of
    /// the clock are duplicates.
    pub id: u64,
}

/// The instant of a record that has none.
pub const NO_TIME: i64 = i64::MIN;

impl Default for Parsed {
    fn default() -> Self {
        Self {
            ts_ns: NO_TIME,
            op: TraceOp::Get,
            bucket: Vec::new(),
            key: Vec::new(),
            source: Vec::new(),
            client: Vec::new(),
            size: -1,
            off: 0,
            len: -1,
            sent: -1,
            status: 0,
            dur_ns: -1,
            part: 0,
            upload: 0,
            repeat: 1,
            id: 0,
        }
    }
}

impl Parsed {
    /// Makes it as new, keeping the allocations.
    pub fn clear(&mut self) {
        let mut names = [
            std::mem::take(&mut self.bucket),
            std::mem::take(&mut self.key),
            std::mem::take(&mut self.source),
            std::mem::take(&mut self.client),
        ];
        names.iter_mut().for_each(Vec::clear);
        let [bucket, key, source, client] = names;
        *self = Self {
            bucket,
            key,
            source,
            client,
            ..Self::default()
        };
    }

    /// Sets the range `[first, last]`, both included, of an object of `size` bytes. The whole
    /// object is no range.
    pub(crate) fn set_range(&mut self, first: i64, last: i64, size: i64) -> Result<(), Reason> {
        let last = if size >= 0 { last.min(size - 1) } else { last };
        if first == 0 && last + 1 == size || size == 0 {
            return Ok(());
        }
        if first < 0 || last < first {
            return Err(Reason::BadNumber);
        }
        self.off = first;
        self.len = last - first + 1;
        Ok(())
    }

    /// Marks that `len` bytes somewhere in the object were read, unless that is all of it.
    pub(crate) fn set_unplaced_range(&mut self, len: i64) {
        if len >= 0 && len != self.size {
            self.off = -1;
            self.len = len;
        }
    }

    /// Refuses a record without the key that its operation needs.
    ///
    /// # Errors
    /// [`Reason::NoKey`].
    pub(crate) fn need_key(&self) -> Result<(), Reason> {
        match self.op {
            TraceOp::List | TraceOp::Other => Ok(()),
            _ if self.key.is_empty() => Err(Reason::NoKey),
            _ => Ok(()),
        }
    }

    /// Takes part and upload from the query of a request.
    ///
    /// # Errors
    /// [`Reason::BadNumber`] when the part is no number of one.
    pub(crate) fn set_part(&mut self, parameters: &[u8]) -> Result<(), Reason> {
        if let Some(part) = query(parameters, b"partNumber") {
            let part = optional(part).and_then(|n| u16::try_from(n).ok());
            self.part = part.ok_or(Reason::BadNumber)?;
        }
        if let Some(upload) = query(parameters, b"uploadId") {
            self.upload = hash64(&[upload]);
        }
        Ok(())
    }

    /// Takes the range of a read from its header `Range`; an open end is where the sent bytes end.
    /// Without a header, status 206 tells of a range whose place is unknown.
    pub(crate) fn set_requested_range(&mut self, header: &[u8]) {
        match byte_range(header, -1) {
            Some((off, len)) => (self.off, self.len) = (off, if len < 0 { self.sent } else { len }),
            None if self.status == 206 => self.set_unplaced_range(self.sent),
            None => {}
        }
    }

    /// Emits a record for each of the `keys` that one request deletes.
    ///
    /// # Errors
    /// [`Reason::NoKey`] when it names none.
    pub(crate) fn emit_deleted<'k>(
        &mut self,
        request: &[u8],
        keys: impl ExactSizeIterator<Item = &'k str>,
        emit: &mut Emit<'_>,
    ) -> Result<(), Reason> {
        if keys.len() == 0 {
            return Err(Reason::NoKey);
        }
        self.upload = hash64(&[request]);
        for key in keys.filter(|key| !key.is_empty()) {
            self.key.clear();
            self.key.extend_from_slice(key.as_bytes());
            self.id = hash64(&[request, &self.key]);
            emit(self);
        }
        Ok(())
    }

    /// Takes the duration off an instant that marks the end.
    pub(crate) fn started_before(&mut self, end_ns: i64) {
        self.ts_ns = end_ns.saturating_sub(self.dur_ns.max(0));
    }
}

/// Why a line yields no record, or a record is left out.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "kebab-case")]
#[repr(u8)]
pub enum Reason {
    /// The line or JSON object ends too early.
    Truncated,
    /// The instant cannot be read.
    BadTimestamp,
    /// The operation's name is none that the format knows.
    UnknownOp,
    /// A number cannot be read or contradicts another one.
    BadNumber,
    /// The line does not have the format's structure.
    Malformed,
    /// The line is longer than 4 MiB.
    TooLong,
    /// The record lacks the key that its operation needs.
    NoKey,
    /// Known, but nothing that a replay could repeat (policies, versioning, site access).
    NotReplayed,
    /// Done by the service itself (life cycle) or on behalf of another request of the log.
    Internal,
    /// About another service.
    Foreign,
    /// Its id was seen before in the same tick of the clock.
    Duplicate,
    /// Left out by the chosen operations.
    FilteredOp,
    /// Left out by the chosen statuses.
    FilteredStatus,
    /// Left out by the chosen buckets.
    FilteredBucket,
    /// Before or after the time window.
    OutsideWindow,
    /// Left out by key or client sampling.
    Sampled,
    /// Failed with a 4xx status when recorded.
    RecordedError,
    /// Read an object that no record accounts for.
    Ambiguous,
}

impl Reason {
    /// Every reason, in the order of reports.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether the line could not be understood, as opposed to being left out on purpose.
    #[must_use]
    pub const fn is_unparsable(self) -> bool {
        (self as u8) <= Self::NoKey as u8
    }
}
