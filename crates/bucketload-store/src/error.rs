//! The errors of a store. Each variant corresponds to exactly one S3 error code
//! ([`StoreError::code`]) and one HTTP status ([`StoreError::http_status`]), so an HTTP server and a C
//! library can translate them without parsing text.

use std::io;

use crate::versions::VersionId;

/// Result of a store operation.
pub type Result<T> = std::result::Result<T, StoreError>;

/// Why a store operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The bucket does not exist.
    #[error("the bucket does not exist")]
    NoSuchBucket,
    /// The object does not exist.
    #[error("the key does not exist")]
    NoSuchKey,
    /// The version does not exist.
    #[error("the version does not exist")]
    NoSuchVersion,
    /// The version asked for is a delete marker: by its id (`named`), or because it is the newest.
    #[error("the version is a delete marker")]
    DeleteMarker {
        /// The marker.
        version: VersionId,
        /// Whether the request named it.
        named: bool,
    },
    /// Object lock protects the version.
    #[error("object lock protects the version")]
    Locked,
    /// The multipart upload does not exist, or was completed or aborted.
    #[error("the multipart upload does not exist; it may have been completed or aborted")]
    NoSuchUpload,
    /// The bucket still holds objects.
    #[error("the bucket is not empty")]
    BucketNotEmpty,
    /// The bucket already exists (there is only one owner).
    #[error("the bucket exists already and belongs to you")]
    BucketAlreadyOwnedByYou,
    /// The bucket name breaks a naming rule; the text names it.
    #[error("invalid bucket name: {0}")]
    InvalidBucketName(&'static str),
    /// The key is longer than 1024 bytes.
    #[error("the key is longer than 1024 bytes")]
    KeyTooLong,
    /// An argument has an invalid value; the text names it.
    #[error("invalid argument: {0}")]
    InvalidArgument(&'static str),
    /// A part named by a completion is missing, or its entity tag or checksum differs.
    #[error("part {0} was not uploaded, or its entity tag or checksum does not match")]
    InvalidPart(u32),
    /// The parts of a completion are not in ascending order.
    #[error("the parts are not in ascending order")]
    InvalidPartOrder,
    /// A part other than the last is below the minimum size.
    #[error("part {part} has {size} bytes; every part but the last needs at least {minimum}")]
    EntityTooSmall {
        /// Number of the part.
        part: u32,
        /// Its size in bytes.
        size: u64,
        /// The smallest size allowed, in bytes.
        minimum: u64,
    },
    /// The object would be larger than the store accepts.
    #[error("the object exceeds the maximum size of {maximum} bytes")]
    EntityTooLarge {
        /// The largest size allowed, in bytes.
        maximum: u64,
    },
    /// The bytes received do not have the MD5 that the sender announced.
    #[error("the content does not have the announced MD5")]
    BadDigest,
    /// More or fewer bytes were written than announced.
    #[error("{written} bytes were written, {announced} were announced")]
    IncompleteBody {
        /// Bytes announced.
        announced: u64,
        /// Bytes written.
        written: u64,
    },
    /// A condition (If-Match, If-None-Match) does not hold.
    #[error("a precondition does not hold")]
    PreconditionFailed,
    /// An append does not begin where the object ends.
    #[error("the write offset does not match the size of the object")]
    InvalidWriteOffset,
    /// The object has as many parts as an object may have.
    #[error("the object has 10000 parts, the maximum; a copy of it has one again")]
    TooManyParts,
    /// The range lies outside the object.
    #[error("the range is not satisfiable; the object has {size} bytes")]
    InvalidRange {
        /// Size of the object in bytes.
        size: u64,
    },
    /// The byte limit of the store, the file system or a quota is reached.
    #[error("no space left in the store")]
    InsufficientStorage,
    /// The store does not support the operation.
    #[error("this store does not implement {0}")]
    NotImplemented(&'static str),
    /// The operating system denied access.
    #[error("the store may not access its directory: {0}")]
    AccessDenied(#[source] io::Error),
    /// A system call failed.
    #[error("{context}: {source}")]
    Io {
        /// What the store was doing.
        context: &'static str,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The store's data are inconsistent, such as a damaged metadata record.
    #[error("damaged store: {0}")]
    Corrupt(String),
}

impl StoreError {
    /// The S3 error code, for example `NoSuchKey`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoSuchBucket => "NoSuchBucket",
            Self::NoSuchKey | Self::DeleteMarker { named: false, .. } => "NoSuchKey",
            Self::NoSuchVersion => "NoSuchVersion",
            Self::DeleteMarker { named: true, .. } => "MethodNotAllowed",
            Self::NoSuchUpload => "NoSuchUpload",
            Self::BucketNotEmpty => "BucketNotEmpty",
            Self::BucketAlreadyOwnedByYou => "BucketAlreadyOwnedByYou",
            Self::InvalidBucketName(_) => "InvalidBucketName",
            Self::KeyTooLong => "KeyTooLongError",
            Self::InvalidArgument(_) => "InvalidArgument",
            Self::InvalidPart(_) => "InvalidPart",
            Self::InvalidPartOrder => "InvalidPartOrder",
            Self::EntityTooSmall { .. } => "EntityTooSmall",
            Self::EntityTooLarge { .. } => "EntityTooLarge",
            Self::BadDigest => "BadDigest",
            Self::IncompleteBody { .. } => "IncompleteBody",
            Self::PreconditionFailed => "PreconditionFailed",
            Self::InvalidWriteOffset => "InvalidWriteOffset",
            Self::TooManyParts => "TooManyParts",
            Self::InvalidRange { .. } => "InvalidRange",
            Self::InsufficientStorage => "InsufficientStorage",
            Self::NotImplemented(_) => "NotImplemented",
            Self::AccessDenied(_) | Self::Locked => "AccessDenied",
            Self::Io { .. } | Self::Corrupt(_) => "InternalError",
        }
    }

    /// The HTTP status of [`code`](Self::code).
    #[must_use]
    pub const fn http_status(&self) -> u16 {
        match self {
            Self::NoSuchBucket
            | Self::NoSuchKey
            | Self::NoSuchVersion
            | Self::DeleteMarker { named: false, .. }
            | Self::NoSuchUpload => 404,
            Self::DeleteMarker { named: true, .. } => 405,
            Self::BucketNotEmpty | Self::BucketAlreadyOwnedByYou => 409,
            Self::InvalidBucketName(_)
            | Self::KeyTooLong
            | Self::InvalidArgument(_)
            | Self::InvalidPart(_)
            | Self::InvalidPartOrder
            | Self::EntityTooSmall { .. }
            | Self::EntityTooLarge { .. }
            | Self::BadDigest
            | Self::InvalidWriteOffset
            | Self::TooManyParts
            | Self::IncompleteBody { .. } => 400,
            Self::AccessDenied(_) | Self::Locked => 403,
            Self::PreconditionFailed => 412,
            Self::InvalidRange { .. } => 416,
            Self::NotImplemented(_) => 501,
            Self::InsufficientStorage => 507,
            Self::Io { .. } | Self::Corrupt(_) => 500,
        }
    }
}

impl StoreError {
    /// The error for a failed system call.
    pub(crate) fn system(context: &'static str, error: impl Into<io::Error>) -> Self {
        let source = error.into();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::InsufficientStorage,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::AccessDenied(source)
            }
            _ => Self::Io { context, source },
        }
    }

    /// [`system`](Self::system) as a function for `map_err`.
    pub(crate) fn during<E: Into<io::Error>>(context: &'static str) -> impl Fn(E) -> Self + Copy {
        move |error| Self::system(context, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_and_a_quota_are_insufficient_storage() {
        let error = |number| StoreError::system("x", io::Error::from_raw_os_error(number));
        for number in [libc::ENOSPC, libc::EDQUOT] {
            assert_eq!(error(number).code(), "InsufficientStorage");
        }
        for number in [libc::EACCES, libc::EPERM, libc::EROFS] {
            assert_eq!(error(number).code(), "AccessDenied");
        }
        assert_eq!(error(libc::EIO).code(), "InternalError");
    }
}
