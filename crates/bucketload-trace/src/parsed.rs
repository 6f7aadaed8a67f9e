//! What an importer makes of a line: one request with names still in full, before names become
//! dictionary numbers and instants become relative.

use bucketload_core::trace::TraceOp;

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

    /// Takes the duration off an instant that marks the end.
    pub(crate) fn started_before(&mut self, end_ns: i64) {
        self.ts_ns = end_ns.saturating_sub(self.dur_ns.max(0));
    }
}

/// Why a line yields no record, or a record is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
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
    pub const ALL: [Self; 18] = [
        Self::Truncated,
        Self::BadTimestamp,
        Self::UnknownOp,
        Self::BadNumber,
        Self::Malformed,
        Self::TooLong,
        Self::NoKey,
        Self::NotReplayed,
        Self::Internal,
        Self::Foreign,
        Self::Duplicate,
        Self::FilteredOp,
        Self::FilteredStatus,
        Self::FilteredBucket,
        Self::OutsideWindow,
        Self::Sampled,
        Self::RecordedError,
        Self::Ambiguous,
    ];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::BadTimestamp => "bad-timestamp",
            Self::UnknownOp => "unknown-op",
            Self::BadNumber => "bad-number",
            Self::Malformed => "malformed",
            Self::TooLong => "too-long",
            Self::NoKey => "no-key",
            Self::NotReplayed => "not-replayed",
            Self::Internal => "internal",
            Self::Foreign => "foreign",
            Self::Duplicate => "duplicate",
            Self::FilteredOp => "filtered-op",
            Self::FilteredStatus => "filtered-status",
            Self::FilteredBucket => "filtered-bucket",
            Self::OutsideWindow => "outside-window",
            Self::Sampled => "sampled",
            Self::RecordedError => "recorded-error",
            Self::Ambiguous => "ambiguous",
        }
    }

    /// Whether the line could not be understood, as opposed to being left out on purpose.
    #[must_use]
    pub const fn is_unparsable(self) -> bool {
        (self as u8) <= Self::NoKey as u8
    }
}
