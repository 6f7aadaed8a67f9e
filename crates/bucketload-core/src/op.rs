//! Operation classes and the request that a session performs.
//!
//! An [`Op`] is a small `Copy` value computed from `(seed, seq)`; a [`Request`] adds the rendered
//! names, borrowed from the worker's buffers, so that nothing is allocated per operation.

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

    /// Whether the operation sends an object body.
    #[must_use]
    pub const fn writes_body(self) -> bool {
        matches!(
            self,
            Self::Put
                | Self::PutIfAbsent
                | Self::MultipartPut
                | Self::Append
                | Self::RangePut
                | Self::LocalWrite
        )
    }

    /// Whether workload files may use this class.
    #[must_use]
    pub const fn is_for_workloads(self) -> bool {
        !matches!(self, Self::RangePut | Self::Sync | Self::LocalWrite)
    }

    /// Whether the operation receives an object body.
    #[must_use]
    pub const fn reads_body(self) -> bool {
        matches!(self, Self::Get | Self::RangeGet)
    }

    /// Whether the operation creates an object with content under the request's key. (A touch makes
    /// empty ones.)
    #[must_use]
    pub const fn creates_object(self) -> bool {
        self.writes_body() && !matches!(self, Self::LocalWrite) || self.has_source()
    }

    /// Whether the operation creates an object from another one, named by [`Request::source`].
    #[must_use]
    pub const fn has_source(self) -> bool {
        matches!(self, Self::Copy | Self::MultipartCopy | Self::Rename)
    }

    /// Whether the operation removes existing objects from their keys.
    #[must_use]
    pub const fn removes_objects(self) -> bool {
        matches!(self, Self::Delete | Self::DeleteMany | Self::Rename)
    }

    /// Whether the operation changes no object.
    #[must_use]
    pub const fn only_reads(self) -> bool {
        matches!(
            self,
            Self::Get
                | Self::RangeGet
                | Self::Head
                | Self::List
                | Self::ListV1
                | Self::ListUploads
                | Self::GetTagging
                | Self::HeadBucket
                | Self::ListBuckets
                | Self::Restore
        )
    }

    /// Whether the operation acts on buckets rather than on objects.
    #[must_use]
    pub const fn on_bucket(self) -> bool {
        matches!(
            self,
            Self::MakeBucket | Self::HeadBucket | Self::DeleteBucket | Self::ListBuckets
        )
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
    /// The range to read or write, for [`OpClass::RangeGet`] and [`OpClass::RangePut`].
    pub range: Option<ByteRange>,
    /// For delete-many: number of consecutive keys from `key`. For lists: keys per page (`max-keys`). For
    /// multipart classes: part size in bytes. For restores: days to keep the copy. For range-get: 1 to keep a
    /// file open for further reads. Otherwise 0.
    pub count: u64,
    /// For lists: the maximum number of pages to fetch (0 = all).
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
mod tests {
    use super::{Op, OpClass, Request};

    #[test]
    fn names_are_unique_and_round_trip() {
        for class in OpClass::ALL {
            assert_eq!(OpClass::from_name(class.name()), Some(class));
            assert_eq!(serde_json::to_value(class).unwrap(), class.name());
            assert_eq!(Request::plain(class, "b", "k").op, &Op::new(class));
        }
        assert_eq!(OpClass::ALL.len(), OpClass::LocalWrite as usize + 1);
    }
}
