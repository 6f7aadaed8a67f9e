//! Operation classes and the request that a session performs.
//!
//! An [`Op`] is a small `Copy` value computed from `(seed, seq)`; a [`Request`] adds the rendered
//! names, borrowed from the worker's buffers, so that nothing is allocated per operation.

use std::cell::Cell;
use std::fmt;

use serde::{Deserialize, Serialize};
use strum::VariantArray;

use crate::payload::Content;

/// What an operation does. Drivers state in [`crate::driver::Capabilities`] which they can do.
///
/// Recording, storage and reports are generic over the class.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
    strum::Display,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
#[repr(u8)]
pub enum OpClass {
    /// Read a whole object.
    Get,
    /// Read a byte range of an object.
    RangeGet,
    /// Write a whole object in one request.
    Put,
    /// Write a whole object in one request unless the key already holds one (`If-None-Match: *`). An existing
    /// object is not a failure: the operation then writes nothing.
    PutIfAbsent,
    /// Write a whole object as create, parts and complete; one operation, several requests.
    MultipartPut,
    /// Append bytes to an object, creating it if it does not exist.
    Append,
    /// Set an object's modification time to now, creating an empty object if it does not exist.
    Touch,
    /// Read an object's metadata.
    Head,
    /// Delete one object.
    Delete,
    /// Delete several objects in one request.
    DeleteMany,
    /// List keys under a prefix (S3: ListObjectsV2).
    List,
    /// List keys with the older paging by marker (S3: ListObjects).
    ListV1,
    /// Copy an object on the server.
    Copy,
    /// Give an object another key, without copying its bytes if the store supports that.
    Rename,
    /// Start a multipart upload and abort it; one operation, two requests.
    MultipartAbort,
    /// Write an object as a multipart upload whose parts are copied from another object.
    MultipartCopy,
    /// List unfinished multipart uploads under a prefix.
    ListUploads,
    /// Set the tags of an object.
    PutTagging,
    /// Read the tags of an object.
    GetTagging,
    /// Remove the tags of an object.
    DeleteTagging,
    /// Create a bucket.
    MakeBucket,
    /// Check that a bucket exists.
    HeadBucket,
    /// Delete an empty bucket.
    DeleteBucket,
    /// List buckets.
    ListBuckets,
    /// Write a byte range of an object in place, creating the object if it does not exist. Only IO500 uses
    /// it.
    #[schemars(skip)]
    RangePut,
    /// Make the ranges written to an object durable and close it. Only IO500 uses it.
    #[schemars(skip)]
    Sync,
    /// Request a temporary copy of an archived object (S3: RestoreObject). The object itself does not change.
    /// The store refuses if the object is not archived.
    Restore,
    /// Write a file on the load generator's own file system: COSBench's `localwrite`. Only COSBench workloads
    /// use it.
    #[schemars(skip)]
    LocalWrite,
    /// List the versions of objects under a prefix, and delete markers (S3: ListObjectVersions).
    ListVersions,
    /// Read one version of an object: one of the newest whose identifiers the run knows, chosen at random.
    GetVersion,
    /// Remove one version of an object for good: the oldest whose identifier the run knows.
    DeleteVersion,
    /// Protect the current version of an object against removal for some days (S3: governance mode).
    PutRetention,
    /// Read until when the current version of an object is protected.
    GetRetention,
    /// Protect the current version of an object against removal until the hold is lifted.
    PutLegalHold,
    /// Read whether the current version of an object has a legal hold.
    GetLegalHold,
    /// Set the access control list of an object to `private`.
    PutAcl,
    /// Read the access control list of an object.
    GetAcl,
    /// Read an object's metadata with its checksum and parts (S3: GetObjectAttributes).
    GetAttributes,
    /// Delete one object on the condition that it exists (`If-Match: *`).
    DeleteIfMatch,
    /// Write a whole object in one request unless somebody else has changed it: the first time on the condition that it
    /// does not exist (`If-None-Match: *`), later that it still has the entity tag of this run's last write
    /// (`If-Match`). A refusal is not a failure: the operation then writes nothing. Only checkpoints use it.
    #[schemars(skip)]
    PutIfMatch,
    /// Read one part of an object that was uploaded in parts, by its number (S3: GET with `partNumber`), chosen
    /// uniformly.
    GetPart,
    /// Read the metadata and the size of one part, by its number (S3: HEAD with `partNumber`), chosen uniformly.
    HeadPart,
}

impl OpClass {
    /// Every class, in the order of reports.
    pub const ALL: [Self; Self::VARIANTS.len()] = *Self::VARIANTS.first_chunk().unwrap();

    /// The name used in workload files, reports and exports.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The class called `name`, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// What distinguishes the class. Everything that asks about classes asks here, so a new class needs one row.
    #[inline]
    const fn traits(self) -> u16 {
        match self {
            Self::Get | Self::RangeGet => RECEIVES | READS,
            Self::GetPart => RECEIVES | READS | BY_PART,
            Self::HeadPart => READS | BY_PART,
            Self::GetVersion => RECEIVES | READS | BY_VERSION,
            Self::Put | Self::Append => SENDS,
            Self::PutIfAbsent => SENDS,
            Self::MultipartPut => SENDS | PARTS,
            Self::RangePut | Self::PutIfMatch => SENDS | INTERNAL,
            Self::LocalWrite => SENDS | INTERNAL,
            Self::Sync => INTERNAL,
            Self::Touch => ANY_KEY,
            Self::Delete | Self::DeleteMany | Self::DeleteIfMatch => REMOVES,
            Self::DeleteVersion => REMOVES | BY_VERSION,
            Self::List | Self::ListV1 | Self::ListUploads | Self::ListVersions => {
                LISTS | READS | ANY_KEY
            }
            Self::Copy => SOURCE,
            Self::MultipartCopy => SOURCE | PARTS,
            Self::Rename => SOURCE | REMOVES,
            Self::MultipartAbort => PARTS | ANY_KEY,
            Self::Head | Self::GetTagging | Self::GetAcl | Self::GetAttributes => READS,
            Self::Restore => READS | DAYS,
            Self::PutTagging | Self::DeleteTagging | Self::PutAcl => 0,
            Self::PutRetention => LOCKS | DAYS,
            Self::PutLegalHold => LOCKS,
            Self::GetRetention | Self::GetLegalHold => LOCKS | READS,
            Self::MakeBucket | Self::DeleteBucket => BUCKET | ANY_KEY,
            Self::HeadBucket | Self::ListBuckets => BUCKET | READS | ANY_KEY,
        }
    }

    #[inline]
    const fn has(self, traits: u16) -> bool {
        self.traits() & traits != 0
    }

    /// Whether the operation sends an object body.
    #[inline]
    #[must_use]
    pub const fn writes_body(self) -> bool {
        self.has(SENDS)
    }

    /// Whether workload files may use this class.
    #[inline]
    #[must_use]
    pub const fn is_for_workloads(self) -> bool {
        !self.has(INTERNAL)
    }

    /// Whether the operation receives an object body.
    #[inline]
    #[must_use]
    pub const fn reads_body(self) -> bool {
        self.has(RECEIVES)
    }

    /// Whether the operation creates an object with content under the request's key. (A touch makes
    /// empty ones.)
    #[must_use]
    pub const fn creates_object(self) -> bool {
        self.writes_body() && !matches!(self, Self::LocalWrite) || self.has_source()
    }

    /// Whether the operation creates an object from another one, named by [`Request::source`].
    #[inline]
    #[must_use]
    pub const fn has_source(self) -> bool {
        self.has(SOURCE)
    }

    /// Whether the operation removes existing objects from their keys, or versions of them.
    #[inline]
    #[must_use]
    pub const fn removes_objects(self) -> bool {
        self.has(REMOVES)
    }

    /// Whether the operation changes no object.
    #[inline]
    #[must_use]
    pub const fn only_reads(self) -> bool {
        self.has(READS)
    }

    /// Whether the operation acts on buckets rather than on objects.
    #[inline]
    #[must_use]
    pub const fn on_bucket(self) -> bool {
        self.has(BUCKET)
    }

    /// Whether the operation lists what is under a prefix.
    #[inline]
    #[must_use]
    pub const fn lists(self) -> bool {
        self.has(LISTS)
    }

    /// Whether the operation sends or copies an object in parts.
    #[inline]
    #[must_use]
    pub const fn is_multipart(self) -> bool {
        self.has(PARTS)
    }

    /// Whether the operation has a number of days.
    #[inline]
    #[must_use]
    pub const fn has_days(self) -> bool {
        self.has(DAYS)
    }

    /// Whether the operation fails on a key without an object. Writes, and operations that take any key, do not.
    #[inline]
    #[must_use]
    pub const fn needs_object(self) -> bool {
        !self.has(ANY_KEY | SENDS)
    }

    /// Whether the operation names one version of an object ([`Request::version`]).
    #[inline]
    #[must_use]
    pub const fn by_version(self) -> bool {
        self.has(BY_VERSION)
    }

    /// Whether the operation names one part of an object that was uploaded in parts ([`Op::part_number`]).
    #[inline]
    #[must_use]
    pub const fn by_part(self) -> bool {
        self.has(BY_PART)
    }

    /// Whether [`Op::range`] says what the operation reads.
    #[inline]
    #[must_use]
    pub const fn reads_range(self) -> bool {
        self.by_part() || matches!(self, Self::RangeGet)
    }

    /// What the operation needs of its bucket.
    #[must_use]
    pub const fn bucket_needs(self) -> BucketNeeds {
        BucketNeeds {
            versions: self.has(BY_VERSION | LOCKS),
            lock: self.has(LOCKS),
        }
    }
}

/// Sends an object body.
const SENDS: u16 = 1;
/// Receives an object body.
const RECEIVES: u16 = 1 << 1;
/// Creates an object from another one.
const SOURCE: u16 = 1 << 2;
/// Removes objects from their keys.
const REMOVES: u16 = 1 << 3;
/// Changes nothing.
const READS: u16 = 1 << 4;
/// Acts on buckets.
const BUCKET: u16 = 1 << 5;
/// Lists a prefix.
const LISTS: u16 = 1 << 6;
/// Needs no object under its key.
const ANY_KEY: u16 = 1 << 7;
/// Consists of parts.
const PARTS: u16 = 1 << 8;
/// Has a number of days.
const DAYS: u16 = 1 << 9;
/// Names a version.
const BY_VERSION: u16 = 1 << 10;
/// Needs a bucket with object lock.
const LOCKS: u16 = 1 << 11;
/// Not for workload files.
const INTERNAL: u16 = 1 << 12;
/// Names a part.
const BY_PART: u16 = 1 << 13;

/// What operations need of their bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketNeeds {
    /// It keeps the versions of its objects.
    pub versions: bool,
    /// Versions can be locked.
    pub lock: bool,
}

impl BucketNeeds {
    /// Whether there is any.
    #[must_use]
    pub const fn any(self) -> bool {
        self.versions || self.lock
    }

    /// These needs and `other`.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            versions: self.versions || other.versions,
            lock: self.lock || other.lock,
        }
    }
}

/// A byte range of an object: `len` bytes from `offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// First byte, counted from 0.
    pub offset: u64,
    /// Length in bytes, at least 1.
    pub len: u64,
}

/// One planned operation: a pure function of the plan's seed, the work and the sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Position in the work's global sequence.
    pub seq: u64,
    /// What to do.
    pub class: OpClass,
    /// Index of the mix entry in the work: names the operation in reports.
    pub entry: u16,
    /// Index of the key set in the plan.
    pub keyset: u16,
    /// Index of the object inside the key set. For list classes: selects the prefix.
    pub key: u64,
    /// For copies and renames: index of the source object, in key set `source_keyset`.
    pub source_key: u64,
    /// For copies and renames: the key set of the source.
    pub source_keyset: u16,
    /// Version of the content written; 0 for the initial content of an object.
    pub version: u32,
    /// Bytes to write. For reads, the size of the whole object if the plan knows it, else
    /// [`Op::UNKNOWN_SIZE`].
    pub size: u64,
    /// The range to read or write, for [`OpClass::RangeGet`] and [`OpClass::RangePut`]; the range of the part, for
    /// classes that name one.
    pub range: Option<ByteRange>,
    /// For delete-many: number of consecutive keys from `key`. For lists: keys per page (`max-keys`). For
    /// multipart classes and those that name a part: part size in bytes. For restores and retentions: days. For range-get: 1 to keep a
    /// file open for further reads. Otherwise 0.
    pub count: u64,
    /// For lists: the maximum number of pages to fetch (0 = all). For multipart puts: parts to send at the same time (0
    /// and 1 = one after another), where the driver can ([`crate::driver::Capabilities::parts_in_flight`]).
    pub pages: u32,
}

impl Op {
    /// The `size` of an object when the plan does not know it.
    pub const UNKNOWN_SIZE: u64 = u64::MAX;

    /// An operation of class `class` on object 0 of key set 0, with unknown size and no parameters. The
    /// caller sets the fields that differ.
    #[must_use]
    pub const fn new(class: OpClass) -> Self {
        Self {
            seq: 0,
            class,
            entry: 0,
            keyset: 0,
            key: 0,
            source_key: 0,
            source_keyset: 0,
            version: 0,
            size: Self::UNKNOWN_SIZE,
            range: None,
            count: 0,
            pages: 0,
        }
    }

    /// The number of the part that the operation names, from 1.
    #[inline]
    #[must_use]
    pub const fn part_number(&self) -> u64 {
        match (self.range, self.count) {
            (Some(range), 1..) => range.offset / self.count + 1,
            _ => 1,
        }
    }
}

/// The identifier that a store gave to a version of an object, at most [`VersionId::MOST`] bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionId {
    len: u8,
    bytes: [u8; Self::MOST],
}

impl Default for VersionId {
    fn default() -> Self {
        Self {
            len: 0,
            bytes: [0; Self::MOST],
        }
    }
}

impl VersionId {
    /// Longest identifier, in bytes. Amazon S3's have 32, those of other stores up to 36.
    pub const MOST: usize = 47;

    /// The identifier `text`; `None` if it is longer.
    #[must_use]
    pub fn new(text: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::MOST];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        Some(Self {
            len: text.len() as u8,
            bytes,
        })
    }

    /// The text; empty for none.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }

    /// Length and bytes as six words, for storage in atomic numbers.
    #[must_use]
    pub fn to_words(self) -> [u64; 6] {
        let mut all = [0; 48];
        all[0] = self.len;
        all[1..].copy_from_slice(&self.bytes);
        std::array::from_fn(|i| u64::from_le_bytes(std::array::from_fn(|byte| all[8 * i + byte])))
    }

    /// The identifier that [`Self::to_words`] gave.
    #[must_use]
    pub fn from_words(words: [u64; 6]) -> Self {
        let byte = |at: usize| words[at / 8].to_le_bytes()[at % 8];
        Self {
            len: byte(0).min(Self::MOST as u8),
            bytes: std::array::from_fn(|i| byte(i + 1)),
        }
    }
}

/// Renders further keys of a request that concerns several objects (delete-many).
pub trait KeySource {
    /// Writes the `i`-th key of the request into `out`, replacing its contents.
    fn render(&self, i: u64, out: &mut String);
}

/// Observes what a session receives, for the consistency oracle. The session calls it on its own thread while
/// it performs the operation.
pub trait Watch {
    /// Bytes of an object's body, in order.
    fn body(&self, bytes: &[u8]);

    /// A key in a listing.
    fn listed(&self, key: &str);

    /// Whether keys may come in any order, each of them once, which can save a session sorting them.
    fn takes_any_order(&self) -> bool {
        false
    }

    /// Whether the observer wants [`Watch::details`] for the key listed last.
    fn wants_details(&self) -> bool {
        false
    }

    /// Size in bytes and modification time, in seconds since 1970, of the key listed last.
    fn details(&self, _bytes: u64, _changed_s: i64) {}

    /// The listing stopped at its page limit although the store has more keys.
    fn cut_short(&self);
}

/// An operation with its rendered names: what a [`crate::driver::Session`] executes.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The operation. Borrowed, because a copy would enlarge every worker's state and would be read back
    /// before the processor has finished writing it.
    pub op: &'a Op,
    /// Bucket name.
    pub bucket: &'a str,
    /// Object key, or key prefix for list classes; unescaped.
    pub key: &'a str,
    /// For copies and renames: source key in the same bucket; otherwise empty.
    pub source: &'a str,
    /// For lists: delimiter; empty for none.
    pub delimiter: &'a str,
    /// For delete-many: renders the keys `0..op.count`.
    pub keys: Option<&'a dyn KeySource>,
    /// For classes that write: the content. For reads with verification: the content to expect.
    pub content: Option<Content<'a>>,
    /// Whether to compare every received byte with `content`.
    pub verify: bool,
    /// Observes the received data. If set, the session itself compares nothing.
    pub watch: Option<&'a dyn Watch>,
    /// For operations on one version: its identifier. If a write has it, the session stores the identifier that the
    /// store gave to the new version, and fails if there is none.
    pub version: Option<&'a Cell<VersionId>>,
}

impl<'a> Request<'a> {
    /// A request without content and optional names; the caller sets them as needed.
    #[must_use]
    pub const fn new(op: &'a Op, bucket: &'a str, key: &'a str) -> Self {
        Self {
            op,
            bucket,
            key,
            source: "",
            delimiter: "",
            keys: None,
            content: None,
            verify: false,
            watch: None,
            version: None,
        }
    }

    /// A request for the operation that [`Op::new`] returns for `class`.
    #[must_use]
    pub const fn plain(class: OpClass, bucket: &'a str, key: &'a str) -> Self {
        static OPS: [Op; OpClass::ALL.len()] = {
            let mut ops = [Op::new(OpClass::Get); OpClass::ALL.len()];
            let mut i = 0;
            while i < ops.len() {
                ops[i] = Op::new(OpClass::ALL[i]);
                i += 1;
            }
            ops
        };
        Self::new(&OPS[class as usize], bucket, key)
    }
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("op", &self.op)
            .field("bucket", &self.bucket)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
