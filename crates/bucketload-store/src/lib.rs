//! S3 semantics over memory, a POSIX directory or nothing at all, for an HTTP server and a C library.
//!
//! [`Store`] is the interface; [`MemoryStore`], [`PosixStore`] and [`NullStore`] implement it.
//! Everything is synchronous and starts no threads. [`names`] has the rules for bucket names and keys,
//! [`StoreError`] the errors; [`Object`] gives access to an object's bytes without copying them.

mod api;
mod conditions;
mod content;
mod digest;
mod error;
mod etag;
mod extension;
mod listing;
pub mod memory;
mod multipart;
pub mod names;
mod null;
mod object;
mod part_sums;
pub mod posix;
mod types;
mod upload_types;
mod versions;

pub use api::{Amend, Guard, MAX_PARTS, ObjectUpload, PartUpload, Store, Write};
pub use conditions::{ReadConditions, ReadDecision};
pub use content::Chunk;
pub use digest::EtagMode;
pub use error::{Result, StoreError};
pub use etag::{ETag, ETagText, ParseETagError};
pub use memory::{MemoryOptions, MemoryStore};
pub use multipart::{MIN_PART_BYTES, upload_created};
pub use null::{NullOptions, NullStore};
pub use object::Object;
pub use posix::{Durability, MetadataStorage, PosixOptions, PosixStore};
pub use types::{
    BucketInfo, Checksum, ChecksumAlgorithm, ChecksumKind, Commit, Condition, Headers, ListEntry,
    ListRequest, Listing, ObjectInfo, PartSizes, PutOptions, Retention, Tags, Usage, Written,
};
pub use upload_types::{
    CompletedPart, ListUploadsRequest, MultipartOptions, PartInfo, PartListing, UploadInfo,
    UploadListing,
};
pub use versions::{
    ListVersionsRequest, ParseVersionError, Removed, VersionEntry, VersionId, VersionListing,
    Versioning,
};
