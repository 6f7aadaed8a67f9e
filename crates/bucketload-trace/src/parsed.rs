//! The output of an importer: one request with full names, before names become dictionary numbers and instants
//! become relative.

use bucketload_core::trace::TraceOp;

use crate::formats::Emit;
use crate::hash::hash64;
use crate::text::fields::{byte_range, optional, query};

/// One recorded request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedRecord {
    /// Start, nanoseconds: since 1970 or since the origin of the trace, or [`NO_TIME`].
    pub ts_ns: i64,
    /// The operation.
    pub op: TraceOp,
    /// Bucket or container; empty if the format has none.
    pub bucket: Vec<u8>,
    /// Decoded key; for a listing the prefix, which may be empty.
    pub key: Vec<u8>,
    /// Source of a copy as `bucket/key`; empty if unknown.
    pub source: Vec<u8>,
    /// Client, requester or host; empty if unknown.
    pub client: Vec<u8>,
    /// Full size of the object, bytes; -1 unknown.
    pub size: i64,
    /// Start of the range; -1 if the log does not tell where the range starts.
    pub off: i64,
    /// Length of the range; -1 for the whole object.
    pub len: i64,
    /// Number of body bytes in the response; -1 unknown. For a read of the whole object it is the size of last resort.
    pub sent: i64,
    /// HTTP status, 0 unknown.
    pub status: u16,
    /// Recorded time in the server, nanoseconds; -1 unknown.
    pub dur_ns: i64,
    /// Part number.
    pub part: u16,
    /// Hash of the upload id, or of the request id of a multi-object delete.
    pub upload: u64,
    /// How many times the request was made.
    pub repeat: u32,
    /// Hash of the log's request id, 0 if there is none. Equal ids within one tick of the clock are duplicates.
    pub id: u64,
}

/// Marks a record without an instant.
pub const NO_TIME: i64 = i64::MIN;

impl Default for ParsedRecord {
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

impl ParsedRecord {
    /// Resets all fields but keeps the allocations.
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

    /// Sets the inclusive range `[first, last]` of an object of `size` bytes. The whole object does not count as a range.
    pub(crate) fn set_range(&mut self, first: i64, last: i64, size: i64) -> Result<(), DropReason> {
        let last = if size >= 0 { last.min(size - 1) } else { last };
        if first == 0 && last + 1 == size || size == 0 {
            return Ok(());
        }
        if first < 0 || last < first {
            return Err(DropReason::BadNumber);
        }
        self.off = first;
        self.len = last - first + 1;
        Ok(())
    }

    /// Sets a range of `len` bytes at an unknown position, unless `len` is the whole object.
    pub(crate) fn set_unplaced_range(&mut self, len: i64) {
        if len >= 0 && len != self.size {
            self.off = -1;
            self.len = len;
        }
    }

    /// Rejects a record without the key that its operation needs.
    ///
    /// # Errors
    /// [`DropReason::NoKey`].
    pub(crate) fn need_key(&self) -> Result<(), DropReason> {
        match self.op {
            TraceOp::List | TraceOp::Other => Ok(()),
            _ if self.key.is_empty() => Err(DropReason::NoKey),
            _ => Ok(()),
        }
    }

    /// Reads part number and upload id from the query of a request.
    ///
    /// # Errors
    /// [`DropReason::BadNumber`] when the part number is invalid.
    pub(crate) fn set_part(&mut self, parameters: &[u8]) -> Result<(), DropReason> {
        if let Some(part) = query(parameters, b"partNumber") {
            let part = optional(part).and_then(|n| u16::try_from(n).ok());
            self.part = part.ok_or(DropReason::BadNumber)?;
        }
        if let Some(upload) = query(parameters, b"uploadId") {
            self.upload = hash64(&[upload]);
        }
        Ok(())
    }

    /// Sets the range of a read from its `Range` header; an open range ends with the sent bytes. Without a header,
    /// status 206 means a range at an unknown position.
    pub(crate) fn set_requested_range(&mut self, header: &[u8]) {
        match byte_range(header, -1) {
            Some((off, len)) => (self.off, self.len) = (off, if len < 0 { self.sent } else { len }),
            None if self.status == 206 => self.set_unplaced_range(self.sent),
            None => {}
        }
    }

    /// Emits one record for each of the `keys` of a multi-object delete.
    ///
    /// # Errors
    /// [`DropReason::NoKey`] when there are no keys.
    pub(crate) fn emit_deleted<'k>(
        &mut self,
        request: &[u8],
        keys: impl ExactSizeIterator<Item = &'k str>,
        emit: &mut Emit<'_>,
    ) -> Result<(), DropReason> {
        if keys.len() == 0 {
            return Err(DropReason::NoKey);
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

    /// Sets the start from the end of the request and its duration.
    pub(crate) fn started_before(&mut self, end_ns: i64) {
        self.ts_ns = end_ns.saturating_sub(self.dur_ns.max(0));
    }
}

/// Why a line has no record, or a record is left out.
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
pub enum DropReason {
    /// The line or JSON object ends too early.
    Truncated,
    /// The instant cannot be parsed.
    BadTimestamp,
    /// The format does not know the operation's name.
    UnknownOp,
    /// A number cannot be parsed or contradicts another one.
    BadNumber,
    /// The line does not have the format's structure.
    Malformed,
    /// The line is longer than 4 MiB, or has more than 65,535 records.
    TooLong,
    /// The record lacks the key that its operation needs.
    NoKey,
    /// A known operation that a replay cannot repeat (policies, versioning, site access).
    NotReplayed,
    /// Done by the service itself (life cycle), or on behalf of another logged request.
    Internal,
    /// Belongs to another service.
    Foreign,
    /// A record with the same id occurred in the same tick of the clock.
    Duplicate,
    /// Left out by the filter of operations.
    FilteredOp,
    /// Left out by the filter of statuses.
    FilteredStatus,
    /// Left out by the filter of buckets.
    FilteredBucket,
    /// Before or after the time window.
    OutsideWindow,
    /// Left out by key or client sampling.
    Sampled,
    /// The recorded request failed with a 4xx status.
    RecordedError,
    /// A read of an object whose existence no record explains.
    Ambiguous,
}

impl DropReason {
    /// Every reason, in the order of reports.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether the line could not be parsed, as opposed to being left out on purpose.
    #[must_use]
    pub const fn is_unparsable(self) -> bool {
        (self as u8) <= Self::NoKey as u8
    }
}
